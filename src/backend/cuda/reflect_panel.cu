// SPDX-License-Identifier: Apache-2.0
// reflect_panel: Householder vectors of a panel of at most 64 columns from its Gram matrix, without a thin Q on the way
// (Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen 2015, section 5, on top of Cholesky QR).
//
// With G = AᵀA = RᵀR the reconstruction is the LU factorization without pivoting of Q1 - S, Q1 = A1 R^-1. Multiplied
// by R from the right it needs no Q1: A1 - S R = L Ũ with the same L, Ũ = U R, and
//
//     V1 = L,   V2 = A2 Ũ^-1,   T = -Ũ R^-1 S L^-T,   and S R is the panel's R
//
//   gram      G in double (gram.cu)
//   head      one block: both factorizations, their inverses, the guard and T, in double in registers. 65 steps of
//             in-place Gauss-Jordan elimination on G (which leaves R^-1) and, one step behind, on A1 - S R (which
//             leaves Ũ^-1 above and L^-1 below the diagonal), one barrier a step; then two products for T on fp64
//             tensor cores
//   product   V2 := A2 Ũ^-1 in place, and the head's result into the top of the panel
//
// When the guard refuses, the flag says so and the panel is as it was. Cost: 4 m b^2 flops, the panel read twice and
// written twice; bound by the latency of the head's 64 steps.
#include <cfloat>

#include "backend/cuda/kernel.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/reduce.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int order = max_reflect;  // what the head works on; smaller panels are filled up with the identity
constexpr int head_threads = 256;
constexpr int ld = order + 4;  // of matrices in shared memory: operand reads of products are free of conflicts
constexpr int head_bytes = (2 * order * ld + 2 * 3 * order + 2 * order) * 8;

/// Below this a squared column norm may owe its leading digits to underflow in the products (m up to 2^40).
constexpr double least_diagonal = DBL_MIN * 4398046511104.0;  // 2^-1022 * 2^42

/// What the head leaves for the product kernel, in scratch.
struct Head {
  double* w;    // order x order: Ũ^-1 upper, zeros below
  double* top;  // order x order: S R on and above the diagonal, L below
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

/// One row and column of each matrix, as a step of the elimination needs it.
struct Published {
  double* row;  // of A1 - S R, before S R is subtracted right of the diagonal; left of it a row of L^-1
  double* col;  // of the same: below the diagonal to become L, above it to become Ũ^-1
  double* g;    // row of what is left of G from the diagonal on, before it a column to become R^-1
};

__device__ Published published(double* s, int step) {
  double* const p = s + (step & 1) * 3 * order;
  return {p, p + order, p + 2 * order};
}

/// What the steps leave in memory.
struct Result {
  double* u;     // rows of Ũ, shared memory
  double* sign;  // S, shared memory
  double* top;   // S R and L, scratch
};

/// The head's registers: thread (x, y) of 16 x 16 holds elements (y + 16 a, x + 16 b).
struct Elimination {
  double c[4][4], g[4][4];
  int x, y;
  bool good = true;

  /// Owners of row and column q * 16 + r of A1 - S R show them.
  template <int q>
  __device__ void publish_c(int r, const Published& p) const {
    if (y == r) {
#pragma unroll
      for (int b = 0; b < 4; ++b) p.row[x + 16 * b] = c[q][b];
    }
    if (x == r) {
#pragma unroll
      for (int a = 0; a < 4; ++a) p.col[y + 16 * a] = c[a][q];
    }
  }

  template <int q>
  __device__ void publish_g(int r, const Published& p) const {
    if (y == r) {
#pragma unroll
      for (int b = q; b < 4; ++b)
        if (b > q || x >= r) p.g[x + 16 * b] = g[q][b];
    }
    if (x == r) {
#pragma unroll
      for (int a = 0; a <= q; ++a)
        if (a < q || y < r) p.g[y + 16 * a] = g[a][q];
    }
  }

  /// This thread's columns of a row of R, and the row's diagonal element.
  struct Row {
    double r[4], diagonal;
  };

  /// Step j = q * 16 + r on G.
  template <int q>
  __device__ Row step_g(int r, const Published& p) {
    const double pivot = p.g[q * 16 + r], inv = quick_rsqrt(pivot);
    good = good && pivot > 0;
    Row row;
    row.diagonal = pivot * inv;
    double down[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      row.r[k] = p.g[x + 16 * k] * inv;
      down[k] = p.g[y + 16 * k] * inv;
    }
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
      for (int b = q; b < 4; ++b)
        if (b > q || x > r) g[a][b] = a == q && y == r ? -inv * row.r[b] : fma(-down[a], row.r[b], g[a][b]);
    if (x == r) {
#pragma unroll
      for (int a = 0; a <= q; ++a)
        if (a < q || y <= r) g[a][q] = a == q && y == r ? inv : down[a];
    }
    return row;
  }

  /// Step j = q * 16 + r on A1 - S R.
  template <int q>
  __device__ void step_c(int r, const Row& above, const Published& p, const double* scale, const Result& out) {
    const int j = q * 16 + r;
    const double pivot = p.row[j], s = pivot >= 0 ? -1.0 : 1.0;
    const double reciprocal = quick_reciprocal(pivot - s * above.diagonal);
    double right[4], left[4];  // row of Ũ or L^-1; the multipliers
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool beyond = k > q || (k == q && x >= r);
      right[k] = p.row[x + 16 * k] - (beyond ? s * above.r[k] : 0.0);
      left[k] = p.col[y + 16 * k] * reciprocal;
    }
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
      for (int b = 0; b < 4; ++b)
        if (b > q || a > q || (b == q && x > r) || (a == q && y > r))
          c[a][b] = a == q && y == r ? -reciprocal * right[b] : fma(-left[a], right[b], c[a][b]);
    if (x == r) {
#pragma unroll
      for (int a = 0; a < 4; ++a) {
        const bool before = a < q || (a == q && y < r), self = a == q && y == r;
        c[a][q] = self ? reciprocal : before ? left[a] : -left[a];
        if (!before && !self) out.top[y + 16 * a + j * order] = left[a];
      }
    }
    if (y == r) {
#pragma unroll
      for (int b = q; b < 4; ++b) {
        const int k = x + 16 * b;
        if (k < j) continue;
        out.u[j * ld + k] = right[b];
        out.top[j + k * order] = s * above.r[b] * scale[k];
      }
      if (x == r) out.sign[j] = s;
    }
  }

  /// Steps of columns [16 q, 16 q + 16) on G, each with the step before it on A1 - S R: neither waits for the other.
  template <int q>
  __device__ void steps(int n, Row above, double* s, const double* scale, const Result& out) {
    for (int r = 0; r < 16 && q * 16 + r <= n; ++r) {
      const int j = q * 16 + r;
      const Published now = published(s, j), next = published(s, j + 1);
      Row row = above;
      if (j < n) row = step_g<q>(r, now);
      if (r > 0)
        step_c<q>(r - 1, above, now, scale, out);
      else if constexpr (q > 0)
        step_c<q - 1>(15, above, now, scale, out);
      above = row;
      publish_c<q>(r, next);
      if (r < 15)
        publish_g<q>(r + 1, next);
      else if constexpr (q < 3)
        publish_g<q + 1>(0, next);
      __syncthreads();
    }
    if constexpr (q < 3) {
      steps<q + 1>(n, above, s, scale, out);
    } else if (n == order) {
      step_c<3>(15, above, published(s, order), scale, out);
    }
  }
};

/// c := rows 8 i .. of op(A) times columns 8 j .. of op(B) over k tiles [first, last), operands in shared memory.
template <bool transposed>
__device__ void multiply_tile(double (&c)[2], const double* a, const double* b, int i, int j, int first, int last) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  c[0] = c[1] = 0;
  for (int k = first; k < last; ++k)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int depth = 8 * k + 4 * h + t;
      mma_8x8x4(c, a[(8 * i + g) * ld + depth], transposed ? b[(8 * j + g) * ld + depth] : b[depth * ld + 8 * j + g]);
    }
}

/// Tiles on and above the diagonal, of which each warp has its share: f(warp's turn, row, col).
template <class F>
__device__ void each_tile(F f) {
#pragma unroll
  for (int turn = 0; turn < 5; ++turn) {
    const int k = threadIdx.x / 32 + turn * (head_threads / 32);
    int col = 0;
    while (tile_count(col + 1) <= k) ++col;
    if (k < tile_count(order / 8)) f(turn, k - tile_count(col), col);
  }
}

/// T = -Ũ R^-1 S L^-T; u holds Ũ, `other` is overwritten.
template <class T>
__device__ void form_t(const Elimination& e, double* u, double* other, const double* sign,
                       const DeviceMatrix<Cuda, T>& t) {
  const int lane = threadIdx.x % 32, n = static_cast<int>(t.rows);
  double c[5][2];
#pragma unroll
  for (int a = 0; a < 4; ++a)
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int i = e.y + 16 * a, k = e.x + 16 * b;
      other[i * ld + k] = i <= k ? e.g[a][b] : 0.0;
    }
  __syncthreads();
  each_tile([&](int turn, int row, int col) { multiply_tile<false>(c[turn], u, other, row, col, row, col + 1); });
  __syncthreads();
  each_tile([&](int turn, int row, int col) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int k = 8 * col + lane % 4 * 2 + h;
      u[(8 * row + lane / 4) * ld + k] = k < n ? -sign[k] * c[turn][h] : 0.0;
    }
  });
#pragma unroll
  for (int a = 0; a < 4; ++a)
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int i = e.y + 16 * a, k = e.x + 16 * b;
      other[i * ld + k] = i > k && i < n ? e.c[a][b] : i == k ? 1.0 : 0.0;
    }
  __syncthreads();
  each_tile([&](int turn, int row, int col) { multiply_tile<true>(c[turn], u, other, row, col, row, col + 1); });
  each_tile([&](int turn, int row, int col) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = 8 * row + lane / 4, k = 8 * col + lane % 4 * 2 + h;
      if (i < n && k < n) t.data[i + k * t.ld] = i <= k ? static_cast<T>(c[turn][h]) : T(0);
    }
  });
  for (int k = threadIdx.x; k < n * n; k += head_threads)
    if (k % n / 8 > k / n / 8) t.data[k % n + k / n * t.ld] = T(0);
}

/// Thread map: 16 x 16, each 4 x 4 elements of both matrices. Shared memory: head_bytes.
template <class T>
__global__ void __launch_bounds__(head_threads)
    reflect_head_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, double> gram, ReflectPanel<Cuda, T> task,
                        Head head) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  double* const u = shared;
  double* const other = u + order * ld;
  double* const rows = other + order * ld;
  double* const scale = rows + 2 * 3 * order;
  double* const sign = scale + order;
  const int n = static_cast<int>(task.panel.cols);
  Elimination e;
  e.x = threadIdx.x % 16, e.y = threadIdx.x / 16;
  if (threadIdx.x < order) {
    const int j = threadIdx.x;
    const double d = j < n ? gram.data[j + j * gram.ld] : 1.0;
    e.good = d >= least_diagonal && isfinite(d);
    scale[j] = sqrt(d);
  }
  __syncthreads();
#pragma unroll
  for (int a = 0; a < 4; ++a)
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int i = e.y + 16 * a, j = e.x + 16 * b;
      const bool inside = i < n && j < n;
      e.g[a][b] = i == j ? 1.0
                  : inside ? gram.data[min(i, j) + max(i, j) * gram.ld] / scale[i] / scale[j]
                           : 0.0;
      e.c[a][b] = inside ? static_cast<double>(task.panel.data[i + j * task.panel.ld]) / scale[j] : 0.0;
    }
  for (int k = threadIdx.x; k < order * ld; k += head_threads) u[k] = 0.0;
  e.template publish_g<0>(0, published(rows, 0));
  __syncthreads();
  e.template steps<0>(n, {}, rows, scale, {u, sign, head.top});
  double sum = 0;
#pragma unroll
  for (int a = 0; a < 4; ++a)
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int i = e.y + 16 * a, j = e.x + 16 * b;
      if (i < n && j < n) {
        if (i <= j) sum = fma(e.g[a][b], e.g[a][b], sum);
        head.w[i + j * order] = i <= j ? e.c[a][b] / scale[i] : 0.0;
      }
    }
  sum = block_reduce(e.good ? sum : HUGE_VAL, 0.0, Add{});
  // Ĝ's eigenvalues are at most n and their sum is n, so n - 1 of their reciprocals add up to (n - 1)^2 / n or more
  if (threadIdx.x == 0) *task.failed = sum - (n - 1.0) * (n - 1.0) / n <= task.limit ? 0 : 1;
  form_t(e, u, other, sign, task.t);
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

/// Thread map: a warp takes 16 rows below the panel's top; lane (g, t) holds rows 2g and 2g + 1 of columns t and t + 4
/// of each 8. The last block writes the top. Shared memory: Ũ^-1 in the order of the products, 18 KiB.
template <class T, bool aligned>
__global__ void __launch_bounds__(32 * product_warps)
    reflect_product_kernel(const std::int32_t* condition, ReflectPanel<Cuda, T> task, Head head) {
  if (skipped(condition) || *task.failed != 0) return;
  constexpr int tiles = order / 8;
  __shared__ double s[tile_count(tiles) * 64];
  const int n = static_cast<int>(task.panel.cols), lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  if (blockIdx.x == gridDim.x - 1) {
    for (int k = threadIdx.x; k < n * n; k += 32 * product_warps) {
      const int i = k % n, j = k / n;
      const T x = static_cast<T>(head.top[i + j * order]);
      task.panel.data[i + j * task.panel.ld] = x;
      task.v.data[i + j * task.v.ld] = i > j ? x : T(i == j);
    }
    return;
  }
  const auto a = task.panel.block(n, 0, task.panel.rows - n, n), v = task.v.block(n, 0, task.panel.rows - n, n);
  const Index i = (blockIdx.x * Index(product_warps) + threadIdx.x / 32) * product_rows + 2 * g;
  double x[tiles][4];
#pragma unroll
  for (int k = 0; k < tiles; ++k)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      double pair[2];
      const int j = 8 * k + t + 4 * h;
      load_pair<T, aligned>(a.data + j * a.ld, i, a.rows, j < n, pair);
      x[k][2 * h] = pair[0], x[k][2 * h + 1] = pair[1];
    }
  for (int k = threadIdx.x; k < tile_count(tiles) * 64; k += 32 * product_warps) {
    const int tile = k / 64, h = k / 32 % 2, l = k % 32;
    int col_tile = 0;
    while (tile_count(col_tile + 1) <= tile) ++col_tile;
    const int row = (tile - tile_count(col_tile)) * 8 + l % 4 + 4 * h, col = col_tile * 8 + l / 4;
    s[k] = row < n && col < n ? head.w[row + col * order] : 0.0;
  }
  __syncthreads();
#pragma unroll
  for (int col = 0; col < tiles; ++col) {
    double c[4] = {};
#pragma unroll
    for (int row = 0; row <= col; ++row) {
      const double* w = s + tile_index(row, col) * 64 + lane;
      mma_16x8x8(c, x[row], w[0], w[32]);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int j = 8 * col + 2 * t + h;
      if (j >= n) continue;
      store_pair<T, aligned>(a.data + j * a.ld, i, a.rows, c[h], c[2 + h]);
      store_pair<T, aligned>(v.data + j * v.ld, i, a.rows, c[h], c[2 + h]);
    }
  }
}

}  // namespace

template <class T>
void launch_reflect_panel(const Launch& launch, const ReflectPanel<Cuda, T>& task, const Scratch<Cuda>& scratch) {
  const Index n = task.panel.cols, m = task.panel.rows;
  detail::check(n <= max_reflect && m >= n && task.panel.count == 1, ErrorCode::invalid_argument, "reflect_panel of ", m,
                " x ", n, ": takes one matrix of up to ", max_reflect, " columns and at least as many rows");
  constexpr Index used = 3 * order * order * 8;  // before the partial Gram matrices
  detail::check(scratch.bytes >= used + gram_partial_bytes(n), ErrorCode::invalid_argument, "reflect_panel needs ",
                used + gram_partial_bytes(n), " bytes of scratch or more, got ", scratch.bytes);
  if (n == 0) return;
  auto* const small = reinterpret_cast<double*>(scratch.data);
  const DeviceMatrix<Cuda, double> gram{small, n, n, order, 0, 1};
  const Head head{small + order * order, small + 2 * order * order};
  launch_gram(launch, task.panel, gram, {scratch.data + used, scratch.bytes - used});

  check_cuda(cudaFuncSetAttribute(reflect_head_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, head_bytes),
             "cudaFuncSetAttribute(reflect_panel)");
  reflect_head_kernel<T><<<1, head_threads, head_bytes, launch.stream>>>(launch.condition, gram, task, head);
  check_launch("reflect_panel's head kernel");
  const auto below = task.panel.block(n, 0, m - n, n), v = task.v.block(n, 0, m - n, n);
  const bool aligned = is_aligned<2>(below) && is_aligned<2>(v);
  constexpr Index rows = product_warps * product_rows;
  const auto blocks = static_cast<unsigned>((m - n + rows - 1) / rows + 1);
  auto* kernel = aligned ? reflect_product_kernel<T, true> : reflect_product_kernel<T, false>;
  kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task, head);
  check_launch("reflect_panel's product kernel");
}

template void launch_reflect_panel(const Launch&, const ReflectPanel<Cuda, float>&, const Scratch<Cuda>&);
template void launch_reflect_panel(const Launch&, const ReflectPanel<Cuda, double>&, const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
