// SPDX-License-Identifier: Apache-2.0
// CUDA queue: uses of factored fronts.
#include "cuda/front_solve/solve.hpp"
#include "cuda/queue/queue.hpp"
#include "cuda/queue/state.hpp"

namespace qrane::backend::cuda {

template <class T>
void Queue::copy_lines(const CopyLines<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_copy_lines(launch(), task);
}

template <class T>
void Queue::sum_lines(const SumLines<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_sum_lines(launch(), task);
}

template <class T>
void Queue::norm_lines(const NormLines<Cuda, T>& task) {
  const DeviceScope scope(state_->device());
  launch_norm_lines(launch(), task);
}

template <class T>
void Queue::solve_front_rows(const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks, Op op) {
  const DeviceScope scope(state_->device());
  launch_solve_front_rows(launch(), f, tasks, op);
}

template <class T>
void Queue::update_front_rows(const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks, Op op) {
  const DeviceScope scope(state_->device());
  launch_update_front_rows(launch(), f, tasks, op);
}

template <class T>
void Queue::reflect_front_lines(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, std::int32_t>& list, Op op) {
  const DeviceScope scope(state_->device());
  launch_reflect_front_lines(launch(), f, list, op);
}

template <class T>
void Queue::multiply_front_panels(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelPart>& tasks) {
  const DeviceScope scope(state_->device());
  launch_multiply_front_panels(launch(), f, tasks);
}

template <class T>
void Queue::update_front_lines(const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, FrontPanelPart>& tasks, Op op) {
  const DeviceScope scope(state_->device());
  launch_update_front_lines(launch(), f, tasks, op);
}

#define QRANE_INSTANTIATE(T)                                                                                         \
  template void Queue::copy_lines(const CopyLines<Cuda, T>&);                                                        \
  template void Queue::sum_lines(const SumLines<Cuda, T>&);                                                          \
  template void Queue::norm_lines(const NormLines<Cuda, T>&);                                                        \
  template void Queue::solve_front_rows(const FrontSolve<Cuda, T>&, const FrontTasks<Cuda, FrontBlock>&, Op);        \
  template void Queue::update_front_rows(const FrontSolve<Cuda, T>&, const FrontTasks<Cuda, FrontBlock>&, Op);       \
  template void Queue::reflect_front_lines(const FrontReflect<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, Op); \
  template void Queue::multiply_front_panels(const FrontReflect<Cuda, T>&, const FrontTasks<Cuda, FrontPanelPart>&); \
  template void Queue::update_front_lines(const FrontReflect<Cuda, T>&, const FrontTasks<Cuda, FrontPanelPart>&, Op);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
