// SPDX-License-Identifier: Apache-2.0
// Sums over the lanes of a warp, in a fixed order.
#pragma once

#include "cuda/collectives/tile.cuh"

namespace qrane::backend::cuda {

/// In every lane.
template <class T>
__device__ T warp_sum(T x) {
#pragma unroll
  for (int width = 1; width < warp_size; width *= 2) x += __shfl_xor_sync(full_warp, x, width);
  return x;
}

/// Of C values at once: lane l gets the sum of value l % C. Halves the values at each stage while there are several.
template <class T, int C>
__device__ T sum_slot_of_lane(T (&s)[C]) {
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int width = C / 2; width >= 1; width /= 2) {
    const bool upper = lane & width;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const T other = __shfl_xor_sync(full_warp, upper ? s[i] : s[i + width], width);
      s[i] = (upper ? s[i + width] : s[i]) + other;
    }
  }
  T total = s[0];
#pragma unroll
  for (int width = C; width < warp_size; width *= 2) total += __shfl_xor_sync(full_warp, total, width);
  return total;
}

}  // namespace qrane::backend::cuda
