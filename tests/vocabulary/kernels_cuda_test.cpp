// SPDX-License-Identifier: Apache-2.0
// The vocabulary's tests on the first CUDA device.
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#if QRANE_WITH_CUDA
#include <cuda_runtime_api.h>

#include "cuda/whole.hpp"

namespace qrane::backend::test {

using KernelTypes = testing::Types<std::tuple<Cuda, float>, std::tuple<Cuda, double>>;

std::unique_ptr<cuda::Queue> make_queue(std::string& reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    reason = status != cudaSuccess ? cudaGetErrorString(status) : "no CUDA device";
    return nullptr;
  }
  return std::make_unique<cuda::Queue>(0);
}

}  // namespace qrane::backend::test

#include "kernels_test.hpp"

#else
TEST(Kernels, Cuda) { GTEST_SKIP() << "built without CUDA"; }
#endif
