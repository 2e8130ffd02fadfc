// SPDX-License-Identifier: Apache-2.0
// One eigenvalue and eigenvector of a symmetric tridiagonal matrix T by one warp, in double: the value by bisection
// with a Sturm count in every lane, 33 intervals at a time; the vector from the twisted factorization of T - lambda
// (Fernando, "On computing an eigenvector of a tridiagonal matrix", 1997; Dhillon, Parlett 2004): L D Lᵀ from the top
// and U D Uᵀ from the bottom meet where what is left is least, and the vector grows from there.
//
// The vectors of values closer than some 2^-50 of T's norm are not orthogonal; who calls looks.
#pragma once

#include "cuda/collectives/warp.cuh"

namespace qrane::backend::cuda::eigen {

/// T in shared memory; its norm is between 2^-2 and 2^12.
struct SharedTridiagonal {
  int n;
  const double2* rows;             // diagonal element i; the square of what is left of it, kept away from zero
  const double* beside;            // elements (i, i + 1)
  static constexpr int group = 8;  // behind the last, so many of diagonal `beyond` and `least_square`
  static constexpr double least_square = 0x1p-120, beyond = 0x1p14;
};

/// Eigenvalues below x: sign changes among T - x's leading minors. Past the last row there is none.
__device__ inline int count_below(const SharedTridiagonal& t, double x) {
  double before = 1, now = t.rows[0].x - x;
  int count = now < 0 ? 1 : 0;
  for (int first = 1; first < t.n; first += SharedTridiagonal::group) {
    double2 row[SharedTridiagonal::group];
#pragma unroll
    for (int h = 0; h < SharedTridiagonal::group; ++h) row[h] = t.rows[first + h];
#pragma unroll
    for (const double2& r : row) {
      const double next = fma(r.x - x, now, -r.y * before);
      count += static_cast<unsigned>(__double2hiint(next) ^ __double2hiint(now)) >> 31;
      before = now;
      now = next;
    }
    const int most = max(__double2hiint(before) & 0x7fffffff, __double2hiint(now) & 0x7fffffff) >> 20;
    const double scale = __hiloint2double((2046 - most) << 20, 0);
    before *= scale;
    now *= scale;
  }
  return count;
}

/// Eigenvalue number k, the least being number 0. The same numbers in order for all k.
__device__ inline double find_eigenvalue(const SharedTridiagonal& t, int k) {
  const int lane = threadIdx.x % 32;
  double low = 0, high = 0;
  for (int i = lane; i < t.n; i += 32) {
    const double reach = (i > 0 ? fabs(t.beside[i - 1]) : 0.0) + (i + 1 < t.n ? fabs(t.beside[i]) : 0.0);
    low = fmin(low, t.rows[i].x - reach);
    high = fmax(high, t.rows[i].x + reach);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    low = fmin(low, __shfl_xor_sync(full_warp, low, d));
    high = fmax(high, __shfl_xor_sync(full_warp, high, d));
  }
  constexpr int rounds = 11;  // 33^11 > 2^55
  for (int round = 0; round < rounds; ++round) {
    const double part = (high - low) / 33;
    const double x = fma(part, lane + 1, low);
    const int below = __popc(__ballot_sync(full_warp, count_below(t, x) <= k));  // the first so many of the points
    high = below < 32 ? fma(part, below + 1, low) : high;
    low = below > 0 ? fma(part, below, low) : low;
  }
  return 0.5 * (low + high);
}

__device__ inline double quick_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double left = fma(-x, y, 1.0);  // below 2^-20
  return fma(y, fma(left, left, left), y);
}

/// The eigenvector of lambda, normalized, element lane + 32 r in z[r]. ends[2]: n doubles of this warp's each.
template <int R>
__device__ void find_eigenvector(const SharedTridiagonal& t, double lambda, double* const (&ends)[2], double (&z)[R]) {
  const int lane = threadIdx.x % 32, n = t.n, side = lane % 2;  // even lanes from the top, odd ones from the bottom
  const auto from = [&](int step) { return side == 0 ? step : n - 1 - step; };
  double* const mine = side == 0 ? ends[0] : ends[1];
  double pivot = 1;
#pragma unroll 4
  for (int step = 0; step < n; ++step) {
    const int i = from(step);
    const double square = step == 0 ? 0.0 : t.rows[i + side].y;
    pivot = fma(-square, quick_reciprocal(pivot), t.rows[i].x - lambda);
    if (fabs(pivot) < 0x1p-300) pivot = copysign(0x1p-300, pivot);
    if (lane < 2) mine[i] = pivot;
  }
  __syncwarp();
  double least = INFINITY;
  int twist = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int i = lane + 32 * r;
    if (i >= n) continue;
    const double left = fabs((ends[0][i] + ends[1][i]) - (t.rows[i].x - lambda));
    if (left < least) least = left, twist = i;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const double other = __shfl_xor_sync(full_warp, least, d);
    const int there = __shfl_xor_sync(full_warp, twist, d);
    if (other < least || (other == least && there < twist)) least = other, twist = there;
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {  // each element's share of its neighbour's
    const int i = lane + 32 * r;
    if (i < twist) ends[0][i] = -t.beside[i] / ends[0][i];
    if (i > twist && i < n) ends[1][i] = -t.beside[i - 1] / ends[1][i];
  }
  __syncwarp();
  if (lane < 2) {
    const int steps = side == 0 ? twist : n - 1 - twist, way = side == 0 ? -1 : 1;
    double* const end = mine + twist;
    double value = 1;
    for (int first = 1; first <= steps; first += 8) {
      double share[8];
#pragma unroll
      for (int h = 0; h < 8; ++h) share[h] = first + h <= steps ? end[way * (first + h)] : 0.0;
#pragma unroll
      for (int h = 0; h < 8; ++h) {
        value *= share[h];
        if (first + h <= steps) end[way * (first + h)] = value;
      }
    }
  }
  __syncwarp();
  double square = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int i = lane + 32 * r;
    z[r] = i >= n ? 0.0 : i < twist ? ends[0][i] : i > twist ? ends[1][i] : 1.0;
    square = fma(z[r], z[r], square);
  }
  const double scale = rsqrt(warp_sum(square));
#pragma unroll
  for (int r = 0; r < R; ++r) z[r] *= scale;
}

}  // namespace qrane::backend::cuda::eigen
