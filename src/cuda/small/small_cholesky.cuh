// SPDX-License-Identifier: Apache-2.0
// A = L Lᵀ of a packed lower triangle in the shared memory of one block, in double, 8 columns at a time: what the
// decomposition of a small Gram matrix starts from (small_svd.cu).
#pragma once

#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda {

__device__ inline int threads() { return static_cast<int>(blockDim.x); }
__device__ inline int warps() { return threads() / 32; }

constexpr int panel = 8;  // columns of a step

/// A lower triangle, column by column without gaps.
struct Packed {
  double* data;
  int n;
  static __host__ __device__ int size(int n) { return n * (n + 1) / 2; }
  __device__ double* column(int j) const { return data + j * n - j * (j + 1) / 2; }  // element i at [i], i >= j
};

/// d^(-1/2) to a rounding or two, for normal d.
__device__ inline double inverse_root(double d) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
  const double left = fma(-d * y, y, 1.0);
  return fma(y * left, fma(0.375, left, 0.5), y);
}

/// The diagonal block at p in a thread's registers: L, and the inverses of its diagonal.
struct DiagonalBlock {
  double l[panel][panel], inverse[panel];

  /// Pivots below `floor` count as floor; past the last column as the identity.
  __device__ void factor(const Packed& a, int p, double floor) {
#pragma unroll
    for (int c = 0; c < panel; ++c)
#pragma unroll
      for (int r = c; r < panel; ++r) l[r][c] = p + r < a.n ? a.column(p + c)[p + r] : (r == c ? 1.0 : 0.0);
#pragma unroll
    for (int k = 0; k < panel; ++k) {
      const double d = l[k][k] < floor ? floor : l[k][k];  // NaN stays NaN
      inverse[k] = inverse_root(d);
#pragma unroll
      for (int r = k; r < panel; ++r) l[r][k] = (r == k ? d : l[r][k]) * inverse[k];
#pragma unroll
      for (int c = k + 1; c < panel; ++c)
#pragma unroll
        for (int r = c; r < panel; ++r) l[r][c] = fma(-l[r][k], l[c][k], l[r][c]);
    }
  }

  /// Row i of the panel times L^-T.
  __device__ void solve(const Packed& a, int p, int i) const {
    double x[panel];
#pragma unroll
    for (int k = 0; k < panel; ++k) x[k] = a.column(p + k)[i];
#pragma unroll
    for (int k = 0; k < panel; ++k) {
      x[k] *= inverse[k];
#pragma unroll
      for (int c = k + 1; c < panel; ++c) x[c] = fma(-x[k], l[c][k], x[c]);
      a.column(p + k)[i] = x[k];
    }
  }

  __device__ void store_row(const Packed& a, int p, int row) const {
#pragma unroll
    for (int r = 0; r < panel; ++r)
      if (r == row && p + r < a.n)
#pragma unroll
        for (int c = 0; c <= r; ++c) a.column(p + c)[p + r] = l[r][c];
  }
};

/// Subtracts the panel's part from the columns to its right, tile by tile.
__device__ inline void update_trailing(const Packed& a, int p) {
  const int n = a.n, first = p + panel, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const auto factor = [&](int i, int k) { return i < n ? a.column(p + k)[i] : 0.0; };
  int id = threadIdx.x / 32, j = first;  // of this column's tiles, from the diagonal down
  for (int rows = (n - first + 7) / 8; rows > 0; j += 8, id -= rows--)
    for (; id < rows; id += warps()) {
      const int i = j + 8 * id;
      double c[2] = {};
      mma_8x8x4(c, factor(i + g, t), factor(j + g, t));
      mma_8x8x4(c, factor(i + g, 4 + t), factor(j + g, 4 + t));
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (i + g < n && i + g >= j + 2 * t + h) a.column(j + 2 * t + h)[i + g] -= c[h];
    }
}

/// A = L Lᵀ in place, by one block; pivots below `floor` count as floor. Every thread factors the diagonal block for
/// itself, since waiting for another costs more.
__device__ inline void cholesky(const Packed& a, double floor) {
  for (int p = 0; p < a.n; p += panel) {
    __syncthreads();
    DiagonalBlock block;
    block.factor(a, p, floor);
    for (int i = p + panel + static_cast<int>(threadIdx.x); i < a.n; i += threads()) block.solve(a, p, i);
    __syncthreads();
    block.store_row(a, p, static_cast<int>(threadIdx.x));
    update_trailing(a, p);
  }
  __syncthreads();
}

}  // namespace qrane::backend::cuda
