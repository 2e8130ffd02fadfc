// SPDX-License-Identifier: Apache-2.0
// Checked calls and owned device memory, for the peers and the benchmarks' own kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace qrane::bench {

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Device memory freed with its owner.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), (count ? count : 1) * sizeof(T)), "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

}  // namespace qrane::bench
