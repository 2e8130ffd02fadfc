// SPDX-License-Identifier: Apache-2.0
// Q := A W for upper triangular W (n x n, double), products and sums in double, rounded once to T.
// Reads A once from memory, writes Q once; about m n^2 flops, the triangle's. Q may be A: whoever writes
// an element of Q has read, alone, all of A that it needs.
//
//   n <= 16   one thread takes some adjacent rows and keeps them in registers; W is broadcast from shared memory.
//   else      all of W lies in shared memory, in tiles of 8 x 8 in the order in which fp64 tensor-core
//             products read them (tile_index; 512 bytes each: n = 192 takes 150 KiB). One warp takes 32 rows
//             and, from the last to the first, column blocks of 64, so that a block's columns of A are read
//             before they are overwritten. Lane (g, t) holds rows 4g .. 4g+3 of columns t and t + 4 of 8: the
//             products' rows are a permutation of the matrix's, and every access to A and Q can be 16 bytes.
#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/resident.cuh"
#include "cuda/products/products.hpp"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/products.hpp"

namespace qrane::backend::cuda {
namespace {

// ---------------------------------------------------------------------------------------------------------
// n <= 16

/// N: columns rounded up; V: rows per thread.
template <class T, int N, int V, bool aligned>
__global__ void __launch_bounds__(256) multiply_narrow_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a,
                                                              DeviceMatrix<Cuda, double> w, DeviceMatrix<Cuda, T> q) {
  if (skipped(condition)) return;
  __shared__ double s[N * N];
  for (int k = threadIdx.x; k < N * N; k += blockDim.x) {
    const int i = k % N, j = k / N;
    s[k] = i <= j && j < a.cols ? w.data[i + j * w.ld] : 0.0;
  }
  __syncthreads();
  const Index chunks = (a.rows + V - 1) / V;
  for (Index c = blockIdx.x * Index(blockDim.x) + threadIdx.x; c < chunks; c += Index(gridDim.x) * blockDim.x) {
    const Index i = c * V;
    const bool whole = aligned && i + V <= a.rows;
    Vector<T, V> x[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      x[k] = {};
      if (k >= a.cols) continue;
      const T* source = a.data + k * a.ld + i;
      if (whole) {
        x[k] = *reinterpret_cast<const Vector<T, V>*>(source);
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v)
          if (i + v < a.rows) x[k].v[v] = source[v];
      }
    }
#pragma unroll N <= 8 ? N : 1  // unrolled, 16 columns would hold more of W than the registers do
    for (int j = 0; j < N; ++j) {
      if (j >= a.cols) break;
      double sum[V] = {};
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (k > j) break;
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] = fma(static_cast<double>(x[k].v[v]), s[k + j * N], sum[v]);
      }
      Vector<T, V> out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.v[v] = static_cast<T>(sum[v]);
      T* target = q.data + j * q.ld + i;
      if (whole) {
        *reinterpret_cast<Vector<T, V>*>(target) = out;
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v)
          if (i + v < a.rows) target[v] = out.v[v];
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------
// n > 16

constexpr int slab_rows = 32;   // per warp
constexpr int block_tiles = 8;  // tiles of 8 columns per column block
constexpr int warps = 8;
constexpr int ring_bytes = 8192;  // per warp, of A on its way

template <class T, bool aligned>
__device__ void store_four(const DeviceMatrix<Cuda, T>& q, Index i, Index j, const double (&x)[4]) {
  if (j >= q.cols) return;
  T* target = q.data + j * q.ld + i;
  constexpr int V = 16 / sizeof(T);
  if (aligned && i + 4 <= q.rows) {
#pragma unroll
    for (int h = 0; h < 4 / V; ++h) {
      Vector<T, V> part;
#pragma unroll
      for (int v = 0; v < V; ++v) part.v[v] = static_cast<T>(x[h * V + v]);
      *reinterpret_cast<Vector<T, V>*>(target + h * V) = part;
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (i + v < q.rows) target[v] = static_cast<T>(x[v]);
  }
}

/// W in tiles; a tile's lane (g, t) holds elements (t, g) and (t + 4, g), zeros below the diagonal of W.
__device__ void stage_w(const DeviceMatrix<Cuda, double>& w, int tiles, Vector<double, 2>* s) {
  const int n = static_cast<int>(w.cols);
#pragma unroll 4
  for (int k = threadIdx.x; k < tile_count(tiles) * 32; k += 32 * warps) {
    const int tile = k / 32, lane = k % 32;
    int col_tile = static_cast<int>((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    if (tile_count(col_tile + 1) <= tile) ++col_tile;
    if (tile_count(col_tile) > tile) --col_tile;
    const int row = (tile - tile_count(col_tile)) * 8 + lane % 4, col = col_tile * 8 + lane / 4;
    Vector<double, 2> x{};
    if (col < n && row <= col) x.v[0] = w.data[row + col * w.ld];
    if (col < n && row + 4 <= col) x.v[1] = w.data[row + 4 + col * w.ld];
    s[k] = x;
  }
}

/// A place in the order in which a warp reads A: slabs of rows, column blocks from the last to the first, tiles.
/// Blocks end with the last tile, so only the first block, which is the cheapest, may begin before tile 0.
struct Cursor {
  Index slab;
  int j0, row_tile;

  __device__ void advance(int tiles, Index step) {
    if (++row_tile < j0 + block_tiles) return;
    row_tile = 0;
    j0 -= block_tiles;
    if (j0 > -block_tiles) return;
    j0 = tiles - block_tiles;
    slab += step;
  }
};

/// Starts the copy of this lane's eight elements of a tile into its own place in shared memory, which no other
/// lane touches: 16-byte piece p of a lane lies at (p * 32 + lane) * 16.
template <class T, bool aligned>
__device__ void fetch(const DeviceMatrix<Cuda, T>& a, const Cursor& at, int lane, std::byte* ring) {
  constexpr int V = 16 / sizeof(T), pieces = 8 / V;
  const Index i = at.slab * slab_rows + 4 * (lane / 4), j = at.row_tile * 8 + lane % 4;
  const T* const source = a.data + j * a.ld + i;
  const bool inside = (at.slab + 1) * slab_rows <= a.rows && at.row_tile * 8 + 8 <= a.cols;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int row = p * V % 4, col = p >= pieces / 2 ? 4 : 0;
    auto* target = reinterpret_cast<T*>(ring + (p * 32 + lane) * 16);
    const T* piece = source + col * a.ld + row;
    if (aligned && inside) {
      __pipeline_memcpy_async(target, piece, 16);
    } else if constexpr (aligned) {
      const Index left = j + col < a.cols ? min(max(a.rows - i - row, Index(0)), Index(V)) : 0;
      __pipeline_memcpy_async(target, left > 0 ? piece : a.data, 16,
                              16 - static_cast<int>(left) * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const bool valid = j + col < a.cols && i + row + v < a.rows;
        __pipeline_memcpy_async(target + v, valid ? piece + v : a.data, sizeof(T), valid ? 0 : sizeof(T));
      }
    }
  }
}

/// What fetch brought, as the operands of the products: [h] rows 4g + 2h and 4g + 2h + 1, columns t and t + 4.
template <class T>
__device__ void read_ring(const std::byte* ring, int lane, double (&a)[2][4]) {
  constexpr int V = 16 / sizeof(T), pieces = 8 / V;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const auto x = *reinterpret_cast<const Vector<T, V>*>(ring + (p * 32 + lane) * 16);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int row = (p * V + v) % 4, far = p >= pieces / 2 ? 2 : 0;
      a[row / 2][row % 2 + far] = x.v[v];
    }
  }
}

/// What a warp streams A through: its ring in shared memory, and how far ahead it has asked.
template <class T, bool aligned>
struct Stream {
  static constexpr int tile_bytes = 256 * sizeof(T), stages = ring_bytes / tile_bytes;
  const DeviceMatrix<Cuda, T>& a;
  std::byte* ring;
  Cursor ahead;
  Index slabs, step;
  int tiles, lane, turn = 0;

  __device__ void start() {
#pragma unroll
    for (int k = 0; k < stages - 1; ++k) ask(k);
  }
  __device__ void ask(int slot) {
    if (ahead.slab < slabs) fetch<T, aligned>(a, ahead, lane, ring + slot * tile_bytes);
    __pipeline_commit();
    ahead.advance(tiles, step);
  }
  /// The operands of the next tile.
  __device__ void next(double (&x)[2][4]) {
    __pipeline_wait_prior(stages - 2);
    read_ring<T>(ring + turn * tile_bytes, lane, x);
    ask(turn == 0 ? stages - 1 : turn - 1);
    turn = turn + 1 == stages ? 0 : turn + 1;
  }
};

using Accumulators = double[2][block_tiles][4];

/// Adds the products of 8 columns of A with tiles (row_tile, j0 + first .. j0 + 7) of W.
template <int first>
__device__ void multiply_row(Accumulators& c, const double (&x)[2][4], const Vector<double, 2>* s, int row_tile, int j0,
                             int lane) {
#pragma unroll
  for (int n = first; n < block_tiles; ++n) {
    const Vector<double, 2> b = s[tile_index(row_tile, j0 + n) * 32 + lane];
#pragma unroll
    for (int h = 0; h < 2; ++h) mma_16x8x8(c[h][n], x[h], b.v[0], b.v[1]);
  }
}

/// Rows d .. 7 of tiles of the block on the diagonal, of which each has one tile fewer.
template <int d, class S>
__device__ void multiply_diagonal(Accumulators& c, S& stream, const Vector<double, 2>* s, int j0) {
  if constexpr (d < block_tiles) {
    double x[2][4];
    stream.next(x);
    multiply_row<d>(c, x, s, j0 + d, j0, stream.lane);
    multiply_diagonal<d + 1>(c, stream, s, j0);
  }
}

/// The first block, when it begins before tile 0.
template <class S>
__device__ void multiply_partial(Accumulators& c, S& stream, const Vector<double, 2>* s, int j0) {
  for (int row_tile = 0; row_tile < j0 + block_tiles; ++row_tile) {
    double x[2][4];
    stream.next(x);
#pragma unroll
    for (int n = 0; n < block_tiles; ++n) {
      if (j0 + n < row_tile) continue;
      const Vector<double, 2> b = s[tile_index(row_tile, j0 + n) * 32 + stream.lane];
#pragma unroll
      for (int h = 0; h < 2; ++h) mma_16x8x8(c[h][n], x[h], b.v[0], b.v[1]);
    }
  }
}

/// Thread map: 8 warps, each its own slabs of 32 rows. Shared memory: tile_count(tiles) * 512 bytes of W and a
/// ring of `ring_bytes` for each warp.
template <class T, bool aligned>
__global__ void __launch_bounds__(32 * warps)
    multiply_wide_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w,
                         DeviceMatrix<Cuda, T> q) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int tiles = static_cast<int>((a.cols + 7) / 8), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto* const s = reinterpret_cast<Vector<double, 2>*>(shared);
  std::byte* const ring = reinterpret_cast<std::byte*>(s + tile_count(tiles) * 32) + warp * ring_bytes;
  const Index slabs = (a.rows + slab_rows - 1) / slab_rows, step = Index(gridDim.x) * warps;
  const Index first = blockIdx.x + warp * Index(gridDim.x);  // few slabs go to many blocks
  Stream<T, aligned> stream{a, ring, {first, tiles - block_tiles, 0}, slabs, step, tiles, lane};
  stream.start();
  stage_w(w, tiles, s);
  __syncthreads();
  for (Index k = first; k < slabs; k += step) {
    for (int j0 = tiles - block_tiles; j0 > -block_tiles; j0 -= block_tiles) {
      Accumulators c = {};
      if (j0 >= 0) {
        for (int row_tile = 0; row_tile < j0; ++row_tile) {
          double x[2][4];
          stream.next(x);
          multiply_row<0>(c, x, s, row_tile, j0, lane);
        }
        multiply_diagonal<0>(c, stream, s, j0);
      } else {
        multiply_partial(c, stream, s, j0);
      }
#pragma unroll
      for (int n = 0; n < block_tiles; ++n) {
        if (j0 + n < 0) continue;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const double out[4] = {c[0][n][v], c[0][n][2 + v], c[1][n][v], c[1][n][2 + v]};
          store_four<T, aligned>(q, k * slab_rows + 4 * (lane / 4), (j0 + n) * 8 + 2 * (lane % 4) + v, out);
        }
      }
    }
  }
}

template <class T, int N>
void run_narrow(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                const DeviceMatrix<Cuda, T>& q) {
  constexpr int V = (N <= 8 ? 16 : 8) / sizeof(T);
  const bool aligned = is_aligned<V>(a) && is_aligned<V>(q);
  const Index blocks = std::min<Index>((a.rows + 256 * V - 1) / (256 * V), Index(16) * multiprocessors());
  auto* kernel = aligned ? multiply_narrow_kernel<T, N, V, true> : multiply_narrow_kernel<T, N, V, false>;
  kernel<<<static_cast<unsigned>(blocks), 256, 0, launch.stream>>>(launch.condition, a, w, q);
  check_launch("narrow multiply_wide kernel");
}

}  // namespace

std::int32_t max_fused_multiply() {
  const int limit = shared_memory_limit();
  int tiles = 1;
  while (tile_count(tiles + 1) * 512 + warps * ring_bytes <= limit) ++tiles;
  return tiles * 8;
}

template <class T>
void launch_multiply_wide(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                          const DeviceMatrix<Cuda, T>& q) {
  if (a.rows == 0 || a.cols == 0) return;
  if (a.cols <= 4) return run_narrow<T, 4>(launch, a, w, q);
  if (a.cols <= 8) return run_narrow<T, 8>(launch, a, w, q);
  if (a.cols <= 16) return run_narrow<T, 16>(launch, a, w, q);
  constexpr int V = 16 / sizeof(T);
  auto* kernel = is_aligned<V>(a) && is_aligned<V>(q) ? multiply_wide_kernel<T, true> : multiply_wide_kernel<T, false>;
  const int bytes = tile_count(static_cast<int>((a.cols + 7) / 8)) * 512 + warps * ring_bytes;
  const Index useful = (a.rows + slab_rows - 1) / slab_rows;
  const Index blocks = std::min(useful, resident_blocks(kernel, 32 * warps, bytes, "multiply_wide"));
  kernel<<<static_cast<unsigned>(blocks), 32 * warps, bytes, launch.stream>>>(launch.condition, a, w, q);
  check_launch("multiply_wide kernel");
}

template void launch_multiply_wide(const Launch&, const DeviceMatrix<Cuda, float>&, const DeviceMatrix<Cuda, double>&,
                                   const DeviceMatrix<Cuda, float>&);
template void launch_multiply_wide(const Launch&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, double>&,
                                   const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
