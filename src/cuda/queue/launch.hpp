// SPDX-License-Identifier: Apache-2.0
// What a launcher takes from its queue. For .cu files, which need no more of the queue than this.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/cuda.hpp"

namespace qrane::backend::cuda {

/// Puts a device in place for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// The stream to launch on, and the condition of Queue::when: kernels return at once when it is set and *condition ==
/// 0. While it lives the queue's device is in place.
class Launch {
 public:
  explicit Launch(const Queue& queue);
  cudaStream_t stream;
  const std::int32_t* condition;

 private:
  DeviceScope scope_;
};

}  // namespace qrane::backend::cuda
