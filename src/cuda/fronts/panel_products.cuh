// SPDX-License-Identifier: Apache-2.0
// A front's panel (panel.cu): what is done with a strip's V. Products on fp64 tensor cores, and T.
#pragma once

#include "cuda/fronts/panel_rows.cuh"

namespace qrane::backend::cuda::front_panel {

/// Tiles of 8 rows that a warp works on together, for more loads on their way.
template <class Rows>
constexpr int together = 4;
template <>
constexpr int together<SharedRows> = 2;

/// c += Pᵀ V_s over `count` tiles, the first at `row`, a warp's tiles being 8 * warps rows apart; P has `strips`
/// strips.
template <int warps, int count, class Rows, class Strip>
__device__ void multiply_tiles(const Rows& p, const Strip& v, int strip, int strips, int row,
                               double (&c)[most_strips / 2][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  double x[count][most_strips / 2][4], y[count][2];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = row + i * warps * 8 + t;
#pragma unroll
    for (int h = 0; h < 2; ++h) y[i][h] = v(at + h * 4, g);
#pragma unroll
    for (int k = 0; k < most_strips; ++k)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        x[i][k / 2][k % 2 + h * 2] = k == strip ? y[i][h] : k < strips ? p(at + h * 4, k * width + g) : 0.0;
  }
#pragma unroll
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (int u = 0; u < most_strips / 2; ++u) mma_16x8x8(c[u], x[i][u], y[i][0], y[i][1]);
}

/// P := P - V_s W for the `right` strips right of `strip`; w: what a lane has of -W. Of a product's 8 rows, row
/// n / 2 + n % 2 * 4 stands in place n, so that what a lane holds of P is (t, g) and (t + 4, g) as in multiply_tiles.
template <int warps, int right, int count, class Rows, class Strip>
__device__ void update_tiles(const Rows& p, const Strip& v, int strip, int row, const double (&w)[(right + 1) / 2][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  constexpr int pairs = (right + 1) / 2;
  double c[count][pairs][4], y[count][2];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = row + i * warps * 8;
#pragma unroll
    for (int u = 0; u < pairs; ++u)
#pragma unroll
      for (int h = 0; h < 4; ++h)
        c[i][u][h] = 2 * u + h / 2 < right ? p(at + t + h % 2 * 4, (strip + 1 + 2 * u + h / 2) * width + g) : 0.0;
#pragma unroll
    for (int h = 0; h < 2; ++h) y[i][h] = v(at + g / 2 + g % 2 * 4, t + h * 4);
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = row + i * warps * 8;
#pragma unroll
    for (int u = 0; u < pairs; ++u) {
      mma_16x8x8(c[i][u], w[u], y[i][0], y[i][1]);
#pragma unroll
      for (int h = 0; h < 4; ++h)
        if (2 * u + h / 2 < right) p.set(at + t + h % 2 * 4, (strip + 1 + 2 * u + h / 2) * width + g, c[i][u][h]);
    }
  }
}

/// f(rows, integral constant of tiles, first row) for all tiles of this warp, `together` at a time where all are whole.
template <int warps, class T, class Rows, class F>
__device__ void each_tile(const Panel<T>& panel, const Rows& p, F f) {
  constexpr int many = together<Rows>, step = warps * 8;
  int row = threadIdx.x / 32 * 8;
  if constexpr (std::is_same_v<Rows, SharedRows>) {
    for (; row + (many - 1) * step < panel.rows; row += many * step) f(p, std::integral_constant<int, many>{}, row);
  } else if (panel.cols == order) {
    for (; row + (many - 1) * step + 8 <= panel.rows; row += many * step)
      f(p.all(), std::integral_constant<int, many>{}, row);
  }
  for (; row < panel.rows; row += step) f(p, std::integral_constant<int, 1>{}, row);
}

/// warp_products := this warp's part of V_sᵀ P.
template <int warps, class T, class Rows, class Strip>
__device__ void multiply(const Panel<T>& panel, Block<warps>& b, const Rows& p, const Strip& v, int strip, int strips) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  double c[most_strips / 2][4] = {};
  each_tile<warps>(panel, p, [&](const auto& rows, auto count, int row) {
    multiply_tiles<warps, decltype(count)::value>(rows, v, strip, strips, row, c);
  });
#pragma unroll
  for (int u = 0; u < most_strips / 2; ++u)
#pragma unroll
    for (int h = 0; h < 4; ++h) b.warp_products[warp][(2 * t + h % 2) * order + (2 * u + h / 2) * width + g] = c[u][h];
}

template <int right, int warps, class T, class Rows, class Strip>
__device__ void update(const Panel<T>& panel, const Block<warps>& b, const Rows& p, const Strip& v, int strip) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  double w[(right + 1) / 2][4];
#pragma unroll
  for (int u = 0; u < (right + 1) / 2; ++u)
#pragma unroll
    for (int h = 0; h < 4; ++h)
      w[u][h] = 2 * u + h % 2 < right ? -b.w[t + h / 2 * 4][(strip + 1 + 2 * u + h % 2) * width + g] : 0.0;
  each_tile<warps>(panel, p, [&](const auto& rows, auto count, int row) {
    update_tiles<warps, right, decltype(count)::value>(rows, v, strip, row, w);
  });
}

/// w := T_sᵀ V_sᵀ P, a lane per column of P: w_i = tau_i (v_iᵀ P - sum_{l<i} v_iᵀ v_l w_l). By one warp.
template <int warps>
__device__ void form_w(Block<warps>& b, int strip) {
  const int lane = threadIdx.x % 32;
  double rest[width];
#pragma unroll
  for (int i = 0; i < width; ++i) rest[i] = b.products[i * order + lane];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const double w = b.tau[strip * width + i] * rest[i];
    b.w[i][lane] = w;
#pragma unroll
    for (int l = i + 1; l < width; ++l) rest[l] = fma(-b.products[i * order + strip * width + l], w, rest[l]);
  }
}

/// T(:, j) = -tau_j T(:, 0:j) V(:, 0:j)ᵀ v_j: the sum over the strips to the left, for half of the rows; by one warp.
template <int warps>
__device__ void sum_t(Block<warps>& b, int strip, int half) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, i = half * 16 + g;
  double c[4] = {};
  for (int l = t; l < strip * width; l += width)
    mma_16x8x8(c, {b.t[l][i], b.t[l][i + 8], b.t[l + 4][i], b.t[l + 4][i + 8]}, b.products[g * order + l],
               b.products[g * order + l + 4]);
#pragma unroll
  for (int h = 0; h < 4; ++h) b.t_sums[2 * t + h % 2][i + h / 2 * 8] = c[h];
}

/// The rest of T's columns of the strip; by one warp, a lane per row.
template <class T, int warps>
__device__ void form_t(const Panel<T>& panel, Block<warps>& b, int strip) {
  const int i = threadIdx.x % 32;
  double sum[width];
#pragma unroll
  for (int j = 0; j < width; ++j) sum[j] = b.t_sums[j][i];
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const int col = strip * width + j;
    const double tau = b.tau[col], x = i < col ? -tau * sum[j] : i == col ? tau : 0.0;
    b.t[col][i] = x;
    if (col < panel.cols && i < panel.ld_corner) panel.t[i + col * panel.ld_corner] = static_cast<T>(x);
#pragma unroll
    for (int l = j + 1; l < width; ++l) sum[l] = fma(x, b.products[j * order + strip * width + l], sum[l]);
  }
}

}  // namespace qrane::backend::cuda::front_panel
