// SPDX-License-Identifier: Apache-2.0
// The basic operations, which every backend has, page by page of the vocabulary. Each backend's basic.hpp includes this
// file inside its namespace, where Self, Queue and Mat are its own; hence no include guard.

// movement
template <class T>
void copy(const Queue& queue, const Mat<T>& source, const Mat<T>& target, Part part);
template <class T>
void transpose(const Queue& queue, const Mat<T>& source, const Mat<T>& target);
template <class T>
void copy_rows(const Queue& queue, const Mat<T>& source, Self::Pointer<std::int64_t> sources, const Mat<T>& target,
               Self::Pointer<std::int64_t> targets, Index count);
template <class T>
void gather_columns(const Queue& queue, const Mat<T>& source, Self::Pointer<std::int32_t> columns,
                    const Mat<T>& target);
template <class T>
void fill(const Queue& queue, const Mat<T>& a, T off_diagonal, T diagonal);
void set_flags(const Queue& queue, Self::Pointer<std::int32_t> flags, Index count, std::int32_t value);
template <class T>
void narrow(const Queue& queue, const Mat<double>& source, const Mat<T>& target, Part part);
template <class T>
void widen(const Queue& queue, const Mat<T>& source, const Mat<double>& target);
template <class T>
void sum_squares(const Queue& queue, const Mat<T>& a, Self::Pointer<double> sum, const Scratch<Self>& scratch);
template <class T>
void sum_abs(const Queue& queue, const Mat<T>& a, Self::Pointer<double> sum, const Scratch<Self>& scratch);
template <class T>
void max_abs(const Queue& queue, const Mat<T>& a, Self::Pointer<double> maximum, const Scratch<Self>& scratch);
template <class T>
void first_not_finite(const Queue& queue, const Mat<T>& a, Self::Pointer<std::int64_t> position,
                      const Scratch<Self>& scratch);

// products
template <class T>
void gemm(const Queue& queue, Op op_a, Op op_b, T alpha, const Mat<T>& a, const Mat<T>& b, T beta, const Mat<T>& c);
template <class T>
void trsm(const Queue& queue, Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, const Mat<T>& a,
          const Mat<T>& b);
template <class T>
void gram(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Scratch<Self>& scratch);
template <class T>
void multiply_wide(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q,
                   const Scratch<Self>& scratch);
template <class T>
void apply_sketch(const Queue& queue, const Mat<T>& a, const Mat<T>& s);

// panels
template <class T>
void factor(const Queue& queue, const Panel<Self, T>& panel);
template <class T>
void factor_tree(const Queue& queue, const Panel<Self, T>& panel);
template <class T>
void apply_qt_h(const Queue& queue, const Apply<Self, T>& apply);
template <class T>
void apply_qt_tree(const Queue& queue, const Apply<Self, T>& apply);
template <class T>
void reconstruct(const Queue& queue, const Reconstruct<Self, T>& task);
template <class T>
Index pivoted_factor_scratch_bytes(const Queue& queue, Index rows, Index cols, T);
template <class T>
void pivoted_factor(const Queue& queue, const PivotedFactor<Self, T>& task, const Scratch<Self>& scratch);

// guard
template <class T>
void guarded_cholesky(const Queue& queue, const GuardedCholesky<Self, T>& task);

// rpca
template <class T>
void robust_pca_pass(const Queue& queue, const RobustPcaPass<Self, T>& pass, const Scratch<Self>& scratch);

// fronts
template <class T>
void lay_out_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, std::int32_t>& list);
template <class T>
void assemble_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontShare>& tasks);
template <class T>
void pack_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontPieceTask>& tasks);
template <class T>
void unpack_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontPieceTask>& tasks);
template <class T>
void factor_front_panels(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontPanelTask>& tasks);
template <class T>
void update_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontUpdateTask>& tasks);
template <class T>
void finish_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, FrontShare>& tasks);
template <class T>
void factor_whole_fronts(const Queue& queue, const Fronts<Self, T>& f, const FrontTasks<Self, std::int32_t>& list,
                         bool keep_q);

// front_solve
template <class T>
void copy_lines(const Queue& queue, const CopyLines<Self, T>& task);
template <class T>
void sum_lines(const Queue& queue, const SumLines<Self, T>& task);
template <class T>
void norm_lines(const Queue& queue, const NormLines<Self, T>& task);
template <class T>
void solve_front_rows(const Queue& queue, const FrontSolve<Self, T>& f, const FrontTasks<Self, FrontBlock>& tasks,
                      Op op);
template <class T>
void update_front_rows(const Queue& queue, const FrontSolve<Self, T>& f, const FrontTasks<Self, FrontBlock>& tasks,
                       Op op);
template <class T>
void reflect_front_lines(const Queue& queue, const FrontReflect<Self, T>& f, const FrontTasks<Self, std::int32_t>& list,
                         Op op);
template <class T>
void multiply_front_panels(const Queue& queue, const FrontReflect<Self, T>& f,
                           const FrontTasks<Self, FrontPanelPart>& tasks);
template <class T>
void update_front_lines(const Queue& queue, const FrontReflect<Self, T>& f,
                        const FrontTasks<Self, FrontPanelPart>& tasks, Op op);
