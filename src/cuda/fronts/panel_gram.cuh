// SPDX-License-Identifier: Apache-2.0
// A tall panel by its Gram matrix (panel_gram.cu): shared memory, and the passes over the rows. fp64 tensor
// cores.
#pragma once

#include "cuda/fronts/panel_rows.cuh"

namespace qrane::backend::cuda::front_panel_gram {

using namespace front_panel;

constexpr int warps = 8, threads = warps * 32, chunk = 32;  // rows that a warp works on together
constexpr int tile_size = 16 * 8, tiles = 6;  // those of a symmetric matrix that reach its diagonal or are above it
constexpr int sums = tiles * tile_size;
constexpr int own_rows = order / warps;  // of small matrices, of a thread
/// How much larger than what is left of a column |A| |n_j| may be, since the Gram matrix has 16 digits of its square:
/// of a column with a reflector, one that is dropped against its limit, one that is neglected against what it began as.
constexpr float most_growth = 3e5f;
constexpr double most_growth_of_dropped = 1e6, most_growth_of_neglected = 30;
constexpr double neglected = 1e-12;  // of the square of a column that is not pivotal: so much may go unseen

struct Shared {
  double warp_sums[warps][sums];
  double block_sums[sums];     // read by the other blocks
  double sum[order][order];    // of all blocks: G or S
  double w[order][order];      // above the diagonal, of this sweep's columns that have a V
  double inverse[order];       // of W's diagonal; 1 for other columns
  double m[order][order + 8];  // padded: fragments meet no bank twice
  double half_product[order / 2][order / 2];
  double row_of_gram[2][order], row_of_top[2][order];  // the pivot's, by parity of the column
  double limit[order], dropped[order];
  double limit_square[order], neglected[order];  // squares of norms: such a column is dropped, or has no reflector
  float most_reach[order];                       // of one of those
  float top[order][order];                       // columns of V's first rows
};

/// Where the number h of a lane's four in a tile belongs.
struct Place {
  int row, col;
  __device__ Place(int tile, int lane, int h)
      : row(tile / 4 * 16 + lane / 4 + h / 2 * 8), col((tile < 4 ? tile : tile - 2) * 8 + lane % 4 * 2 + h % 2) {}
};

/// A block's share of rows, in chunks.
struct Share {
  int first, last;
  __device__ Share(int rows, int rank, int blocks) {
    const int all = (rows + chunk - 1) / chunk;
    first = static_cast<int>(std::int64_t{all} * rank / blocks);
    last = static_cast<int>(std::int64_t{all} * (rank + 1) / blocks);
  }
};

/// Columns of a panel; rows count from the first chunk's first one on, and rows begin .. end - 1 are the panel's.
struct Rows {
  float* a;
  std::int64_t ld;
  int begin, end, cols;
  bool aligned;  // 16 bytes, at multiples of four rows

  __device__ Rows(float* from, std::int64_t apart, int first, int last, int columns)
      : a(from),
        ld(apart),
        begin(first),
        end(last),
        cols(columns),
        aligned(reinterpret_cast<std::uintptr_t>(from) % 16 == 0 && apart % 4 == 0) {}
  __device__ bool whole(int at) const { return aligned && at * chunk >= begin && (at + 1) * chunk <= end; }
  __device__ bool has(int row, int col) const { return row >= begin && row < end && col < cols; }

  /// Rows row .. row + 3 of a column.
  __device__ float4 load(int row, int col, bool is_whole) const {
    const float* const from = a + row + col * ld;
    if (is_whole) return col < cols ? *reinterpret_cast<const float4*>(from) : float4{};
    return {has(row, col) ? from[0] : 0.0f, has(row + 1, col) ? from[1] : 0.0f, has(row + 2, col) ? from[2] : 0.0f,
            has(row + 3, col) ? from[3] : 0.0f};
  }
  __device__ void store(int row, int col, bool is_whole, const float* x) const {
    float* const to = a + row + col * ld;
    if (is_whole) {
      if (col < cols) *reinterpret_cast<float4*>(to) = {x[0], x[1], x[2], x[3]};
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (has(row + i, col)) to[i] = x[i];
  }
};

/// What a lane (g, t) of a warp has of a chunk: `by_columns`: rows 4 t .. and 16 + 4 t .. of columns 8 n + g;
/// `by_rows`: rows 4 g .. of columns 8 n + 4 h + t.
enum class Layout { by_columns, by_rows };
template <Layout layout>
struct Piece {
  float4 x[4][2];

  __device__ void load(const Rows& rows, int at) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bool whole = rows.whole(at);
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if constexpr (layout == Layout::by_columns) x[n][h] = rows.load(at * chunk + h * 16 + t * 4, n * 8 + g, whole);
        if constexpr (layout == Layout::by_rows) x[n][h] = rows.load(at * chunk + g * 4, n * 8 + h * 4 + t, whole);
      }
  }
  __device__ void copy_to(float (&y)[4][8]) const {
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        y[n][4 * h] = x[n][h].x, y[n][4 * h + 1] = x[n][h].y, y[n][4 * h + 2] = x[n][h].z, y[n][4 * h + 3] = x[n][h].w;
  }
};

/// c += Yᵀ Y; lane (g, t) has eight rows of columns 8 n + g in y[n].
__device__ void add_products(double (&c)[tiles][4], const float (&y)[4][8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    double x[4][2];
#pragma unroll
    for (int n = 0; n < 4; ++n) x[n][0] = y[n][i], x[n][1] = y[n][4 + i];
    const double upper[4] = {x[0][0], x[1][0], x[0][1], x[1][1]}, lower[4] = {x[2][0], x[3][0], x[2][1], x[3][1]};
#pragma unroll
    for (int n = 0; n < 4; ++n) mma_16x8x8(c[n], upper, x[n][0], x[n][1]);
#pragma unroll
    for (int n = 2; n < 4; ++n) mma_16x8x8(c[n + 2], lower, x[n][0], x[n][1]);
  }
}

/// c += Aᵀ A of this warp's rows.
__device__ void multiply_rows(const Share& share, const Rows& a, double (&c)[tiles][4]) {
  Piece<Layout::by_columns> next;
  int at = share.first + static_cast<int>(threadIdx.x) / 32;
  if (at < share.last) next.load(a, at);
  for (; at < share.last; at += warps) {
    float y[4][8];
    next.copy_to(y);
    if (at + warps < share.last) next.load(a, at + warps);
    add_products(c, y);
  }
}

/// A warp's X M of a chunk, rounded: rows 8 t + i of columns 8 n + g in y[n].
__device__ void multiply_small(const Shared& s, const float (&x)[4][8], float (&y)[4][8]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    double d[4][4] = {};
#pragma unroll
    for (int k = 0; k < 2 * u + 2; ++k) {  // M is upper triangular
      double m[4];
#pragma unroll
      for (int h = 0; h < 4; ++h) m[h] = s.m[k * 8 + h / 2 * 4 + t][u * 16 + h % 2 * 8 + g];
#pragma unroll
      for (int i = 0; i < 4; ++i) mma_16x8x8(d[i], m, x[k][i], x[k][4 + i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int h = 0; h < 4; ++h) y[2 * u + h / 2][h % 2 * 4 + i] = static_cast<float>(d[i][h]);
  }
}

/// y to its places in A.
__device__ void store_chunk(const Rows& a, int at, bool whole, const float (&y)[4][8]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int h = 0; h < 2; ++h) a.store(at * chunk + t * 8 + h * 4, n * 8 + g, whole, y[n] + 4 * h);
}

/// A := A M, but for the first rows, which are in s.top; c += Aᵀ A of what comes out.
__device__ void transform_rows(const Share& share, const Rows& a, const Shared& s, double (&c)[tiles][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  Piece<Layout::by_rows> next;
  int at = share.first + static_cast<int>(threadIdx.x) / 32;
  if (at < share.last) next.load(a, at);
  for (; at < share.last; at += warps) {
    float x[4][8], y[4][8];
    next.copy_to(x);
    if (at + warps < share.last) next.load(a, at + warps);
    multiply_small(s, x, y);
    const bool whole = a.whole(at) && at * chunk >= a.begin + order;
    if (!whole) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int row = at * chunk + t * 8 + i, of_panel = row - a.begin;
          if (of_panel >= 0 && of_panel < order) y[n][i] = s.top[n * 8 + g][of_panel];
          if (!a.has(row, n * 8 + g)) y[n][i] = 0;
        }
    }
    store_chunk(a, at, whole, y);
    add_products(c, y);
  }
}

}  // namespace qrane::backend::cuda::front_panel_gram
