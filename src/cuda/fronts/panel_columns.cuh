// SPDX-License-Identifier: Apache-2.0
// A front's panel (panel.cu), column by column within a strip.
#pragma once

#include "cuda/fronts/panel_rows.cuh"

namespace qrane::backend::cuda::front_panel {

template <class T, int warps>
__device__ Reflector next_reflector(Panel<T>& panel, Team<warps>& team, int col, const Sums& sums) {
  const Reflector h = reflector(sums, team.b.limit[col], panel.live < panel.room);
  if (threadIdx.x == 0) {
    team.b.tau[col] = h.tau;
    team.b.dropped[col] = h.drop ? h.norm : 0.0;
  }
  panel.count(col, h.live);
  return h;
}

/// Column j of a strip in registers. R above the pivot row, and beta in it, stay in their places until the strip is
/// done.
template <int j, class T, int R, int warps>
__device__ void factor_column(Panel<T>& panel, Team<warps>& team, int strip, double (&a)[R][width]) {
  constexpr int threads = warps * 32;
  const int pivot = panel.live, tid = threadIdx.x;
  const bool top = team.rank == 0;
  double p[width] = {};
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (r > 0 && r * threads >= panel.rows) break;
    const double x = r == 0 && top && tid <= pivot ? 0.0 : a[r][j];
#pragma unroll
    for (int k = j; k < width; ++k) p[k] = fma(x, a[r][k], p[k]);
  }
  const Sums sums = team_sums<j>(team, p, a[0], pivot);
  const Reflector h = next_reflector(panel, team, strip * width + j, sums);
  double w[width];
#pragma unroll
  for (int k = j + 1; k < width; ++k) w[k] = __shfl_sync(0xffffffffu, h.product, k);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (r > 0 && r * threads >= panel.rows) break;
    double v = a[r][j] * h.factor, left = v;
    if (r == 0 && top && tid <= pivot) {
      v = tid == pivot && h.live ? 1.0 : 0.0;
      left = tid < pivot ? a[0][j] : h.live ? h.beta : 0.0;
    }
#pragma unroll
    for (int k = j + 1; k < width; ++k) a[r][k] = fma(-w[k], v, a[r][k]);
    a[r][j] = left;
  }
}

/// All columns of a strip in registers; then a is V, and R is in the corner.
template <class T, int R, int warps, int... j>
__device__ void factor_strip(Panel<T>& panel, Team<warps>& team, int strip, double (&a)[R][width],
                             std::integer_sequence<int, j...>) {
  const int first = strip * width, row = threadIdx.x;
  ((first + j < panel.cols ? factor_column<j>(panel, team, strip, a) : void()), ...);
  if (team.rank != 0 || row >= 32) return;
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const int pivot = panel.live_before(first + k);
    const bool live = panel.is_live(first + k), of_r = row < pivot || (row == pivot && live);
    if (first + k < panel.cols && row < panel.ld_corner)
      panel.corner[row + (first + k) * panel.ld_corner] = of_r ? static_cast<T>(a[0][k]) : T(0);
    if (row <= pivot) a[0][k] = row == pivot && live ? 1.0 : 0.0;
  }
}

/// The same in place, for any number of rows: three passes over the strip a column.
template <class T, int warps>
__device__ void factor_strip_in_place(Panel<T>& panel, Team<warps>& team, int strip) {
  const bool top = team.rank == 0;
  for (int j = 0; j < width && strip * width + j < panel.cols; ++j) {
    const GlobalRows<T, false> a = panel.device.from(strip * width + j);  // column j and those right of it in the strip
    const int pivot = panel.live, left = width - j;
    double p[width] = {}, row[width];
    const auto element = [&](int i, int k) { return k < left ? a(i, k) : 0.0; };
#pragma unroll
    for (int k = 0; k < width; ++k) row[k] = element(threadIdx.x, k);
    for (int i = threadIdx.x; i < panel.rows; i += warps * 32) {
      const double x = top && i <= pivot ? 0.0 : a(i, 0);
#pragma unroll
      for (int k = 0; k < width; ++k) p[k] = fma(x, element(i, k), p[k]);
    }
    const Sums sums = team_sums<0>(team, p, row, pivot);
    const Reflector h = next_reflector(panel, team, strip * width + j, sums);
    double w[width];
#pragma unroll
    for (int k = 1; k < width; ++k) w[k] = __shfl_sync(0xffffffffu, h.product, k);
    for (int i = threadIdx.x; i < panel.rows; i += warps * 32) {
      const double x = a(i, 0), v = top && i <= pivot ? double(i == pivot && h.live) : x * h.factor;
      if (top && i < panel.ld_corner)
        panel.corner[i + (strip * width + j) * panel.ld_corner] = static_cast<T>(i < pivot              ? x
                                                                                 : i == pivot && h.live ? h.beta
                                                                                                        : 0.0);
#pragma unroll
      for (int k = 1; k < width; ++k)
        if (k < left) a.set(i, k, fma(-w[k], v, a(i, k)));
      a.set(i, 0, v);
    }
  }
}

}  // namespace qrane::backend::cuda::front_panel
