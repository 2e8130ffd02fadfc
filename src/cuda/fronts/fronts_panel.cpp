// SPDX-License-Identifier: Apache-2.0
// CUDA queue: panels of fronts.
#include "cuda/fronts/panel.hpp"
#include "cuda/queue/queue.hpp"
#include "cuda/queue/state.hpp"

namespace qrane::backend::cuda {

template <class T>
void Queue::factor_front_panels(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPanelTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_factor_front_panels(launch(), fronts, tasks);
}

template void Queue::factor_front_panels(const Fronts<Cuda, float>&, const FrontTasks<Cuda, FrontPanelTask>&);
template void Queue::factor_front_panels(const Fronts<Cuda, double>&, const FrontTasks<Cuda, FrontPanelTask>&);

}  // namespace qrane::backend::cuda
