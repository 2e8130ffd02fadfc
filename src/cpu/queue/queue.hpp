// SPDX-License-Identifier: Apache-2.0
// The vocabulary on the CPU: the reference that tests trust, and a product of its own.
// Every call is finished when it returns. Files: queue.cpp (memory, movement, reductions), products.cpp,
// panel.cpp and panel_tree.cpp (QR tile kernels), small.cpp (Cholesky, reconstruction), small_svd.cpp, update.cpp,
// robust_pca.cpp, rotate.cpp, fronts.cpp (frontal matrices),
// front_solve.cpp (what uses them).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <qrane/context.hpp>

#include "cpu/queue/cpu.hpp"
#include "cpu/queue/thread_pool.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/fronts.hpp"
#include "vocabulary/rotations.hpp"

namespace qrane::backend::cpu {

class Queue {
 public:
  /// threads = 0: all cores. memory_limit_bytes = 0: no limit but the machine's.
  explicit Queue(int threads = 0, std::int64_t memory_limit_bytes = 0);

  /// Tests set this: memory is then handed out full of bytes that make NaN in both precisions and set every flag, so
  /// that a result that depends on unset memory shows.
  static inline std::atomic<bool> poison = false;

  std::byte* allocate(Index bytes);
  void release(std::byte* p);
  /// Optional in the vocabulary: bytes of the machine, or of the limit, that allocations may still take.
  Index available_bytes() const;
  template <class T>
  void upload(const T* source, T* target, Index count) {
    std::copy_n(source, count, target);
  }
  template <class T>
  void download(const T* source, T* target, Index count) {
    std::copy_n(source, count, target);
  }
  void synchronize() {}
  Queue when(const std::int32_t* condition) const;
  Queue side() const { return *this; }
  void follow(const Queue&) {}
  template <class T>
  Limits limits(T) const;

  template <class T>
  void copy(DeviceMatrix<Cpu, T> source, DeviceMatrix<Cpu, T> target, Part part);
  template <class T>
  void transpose(DeviceMatrix<Cpu, T> source, DeviceMatrix<Cpu, T> target);
  template <class T>
  void copy_rows(DeviceMatrix<Cpu, T> source, const std::int64_t* sources, DeviceMatrix<Cpu, T> target,
                 const std::int64_t* targets, Index count);
  template <class T>
  void fill(DeviceMatrix<Cpu, T> a, T off_diagonal, T diagonal);
  template <class T>
  void narrow(DeviceMatrix<Cpu, double> source, DeviceMatrix<Cpu, T> target, Part part);
  template <class T>
  void widen(DeviceMatrix<Cpu, T> source, DeviceMatrix<Cpu, double> target);

  template <class T>
  void sum_squares(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu> scratch);
  template <class T>
  void sum_abs(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu> scratch);
  template <class T>
  void max_abs(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu> scratch);
  template <class T>
  void first_not_finite(DeviceMatrix<Cpu, T> a, std::int64_t* row_col, Scratch<Cpu> scratch);

  template <class T>
  void gemm(Op op_a, Op op_b, T alpha, DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, T> b, T beta, DeviceMatrix<Cpu, T> c);
  template <class T>
  void trsm(Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, DeviceMatrix<Cpu, T> a,
            DeviceMatrix<Cpu, T> b);
  template <class T>
  void gram(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, double> w, Scratch<Cpu> scratch);
  template <class T>
  void multiply_wide(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, double> w, DeviceMatrix<Cpu, T> q, Scratch<Cpu> scratch);

  template <class T>
  void sketch(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, T> s);

  template <class T>
  void factor(const Panel<Cpu, T>& panel);
  template <class T>
  void factor_tree(const Panel<Cpu, T>& panel);
  template <class T>
  void apply_qt_h(const Apply<Cpu, T>& apply);
  template <class T>
  void apply_qt_tree(const Apply<Cpu, T>& apply);

  template <class T>
  void guarded_cholesky(const GuardedCholesky<Cpu, T>& cholesky);
  template <class T>
  void reconstruct(const Reconstruct<Cpu, T>& reconstruct);
  template <class T>
  void robust_pca_pass(const RobustPcaPass<Cpu, T>& pass, Scratch<Cpu> scratch);

  /// Optional in the vocabulary: column-pivoted QR, without scratch.
  template <class T>
  Index pivoted_factor_scratch_bytes(Index, Index, T) const {
    return 0;
  }
  template <class T>
  void pivoted_factor(const PivotedFactor<Cpu, T>& task, Scratch<Cpu> scratch);
  template <class T>
  void gather_columns(DeviceMatrix<Cpu, T> source, const std::int32_t* columns, DeviceMatrix<Cpu, T> target);

  /// Optional in the vocabulary: wavefronts of Givens rotations.
  template <class T>
  void make_rotations(const Rotations<Cpu, T>& task);
  template <class T>
  void rotate(const Rotate<Cpu, T>& task);

  // Optional in the vocabulary: the small SVD, and what goes with it.
  void small_svd(const SmallSvd<Cpu>& task);
  static Index max_small_svd() { return Index{1} << 15; }
  static Index small_svd_work(Index) { return 0; }  // LAPACK's is its own
  void robust_pca_verdict(const RobustPcaVerdict<Cpu>& verdict);
  template <class T>
  void multiply_full(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, double> w, DeviceMatrix<Cpu, T> q) {
    multiply_wide(a, w, q, {});  // which looks at no zeros
  }
  static Index max_multiply_full() { return Index{1} << 15; }

  // Optional in the vocabulary: updates.
  template <class T>
  void update_rows(const RowUpdate<Cpu, T>& task);
  static Index max_update_cols() { return 512; }  // beyond, blocks by BLAS are faster
  static Index max_update_rows() { return 64; }
  template <class T>
  void sweep(const Sweep<Cpu, T>& task);
  template <class T>
  static Index max_sweep_carry(T) {
    return 256;
  }
  template <class T>
  static Index max_sweep_block(T) {
    return 256;
  }

  // Optional in the vocabulary: frontal matrices (vocabulary/fronts.hpp).
  template <class T>
  void lay_out_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, std::int32_t>& list);
  template <class T>
  void assemble_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontShare>& tasks);
  template <class T>
  void factor_front_panels(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontPanelTask>& tasks);
  template <class T>
  void update_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontUpdateTask>& tasks);
  template <class T>
  void finish_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontShare>& tasks);
  template <class T>
  void pack_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontPieceTask>& tasks);
  template <class T>
  void unpack_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontPieceTask>& tasks);
  template <class T>
  void factor_whole_fronts(const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, std::int32_t>& list, bool keep_q);
  template <class T>
  Index front_update_cols(T) const;
  template <class T>
  Index front_whole_elements(T) const;

  // Optional in the vocabulary: uses of factored fronts (vocabulary/front_solve.hpp).
  template <class T>
  void copy_lines(const CopyLines<Cpu, T>& task);
  template <class T>
  void sum_lines(const SumLines<Cpu, T>& task);
  template <class T>
  void norm_lines(const NormLines<Cpu, T>& task);
  template <class T>
  void solve_front_rows(const FrontSolve<Cpu, T>& f, const FrontTasks<Cpu, FrontBlock>& tasks, Op op);
  template <class T>
  void update_front_rows(const FrontSolve<Cpu, T>& f, const FrontTasks<Cpu, FrontBlock>& tasks, Op op);
  template <class T>
  void reflect_front_lines(const FrontReflect<Cpu, T>& f, const FrontTasks<Cpu, std::int32_t>& list, Op op);
  template <class T>
  void multiply_front_panels(const FrontReflect<Cpu, T>& f, const FrontTasks<Cpu, FrontPanelPart>& tasks);
  template <class T>
  void update_front_lines(const FrontReflect<Cpu, T>& f, const FrontTasks<Cpu, FrontPanelPart>& tasks, Op op);

  int threads() const { return workers_->threads(); }
  /// Time marks for benchmarks.
  std::chrono::steady_clock::time_point record() const { return std::chrono::steady_clock::now(); }
  double elapsed_ms(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) const {
    return std::chrono::duration<double, std::milli>(b - a).count();
  }

 private:
  struct Pool;  // what has been handed out, against the limit
  bool skip() const { return condition_ && *condition_ == 0; }

  std::shared_ptr<ThreadPool> workers_;
  std::shared_ptr<Pool> pool_;
  const std::int32_t* condition_ = nullptr;
};

/// The one CPU "device".
std::vector<DeviceInfo> device_infos();

}  // namespace qrane::backend::cpu
