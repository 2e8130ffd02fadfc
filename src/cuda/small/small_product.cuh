// SPDX-License-Identifier: Apache-2.0
// Products of small square matrices, tile by tile, over warps that share the tiles: fp64 tensor-core products.
#pragma once

#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda {

/// out(i, j, sum_k a(i, k) b(k, j)) for n x n operands: of the tiles of 8 x 8 those numbered first, first + step, ...;
/// `lower`: only tiles that reach i >= j.
template <class A, class B, class Out>
__device__ void multiply_tiles(int n, int first, int step, bool lower, A a, B b, Out out) {
  const int tiles = (n + 7) / 8, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const auto left = [&](int i, int k) { return i < n && k < n ? a(i, k) : 0.0; };
  const auto right = [&](int k, int j) { return k < n && j < n ? b(k, j) : 0.0; };
  for (int tile = first; tile < tiles * tiles; tile += step) {
    const int i = tile % tiles * 8, j = tile / tiles * 8;
    if (lower && i < j) continue;
    double c[2][2] = {};
#pragma unroll 8  // loads under way at a time
    for (int k = 0; k < n; k += 8) {
      mma_8x8x4(c[0], left(i + g, k + t), right(k + t, j + g));
      mma_8x8x4(c[1], left(i + g, k + 4 + t), right(k + 4 + t, j + g));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (i + g < n && j + 2 * t + h < n) out(i + g, j + 2 * t + h, c[0][h] + c[1][h]);
  }
}

}  // namespace qrane::backend::cuda
