// SPDX-License-Identifier: Apache-2.0
// Members of the queue for frontal matrices: layout, assembly, small fronts as a whole.
#include "cuda/fronts/assembly.hpp"
#include "cuda/queue/queue.hpp"
#include "cuda/queue/state.hpp"

namespace qrane::backend::cuda {

template <class T>
void Queue::lay_out_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list) {
  const DeviceScope scope(state_->device());
  launch_lay_out_fronts(launch(), fronts, list);
}

template <class T>
void Queue::assemble_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks) {
  const DeviceScope scope(state_->device());
  launch_assemble_fronts(launch(), fronts, tasks);
}

template <class T>
void Queue::finish_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks) {
  const DeviceScope scope(state_->device());
  launch_finish_fronts(launch(), fronts, tasks);
}

template <class T>
void Queue::pack_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_pack_fronts(launch(), fronts, tasks);
}

template <class T>
void Queue::unpack_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks) {
  const DeviceScope scope(state_->device());
  launch_unpack_fronts(launch(), fronts, tasks);
}

template <class T>
void Queue::factor_whole_fronts(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list,
                                bool keep_q) {
  const DeviceScope scope(state_->device());
  launch_factor_whole_fronts(launch(), fronts, list, keep_q);
}

template <class T>
Index Queue::front_whole_elements(T) const {
  const DeviceScope scope(state_->device());
  return cuda::front_whole_elements<T>();
}

#define QRANE_INSTANTIATE(T)                                                                                        \
  template void Queue::lay_out_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&);            \
  template void Queue::assemble_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontShare>&);             \
  template void Queue::finish_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontShare>&);               \
  template void Queue::pack_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontPieceTask>&);             \
  template void Queue::unpack_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontPieceTask>&);           \
  template void Queue::factor_whole_fronts<T>(const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, bool); \
  template Index Queue::front_whole_elements<T>(T) const;
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
