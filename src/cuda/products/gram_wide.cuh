// SPDX-License-Identifier: Apache-2.0
// Partial Gram matrices of 129 to 192 columns (gram.cu): 12 warps, three per scheduler, cover the upper triangle of
// 6 x 6 blocks of 32 columns, each with 12 or 14 products of 16 x 8 at a time:
//
//        0 1 2 3 4 5
//     0  a a c d d d        a, b, c, ...: one warp each, but d, e, f, which are two warps (32 x 48 each);
//     1    b b e e e        c is the block of diagonal 2 and, as its transpose, block (0, 2); likewise the
//     2      c f f f        lower right corner
//     3        . . .
//
// A comes through shared memory in stages of 128 bytes of every column (32 rows of float, 16 of double), fetched
// some stages ahead by cp.async and widened to double in registers. A lane of a product reads 16 bytes of a column,
// rows 4t .. 4t+3 of 16 (float) or 2t, 2t+1 of 8 (double): the rows that a product sums over may be any eight, as long
// as both operands agree, and every read is free of bank conflicts.
//
// Every `flush_rows` rows a block adds its accumulators to its partial matrix in memory (L2), which keeps the sums
// short: rounding grows with the length of a sum, and worst where a few rows hold most of it.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda::gram_wide {

constexpr int warps = 12, threads = 32 * warps;
constexpr int tiles = 24, stage_bytes = tiles * 8 * 128;
constexpr Index flush_rows = 1024;

template <class T>
constexpr int stage_rows = 128 / static_cast<int>(sizeof(T));
template <class T>
constexpr int slab_rows = stage_rows<T> / 2;  // 64 bytes of a column lie together in shared memory

/// Starts the copy of rows r0 .. r0 + stage_rows - 1 of all columns, zeros past the last row and column: 16-byte piece
/// p of 8 of column j lies at slab p / 4, column j, piece p % 4.
template <class T, bool aligned>
__device__ void fetch(const DeviceMatrix<Cuda, T>& a, Index r0, std::byte* stage) {
  constexpr int V = 16 / sizeof(T), pieces = tiles * 8 * 8;
  static_assert(pieces % threads == 0 && threads % 8 == 0);
  const int p = threadIdx.x % 8;
  const Index i = r0 + p * V;
  const int inside = static_cast<int>(min(max(a.rows - i, Index(0)), Index(V)));
  stage += p / 4 * (stage_bytes / 2) + p % 4 * 16;
  int j = threadIdx.x / 8;
  const T* source = a.data + (inside > 0 ? i : 0) + j * a.ld;
#pragma unroll
  for (int k = 0; k < pieces / threads; ++k, j += threads / 8, source += threads / 8 * a.ld) {
    auto* target = reinterpret_cast<T*>(stage + j * 64);
    const int left = j < a.cols ? inside : 0;
    const T* const valid = j < a.cols ? source : a.data;
    if constexpr (aligned) {
      __pipeline_memcpy_async(target, valid, 16, 16 - left * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        __pipeline_memcpy_async(target + v, v < left ? valid + v : a.data, sizeof(T), v < left ? 0 : sizeof(T));
    }
  }
}

/// Operands of one column tile for the products of a slab: [step][h] is element (t + 4h, g) of product `step`.
template <class T>
struct Fragment {
  static constexpr int steps = 16 / static_cast<int>(sizeof(T)) / 2;
  Vector<T, 16 / sizeof(T)> x;

  Fragment() = default;
  __device__ Fragment(const std::byte* slab, int tile, int lane)
      : x(*reinterpret_cast<const Vector<T, 16 / sizeof(T)>*>(slab + tile * 512 + lane * 16)) {}
  __device__ double operator()(int step, int h) const { return x.v[2 * step + h]; }
};

template <class F>
__device__ void multiply(double (&c)[4], const F& upper, const F& lower, const F& right, int step) {
  const double left[4] = {upper(step, 0), lower(step, 0), upper(step, 1), lower(step, 1)};
  mma_16x8x8(c, left, right(step, 0), right(step, 1));
}

/// Writes one product, tiles (row, col) and (row + 1, col), to the partial matrix, or adds it there; below the diagonal
/// as its transpose.
__device__ inline void store_product(double* partial, const double (&c)[4], int row, int col, int used, int lane,
                                     bool add) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (row + h >= used || col >= used) continue;
    if (row + h > col && row / 4 == col / 4) continue;  // below the diagonal within a block on it
    const bool turned = row + h > col;
    double* tile = partial + (turned ? tile_index(col, row + h) : tile_index(row + h, col)) * 64;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const int i = lane / 4, j = lane % 4 * 2 + v;
      double& element = tile[turned ? j * 8 + i : i * 8 + j];
      element = add ? element + c[2 * h + v] : c[2 * h + v];
    }
  }
}

/// A warp's share of a corner: the upper triangle of block x on the diagonal, c[0..5], and block (x, y), c[6..13];
/// tiles x .. x+3 and y .. y+3.
struct Corner {
  static constexpr int products = 14, operands = 8;
  int x, y;

  __device__ explicit Corner(int warp) : x(4 * warp), y(4 * (warp / 3 * 3 + (warp + 1) % 3)) {}

  /// f(product, first tile of its 16 rows, tile of its 8 columns), as offsets into the two lists of four tiles.
  template <class F>
  __device__ static void visit(F f) {
#pragma unroll
    for (int k = 0; k < 4; ++k) f(k, 0, k);
#pragma unroll
    for (int k = 2; k < 4; ++k) f(2 + k, 2, k);
#pragma unroll
    for (int k = 0; k < 8; ++k) f(6 + k, k / 4 * 2, 4 + k % 4);
  }
  __device__ int tile(int offset) const { return offset < 4 ? x + offset : y + offset - 4; }
};

/// A warp's share of the rest: four tiles x .. x+3 by six y .. y+5.
struct Rectangle {
  static constexpr int products = 12, operands = 10;
  int x, y;

  __device__ explicit Rectangle(int warp) : x(4 * (warp / 2)), y(12 + 6 * (warp % 2)) {}

  template <class F>
  __device__ static void visit(F f) {
#pragma unroll
    for (int k = 0; k < 12; ++k) f(k, k / 6 * 2, 4 + k % 6);
  }
  __device__ int tile(int offset) const { return offset < 4 ? x + offset : y + offset - 4; }
};

/// What one warp does: fetch its part of every stage, multiply its share of it.
template <class T, int stages, bool aligned, class Share>
__device__ void run(const DeviceMatrix<Cuda, T>& a, const Share& share, std::byte* ring, double* partial) {
  const int used = static_cast<int>((a.cols + 7) / 8), lane = threadIdx.x % 32;
  const Index all = (a.rows + stage_rows<T> - 1) / stage_rows<T>;
  const Index first = all * blockIdx.x / gridDim.x, last = all * (blockIdx.x + 1) / gridDim.x;
  const int count = static_cast<int>(last - first);
  constexpr int flush = static_cast<int>(flush_rows / stage_rows<T>);
  const auto ask = [&](int k) {
    if (k < count) fetch<T, aligned>(a, (first + k) * stage_rows<T>, ring + k % stages * stage_bytes);
    __pipeline_commit();
  };
#pragma unroll
  for (int k = 0; k < stages - 1; ++k) ask(k);
  double c[Share::products][4] = {};
  for (int done = 0; done < max(count, 1); done += flush) {
    const int end = min(done + flush, count);
    for (int k = done; k < end; ++k) {
      __pipeline_wait_prior(stages - 2);
      __syncthreads();  // stage k is complete, and nobody reads stage k - 1 any more
      ask(k + stages - 1);
      const std::byte* const stage = ring + k % stages * stage_bytes;
#pragma unroll 1
      for (int slab = 0; slab < 2; ++slab) {
        using F = Fragment<T>;
        F f[Share::operands];
#pragma unroll
        for (int o = 0; o < Share::operands; ++o) f[o] = F(stage + slab * (stage_bytes / 2), share.tile(o), lane);
#pragma unroll
        for (int step = 0; step < F::steps; ++step)
          Share::visit([&](int e, int row, int col) { multiply(c[e], f[row], f[row + 1], f[col], step); });
      }
    }
    Share fresh(share);  // hidden from the compiler, which would keep the addresses of all stores in registers
    asm volatile("" : "+r"(fresh.x), "+r"(fresh.y));
    Share::visit([&](int e, int row, int col) {
      store_product(partial, c[e], fresh.tile(row), fresh.tile(col), used, lane, done > 0);
    });
#pragma unroll
    for (auto& product : c)
#pragma unroll
      for (double& x : product) x = 0;
  }
}

/// Each block takes a share of the stages of A, contiguous. Shared memory: stages * stage_bytes.
template <class T, int stages, bool aligned>
__global__ void __launch_bounds__(threads, 1)
    gram_wide_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, double* partials) {
  if (skipped(condition)) return;
  extern __shared__ std::byte ring[];
  double* const partial = partials + std::size_t(blockIdx.x) * tile_count(static_cast<int>((a.cols + 7) / 8)) * 64;
  const int warp = threadIdx.x / 32;
  if (warp < 6) {
    run<T, stages, aligned>(a, Corner(warp), ring, partial);
  } else {
    run<T, stages, aligned>(a, Rectangle(warp - 6), ring, partial);
  }
}

}  // namespace qrane::backend::cuda::gram_wide
