// SPDX-License-Identifier: Apache-2.0
// The vocabulary on CUDA: a stream, its memory, and one launch per kernel. Compiles without nvcc.
// Files: queue.cpp (memory, forwarding to the launchers), recording.cpp (graphs), products.cpp (cuBLAS, and the Gram
// and wide products too large for the fused kernels), devices.cpp (what devices there are), *.cu (kernels).
//
// All members put the device of the queue in place and restore the caller's. Kernels neither allocate nor
// wait, so everything but memory management and synchronize can be captured in a CUDA graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

#include <qrane/context.hpp>

#include "cuda/products/multiply_full.hpp"
#include "cuda/queue/launch.hpp"
#include "cuda/updates/batch_update.hpp"
#include "cuda/updates/rotate.hpp"
#include "cuda/updates/sweep.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/fronts.hpp"

struct CUevent_st;
struct CUgraphExec_st;

namespace qrane::backend::cuda {

/// The CUDA devices this build can use, or why there are none. Never throws; works without a driver.
BackendStatus device_infos();

class State;  // device, stream, memory pool, cuBLAS handle: state.hpp

/// A point in the queue's work, for timing.
using Event = std::shared_ptr<CUevent_st>;

/// A handle: copies share the device, the stream and the memory, and may differ in their condition.
class Queue {
 public:
  /// `stream`: a cudaStream_t of that device, which the caller keeps alive; null makes the queue own one.
  /// memory_limit_bytes = 0: no limit but the device's. Throws Error{unavailable} when there is no such device.
  explicit Queue(int device = 0, void* stream = nullptr, std::int64_t memory_limit_bytes = 0);

  std::byte* allocate(Index bytes);
  /// In stream order: work queued before may still use the memory. Errors surface at the next synchronize.
  void release(std::byte* p) noexcept;
  template <class T>
  void upload(const T* source, T* target, Index count) {
    static_assert(std::is_trivially_copyable_v<T>);
    upload_bytes(source, target, count * Index{sizeof(T)});
  }
  template <class T>
  void download(const T* source, T* target, Index count) {
    static_assert(std::is_trivially_copyable_v<T>);
    download_bytes(source, target, count * Index{sizeof(T)});
  }
  void synchronize();
  /// Optional in the vocabulary: host memory that copies reach without detours, 256-byte aligned, and a copy to it that
  /// is only queued. Throws Error{out_of_memory}.
  std::byte* allocate_host(Index bytes);
  void release_host(std::byte* p) noexcept;
  template <class T>
  void download_later(const T* source, T* target, Index count) {
    static_assert(std::is_trivially_copyable_v<T>);
    copy_to_host_later(source, target, count * Index{sizeof(T)});
  }
  /// The same from such memory.
  template <class T>
  void upload_later(const T* source, T* target, Index count) {
    static_assert(std::is_trivially_copyable_v<T>);
    copy_to_device_later(source, target, count * Index{sizeof(T)});
  }
  /// Optional in the vocabulary: bytes of the device, or of the limit, that allocations may still take.
  Index available_bytes() const;
  /// Replaces a condition that this queue has.
  Queue when(const std::int32_t* condition) const;
  /// On a stream of its own that goes before this one's where both have work.
  static constexpr bool has_side = true;
  Queue side() const;
  void follow(const Queue& other);
  /// Optional in the vocabulary: queue `number` of those beside this one, for kernels and copies alone, made at the
  /// first call. Urgent ones, which a number is always or never, go before the others where both have work.
  Queue lane(int number, bool urgent) const;
  /// Optional in the vocabulary: a place in the work of one queue that others can follow; made where there is none.
  using Mark = Event;
  void mark(Mark& mark);
  void follow(const Mark& mark);
  /// Optional in the vocabulary: what `work` gives to the queue that it is called with, and to lanes of that one which
  /// follow it and which it follows in the end, is kept instead of done, and replay() queues all of it. Library
  /// products are to be announced.
  using Recording = std::shared_ptr<CUgraphExec_st>;
  Recording recorded(const std::function<void(Queue&)>& work, bool products = false) const;
  void replay(const Recording& recording);
  /// Whether somebody is capturing this queue's stream, whose graph is to hold the launches themselves.
  bool captured() const;
  /// Optional in the vocabulary: gives `work` to when(condition); in a recording as one node of the graph, so that what
  /// is not done costs one launch. What `work` queues must be on the queue it gets when it returns, or have been
  /// followed by it, and the condition must not depend on it.
  void guarded(const std::int32_t* condition, const std::function<void(Queue&)>& work);
  template <class T>
  Limits limits(T) const;

  template <class T>
  void copy(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, T> target, Part part);
  template <class T>
  void transpose(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, T> target);
  template <class T>
  void copy_rows(DeviceMatrix<Cuda, T> source, const std::int64_t* sources, DeviceMatrix<Cuda, T> target,
                 const std::int64_t* targets, Index count);
  template <class T>
  void fill(DeviceMatrix<Cuda, T> a, T off_diagonal, T diagonal);
  template <class T>
  void narrow(DeviceMatrix<Cuda, double> source, DeviceMatrix<Cuda, T> target, Part part);
  template <class T>
  void widen(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, double> target);

  template <class T>
  void sum_squares(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch);
  template <class T>
  void sum_abs(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch);
  template <class T>
  void max_abs(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch);
  template <class T>
  void first_not_finite(DeviceMatrix<Cuda, T> a, std::int64_t* row_col, Scratch<Cuda> scratch);

  // Not under a condition: gemm, trsm; gram and multiply_wide when n is beyond the fused kernels.
  template <class T>
  void gemm(Op op_a, Op op_b, T alpha, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> b, T beta,
            DeviceMatrix<Cuda, T> c);
  template <class T>
  void trsm(Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, DeviceMatrix<Cuda, T> a,
            DeviceMatrix<Cuda, T> b);
  template <class T>
  void gram(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w, Scratch<Cuda> scratch);
  /// q may be a.
  template <class T>
  void multiply_wide(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w, DeviceMatrix<Cuda, T> q,
                     Scratch<Cuda> scratch);

  /// Optional in the vocabulary: q := a r^-1 by substitution, up to limits().max_cholesky columns.
  void solve_wide(DeviceMatrix<Cuda, double> a, DeviceMatrix<Cuda, double> r, DeviceMatrix<Cuda, double> q);
  template <class T>
  void sketch(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> s);

  template <class T>
  void factor(const Panel<Cuda, T>& panel);
  template <class T>
  void factor_tree(const Panel<Cuda, T>& panel);
  template <class T>
  void apply_qt_h(const Apply<Cuda, T>& apply);
  template <class T>
  void apply_qt_tree(const Apply<Cuda, T>& apply);

  /// Optional in the vocabulary: narrow TSQR.
  template <class T>
  void absorb(const Absorb<Cuda, T>& task);
  template <class T>
  void form_absorbed(const FormAbsorbed<Cuda, T>& task);
  template <class T>
  static Chains absorb_chains(Index rows, Index cols, bool checkpoints, int units) {
    return cuda::absorb_chains<T>(rows, cols, checkpoints, units);
  }

  template <class T>
  void guarded_cholesky(const GuardedCholesky<Cuda, T>& cholesky);
  template <class T>
  void reconstruct(const Reconstruct<Cuda, T>& reconstruct);
  /// Optional in the vocabulary: panels of blocked QR as a whole.
  template <class T>
  void reflect_panel(const ReflectPanel<Cuda, T>& task, Scratch<Cuda> scratch);
  template <class T>
  void householder_panel(const HouseholderPanel<Cuda, T>& task);
  Index max_reflect_cols() const { return max_reflect; }
  template <class T>
  Index max_householder_rows(T) const;
  template <class T>
  void robust_pca_pass(const RobustPcaPass<Cuda, T>& pass, Scratch<Cuda> scratch);

  // Optional in the vocabulary: batches.
  template <class T>
  void factor_small(const FactorSmall<Cuda, T>& task);
  template <class T>
  void apply_small(const ApplySmall<Cuda, T>& task);
  template <class T>
  void factor_panel(const WholePanel<Cuda, T>& panel);
  template <class T>
  void copy_table(const CopyTable<Cuda, T>& task);

  // Optional in the vocabulary: the small SVD, and what goes with it.
  void small_svd(const SmallSvd& task);
  std::int32_t max_small_svd() const;
  static Index small_svd_work(Index n) { return cuda::small_svd_work(n); }
  template <class T>
  void robust_pca_step(const RobustPcaStep<Cuda, T>& step, Scratch<Cuda> scratch);
  static Index max_robust_pca_step() { return max_thin_product; }
  void robust_pca_verdict(const RobustPcaVerdict<Cuda>& verdict);
  /// Q := A W for any W, n <= max_multiply_full(); Q is not A.
  template <class T>
  void multiply_full(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w, DeviceMatrix<Cuda, T> q);
  static Index max_multiply_full() { return cuda::max_multiply_full; }

  /// Optional in the vocabulary: column-pivoted QR.
  template <class T>
  Index pivoted_factor_scratch_bytes(Index rows, Index cols, T) const;
  template <class T>
  void pivoted_factor(const PivotedFactor<Cuda, T>& task, Scratch<Cuda> scratch);
  template <class T>
  void gather_columns(DeviceMatrix<Cuda, T> source, const std::int32_t* columns, DeviceMatrix<Cuda, T> target);

  // Optional in the vocabulary: updates. Sums of float on tensor cores are cut off rather than rounded, and updates
  // would add that up: chains of float are found, and go over Q, in double.
  static constexpr bool float_sums_lean = true;
  void sweep(const Sweep<Cuda, double>& task);
  void wide_sweep(const WideSweep<Cuda, float>& task);
  template <class T>
  static Index max_sweep_carry(T) {
    return sweep_carry;
  }
  template <class T>
  static Index max_sweep_block(T) {
    return sweep_block;
  }
  template <class T>
  void update_rows(const RowUpdate<Cuda, T>& task);
  static Index max_update_cols() { return cuda::max_update_cols; }
  static Index max_update_rows() { return cuda::max_update_rows; }
  template <class T>
  void batch_update(const BatchUpdate<Cuda, T>& task);
  template <class T>
  static bool takes_batch_update(Index rows, Index cols, Index p, T) {
    return cuda::takes_batch_update<T>(rows, cols, p);
  }

  /// Optional in the vocabulary: wavefronts of Givens rotations.
  template <class T>
  void make_rotations(const Rotations<Cuda, T>& task);
  template <class T>
  void rotate(const Rotate<Cuda, T>& task);

  /// Optional in the vocabulary: least squares from a Gram matrix's factor.
  template <class T>
  void solve_gram(const GramSolve<Cuda, T>& task, Scratch<Cuda> scratch);
  template <class T>
  void residual_squares(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> x, DeviceMatrix<Cuda, T> b, double* squares,
                        Scratch<Cuda> scratch);
  Index least_squares_scratch_bytes(Index columns) const;
  std::int32_t max_solve_gram() const { return cuda::max_solve_gram(); }
  std::int32_t max_residual_columns() const;

  // Optional in the vocabulary: frontal matrices (vocabulary/fronts.hpp).
  template <class T>
  void lay_out_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list);
  template <class T>
  void assemble_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks);
  template <class T>
  void factor_front_panels(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPanelTask>& tasks);
  template <class T>
  void update_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks);
  template <class T>
  void update_fronts_pair(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks);
  template <class T>
  void finish_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks);
  template <class T>
  void pack_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks);
  template <class T>
  void unpack_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks);
  template <class T>
  void factor_whole_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list, bool keep_q);
  template <class T>
  Index front_update_cols(T) const;
  template <class T>
  Index front_update_pair_cols(T) const;
  template <class T>
  Index front_whole_elements(T) const;

  // Optional in the vocabulary: uses of factored fronts (vocabulary/front_solve.hpp).
  template <class T>
  void copy_lines(const CopyLines<Cuda, T>& task);
  template <class T>
  void sum_lines(const SumLines<Cuda, T>& task);
  template <class T>
  void norm_lines(const NormLines<Cuda, T>& task);
  template <class T>
  void solve_front_rows(const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks, Op op);
  template <class T>
  void update_front_rows(const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks, Op op);
  template <class T>
  void reflect_front_lines(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, std::int32_t>& list, Op op);
  template <class T>
  void multiply_front_panels(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelPart>& tasks);
  template <class T>
  void update_front_lines(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelPart>& tasks, Op op);

  int device() const;
  /// The cudaStream_t.
  void* stream() const;
  /// Marks the place that the queue's work has come to.
  Event record();
  /// Milliseconds on the device between two marks; waits for the second.
  double elapsed_ms(const Event& from, const Event& to);

 private:
  Launch launch() const;
  void upload_bytes(const void* source, void* target, Index bytes);
  void download_bytes(const void* source, void* target, Index bytes);
  void copy_to_host_later(const void* source, void* target, Index bytes);
  void copy_to_device_later(const void* source, void* target, Index bytes);

  explicit Queue(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  const std::int32_t* condition_ = nullptr;
};

}  // namespace qrane::backend::cuda

namespace qrane::backend {

/// Whether an address that a user says is in device memory is one that kernels can use. Does not wait.
bool reaches(Cuda, const void* address, Index bytes);

}  // namespace qrane::backend
