// SPDX-License-Identifier: Apache-2.0
// A cluster of thread blocks: its barrier, and shared memory of another block. Before compute capability 9.0 a cluster
// is one block.
#pragma once

#include <cstdint>

namespace qrane::backend::cuda {

__device__ inline int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

/// The barrier of all threads of all blocks, in two halves: what was read and written before any thread's arrival is
/// done after every thread's wait, in shared and global memory.
__device__ inline void cluster_arrive(int blocks) {
#if __CUDA_ARCH__ >= 900
  if (blocks > 1) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
  (void)blocks;
}
__device__ inline void cluster_wait(int blocks) {
#if __CUDA_ARCH__ >= 900
  if (blocks > 1) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    return;
  }
#endif
  (void)blocks;
  __syncthreads();
}

__device__ inline void cluster_sync(int blocks) {
  cluster_arrive(blocks);
  cluster_wait(blocks);
}

/// The place of `p`, which is in this block's shared memory, in that of block `rank`.
template <class T>
__device__ T* in_block(T* p, int rank) {
#if __CUDA_ARCH__ >= 900
  std::uint64_t out;
  asm("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(reinterpret_cast<std::uint64_t>(p)), "r"(rank));
  return reinterpret_cast<T*>(out);
#else
  (void)rank;
  return p;
#endif
}

}  // namespace qrane::backend::cuda
