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
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/mma.cuh"

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

constexpr int slab = 32;        // rows per warp
constexpr int block_tiles = 8;  // tiles of 8 columns per column block
constexpr int warps = 8;

/// Four adjacent rows of one column from row i on; zeros outside the matrix.
template <class T, bool aligned>
__device__ Vector<T, 4> load_four(const DeviceMatrix<Cuda, T>& a, Index i, Index j) {
  Vector<T, 4> x{};
  if (j >= a.cols) return x;
  const T* source = a.data + j * a.ld + i;
  constexpr int V = 16 / sizeof(T);
  if (aligned && i + 4 <= a.rows) {
#pragma unroll
    for (int h = 0; h < 4 / V; ++h) {
      const auto part = *reinterpret_cast<const Vector<T, V>*>(source + h * V);
#pragma unroll
      for (int v = 0; v < V; ++v) x.v[h * V + v] = part.v[v];
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (i + v < a.rows) x.v[v] = source[v];
  }
  return x;
}

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
  for (int col_tile = 0; col_tile < tiles; ++col_tile)
    for (int k = threadIdx.x; k < (col_tile + 1) * 32; k += blockDim.x) {
      const int lane = k % 32, row = k / 32 * 8 + lane % 4, col = col_tile * 8 + lane / 4;
      Vector<double, 2> x{};
      if (col < n) {
        if (row <= col) x.v[0] = w.data[row + col * w.ld];
        if (row + 4 <= col) x.v[1] = w.data[row + 4 + col * w.ld];
      }
      s[tile_count(col_tile) * 32 + k] = x;
    }
}

/// Thread map: 8 warps, each its own slabs of 32 rows. Shared memory: tile_count(tiles) * 512 bytes.
template <class T, bool aligned>
__global__ void __launch_bounds__(32 * warps)
    multiply_wide_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w,
                         DeviceMatrix<Cuda, T> q) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  auto* const s = reinterpret_cast<Vector<double, 2>*>(shared);
  const int tiles = static_cast<int>((a.cols + 7) / 8);
  stage_w(w, tiles, s);
  __syncthreads();
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const Index slabs = (a.rows + slab - 1) / slab;
  for (Index k = blockIdx.x * Index(warps) + threadIdx.x / 32; k < slabs; k += Index(gridDim.x) * warps) {
    const Index i = k * slab + 4 * g;
    for (int j0 = (tiles - 1) / block_tiles * block_tiles; j0 >= 0; j0 -= block_tiles) {
      const int j1 = min(j0 + block_tiles, tiles);
      double c[2][block_tiles][4] = {};
      Vector<T, 4> next0 = load_four<T, aligned>(a, i, t), next1 = load_four<T, aligned>(a, i, t + 4);
      for (int row_tile = 0; row_tile < j1; ++row_tile) {
        const Vector<T, 4> x0 = next0, x1 = next1;
        if (row_tile + 1 < j1) {
          next0 = load_four<T, aligned>(a, i, row_tile * 8 + 8 + t);
          next1 = load_four<T, aligned>(a, i, row_tile * 8 + 12 + t);
        }
        double a0[4], a1[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) a0[v] = x0.v[v], a1[v] = x1.v[v];
#pragma unroll
        for (int x = 0; x < block_tiles; ++x) {
          const int col_tile = j0 + x;
          if (col_tile < row_tile || col_tile >= tiles) continue;
          const Vector<double, 2> b = s[tile_index(row_tile, col_tile) * 32 + lane];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            mma_16x8x4(c[h][x], a0[2 * h], a0[2 * h + 1], b.v[0]);
            mma_16x8x4(c[h][x], a1[2 * h], a1[2 * h + 1], b.v[1]);
          }
        }
      }
      __syncwarp();  // in place: the lanes of a warp read each other's columns
#pragma unroll
      for (int x = 0; x < block_tiles; ++x)
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const double out[4] = {c[0][x][v], c[0][x][2 + v], c[1][x][v], c[1][x][2 + v]};
          store_four<T, aligned>(q, i, (j0 + x) * 8 + 2 * t + v, out);
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
  while (tile_count(tiles + 1) * 512 <= limit) ++tiles;
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
  const int bytes = tile_count(static_cast<int>((a.cols + 7) / 8)) * 512;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute(multiply_wide)");
  int resident = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 32 * warps, bytes),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor(multiply_wide)");
  const Index useful = (a.rows + slab * warps - 1) / (slab * warps);
  const Index blocks = std::min<Index>(useful, Index(std::max(resident, 1)) * multiprocessors());
  kernel<<<static_cast<unsigned>(blocks), 32 * warps, bytes, launch.stream>>>(launch.condition, a, w, q);
  check_launch("multiply_wide kernel");
}

template void launch_multiply_wide(const Launch&, const DeviceMatrix<Cuda, float>&, const DeviceMatrix<Cuda, double>&,
                                   const DeviceMatrix<Cuda, float>&);
template void launch_multiply_wide(const Launch&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, double>&,
                                   const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
