// SPDX-License-Identifier: Apache-2.0
// CUDA status codes to qrane::Error, for the queue and the launchers.
#pragma once

#include <cuda_runtime_api.h>

#include <qrane/error.hpp>

namespace qrane::backend::cuda {

/// Throws Error{device} naming the call unless it succeeded.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that is not sticky must not surface again at the next launch
  throw Error(ErrorCode::device,
              detail::concat(call, " failed: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")"));
}

/// To be called after each kernel launch.
inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

/// An attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

inline int multiprocessors() { return device_attribute(cudaDevAttrMultiProcessorCount); }
inline int shared_memory_limit() { return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); }

}  // namespace qrane::backend::cuda
