// SPDX-License-Identifier: Apache-2.0
// Partial Gram matrices of at most 64 columns (gram.cu), without shared memory on the way in: a lane loads
// 16 bytes of a column, and elements 2s and 2s + 1 of each lane's vector enter product s. The eight rows that a
// product sums over may be any eight, as long as both operands agree.
#pragma once

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda {

constexpr int narrow_threads = 256;
constexpr Index max_narrow = 64;

/// Loads that a lane of gram_narrow_kernel has in flight, per column tile.
template <int column_tiles>
constexpr int narrow_unroll = column_tiles < 8 ? 8 / column_tiles : 1;

/// V adjacent elements of a column from row i on, zeros past `rows`.
template <class T, int V, bool aligned>
__device__ Vector<T, V> load_rows(const T* column, Index i, Index rows, bool valid) {
  Vector<T, V> x{};
  if (!valid) return x;
  if (aligned && i + V <= rows) return *reinterpret_cast<const Vector<T, V>*>(column + i);
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (i + v < rows) x.v[v] = column[i + v];
  return x;
}

/// CT column tiles of 8. Warps walk over groups of `unroll` times 4 V rows, and add their sums one after the
/// other into one partial matrix in shared memory.
template <class T, int CT, bool aligned>
__global__ void __launch_bounds__(narrow_threads)
    gram_narrow_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, double* partial) {
  if (skipped(condition)) return;
  constexpr int V = 16 / sizeof(T), unroll = narrow_unroll<CT>, warps = narrow_threads / 32, row_tiles = (CT + 1) / 2;
  __shared__ double s[tile_count(CT) * 64];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  double c[row_tiles][CT][4] = {};  // [r][x]: rows of tiles 2r and 2r + 1, column tile x >= 2r
  constexpr Index step = unroll * 4 * V;
  for (Index i = (blockIdx.x * Index(warps) + warp) * step; i < a.rows; i += Index(gridDim.x) * warps * step) {
    Vector<T, V> x[unroll][CT];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
#pragma unroll
      for (int k = 0; k < CT; ++k)
        x[u][k] =
            load_rows<T, V, aligned>(a.data + (8 * k + g) * a.ld, i + (u * 4 + t) * V, a.rows, 8 * k + g < a.cols);
#pragma unroll
    for (int u = 0; u < unroll; ++u)
#pragma unroll
      for (int v = 0; v < V; v += 2) {
        double f[2 * row_tiles][2] = {};
#pragma unroll
        for (int k = 0; k < CT; ++k) f[k][0] = x[u][k].v[v], f[k][1] = x[u][k].v[v + 1];
#pragma unroll
        for (int r = 0; r < row_tiles; ++r) {
          const double left[4] = {f[2 * r][0], f[2 * r + 1][0], f[2 * r][1], f[2 * r + 1][1]};
#pragma unroll
          for (int k = 2 * r; k < CT; ++k) mma_16x8x8(c[r][k], left, f[k][0], f[k][1]);
        }
      }
  }
  for (int w = 0; w < warps; ++w) {
    if (warp == w) {
#pragma unroll
      for (int r = 0; r < row_tiles; ++r)
#pragma unroll
        for (int k = 2 * r; k < CT; ++k)
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            const int row = 2 * r + v / 2;
            if (row > k) continue;
            double& sum = s[tile_index(row, k) * 64 + lane * 2 + v % 2];
            sum = w == 0 ? c[r][k][v] : sum + c[r][k][v];
          }
    }
    __syncthreads();
  }
  for (int e = threadIdx.x; e < tile_count(CT) * 64; e += blockDim.x)
    partial[std::size_t(blockIdx.x) * (tile_count(CT) * 64) + e] = s[e];
}

}  // namespace qrane::backend::cuda
