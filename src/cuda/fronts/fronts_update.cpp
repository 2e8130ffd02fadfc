// SPDX-License-Identifier: Apache-2.0
// CUDA queue: updates of fronts by their panels.
#include "cuda/fronts/update.hpp"
#include "cuda/queue/queue.hpp"
#include "cuda/queue/state.hpp"

namespace qrane::backend::cuda {

template <class T>
void Queue::update_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_update_fronts(launch(), fronts, tasks);
}

template <class T>
void Queue::update_fronts_pair(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_update_fronts_pair(launch(), fronts, tasks);
}

template <class T>
Index Queue::front_update_cols(T) const {
  return front_update_strip;
}

template <class T>
Index Queue::front_update_pair_cols(T) const {
  return front_update_pair_strip;
}

#define QRANE_INSTANTIATE(T)                                                                                 \
  template void Queue::update_fronts(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontUpdateTask>&);      \
  template void Queue::update_fronts_pair(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontUpdateTask>&); \
  template Index Queue::front_update_cols(T) const;                                                          \
  template Index Queue::front_update_pair_cols(T) const;
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
