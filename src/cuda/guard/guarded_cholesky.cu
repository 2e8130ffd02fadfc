// SPDX-License-Identifier: Apache-2.0
// guarded_cholesky in one block: scaling by the Gram matrix's diagonal, Cholesky factor, its inverse, the
// bound on the condition number, the guard. n <= 224 where a block may have 208 KiB of shared memory.
//
// The scaled matrix lives in shared memory as tiles of 8 x 8 on and above the diagonal (tile_index), factored
// and then inverted in place, in double:
//
//   factor   for each row p of tiles: threads own the columns j >= 8p; each factors the diagonal tile for
//            itself in registers (cheaper than a barrier), solves for its 8 elements of row p of R̂, and the
//            warps subtract R̂(p,i)ᵀ R̂(p,j) from every later tile (i,j) by fp64 tensor-core products
//   invert   D_j := R̂(j,j)^-1, one column per thread; R̂(i,j) := -R̂(i,j) D_j; then, column of tiles by
//            column, Ŵ(i,j) := sum_{i<=k<j} Ŵ(i,k) R̂(k,j), which reads only columns already inverted
//
// About 2 n^3 / 3 flops; what counts are the n / 8 steps of some 2000 cycles each.
#include "cuda/collectives/reduce.cuh"
#include "cuda/collectives/triangle.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/guard.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int most_tiles = 28;

struct Shared {
  double* tiles;  // tile_count * 64
  double* scale;  // 8 * tile columns: square roots of the diagonal, and
  double* by;     // their reciprocals
  int* broken;    // set when the guard must refuse

  __device__ double* tile(int row, int col) const { return tiles + tile_index(row, col) * 64; }
  __device__ double& at(int i, int j) const { return tile(i / 8, j / 8)[in_tile(i % 8, j % 8)]; }
};

int shared_bytes(int tiles) { return (tile_count(tiles) * 64 + tiles * 16 + 2) * 8; }

/// The scaled upper triangle; rows and columns past n are those of the identity.
__device__ void load_scaled(const DeviceMatrix<Cuda, double>& gram, double shift, int tiles, const Shared& s) {
  const int n = static_cast<int>(gram.rows);
  for (int j = threadIdx.x; j < tiles * 8; j += threads) {
    const double d = j < n ? gram.data[j + j * gram.ld] : 1.0;
    if (!(d >= least_diagonal) || !isfinite(d)) *s.broken = 1;
    s.scale[j] = sqrt(d);
    s.by[j] = 1 / s.scale[j];
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int j = warp; j < tiles * 8; j += warps)
    for (int i = lane; i < (j / 8 + 1) * 8; i += 32) {
      double x = i == j ? 1.0 + shift : 0.0;
      if (i < j && j < n) x = gram.data[i + j * gram.ld] * s.by[i] * s.by[j];
      s.at(i, j) = x;
    }
}

/// Stops where the guard must refuse: a pivot below 1 / most_inverse is proof enough, since ‖R̂^-1‖ is no less than its
/// reciprocal and ‖R̂‖_F^2 no less than n.
__device__ void factor(int tiles, double most_inverse, const Shared& s) {
  const int warp = threadIdx.x / 32;
  for (int p = 0; p < tiles; ++p) {
    const int j = p * 8 + static_cast<int>(threadIdx.x);
    double x[8];
    if (j < tiles * 8) {
      double r[8][8], inv[8];
      bool good = factor_diagonal(s.tile(p, p), r, inv);
#pragma unroll
      for (int k = 0; k < 8; ++k) good = good && inv[k] <= most_inverse;
      if (!good && threadIdx.x == 0) *s.broken = 1;
      double* column = s.tile(p, j / 8);
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = column[in_tile(i, j % 8)];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        x[k] *= inv[k];
#pragma unroll
        for (int i = k + 1; i < 8; ++i) x[i] = fma(-r[k][i], x[k], x[i]);
      }
      if (threadIdx.x < 8) {  // of the diagonal tile itself: below the diagonal are zeros, not what solving left
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = i <= static_cast<int>(threadIdx.x) ? x[i] : 0.0;
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) column[in_tile(i, j % 8)] = x[i];
      }
    }
    __syncthreads();
    if (*s.broken != 0) return;
    if (threadIdx.x < 8) {  // nobody reads the diagonal tile any more
#pragma unroll
      for (int i = 0; i < 8; ++i) s.tile(p, p)[in_tile(i, j % 8)] = x[i];
    }
    const int left = tiles - p - 1;
    for (int k = warp; k < tile_count(left); k += warps) {
      int col = static_cast<int>((sqrtf(8.0f * k + 1.0f) - 1.0f) * 0.5f);
      while (tile_count(col + 1) <= k) ++col;
      while (tile_count(col) > k) --col;
      const int tile_row = p + 1 + k - tile_count(col), tile_col = p + 1 + col;
      auto c = Accumulator::load(s.tile(tile_row, tile_col));
      c.add<true>(s.tile(p, tile_row), s.tile(p, tile_col), -1.0);
      c.store(s.tile(tile_row, tile_col));
    }
    __syncthreads();
  }
}

/// Each diagonal tile by its inverse: a thread owns one column and needs the whole tile, hence the barrier.
__device__ void invert_diagonals(int tiles, const Shared& s) {
  const int j = threadIdx.x;
  double x[8] = {};
  if (j < tiles * 8) {
    const double* r = s.tile(j / 8, j / 8);
#pragma unroll
    for (int i = 7; i >= 0; --i) {
      double sum = i == j % 8 ? 1.0 : 0.0;
#pragma unroll
      for (int k = i + 1; k < 8; ++k) sum = fma(-r[in_tile(i, k)], x[k], sum);
      x[i] = i <= j % 8 ? sum * quick_reciprocal(r[in_tile(i, i)]) : 0.0;
    }
  }
  __syncthreads();
  if (j < tiles * 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) s.tile(j / 8, j / 8)[in_tile(i, j % 8)] = x[i];
  }
  __syncthreads();
}

__device__ void invert(int tiles, const Shared& s) {
  const int warp = threadIdx.x / 32;
  invert_diagonals(tiles, s);
  for (int k = warp; k < tile_count(tiles - 1); k += warps) {  // tiles above the diagonal, by columns
    int col = 1;
    while (tile_count(col) <= k) ++col;
    double* tile = s.tile(k - tile_count(col - 1), col);
    auto c = Accumulator::zero();
    c.add(tile, s.tile(col, col), -1.0);
    c.store(tile);
  }
  __syncthreads();
  constexpr int rows_per_warp = (most_tiles + warps - 1) / warps;
  for (int j = 1; j < tiles; ++j) {
    Accumulator c[rows_per_warp][2] = {};
#pragma unroll
    for (int u = 0; u < rows_per_warp; ++u) {
      const int i = warp + u * warps;
      for (int k = i; k < j; k += 2) {  // two sums, so that a product need not wait for the one before
        c[u][0].add(s.tile(i, k), s.tile(k, j));
        if (k + 1 < j) c[u][1].add(s.tile(i, k + 1), s.tile(k + 1, j));
      }
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < rows_per_warp; ++u) {
      const int i = warp + u * warps;
      const Accumulator sum{{c[u][0].c[0] + c[u][1].c[0], c[u][0].c[1] + c[u][1].c[1]}};
      if (i < j) sum.store(s.tile(i, j));
    }
    __syncthreads();
  }
}

/// Writes the triangle times its scale, zeros below, and returns the squared Frobenius norm of the unscaled
/// one in thread 0. Columns are scaled for R = R̂ D, rows divided for W = D^-1 Ŵ.
template <bool inverse>
__device__ double store_and_measure(const DeviceMatrix<Cuda, double>& out, int n, const Shared& s) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  double sum = 0;
  for (int j = warp; j < n; j += warps)
    for (int i = lane; i < n; i += 32) {
      const double x = i <= j ? s.at(i, j) : 0.0;
      sum = fma(x, x, sum);
      out.data[i + j * out.ld] = inverse ? x * s.by[i] : x * s.scale[j];
    }
  return block_reduce(sum, 0.0, Add{});
}

__global__ void __launch_bounds__(threads)
    guarded_cholesky_kernel(const std::int32_t* condition, GuardedCholesky<Cuda, double> task) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int n = static_cast<int>(task.gram.rows), tiles = (n + 7) / 8;
  double* const scale = shared + tile_count(tiles) * 64;
  const Shared s{shared, scale, scale + tiles * 8, reinterpret_cast<int*>(scale + tiles * 16)};
  if (threadIdx.x == 0) *s.broken = 0;
  __syncthreads();
  load_scaled(task.gram, task.shift, tiles, s);
  __syncthreads();
  factor(tiles, fmax(task.limit, task.fit_limit) / sqrt(static_cast<double>(n)), s);
  double kappa = HUGE_VAL;
  if (*s.broken == 0) {
    const double norm = sqrt(store_and_measure<false>(task.r, n, s));
    __syncthreads();
    invert(tiles, s);
    kappa = norm * sqrt(store_and_measure<true>(task.inverse, n, s));
  }
  if (threadIdx.x != 0) return;
  const double bound = isfinite(kappa) ? kappa + n * task.rounding * kappa * kappa : HUGE_VAL;
  const bool within = bound <= task.limit, fit = bound <= fmax(task.limit, task.fit_limit);
  if (task.failed != nullptr && !fit) *task.failed = 1;
  if (task.verdict != nullptr) {
    task.verdict[0] = within;
    task.verdict[1] = !within;
    task.verdict[2] = !within && fit;
    task.verdict[3] = !within && !fit;
  }
  if (task.condition != nullptr) *task.condition = bound;
}

}  // namespace

std::int32_t max_cholesky() {
  const int limit = shared_memory_limit() - 1024;  // block_reduce's own, rounded up
  int tiles = 1;
  while (tiles < most_tiles && shared_bytes(tiles + 1) <= limit) ++tiles;
  return tiles * 8;
}

template <class T>
void guarded_cholesky(const Queue& queue, const GuardedCholesky<Cuda, T>& task) {
  const Launch launch(queue);
  const Index n = task.gram.rows;
  detail::check(n <= max_cholesky(), ErrorCode::invalid_argument, "guarded_cholesky of ", n,
                " columns: this device takes up to ", max_cholesky());
  const GuardedCholesky<Cuda, double> plain{task.gram,      task.r,     task.inverse,   task.failed,   task.verdict,
                                            task.condition, task.limit, task.fit_limit, task.rounding, task.shift};
  const int bytes = shared_bytes(static_cast<int>((n + 7) / 8));
  check_cuda(cudaFuncSetAttribute(guarded_cholesky_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute(guarded_cholesky)");
  guarded_cholesky_kernel<<<1, threads, bytes, launch.stream>>>(launch.condition, plain);
  check_launch("guarded_cholesky kernel");
}

template void guarded_cholesky(const Queue&, const GuardedCholesky<Cuda, float>&);
template void guarded_cholesky(const Queue&, const GuardedCholesky<Cuda, double>&);

}  // namespace qrane::backend::cuda
