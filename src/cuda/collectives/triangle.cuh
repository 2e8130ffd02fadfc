// SPDX-License-Identifier: Apache-2.0
// Small double matrices in the shared memory of one block, as tiles of 8 x 8 that warps multiply by fp64 tensor-core
// products: what the Cholesky factorizations of Gram matrices stand on (guard/guarded_cholesky.cu, reflect_head.cuh).
#pragma once

#include <cfloat>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda {

/// Below this a squared column norm may owe its leading digits to underflow in the products (m up to 2^40).
constexpr double least_diagonal = DBL_MIN * 4398046511104.0;  // 2^-1022 * 2^42

/// Where element (row, col) of an 8 x 8 tile lies: a product's lane (g, t) finds its element (t, g) of the upper half
/// at g * 4 + t, and all operand reads of a warp are free of bank conflicts.
__device__ constexpr int in_tile(int row, int col) { return col * 4 + row % 4 + row / 4 * 32; }

/// 1 / sqrt(x) and 1 / x to a unit or two in the last place, by Newton's method from 20 bits; the library's own are
/// right to half a unit and take twice as long, and every step waits for them. Not for denormals, infinities and zero.
__device__ inline double quick_rsqrt(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
  for (int k = 0; k < 2; ++k) y = fma(0.5 * y, fma(-x * y, y, 1.0), y);
  return y;
}
__device__ inline double quick_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
  for (int k = 0; k < 2; ++k) y = fma(y, fma(-x, y, 1.0), y);
  return y;
}

/// Cholesky factor of a diagonal tile in the registers of every caller: r upper, inv its diagonal's reciprocals. False
/// when a pivot is not positive.
__device__ inline bool factor_diagonal(const double* tile, double (&r)[8][8], double (&inv)[8]) {
  bool good = true;
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int i = 0; i <= j; ++i) r[i][j] = tile[in_tile(i, j)];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    good = good && r[k][k] > 0;
    inv[k] = quick_rsqrt(r[k][k]);
    r[k][k] *= inv[k];
#pragma unroll
    for (int j = k + 1; j < 8; ++j) r[k][j] *= inv[k];
#pragma unroll
    for (int j = k + 1; j < 8; ++j)
#pragma unroll
      for (int i = k + 1; i <= j; ++i) r[i][j] = fma(-r[k][i], r[k][j], r[i][j]);
  }
  return good;
}

/// A warp's accumulators of one tile: elements (lane / 4, 2 (lane % 4)) and the next.
struct Accumulator {
  double c[2];

  __device__ static int at(int h) {
    const int lane = threadIdx.x % 32;
    return in_tile(lane / 4, lane % 4 * 2 + h);
  }
  __device__ static Accumulator zero() { return {{0, 0}}; }
  __device__ static Accumulator load(const double* tile) { return {{tile[at(0)], tile[at(1)]}}; }
  __device__ void store(double* tile) const {
    __syncwarp();  // the tile may be an operand of the products
    tile[at(0)] = c[0], tile[at(1)] = c[1];
  }
  /// += sign op(A) B, op the transpose if asked for; or += sign A Bᵀ.
  template <bool transpose_a = false, bool transpose_b = false>
  __device__ void add(const double* a, const double* b, double sign = 1.0) {
    const double both[2] = {sign, sign};
    add<transpose_a, transpose_b>(a, b, both);
  }
  /// The same with a factor for columns t and t + 4 of op(A).
  template <bool transpose_a = false, bool transpose_b = false>
  __device__ void add(const double* a, const double* b, const double (&sign)[2]) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h)
      mma_8x8x4(c, sign[h] * a[transpose_a ? lane + 32 * h : in_tile(g, t + 4 * h)],
                b[transpose_b ? in_tile(g, t + 4 * h) : lane + 32 * h]);
  }
};

}  // namespace qrane::backend::cuda
