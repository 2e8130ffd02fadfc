// SPDX-License-Identifier: Apache-2.0
// Q := A R^-1 by substitution, R upper triangular, all in double: backward stable row by row whatever R's condition
// (|q R - a| <= c u |q||R|), which a product with the explicit inverse is not. Q and A apart.
//
// All of R lies in shared memory, negated, in tiles of 8 x 8 in the order in which fp64 tensor-core products read
// them (tile_index; 512 bytes each: n = 192 takes 150 KiB), with the reciprocals of its diagonal. One warp takes 32
// rows and, from the first to the last, column blocks of 64 held in registers:
//
//     C_J := A_J - sum_{K < J} Q_K R_KJ      Q_K read back from memory (L2) through a ring in shared memory
//     Q_J := C_J R_JJ^-1                     tile by tile: eight steps of substitution, then the products with
//                                            the tiles to the right
//
// Lane (g, t) holds rows 4g .. 4g+3 of columns 2t and 2t + 1 of a tile, which is how products leave their result and
// (with their inner index permuted alike on both sides) how they take their left operand. Flops: m n^2. Bytes: A
// read and Q written once, and Q's first column blocks read back from L2.
#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/resident.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/products.hpp"

namespace qrane::backend::cuda {
namespace {

using Matrix64 = DeviceMatrix<Cuda, double>;
using Pair = Vector<double, 2>;

constexpr int slab_rows = 32;   // per warp
constexpr int block_tiles = 8;  // tiles of 8 columns per column block
constexpr int warps = 8;
constexpr int tile_bytes = 2048, stages = 4;  // ring of a warp: tiles of 32 x 8
constexpr int ring_bytes = stages * tile_bytes;

using Accumulators = double[block_tiles][2][4];  // [tile][h]: rows 4g + 2h (columns 2t, 2t + 1) and 4g + 2h + 1

int shared_bytes(int tiles) { return tile_count(tiles) * 512 + tiles * 64 + warps * ring_bytes; }

struct Triangle64 {
  Pair* tiles;         // lane (g, t) of a tile: elements (2t, g) and (2t + 1, g) of -R, zeros below the diagonal
  double* reciprocal;  // of the diagonal, 1 past the last column
};

__device__ void stage_triangle(const Matrix64& r, int tiles, const Triangle64& s) {
  const int n = static_cast<int>(r.cols);
#pragma unroll 4
  for (int k = threadIdx.x; k < tile_count(tiles) * 32; k += 32 * warps) {
    const int tile = k / 32, lane = k % 32;
    int col_tile = static_cast<int>((sqrtf(8.0f * tile + 1.0f) - 1.0f) * 0.5f);
    if (tile_count(col_tile + 1) <= tile) ++col_tile;
    if (tile_count(col_tile) > tile) --col_tile;
    const int row = (tile - tile_count(col_tile)) * 8 + lane % 4 * 2, col = col_tile * 8 + lane / 4;
    Pair x{};
    if (col < n && row <= col) x.v[0] = -r.data[row + col * r.ld];
    if (col < n && row + 1 <= col) x.v[1] = -r.data[row + 1 + col * r.ld];
    s.tiles[k] = x;
  }
  for (int j = threadIdx.x; j < tiles * 8; j += 32 * warps) s.reciprocal[j] = j < n ? 1 / r.data[j + j * r.ld] : 1.0;
}

/// Four rows of one column, from memory; zeros outside.
template <bool aligned>
__device__ void load_four(const Matrix64& a, Index i, Index j, double (&x)[4]) {
  const double* source = a.data + i + j * a.ld;
  if (aligned && j < a.cols && i + 4 <= a.rows) {
    const Pair low = reinterpret_cast<const Pair*>(source)[0], high = reinterpret_cast<const Pair*>(source)[1];
    x[0] = low.v[0], x[1] = low.v[1], x[2] = high.v[0], x[3] = high.v[1];
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v) x[v] = j < a.cols && i + v < a.rows ? source[v] : 0.0;
  }
}

template <bool aligned>
__device__ void store_four(const Matrix64& q, Index i, Index j, const double (&x)[4]) {
  if (j >= q.cols) return;
  double* target = q.data + i + j * q.ld;
  if (aligned && i + 4 <= q.rows) {
    reinterpret_cast<Pair*>(target)[0] = {x[0], x[1]};
    reinterpret_cast<Pair*>(target)[1] = {x[2], x[3]};
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (i + v < q.rows) target[v] = x[v];
  }
}

/// Starts the copy of this lane's eight elements of a tile of Q, all columns of which exist, into its own place in
/// the ring, which no other lane touches: 16-byte piece p of a lane lies at (p * 32 + lane) * 16.
template <bool aligned>
__device__ void fetch(const Matrix64& q, Index i, Index j, int lane, std::byte* ring) {
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    const Index row = i + p % 2 * 2;
    const double* const piece = q.data + row + (j + p / 2) * q.ld;
    auto* target = reinterpret_cast<double*>(ring + (p * 32 + lane) * 16);
    const Index left = min(max(q.rows - row, Index(0)), Index(2));
    if constexpr (aligned) {
      __pipeline_memcpy_async(target, left > 0 ? piece : q.data, 16, 16 - static_cast<int>(left) * 8);
    } else {
#pragma unroll
      for (int v = 0; v < 2; ++v)
        __pipeline_memcpy_async(target + v, v < left ? piece + v : q.data, 8, v < left ? 0 : 8);
    }
  }
}

/// c := c - Q_K R_KJ for the column tiles before j0.
template <bool aligned>
__device__ void subtract_earlier(Accumulators& c, const Matrix64& q, Index i, int j0, int tiles, int lane,
                                 const Triangle64& s, std::byte* ring) {
  const auto ask = [&](int k) {
    if (k < j0) fetch<aligned>(q, i, 8 * k + 2 * (lane % 4), lane, ring + k % stages * tile_bytes);
    __pipeline_commit();
  };
#pragma unroll
  for (int k = 0; k < stages - 1; ++k) ask(k);
  for (int k = 0; k < j0; ++k) {
    __pipeline_wait_prior(stages - 2);
    Pair x[4];
#pragma unroll
    for (int p = 0; p < 4; ++p)
      x[p] = *reinterpret_cast<const Pair*>(ring + k % stages * tile_bytes + (p * 32 + lane) * 16);
    ask(k + stages - 1);
#pragma unroll
    for (int n = 0; n < block_tiles; ++n) {
      if (j0 + n >= tiles) break;
      const Pair b = s.tiles[tile_index(k, j0 + n) * 32 + lane];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const double left[4] = {x[h].v[0], x[h].v[1], x[2 + h].v[0], x[2 + h].v[1]};
        mma_16x8x8(c[n][h], left, b.v[0], b.v[1]);
      }
    }
  }
  __pipeline_wait_prior(0);
}

/// One tile of 32 x 8 := itself times the inverse of the tile on R's diagonal, a column at a time: its owner scales it
/// and gives it to the other lanes of its rows.
__device__ void substitute(double (&c)[2][4], const Pair* diagonal, const double* reciprocal, int lane) {
  const int t = lane % 4;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const double inverse = reciprocal[k];
    // -R(k, 2t + v), zero up to the diagonal
    double r[2];
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const Pair pair = diagonal[(2 * t + v) * 4 + k / 2];
      r[v] = 2 * t + v > k ? pair.v[k % 2] : 0.0;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        double& own = c[h][2 * e + k % 2];
        const double x = __shfl_sync(0xffffffffu, own * inverse, (lane & ~3) + k / 2);
        if (t == k / 2) own = x;
#pragma unroll
        for (int v = 0; v < 2; ++v)
          if (2 * 3 + v > k) c[h][2 * e + v] = 2 * t + v > k ? fma(x, r[v], c[h][2 * e + v]) : c[h][2 * e + v];
      }
  }
}

/// Thread map: 8 warps, each its own slabs of 32 rows. Shared memory: shared_bytes.
template <bool aligned>
__global__ void __launch_bounds__(32 * warps)
    solve_wide_kernel(const std::int32_t* condition, Matrix64 a, Matrix64 r, Matrix64 q) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int tiles = static_cast<int>((a.cols + 7) / 8), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Triangle64 s{reinterpret_cast<Pair*>(shared), shared + tile_count(tiles) * 64};
  std::byte* const ring = reinterpret_cast<std::byte*>(s.reciprocal + tiles * 8) + warp * ring_bytes;
  stage_triangle(r, tiles, s);
  __syncthreads();
  const Index slabs = (a.rows + slab_rows - 1) / slab_rows, step = Index(gridDim.x) * warps;
  for (Index k = blockIdx.x + warp * Index(gridDim.x); k < slabs; k += step) {  // few slabs go to many blocks
    const Index i = k * slab_rows + 4 * (lane / 4);
    for (int j0 = 0; j0 < tiles; j0 += block_tiles) {
      Accumulators c;
      const auto visit = [&](auto f) {  // f(four rows, column) for what this lane holds
#pragma unroll
        for (int n = 0; n < block_tiles; ++n)
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            double x[4] = {c[n][0][v], c[n][0][2 + v], c[n][1][v], c[n][1][2 + v]};
            f(x, 8 * (j0 + n) + 2 * (lane % 4) + v);
            c[n][0][v] = x[0], c[n][0][2 + v] = x[1], c[n][1][v] = x[2], c[n][1][2 + v] = x[3];
          }
      };
      visit([&](double(&x)[4], int j) { load_four<aligned>(a, i, j, x); });
      if (j0 > 0) subtract_earlier<aligned>(c, q, i, j0, tiles, lane, s, ring);
#pragma unroll
      for (int n = 0; n < block_tiles; ++n) {
        if (j0 + n >= tiles) break;
        substitute(c[n], s.tiles + tile_index(j0 + n, j0 + n) * 32, s.reciprocal + 8 * (j0 + n), lane);
#pragma unroll
        for (int x = n + 1; x < block_tiles; ++x) {
          if (j0 + x >= tiles) break;
          const Pair b = s.tiles[tile_index(j0 + n, j0 + x) * 32 + lane];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const double left[4] = {c[n][h][0], c[n][h][2], c[n][h][1], c[n][h][3]};
            mma_16x8x8(c[x][h], left, b.v[0], b.v[1]);
          }
        }
      }
      visit([&](double(&x)[4], int j) { store_four<aligned>(q, i, j, x); });
      __syncwarp();  // the next block's lanes read what these wrote
    }
  }
}

}  // namespace

std::int32_t max_fused_solve() {
  const int limit = shared_memory_limit();
  int tiles = 1;
  while (shared_bytes(tiles + 1) <= limit) ++tiles;
  return tiles * 8;
}

void solve_wide(const Queue& queue, const Matrix64& a, const Matrix64& r, const Matrix64& q) {
  const Launch launch(queue);
  if (a.rows == 0 || a.cols == 0) return;
  detail::check(a.cols <= max_fused_solve(), ErrorCode::invalid_argument, "solve_wide of ", a.cols,
                " columns: this device takes up to ", max_fused_solve());
  auto* kernel = is_aligned<2>(a) && is_aligned<2>(q) ? solve_wide_kernel<true> : solve_wide_kernel<false>;
  const int bytes = shared_bytes(static_cast<int>((a.cols + 7) / 8));
  const Index useful = (a.rows + slab_rows - 1) / slab_rows;
  const Index blocks = std::min(useful, resident_blocks(kernel, 32 * warps, bytes, "solve_wide"));
  kernel<<<static_cast<unsigned>(blocks), 32 * warps, bytes, launch.stream>>>(launch.condition, a, r, q);
  check_launch("solve_wide kernel");
}

}  // namespace qrane::backend::cuda
