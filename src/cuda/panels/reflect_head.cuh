// SPDX-License-Identifier: Apache-2.0
// The head of reflect_panel (reflect_panel.cu), one block's work: both eliminations, in place and by tiles of 8 x 8 in
// shared memory, of G (which leaves R^-1) and, one step behind, of A1 - S R (which leaves Ũ^-1 above and L^-1 below the
// diagonal); then K and T. A warp factors a diagonal tile in registers while the others update with the tiles before.
#pragma once

#include "cuda/collectives/triangle.cuh"
#include "cuda/reach.hpp"

namespace qrane::backend::cuda::reflect {

constexpr int order = max_reflect;  // leading dimension of what goes through scratch
constexpr int most_tiles = order / 8;
constexpr int head_threads = 256;
constexpr int head_warps = head_threads / 32;

/// What the head leaves for the product kernel, in scratch.
struct Head {
  double* top;  // order x order: S R on and above the diagonal, L below
  double* w;    // Ũ^-1, and
  double* k;    // K: tiles on and above the diagonal, as Tiles has them
  double* l;    // order x order, upper, zeros below: L^-T
};

/// Shared memory of the head: 8 x 8 tiles of 64 doubles.
struct Tiles {
  double g[tile_count(most_tiles)][64];       // what is left of G; R^-1 in the rows above
  double u[tile_count(most_tiles)][64];       // Ũ
  double c[most_tiles * most_tiles][64];      // what is left of A1 - S R; Ũ^-1 above, L^-1 to the left of it
  double r[2][most_tiles][64];                // a row of tiles of R, by parity of the step
  double l[most_tiles][64];                   // a column of tiles of L
  double l_inverse[2][64], u_inverse[2][64];  // of the diagonal tile, by parity
  double scale[order], by[order];             // square roots of G's diagonal, and their reciprocals
  double sign[order];                         // S

  __device__ double* g_tile(int row, int col) { return g[tile_index(row, col)]; }
  __device__ double* u_tile(int row, int col) { return u[tile_index(row, col)]; }
  __device__ double* c_tile(int row, int col) { return c[row * most_tiles + col]; }
};

/// Diagonal tile q of G by one warp: R of it into the row of R, R^-1 in place. All lanes compute R; a lane has one
/// column of the inverse.
__device__ inline bool factor_g(Tiles& s, int q) {
  double* const tile = s.g_tile(q, q);
  const int lane = threadIdx.x % 32, col = lane % 8;
  double r[8][8], inv[8];
  const bool good = factor_diagonal(tile, r, inv);
  double x[8];
#pragma unroll
  for (int i = 7; i >= 0; --i) {
    double sum = i == col ? 1.0 : 0.0;
#pragma unroll
    for (int k = i + 1; k < 8; ++k) sum = fma(-r[i][k], x[k], sum);
    x[i] = sum * inv[i];  // 0 below the diagonal
  }
  __syncwarp();
  if (lane < 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) tile[in_tile(i, col)] = x[i];
  } else if (lane == 8) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int i = 0; i < 8; ++i) s.r[q & 1][q][in_tile(i, j)] = i <= j ? r[i][j] : 0.0;
  }
  return good;
}

/// Diagonal tile p of A1 - S R by one warp: S, L and S R into `top`, Ũ, and both inverses.
__device__ inline void factor_c(Tiles& s, int p, double* top) {
  double* const tile = s.c_tile(p, p);
  const double* const r = s.r[p & 1][p];
  const int lane = threadIdx.x % 32, col = lane % 8;
  double c[8][8], inv[8], sign[8], y[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    y[i] = i == col ? 1.0 : 0.0;
#pragma unroll
    for (int j = 0; j < 8; ++j) c[i][j] = tile[in_tile(i, j)];
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    sign[k] = c[k][k] >= 0 ? -1.0 : 1.0;
#pragma unroll
    for (int j = k; j < 8; ++j) c[k][j] = fma(-sign[k], r[in_tile(k, j)], c[k][j]);
    inv[k] = quick_reciprocal(c[k][k]);
#pragma unroll
    for (int i = k + 1; i < 8; ++i) {
      c[i][k] *= inv[k];
#pragma unroll
      for (int j = k + 1; j < 8; ++j) c[i][j] = fma(-c[i][k], c[k][j], c[i][j]);
      y[i] = fma(-c[i][k], y[k], y[i]);  // column `col` of L^-1
    }
  }
  double x[8];
#pragma unroll
  for (int i = 7; i >= 0; --i) {
    double sum = i == col ? 1.0 : 0.0;
#pragma unroll
    for (int k = i + 1; k < 8; ++k) sum = fma(-c[i][k], x[k], sum);
    x[i] = sum * inv[i];
  }
  __syncwarp();
  if (lane < 8) {
    const int j = 8 * p + col;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      s.l_inverse[p & 1][in_tile(i, col)] = y[i];
      s.u_inverse[p & 1][in_tile(i, col)] = x[i];
      tile[in_tile(i, col)] = i > col ? y[i] : x[i];
      if (i <= col) top[8 * p + i + j * order] = sign[i] * r[in_tile(i, col)] * s.scale[j];
    }
  } else if (lane == 8) {
    double* const u = s.u_tile(p, p);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      s.sign[8 * p + j] = sign[j];
#pragma unroll
      for (int i = 0; i < 8; ++i) u[in_tile(i, j)] = i <= j ? c[i][j] : 0.0;
    }
  } else if (lane == 9) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int i = j + 1; i < 8; ++i) top[8 * p + i + (8 * p + j) * order] = c[i][j];
  }
}

/// Tiles of one row that a warp updates together, so that their products need not wait for each other.
constexpr int strip = 4;

/// What step q does to tiles (i, k .. k + 3) of G right of column q: R^-1 grows above row q, the rest of G shrinks
/// below it. `diagonal`: tile (q + 1, q + 1) alone.
__device__ inline void update_g(Tiles& s, int q, int i, int k, int tiles, bool diagonal) {
  if (k + strip <= q + 1 || k + strip <= i || i >= tiles) return;
  // the strip's other tiles belong to other warps, which may be writing them
  const auto mine = [&](int j) { return j > q && j >= i && j < tiles && diagonal == (i == q + 1 && j == q + 1); };
  Accumulator c[strip];
#pragma unroll
  for (int u = 0; u < strip; ++u)
    c[u] = i == q || !mine(k + u) ? Accumulator::zero() : Accumulator::load(s.g_tile(i, k + u));
  if (i > q) {
#pragma unroll
    for (int u = 0; u < strip; ++u) c[u].add<true>(s.r[q & 1][i], s.r[q & 1][k + u], -1.0);
  } else {
#pragma unroll
    for (int u = 0; u < strip; ++u) c[u].add(s.g_tile(i, q), s.r[q & 1][k + u], -1.0);
  }
#pragma unroll
  for (int u = 0; u < strip; ++u)
    if (mine(k + u)) c[u].store(s.g_tile(i, k + u));
}

/// What step p does to tiles (i, k .. k + 3) of A1 - S R right of column p or below row p.
__device__ inline void update_c(Tiles& s, int p, int i, int k, int tiles, bool diagonal) {
  if ((k + strip <= p + 1 && i <= p) || i >= tiles) return;
  const double* const left = i > p ? s.l[i] : i == p ? s.u_inverse[p & 1] : s.c_tile(i, p);
  const auto mine = [&](int j) { return (j > p || i > p) && j < tiles && diagonal == (i == p + 1 && j == p + 1); };
  Accumulator c[strip];
#pragma unroll
  for (int u = 0; u < strip; ++u)
    c[u] = i == p || k + u == p || !mine(k + u) ? Accumulator::zero() : Accumulator::load(s.c_tile(i, k + u));
#pragma unroll
  for (int u = 0; u < strip; ++u)
    c[u].add(left, k + u > p ? s.u_tile(p, k + u) : k + u == p ? s.l_inverse[p & 1] : s.c_tile(p, k + u), -1.0);
#pragma unroll
  for (int u = 0; u < strip; ++u)
    if (mine(k + u)) c[u].store(s.c_tile(i, k + u));
}

/// The products of a step with its diagonal tiles, for tile row and column k. G: step q; A1 - S R: step p = q - 1.
__device__ inline void scale_tiles(Tiles& s, int q, int k, int tiles, double* top) {
  const int p = q - 1, lane = threadIdx.x % 32;
  const bool on_g = q < tiles && k != q, on_c = p >= 0 && k != p;
  double* const u = k > p ? s.u_tile(max(p, 0), k) : s.c_tile(max(p, 0), k);
  if (on_c && k > p) {  // a tile of Ũ, and of R for good
    const double* const r = s.r[p & 1][k];
    const double* const c = s.c_tile(p, k);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = lane / 4, j = lane % 4 * 2 + h, e = in_tile(i, j);
      const double signed_r = s.sign[8 * p + i] * r[e];
      top[8 * p + i + (8 * k + j) * order] = signed_r * s.scale[8 * k + j];
      u[e] = c[e] - signed_r;
    }
    __syncwarp();
  }
  auto g = Accumulator::zero(), row = Accumulator::zero(), col = Accumulator::zero();
  if (on_g && k > q) g.add<true>(s.g_tile(q, q), s.g_tile(q, k));
  if (on_g && k < q) g.add(s.g_tile(k, q), s.g_tile(q, q));
  if (on_c) {
    row.add(s.l_inverse[p & 1], u);
    col.add(s.c_tile(k, p), s.u_inverse[p & 1]);
  }
  if (on_g) g.store(k > q ? s.r[q & 1][k] : s.g_tile(k, q));
  if (!on_c) return;
  row.store(u);
  col.store(k > p ? s.l[k] : s.c_tile(k, p));
  if (k > p) {
#pragma unroll
    for (int h = 0; h < 2; ++h) top[8 * k + lane / 4 + (8 * p + lane % 4 * 2 + h) * order] = col.c[h];
  }
}

/// Both eliminations, A1 - S R one step behind G. One warp each has the diagonal tiles, which are brought up to date
/// first; meanwhile the others finish the step before.
__device__ inline bool eliminate(Tiles& s, int tiles, double* top) {
  const int warp = threadIdx.x / 32;
  bool good = true;
  for (int q = 0; q <= tiles; ++q) {
    const int p = q - 1;
    if (warp == 0) {
      if (q > 0) update_g(s, q - 1, q, q / strip * strip, tiles, true);
      __syncwarp();
      if (q < tiles) good = factor_g(s, q) && good;
    } else if (warp == 1) {
      if (p > 0) update_c(s, p - 1, p, p / strip * strip, tiles, true);
      __syncwarp();
      if (p >= 0) factor_c(s, p, top);
    } else {
      for (int e = warp - 2; e < most_tiles * 2; e += head_warps - 2) {
        const int first = (e + e / 2) % 2 * strip;  // left halves have less to do: every warp gets both kinds
        if (q > 0) update_g(s, q - 1, e / 2, first, tiles, false);
        if (p > 0) update_c(s, p - 1, e / 2, first, tiles, false);
      }
    }
    __syncthreads();
    for (int k = warp; k < tiles; k += head_warps) scale_tiles(s, q, k, tiles, top);
    __syncthreads();
  }
  return good;
}

/// f(element, row, col) for every element of the tiles on and above the diagonal, by all threads; elements are numbered
/// as Tiles::g holds them.
template <class F>
__device__ void each_upper(F f) {
  const int e = threadIdx.x % 64, row = e % 4 + e / 32 * 4, col = e / 4 % 8;
  int tile_row = threadIdx.x / 64, tile_col = 0;
  for (int k = threadIdx.x / 64; k < tile_count(most_tiles); k += head_threads / 64) {
    while (tile_row > tile_col) tile_row -= ++tile_col;
    f(64 * k + e, 8 * tile_row + row, 8 * tile_col + col);
    tile_row += head_threads / 64;
  }
}

/// K = -R^-1 S L^-T and T = Ũ K. Tile k on or above the diagonal belongs to warp k mod 8, in both products; K takes the
/// place of R^-1.
template <class T>
__device__ void form_t(Tiles& s, int tiles, const Head& head, const DeviceMatrix<Cuda, T>& t) {
  constexpr int turns = (tile_count(most_tiles) + head_warps - 1) / head_warps;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = static_cast<int>(t.rows);
  Accumulator x[turns];
  const auto each = [&](auto f) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int e = warp + turn * head_warps;
      int col = 0;
      while (tile_count(col + 1) <= e) ++col;
      if (col < tiles) f(turn, e - tile_count(col), col);
    }
  };
  for (int e = threadIdx.x; e < most_tiles * 64; e += head_threads) {  // L^-1 alone in the diagonal tiles
    const int i = e % 8, j = e / 8 % 8;
    double& z = s.c_tile(e / 64, e / 64)[in_tile(i, j)];
    z = i > j ? z : i == j ? 1.0 : 0.0;
  }
  __syncthreads();
#pragma unroll 4
  for (int e = threadIdx.x; e < order * order; e += head_threads) {
    const int i = e % order, j = e / order;
    head.l[e] = i <= j ? s.c_tile(j / 8, i / 8)[in_tile(j % 8, i % 8)] : 0.0;
  }
  each([&](int turn, int row, int col) {
    x[turn] = Accumulator::zero();
    for (int k = row; k <= col; ++k) {
      const double sign[2] = {-s.sign[8 * k + lane % 4], -s.sign[8 * k + lane % 4 + 4]};
      x[turn].template add<false, true>(s.g_tile(row, k), s.c_tile(col, k), sign);
    }
  });
  __syncthreads();
  each([&](int turn, int row, int col) { x[turn].store(s.g_tile(row, col)); });
  __syncthreads();
  each_upper([&](int e, int i, int) { head.k[e] = s.g[0][e] * s.by[i]; });
  each([&](int turn, int row, int col) {
    x[turn] = Accumulator::zero();
    for (int k = row; k <= col; ++k) x[turn].add(s.u_tile(row, k), s.g_tile(k, col));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = 8 * row + lane / 4, k = 8 * col + lane % 4 * 2 + h;
      if (i < n && k < n) t.data[i + k * t.ld] = i <= k ? static_cast<T>(x[turn].c[h]) : T(0);
    }
  });
  for (int e = threadIdx.x; e < order * order; e += head_threads) {
    const int i = e % order, j = e / order;
    if (i / 8 > j / 8 && i < n) t.data[i + j * t.ld] = T(0);
  }
}

/// Both matrices with columns of G scaled to one; past n columns G is the identity and A1 zero.
template <class T>
__device__ bool load_tiles(Tiles& s, const DeviceMatrix<Cuda, double>& gram, const DeviceMatrix<Cuda, T>& a) {
  const int n = static_cast<int>(a.cols);
  bool good = true;
  if (threadIdx.x < order) {
    const int j = threadIdx.x;
    const double d = j < n ? gram.data[j + j * gram.ld] : 1.0;
    good = d >= least_diagonal && isfinite(d);
    s.scale[j] = sqrt(d);
    s.by[j] = 1 / s.scale[j];
  }
  constexpr int turns = order * order / head_threads;
  double x[turns], y[turns];  // all on their way before the first is used
#pragma unroll
  for (int u = 0; u < turns; ++u) {
    const int e = threadIdx.x + u * head_threads, i = e % order, j = e / order;
    const bool inside = i < n && j < n;
    x[u] = inside && i < j ? gram.data[i + j * gram.ld] : i == j ? 1.0 : 0.0;
    y[u] = inside ? static_cast<double>(a.data[i + j * a.ld]) : 0.0;
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < turns; ++u) {
    const int e = threadIdx.x + u * head_threads, i = e % order, j = e / order;
    s.c_tile(i / 8, j / 8)[in_tile(i % 8, j % 8)] = y[u] * s.by[j];
    if (i / 8 <= j / 8) s.g_tile(i / 8, j / 8)[in_tile(i % 8, j % 8)] = i == j ? 1.0 : x[u] * s.by[i] * s.by[j];
  }
  return good;
}

}  // namespace qrane::backend::cuda::reflect
