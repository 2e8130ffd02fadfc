// SPDX-License-Identifier: Apache-2.0
// reflect_panel: Householder vectors of a panel of at most 64 columns from its Gram matrix, without a thin Q on the way
// (Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen 2015, section 5, on top of Cholesky QR).
//
// With G = AᵀA = RᵀR the reconstruction is the LU factorization without pivoting of Q1 - S, Q1 = A1 R^-1. Multiplied
// by R from the right it needs no Q1: A1 - S R = L Ũ with the same L, Ũ = U R, and
//
//     V1 = L,   V2 = A2 Ũ^-1,   T = Ũ K,  K = -R^-1 S L^-T,   and S R is the panel's R
//     Y = V T:  Y1 = A1 K + L^-T,   Y2 = A2 K
//
//   gram      G in double (gram.cu)
//   head      one block: both factorizations, their inverses, the guard and T, in double in shared memory. In-place
//             Gauss-Jordan elimination by tiles of 8 x 8 on G (which leaves R^-1) and, one step behind, on A1 - S R
//             (which leaves Ũ^-1 above and L^-1 below the diagonal): a warp factors a diagonal tile in registers
//             while the others update with the tiles before by fp64 tensor-core products
//   product   V2 := A2 Ũ^-1 in place, and the head's result into the top of the panel; Y
//
// When the guard refuses, the flag says so and the panel is as it was. Cost: 5 m b^2 flops, the panel read twice and
// written three times; bound by the latency of the head's 9 steps.
#include <cfloat>

#include "backend/cuda/kernel.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/reduce.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int order = max_reflect;  // leading dimension of what goes through scratch
constexpr int most_tiles = order / 8;
constexpr int head_threads = 256;
constexpr int head_warps = head_threads / 32;

/// Below this a squared column norm may owe its leading digits to underflow in the products (m up to 2^40).
constexpr double least_diagonal = DBL_MIN * 4398046511104.0;  // 2^-1022 * 2^42

/// What the head leaves for the product kernel, in scratch.
struct Head {
  double* top;  // order x order: S R on and above the diagonal, L below
  double* w;    // Ũ^-1, and
  double* k;    // K: tiles on and above the diagonal, as Tiles has them
  double* l;    // order x order, upper, zeros below: L^-T
};

/// 1 / sqrt(x) and 1 / x to a unit or two in the last place, by Newton's method from 20 bits; the library's own are
/// right to half a unit and take twice as long, and every step waits for them. Not for denormals, infinities and zero.
__device__ double quick_rsqrt(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
  for (int k = 0; k < 2; ++k) y = fma(0.5 * y, fma(-x * y, y, 1.0), y);
  return y;
}
__device__ double quick_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
  for (int k = 0; k < 2; ++k) y = fma(y, fma(-x, y, 1.0), y);
  return y;
}

/// Where element (row, col) of an 8 x 8 tile lies: operands of products are read without bank conflicts.
__device__ constexpr int in_tile(int row, int col) { return col * 4 + row % 4 + row / 4 * 32; }

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

/// Diagonal tile q of G by one warp: R of it into the row of R, R^-1 in place. All lanes compute R; a lane has one
/// column of the inverse.
__device__ bool factor_g(Tiles& s, int q) {
  double* const tile = s.g_tile(q, q);
  const int lane = threadIdx.x % 32, col = lane % 8;
  double r[8][8], inv[8];
  bool good = true;
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int i = 0; i <= j; ++i) r[i][j] = tile[in_tile(i, j)];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    good = good && r[k][k] > 0;
    inv[k] = quick_rsqrt(r[k][k]);
#pragma unroll
    for (int j = k; j < 8; ++j) r[k][j] *= inv[k];
#pragma unroll
    for (int j = k + 1; j < 8; ++j)
#pragma unroll
      for (int i = k + 1; i <= j; ++i) r[i][j] = fma(-r[k][i], r[k][j], r[i][j]);
  }
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
__device__ void factor_c(Tiles& s, int p, double* top) {
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

/// What step q does to tiles (i, k .. k + 3) of G right of column q: R^-1 grows above row q, the rest of G shrinks below
/// it. `diagonal`: tile (q + 1, q + 1) alone.
__device__ void update_g(Tiles& s, int q, int i, int k, int tiles, bool diagonal) {
  if (k + strip <= q + 1 || k + strip <= i || i >= tiles) return;
  Accumulator c[strip];
#pragma unroll
  for (int u = 0; u < strip; ++u) c[u] = i == q ? Accumulator::zero() : Accumulator::load(s.g_tile(i, k + u));
  if (i > q) {
#pragma unroll
    for (int u = 0; u < strip; ++u) c[u].add<true>(s.r[q & 1][i], s.r[q & 1][k + u], -1.0);
  } else {
#pragma unroll
    for (int u = 0; u < strip; ++u) c[u].add(s.g_tile(i, q), s.r[q & 1][k + u], -1.0);
  }
#pragma unroll
  for (int u = 0; u < strip; ++u)
    if (k + u > q && k + u >= i && k + u < tiles && diagonal == (i == q + 1 && k + u == q + 1))
      c[u].store(s.g_tile(i, k + u));
}

/// What step p does to tiles (i, k .. k + 3) of A1 - S R right of column p or below row p.
__device__ void update_c(Tiles& s, int p, int i, int k, int tiles, bool diagonal) {
  if ((k + strip <= p + 1 && i <= p) || i >= tiles) return;
  const double* const left = i > p ? s.l[i] : i == p ? s.u_inverse[p & 1] : s.c_tile(i, p);
  Accumulator c[strip];
#pragma unroll
  for (int u = 0; u < strip; ++u)
    c[u] = i == p || k + u == p ? Accumulator::zero() : Accumulator::load(s.c_tile(i, k + u));
#pragma unroll
  for (int u = 0; u < strip; ++u)
    c[u].add(left, k + u > p ? s.u_tile(p, k + u) : k + u == p ? s.l_inverse[p & 1] : s.c_tile(p, k + u), -1.0);
#pragma unroll
  for (int u = 0; u < strip; ++u)
    if ((k + u > p || i > p) && k + u < tiles && diagonal == (i == p + 1 && k + u == p + 1))
      c[u].store(s.c_tile(i, k + u));
}

/// The products of a step with its diagonal tiles, for tile row and column k. G: step q; A1 - S R: step p = q - 1.
__device__ void scale_tiles(Tiles& s, int q, int k, int tiles, double* top) {
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
__device__ bool eliminate(Tiles& s, int tiles, double* top) {
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

/// Thread map: 8 warps, which share the tiles. Shared memory: Tiles.
template <class T>
__global__ void __launch_bounds__(head_threads)
    reflect_head_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, double> gram, ReflectPanel<Cuda, T> task,
                        Head head) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  Tiles& s = *reinterpret_cast<Tiles*>(shared);
  const int n = static_cast<int>(task.panel.cols), tiles = (n + 7) / 8;
  bool good = load_tiles(s, gram, task.panel);
  __syncthreads();
  good = eliminate(s, tiles, head.top) && good;
  double sum = 0;
  each_upper([&](int e, int i, int j) {
    const double x = s.g[0][e];
    if (i <= j && j < n) sum = fma(x, x, sum);
    const double w = s.c_tile(i / 8, j / 8)[e % 64];
    head.w[e] = i <= j ? w * s.by[i] : 0.0;
  });
  sum = block_reduce(good ? sum : HUGE_VAL, 0.0, Add{});
  // Ĝ's eigenvalues are at most n and their sum is n, so n - 1 of their reciprocals add up to (n - 1)^2 / n or more
  if (threadIdx.x == 0) *task.failed = sum - (n - 1.0) * (n - 1.0) / n <= task.limit ? 0 : 1;
  form_t(s, tiles, head, task.t);
}

// ---------------------------------------------------------------------------------------------------------

constexpr int product_warps = 4;
constexpr int product_rows = 16;  // per warp

/// Elements i, i + 1 of a column.
template <class T, bool aligned>
__device__ void load_pair(const T* column, Index i, Index rows, bool valid, double (&x)[2]) {
  x[0] = x[1] = 0;
  if (!valid) return;
  if (aligned && i + 2 <= rows) {
    const auto pair = *reinterpret_cast<const Vector<T, 2>*>(column + i);
    x[0] = pair.v[0], x[1] = pair.v[1];
  } else {
    if (i < rows) x[0] = column[i];
    if (i + 1 < rows) x[1] = column[i + 1];
  }
}

template <class T, bool aligned>
__device__ void store_pair(T* column, Index i, Index rows, double first, double second) {
  if (aligned && i + 2 <= rows) {
    *reinterpret_cast<Vector<T, 2>*>(column + i) = {static_cast<T>(first), static_cast<T>(second)};
  } else {
    if (i < rows) column[i] = static_cast<T>(first);
    if (i + 1 < rows) column[i + 1] = static_cast<T>(second);
  }
}

/// Thread map: a warp takes 16 rows; lane (g, t) holds rows 2g and 2g + 1 of columns t and t + 4 of each 8. Shared memory:
/// Ũ^-1 and K, 36 KiB.
template <class T, bool aligned>
__global__ void __launch_bounds__(32 * product_warps)
    reflect_product_kernel(const std::int32_t* condition, ReflectPanel<Cuda, T> task, Head head) {
  if (skipped(condition) || *task.failed != 0) return;
  __shared__ double w[tile_count(most_tiles) * 64], k[tile_count(most_tiles) * 64];
  const auto a = task.panel;
  const int n = static_cast<int>(a.cols), lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const Index first = (blockIdx.x * Index(product_warps) + threadIdx.x / 32) * product_rows, i = first + 2 * g;
  double x[most_tiles][4];
#pragma unroll
  for (int c = 0; c < most_tiles; ++c)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      double pair[2];
      const int j = 8 * c + t + 4 * h;
      load_pair<T, aligned>(a.data + j * a.ld, i, a.rows, j < n, pair);
      x[c][2 * h] = pair[0], x[c][2 * h + 1] = pair[1];
    }
#pragma unroll 6
  for (int e = threadIdx.x; e < tile_count(most_tiles) * 64; e += 32 * product_warps) w[e] = head.w[e], k[e] = head.k[e];
  __syncthreads();  // also: a warp has read all of its rows before it writes some
#pragma unroll
  for (int col = 0; col < most_tiles; ++col) {
    double v[4] = {}, y[4] = {};
#pragma unroll
    for (int row = 0; row <= col; ++row) {
      const int e = tile_index(row, col) * 64 + lane;
      mma_16x8x8(v, x[row], w[e], w[e + 32]);
      mma_16x8x8(y, x[row], k[e], k[e + 32]);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int j = 8 * col + 2 * t + h;
      if (j >= n) continue;
      double out[2] = {v[h], v[2 + h]};
      if (first < n) {  // rows of the top: S R and L; V1 T = A1 K + L^-T
#pragma unroll
        for (int d = 0; d < 2; ++d) {
          const double top = i + d < n ? head.top[i + d + j * order] : out[d];
          if (i + d < n) {
            y[2 * d + h] += head.l[i + d + j * order];
            out[d] = i + d > j ? top : double(i + d == j);
          }
          if (i + d < a.rows) a.data[i + d + j * a.ld] = static_cast<T>(top);
        }
      } else {
        store_pair<T, aligned>(a.data + j * a.ld, i, a.rows, out[0], out[1]);
      }
      store_pair<T, aligned>(task.v.data + j * task.v.ld, i, a.rows, out[0], out[1]);
      store_pair<T, aligned>(task.y.data + j * task.y.ld, i, a.rows, y[h], y[2 + h]);
    }
  }
}

}  // namespace

template <class T>
void launch_reflect_panel(const Launch& launch, const ReflectPanel<Cuda, T>& task, const Scratch<Cuda>& scratch) {
  const Index n = task.panel.cols, m = task.panel.rows;
  detail::check(n <= max_reflect && m >= n && task.panel.count == 1, ErrorCode::invalid_argument, "reflect_panel of ", m,
                " x ", n, ": takes one matrix of up to ", max_reflect, " columns and at least as many rows");
  constexpr Index used = 5 * order * order * 8;  // before the partial Gram matrices
  detail::check(scratch.bytes >= used + gram_partial_bytes(n), ErrorCode::invalid_argument, "reflect_panel needs ",
                used + gram_partial_bytes(n), " bytes of scratch or more, got ", scratch.bytes);
  if (n == 0) return;
  auto* const small = reinterpret_cast<double*>(scratch.data);
  const DeviceMatrix<Cuda, double> gram{small, n, n, order, 0, 1};
  const Head head{small + order * order, small + 2 * order * order, small + 3 * order * order,
                  small + 4 * order * order};
  launch_gram(launch, task.panel, gram, {scratch.data + used, scratch.bytes - used});

  check_cuda(cudaFuncSetAttribute(reflect_head_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Tiles))),
             "cudaFuncSetAttribute(reflect_panel)");
  reflect_head_kernel<T><<<1, head_threads, int(sizeof(Tiles)), launch.stream>>>(launch.condition, gram, task, head);
  check_launch("reflect_panel's head kernel");
  const bool aligned = is_aligned<2>(task.panel) && is_aligned<2>(task.v) && is_aligned<2>(task.y);
  constexpr Index rows = product_warps * product_rows;
  const auto blocks = static_cast<unsigned>((m + rows - 1) / rows);
  auto* kernel = aligned ? reflect_product_kernel<T, true> : reflect_product_kernel<T, false>;
  kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task, head);
  check_launch("reflect_panel's product kernel");
}

template void launch_reflect_panel(const Launch&, const ReflectPanel<Cuda, float>&, const Scratch<Cuda>&);
template void launch_reflect_panel(const Launch&, const ReflectPanel<Cuda, double>&, const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
