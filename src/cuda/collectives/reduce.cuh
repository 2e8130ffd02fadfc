// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over a block in a fixed order, so that results repeat.
#pragma once

namespace qrane::backend::cuda {

struct Add {
  __device__ double operator()(double a, double b) const { return a + b; }
};

/// op over the values of all threads (at most 1024, a multiple of 32); the result is in thread 0.
/// Shuffle tree inside a warp, then one over the warps. Safe to call repeatedly.
template <class State, class Op>
__device__ State block_reduce(State value, State neutral, Op op) {
  __shared__ State s[32];
  const int thread = threadIdx.x + threadIdx.y * blockDim.x;
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / 32;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) value = op(value, __shfl_down_sync(0xffffffffu, value, d));
  __syncthreads();
  if (thread % 32 == 0) s[thread / 32] = value;
  __syncthreads();
  if (thread < 32) {
    value = thread < warps ? s[thread] : neutral;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value = op(value, __shfl_down_sync(0xffffffffu, value, d));
  }
  return value;
}

}  // namespace qrane::backend::cuda
