// SPDX-License-Identifier: Apache-2.0
// CUDA queue: updates of fronts by their panels.
#include "backend/cuda/front_update.hpp"
#include "backend/cuda/queue.hpp"
#include "backend/cuda/state.hpp"

namespace qrane::backend::cuda {

template <class T>
void Queue::update_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_update_fronts(launch(), fronts, tasks);
}

template <class T>
Index Queue::front_update_cols(T) const {
  return front_update_strip;
}

template void Queue::update_fronts<float>(const Fronts<Cuda, float>&, const FrontTasks<Cuda, FrontUpdateTask>&);
template void Queue::update_fronts<double>(const Fronts<Cuda, double>&, const FrontTasks<Cuda, FrontUpdateTask>&);
template Index Queue::front_update_cols<float>(float) const;
template Index Queue::front_update_cols<double>(double) const;

}  // namespace qrane::backend::cuda
