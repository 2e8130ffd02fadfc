// SPDX-License-Identifier: Apache-2.0
// The CUDA devices of this machine, or why there are none.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <exception>

#include "cuda/queue/queue.hpp"
#include "cuda/queue/status.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int least_capability = 80;  // fp64 tensor-core products

std::string version(int number) { return detail::concat(number / 1000, ".", number % 1000 / 10); }

std::string versions() {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  return detail::concat("CUDA driver ", version(driver), ", runtime ", version(runtime), ", cuBLAS ", CUBLAS_VER_MAJOR,
                        ".", CUBLAS_VER_MINOR);
}

DeviceInfo describe(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  DeviceInfo info;
  info.backend = Backend::cuda;
  info.index = index;
  info.name = properties.name;
  info.architecture = detail::concat("sm_", properties.major * 10 + properties.minor);
  info.driver = versions();
  info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  info.compute_units = properties.multiProcessorCount;
  info.is_gpu = true;
  info.has_double = true;
  int before = 0;
  std::size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaGetDevice(&before), "cudaGetDevice");
  check_cuda(cudaSetDevice(index), "cudaSetDevice");
  const cudaError_t status = cudaMemGetInfo(&free_bytes, &total_bytes);
  (void)cudaSetDevice(before);
  check_cuda(status, "cudaMemGetInfo");
  info.free_bytes = static_cast<std::int64_t>(free_bytes);
  return info;
}

bool is_supported(int index) {
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index), "cudaDeviceGetAttribute");
  return major * 10 + minor >= least_capability;
}

}  // namespace

BackendStatus device_infos() {
  BackendStatus result;
  result.backend = Backend::cuda;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    result.reason = detail::concat("no CUDA device: ", cudaGetErrorString(status));
    return result;
  }
  for (int k = 0; k < count; ++k) {
    try {
      if (is_supported(k)) {
        result.devices.push_back(describe(k));
      } else {
        result.reason = detail::concat("CUDA device ", k, " is older than compute capability 8.0");
      }
    } catch (const std::exception& error) {
      result.reason = detail::concat("CUDA device ", k, ": ", error.what());
    }
  }
  result.available = !result.devices.empty();
  if (!result.available && result.reason.empty()) result.reason = "no CUDA device";
  return result;
}

}  // namespace qrane::backend::cuda
