// SPDX-License-Identifier: Apache-2.0
// Grids of kernels whose blocks stride over the rows of a matrix: as many as the device holds at a time.
#pragma once

#include <algorithm>

#include "cuda/collectives/kernel.cuh"

namespace qrane::backend::cuda {

/// How many blocks of `kernel` the device holds at a time; grants them their dynamic shared memory.
template <class Kernel>
Index resident_blocks(Kernel* kernel, int threads, int shared_bytes, const char* name) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), name);
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes), name);
  return Index(std::max(blocks, 1)) * multiprocessors();
}

}  // namespace qrane::backend::cuda
