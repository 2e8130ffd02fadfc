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
//   head      one block: both factorizations, their inverses, the guard and T, in double in shared memory
//             (reflect_head.cuh)
//   product   V2 := A2 Ũ^-1 in place, and the head's result into the top of the panel; Y
//
// When the guard refuses, the flag says so and the panel is as it was. Cost: 5 m b^2 flops, the panel read twice and
// written three times; bound by the latency of the head's 9 steps.
#include "cuda/collectives/reduce.cuh"
#include "cuda/panels/reflect_head.cuh"
#include "cuda/products/products.hpp"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/panels.hpp"

namespace qrane::backend::cuda {
namespace {

using namespace reflect;

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

/// Thread map: a warp takes 16 rows; lane (g, t) holds rows 2g and 2g + 1 of columns t and t + 4 of each 8. Shared
/// memory: Ũ^-1 and K, 36 KiB.
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
  for (int e = threadIdx.x; e < tile_count(most_tiles) * 64; e += 32 * product_warps)
    w[e] = head.w[e], k[e] = head.k[e];
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
void reflect_panel(const Queue& queue, const ReflectPanel<Cuda, T>& task, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  const Index n = task.panel.cols, m = task.panel.rows;
  detail::check(n <= max_reflect && m >= n && task.panel.count == 1, ErrorCode::invalid_argument, "reflect_panel of ",
                m, " x ", n, ": takes one matrix of up to ", max_reflect, " columns and at least as many rows");
  constexpr Index used = 5 * order * order * 8;  // before the partial Gram matrices
  detail::check(scratch.bytes >= used + gram_partial_bytes(n), ErrorCode::invalid_argument, "reflect_panel needs ",
                used + gram_partial_bytes(n), " bytes of scratch or more, got ", scratch.bytes);
  if (n == 0) return;
  auto* const small = reinterpret_cast<double*>(scratch.data);
  const DeviceMatrix<Cuda, double> gram{small, n, n, order, 0, 1};
  const Head head{small + order * order, small + 2 * order * order, small + 3 * order * order,
                  small + 4 * order * order};
  launch_gram(launch, task.panel, gram, {scratch.data + used, scratch.bytes - used});

  check_cuda(
      cudaFuncSetAttribute(reflect_head_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Tiles))),
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

template void reflect_panel(const Queue&, const ReflectPanel<Cuda, float>&, const Scratch<Cuda>&);
template void reflect_panel(const Queue&, const ReflectPanel<Cuda, double>&, const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
