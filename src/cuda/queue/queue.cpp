// SPDX-License-Identifier: Apache-2.0
// CUDA queue: memory traffic, timing, and the calls of the launchers. Recordings are in recording.cpp.
#include "cuda/queue/queue.hpp"

#include <algorithm>

#include "cuda/queue/state.hpp"
#include "vocabulary/reserve.hpp"

namespace qrane::backend::cuda {

Queue::Queue(int device, void* stream, std::int64_t memory_limit_bytes)
    : state_(std::make_shared<State>(device, static_cast<cudaStream_t>(stream), memory_limit_bytes)) {}

std::byte* Queue::allocate(Index bytes) {
  return allocate_with_reserves([&] { return state_->allocate(bytes); });
}
void Queue::release(std::byte* p) noexcept { state_->release(p); }

void Queue::upload_bytes(const void* source, void* target, Index bytes) {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, state_->stream()),
             "cudaMemcpyAsync to the device");
  check_cuda(cudaStreamSynchronize(state_->stream()), "upload");
}

void Queue::download_bytes(const void* source, void* target, Index bytes) {
  const DeviceScope scope(state_->device());
  if (bytes != 0) {
    check_cuda(
        cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, state_->stream()),
        "cudaMemcpyAsync to the host");
  }
  check_cuda(cudaStreamSynchronize(state_->stream()), "download");
}

std::byte* Queue::allocate_host(Index bytes) { return state_->allocate_host(bytes); }
void Queue::release_host(std::byte* p) noexcept { state_->release_host(p); }

void Queue::copy_to_host_later(const void* source, void* target, Index bytes) {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, state_->stream()),
             "cudaMemcpyAsync to the host");
}

void Queue::copy_to_device_later(const void* source, void* target, Index bytes) {
  if (bytes == 0) return;
  const DeviceScope scope(state_->device());
  check_cuda(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, state_->stream()),
             "cudaMemcpyAsync to the device");
}

Index Queue::available_bytes() const { return state_->available_bytes(); }

void Queue::synchronize() {
  const DeviceScope scope(state_->device());
  check_cuda(cudaStreamSynchronize(state_->stream()), "cudaStreamSynchronize");
}

Queue Queue::when(const std::int32_t* condition) const {
  Queue conditional = *this;
  conditional.condition_ = condition;
  return conditional;
}

Queue Queue::side() const {
  Queue side(State::side(state_));
  side.condition_ = condition_;
  return side;
}

void Queue::follow(const Queue& other) {
  if (other.state_ != state_) state_->follow(*other.state_);
}

Queue Queue::lane(int number, bool urgent) const {
  Queue lane(State::lane(state_, number, urgent));
  lane.condition_ = condition_;
  return lane;
}

void Queue::mark(Mark& mark) {
  const DeviceScope scope(state_->device());
  if (!mark) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    mark = Mark(event, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
  }
  check_cuda(cudaEventRecord(mark.get(), state_->stream()), "cudaEventRecord");
}

void Queue::follow(const Mark& mark) {
  const DeviceScope scope(state_->device());
  check_cuda(cudaStreamWaitEvent(state_->stream(), mark.get(), 0), "cudaStreamWaitEvent");
}

template <class T>
Limits Queue::limits(T) const {
  const DeviceScope scope(state_->device());
  Limits limits;
  limits.max_panel_cols = 32;
  limits.max_block_rows = max_block_rows<T>();
  limits.max_allocation_bytes = state_->memory_bytes();
  limits.max_absorbed = max_absorbed<T>;
  limits.max_formed = max_formed;
  limits.units = multiprocessors();
  // what is queued under the guard's flags must not need cuBLAS
  limits.max_cholesky = std::min({max_cholesky(), max_fused_gram, max_fused_multiply(), max_fused_solve()});
  limits.has_double = true;
  limits.small_elements = 2048;
  limits.small_rows = 128;
  limits.whole_panel_elements = sizeof(T) == 4 ? 32768 : 16384;
  limits.whole_panel_rows = 2048;
  return limits;
}

int Queue::device() const { return state_->device(); }
void* Queue::stream() const { return state_->stream(); }
Launch Queue::launch() const { return {state_->stream(), condition_}; }

Event Queue::record() {
  const DeviceScope scope(state_->device());
  cudaEvent_t raw = nullptr;
  check_cuda(cudaEventCreate(&raw), "cudaEventCreate");
  Event event(raw, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
  check_cuda(cudaEventRecord(raw, state_->stream()), "cudaEventRecord");
  return event;
}

double Queue::elapsed_ms(const Event& from, const Event& to) {
  const DeviceScope scope(state_->device());
  check_cuda(cudaEventSynchronize(to.get()), "cudaEventSynchronize");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime");
  return ms;
}

// Each of these is its launcher, on the queue's device.

template <class T>
void Queue::copy(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, T> target, Part part) {
  const DeviceScope scope(state_->device());
  launch_convert(launch(), source, target, part);
}

template <class T>
void Queue::transpose(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, T> target) {
  const DeviceScope scope(state_->device());
  launch_transpose(launch(), source, target);
}

template <class T>
void Queue::copy_rows(DeviceMatrix<Cuda, T> source, const std::int64_t* sources, DeviceMatrix<Cuda, T> target,
                      const std::int64_t* targets, Index count) {
  const DeviceScope scope(state_->device());
  launch_copy_rows(launch(), source, sources, target, targets, count);
}

template <class T>
void Queue::fill(DeviceMatrix<Cuda, T> a, T off_diagonal, T diagonal) {
  const DeviceScope scope(state_->device());
  launch_fill(launch(), a, off_diagonal, diagonal);
}

template <class T>
void Queue::narrow(DeviceMatrix<Cuda, double> source, DeviceMatrix<Cuda, T> target, Part part) {
  const DeviceScope scope(state_->device());
  launch_convert(launch(), source, target, part);
}

template <class T>
void Queue::widen(DeviceMatrix<Cuda, T> source, DeviceMatrix<Cuda, double> target) {
  const DeviceScope scope(state_->device());
  launch_convert(launch(), source, target, Part::all);
}

template <class T>
void Queue::sum_squares(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_sum_squares(launch(), a, result, scratch);
}

template <class T>
void Queue::sum_abs(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_sum_abs(launch(), a, result, scratch);
}

template <class T>
void Queue::max_abs(DeviceMatrix<Cuda, T> a, double* result, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_max_abs(launch(), a, result, scratch);
}

template <class T>
void Queue::first_not_finite(DeviceMatrix<Cuda, T> a, std::int64_t* row_col, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_first_not_finite(launch(), a, row_col, scratch);
}

void Queue::solve_wide(DeviceMatrix<Cuda, double> a, DeviceMatrix<Cuda, double> r, DeviceMatrix<Cuda, double> q) {
  const DeviceScope scope(state_->device());
  launch_solve_wide(launch(), a, r, q);
}

template <class T>
void Queue::sketch(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> s) {
  const DeviceScope scope(state_->device());
  launch_sketch(launch(), a, s);
}

template <class T>
void Queue::factor(const Panel<Cuda, T>& panel) {
  const DeviceScope scope(state_->device());
  launch_factor(launch(), panel);
}

template <class T>
void Queue::factor_tree(const Panel<Cuda, T>& panel) {
  const DeviceScope scope(state_->device());
  launch_factor_tree(launch(), panel);
}

template <class T>
void Queue::apply_qt_h(const Apply<Cuda, T>& apply) {
  const DeviceScope scope(state_->device());
  launch_apply_qt_h(launch(), apply);
}

template <class T>
void Queue::apply_qt_tree(const Apply<Cuda, T>& apply) {
  const DeviceScope scope(state_->device());
  launch_apply_qt_tree(launch(), apply);
}

template <class T>
void Queue::absorb(const Absorb<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_absorb(launch(), task);
}

template <class T>
void Queue::form_absorbed(const FormAbsorbed<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_form_absorbed(launch(), task);
}

template <class T>
void Queue::guarded_cholesky(const GuardedCholesky<Cuda, T>& cholesky) {
  const DeviceScope scope(state_->device());
  launch_guarded_cholesky(launch(), cholesky);
}

template <class T>
void Queue::reconstruct(const Reconstruct<Cuda, T>& reconstruct) {
  const DeviceScope scope(state_->device());
  launch_reconstruct(launch(), reconstruct);
}

template <class T>
void Queue::reflect_panel(const ReflectPanel<Cuda, T>& task, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_reflect_panel(launch(), task, scratch);
}

template <class T>
void Queue::householder_panel(const HouseholderPanel<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_householder_panel(launch(), task);
}

template <class T>
Index Queue::max_householder_rows(T) const {
  const DeviceScope scope(state_->device());
  return cuda::max_householder_rows<T>();
}

template <class T>
void Queue::robust_pca_pass(const RobustPcaPass<Cuda, T>& pass, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_robust_pca_pass(launch(), pass, scratch);
}

template <class T>
void Queue::factor_small(const FactorSmall<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_factor_small(launch(), task);
}

template <class T>
void Queue::apply_small(const ApplySmall<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_apply_small(launch(), task);
}

template <class T>
void Queue::factor_panel(const WholePanel<Cuda, T>& panel) {
  const DeviceScope scope(state_->device());
  launch_factor_panel(launch(), panel);
}

template <class T>
void Queue::copy_table(const CopyTable<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_copy_table(launch(), task);
}

void Queue::small_svd(const SmallSvd& task) {
  const DeviceScope scope(state_->device());
  launch_small_svd(launch(), task);
}

std::int32_t Queue::max_small_svd() const {
  const DeviceScope scope(state_->device());
  return cuda::max_small_svd();
}

template <class T>
Index Queue::pivoted_factor_scratch_bytes(Index rows, Index cols, T) const {
  const DeviceScope scope(state_->device());
  return cuda::pivoted_factor_scratch_bytes<T>(rows, cols);
}

template <class T>
void Queue::pivoted_factor(const PivotedFactor<Cuda, T>& task, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_pivoted_factor(launch(), task, scratch);
}

template <class T>
void Queue::gather_columns(DeviceMatrix<Cuda, T> source, const std::int32_t* columns, DeviceMatrix<Cuda, T> target) {
  const DeviceScope scope(state_->device());
  launch_gather_columns(launch(), source, columns, target);
}

void Queue::sweep(const Sweep<Cuda, double>& task) {
  const DeviceScope scope(state_->device());
  launch_sweep(launch(), task);
}

void Queue::wide_sweep(const WideSweep<Cuda, float>& task) {
  const DeviceScope scope(state_->device());
  launch_wide_sweep(launch(), task);
}

template <class T>
void Queue::update_rows(const RowUpdate<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_update_rows(launch(), task);
}

template <class T>
void Queue::batch_update(const BatchUpdate<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_batch_update(launch(), task);
}

template <class T>
void Queue::make_rotations(const Rotations<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_make_rotations(launch(), task);
}

template <class T>
void Queue::rotate(const Rotate<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_rotate(launch(), task);
}

template <class T>
void Queue::solve_gram(const GramSolve<Cuda, T>& task, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_solve_gram(launch(), task, scratch);
}

template <class T>
void Queue::residual_squares(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> x, DeviceMatrix<Cuda, T> b, double* squares,
                             Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_residual_squares(launch(), a, x, b, squares, scratch);
}

Index Queue::least_squares_scratch_bytes(Index columns) const {
  const DeviceScope scope(state_->device());
  return cuda::least_squares_scratch_bytes(columns);
}

std::int32_t Queue::max_residual_columns() const {
  const DeviceScope scope(state_->device());
  return cuda::max_residual_columns();
}

template <class T>
void Queue::robust_pca_step(const RobustPcaStep<Cuda, T>& step, Scratch<Cuda> scratch) {
  const DeviceScope scope(state_->device());
  launch_robust_pca_step(launch(), step, scratch);
}

void Queue::robust_pca_verdict(const RobustPcaVerdict<Cuda>& verdict) {
  const DeviceScope scope(state_->device());
  launch_robust_pca_verdict(launch(), verdict);
}

template <class T>
void Queue::multiply_full(DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w, DeviceMatrix<Cuda, T> q) {
  const DeviceScope scope(state_->device());
  launch_multiply_full(launch(), a, w, q);
}

#define QRANE_INSTANTIATE(T)                                                                                       \
  template Limits Queue::limits<T>(T) const;                                                                       \
  template void Queue::copy<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, T>, Part);                                \
  template void Queue::transpose<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, T>);                                 \
  template void Queue::copy_rows<T>(DeviceMatrix<Cuda, T>, const std::int64_t*, DeviceMatrix<Cuda, T>,             \
                                    const std::int64_t*, Index);                                                   \
  template void Queue::fill<T>(DeviceMatrix<Cuda, T>, T, T);                                                       \
  template void Queue::narrow<T>(DeviceMatrix<Cuda, double>, DeviceMatrix<Cuda, T>, Part);                         \
  template void Queue::widen<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, double>);                                \
  template void Queue::sum_squares<T>(DeviceMatrix<Cuda, T>, double*, Scratch<Cuda>);                              \
  template void Queue::sum_abs<T>(DeviceMatrix<Cuda, T>, double*, Scratch<Cuda>);                                  \
  template void Queue::max_abs<T>(DeviceMatrix<Cuda, T>, double*, Scratch<Cuda>);                                  \
  template void Queue::first_not_finite<T>(DeviceMatrix<Cuda, T>, std::int64_t*, Scratch<Cuda>);                   \
  template void Queue::sketch<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, T>);                                    \
  template void Queue::factor<T>(const Panel<Cuda, T>&);                                                           \
  template void Queue::factor_tree<T>(const Panel<Cuda, T>&);                                                      \
  template void Queue::apply_qt_h<T>(const Apply<Cuda, T>&);                                                       \
  template void Queue::apply_qt_tree<T>(const Apply<Cuda, T>&);                                                    \
  template void Queue::absorb<T>(const Absorb<Cuda, T>&);                                                          \
  template void Queue::form_absorbed<T>(const FormAbsorbed<Cuda, T>&);                                             \
  template void Queue::guarded_cholesky<T>(const GuardedCholesky<Cuda, T>&);                                       \
  template void Queue::reconstruct<T>(const Reconstruct<Cuda, T>&);                                                \
  template void Queue::reflect_panel<T>(const ReflectPanel<Cuda, T>&, Scratch<Cuda>);                              \
  template void Queue::householder_panel<T>(const HouseholderPanel<Cuda, T>&);                                     \
  template Index Queue::max_householder_rows<T>(T) const;                                                          \
  template void Queue::robust_pca_pass<T>(const RobustPcaPass<Cuda, T>&, Scratch<Cuda>);                           \
  template Index Queue::pivoted_factor_scratch_bytes<T>(Index, Index, T) const;                                    \
  template void Queue::pivoted_factor<T>(const PivotedFactor<Cuda, T>&, Scratch<Cuda>);                            \
  template void Queue::gather_columns<T>(DeviceMatrix<Cuda, T>, const std::int32_t*, DeviceMatrix<Cuda, T>);       \
  template void Queue::update_rows<T>(const RowUpdate<Cuda, T>&);                                                  \
  template void Queue::batch_update<T>(const BatchUpdate<Cuda, T>&);                                               \
  template void Queue::make_rotations<T>(const Rotations<Cuda, T>&);                                               \
  template void Queue::rotate<T>(const Rotate<Cuda, T>&);                                                          \
  template void Queue::solve_gram<T>(const GramSolve<Cuda, T>&, Scratch<Cuda>);                                    \
  template void Queue::residual_squares<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, T>,    \
                                           double*, Scratch<Cuda>);                                                \
  template void Queue::factor_small<T>(const FactorSmall<Cuda, T>&);                                               \
  template void Queue::apply_small<T>(const ApplySmall<Cuda, T>&);                                                 \
  template void Queue::factor_panel<T>(const WholePanel<Cuda, T>&);                                                \
  template void Queue::copy_table<T>(const CopyTable<Cuda, T>&);                                                   \
  template void Queue::robust_pca_step<T>(const RobustPcaStep<Cuda, T>&, Scratch<Cuda>);                           \
  template void Queue::multiply_full<T>(DeviceMatrix<Cuda, T>, DeviceMatrix<Cuda, double>, DeviceMatrix<Cuda, T>); \
  static_assert(Vocabulary<Queue, Cuda, T>);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
