// SPDX-License-Identifier: Apache-2.0
// apply_small: C := Qᵀ C or Q C for many small matrices, Q as factor_small left it (small.cuh has the layout).
//
// C lies in the registers of a warp as A did, V in shared memory with its ones and zeros; each reflector costs one sum
// over a column's parts, w = tau vᵀ c, and one update c -= w v. C beyond Shape::cols columns is walked over in pieces.
//
// V and C are read once, C is written once; 4 m k flops a column of C.
#include "cuda/queue/launch.hpp"
#include "vocabulary/batch.hpp"
#include "cuda/batch/small.cuh"

namespace qrane::backend::cuda {
namespace {

/// Warps of a CTA: with two, more CTAs of the larger scalar share a multiprocessor's memory.
template <class T>
constexpr int apply_warps = sizeof(T) == 4 ? 4 : 2;

/// V in shared memory: zeros above the diagonal, ones on it. One warp.
template <class Shape>
__device__ void make_unit_lower(typename Shape::Scalar* s, int ld, int cols) {
  using T = typename Shape::Scalar;
  for (int t = threadIdx.x % warp_size; t < cols * cols; t += warp_size) {
    const int i = t % cols, j = t / cols;
    if (i <= j) s[i + j * ld] = T(i == j ? 1 : 0);
  }
}

/// Applies the reflectors to the columns in registers.
template <class Shape>
__device__ __forceinline__ void apply_reflectors(SmallTile<Shape>& tile, const typename Shape::Scalar* s_v, int ld,
                                                 const typename Shape::Scalar* s_tau, int k, bool forwards) {
  using T = typename Shape::Scalar;
  constexpr int R = Shape::R, C = Shape::C, V = Shape::V;
#pragma unroll 1
  for (int step = 0; step < k; ++step) {
    const int j = forwards ? step : k - 1 - step;
    T v[R], sums[C] = {};
#pragma unroll
    for (int q = 0; q < Shape::chunks; ++q) {
      const auto chunk = *reinterpret_cast<const Chunk<T>*>(s_v + j * ld + tile.chunk(q) * V);
#pragma unroll
      for (int e = 0; e < V; ++e) v[q * V + e] = chunk.v[e];
    }
    const T tau = s_tau[j];
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
#pragma unroll
      for (int r = 0; r < R; ++r) sums[slot] = fma(v[r], tile.a[slot][r], sums[slot]);
      const T w = -tau * tile.sum_parts(sums[slot]);
#pragma unroll
      for (int r = 0; r < R; ++r) tile.a[slot][r] = fma(w, v[r], tile.a[slot][r]);
    }
  }
}

/// Shared memory of one matrix, in elements: V, its tau, and the columns of C that are on their way.
template <class Shape>
__host__ __device__ constexpr int apply_elements() {
  return 2 * small_ld<Shape>(Shape::rows) * Shape::cols + Shape::cols;
}

/// Thread map: small.cuh. Dynamic shared memory: apply_elements for every matrix of the CTA.
template <class Shape>
__global__ void __launch_bounds__(32 * apply_warps<typename Shape::Scalar>)
    apply_small_kernel(const std::int32_t* condition, ApplySmall<Cuda, typename Shape::Scalar> task, bool whole_v,
                       bool whole_c) {
  if (skipped(condition)) return;
  using T = typename Shape::Scalar;
  constexpr int ld = small_ld<Shape>(Shape::rows), size = apply_elements<Shape>();
  extern __shared__ __align__(16) unsigned char shared[];
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const Index first = (static_cast<Index>(blockIdx.x) * apply_warps<T> + warp) * Shape::matrices;
  if (first >= task.v.count) return;
  const int m = static_cast<int>(task.v.rows), k = min(m, static_cast<int>(task.v.cols));
  const int present = static_cast<int>(min(static_cast<Index>(Shape::matrices), task.v.count - first));
  T* const s_warp = reinterpret_cast<T*>(shared) + warp * Shape::matrices * size;

  // rows beyond the last are read by the tile, and must not turn its zeros into NaN
  for (int t = lane; t < Shape::matrices * size; t += warp_size) s_warp[t] = T(0);
  __syncwarp();
  for (int g = 0; g < present; ++g) {
    stage_in(s_warp + g * size, ld, matrix_at(task.v, task.table, first + g), task.v.ld, m, k, whole_v);
    if (lane < k) s_warp[g * size + 2 * ld * Shape::cols + lane] = task.tau.data[(first + g) * task.tau.stride + lane];
  }
  wait_async();
  __syncwarp();
  for (int g = 0; g < present; ++g) make_unit_lower<Shape>(s_warp + g * size, ld, k);
  __syncwarp();

  SmallTile<Shape> tile;
  T* const s_v = s_warp + tile.group * size;
  T* const s_c = s_v + ld * Shape::cols;
  for (Index column = 0; column < task.c.cols; column += Shape::cols) {
    const int cols = static_cast<int>(min(task.c.cols - column, static_cast<Index>(Shape::cols)));
    T* const g_c = task.c.data + first * task.c.stride + column * task.c.ld;
    if (task.identity) {
#pragma unroll
      for (int slot = 0; slot < Shape::C; ++slot) {
#pragma unroll
        for (int r = 0; r < Shape::R; ++r) tile.a[slot][r] = T(tile.row(r) == column + tile.column(slot) ? 1 : 0);
      }
    } else {
      for (int g = 0; g < present; ++g)
        stage_in(s_warp + g * size + ld * Shape::cols, ld, g_c + g * task.c.stride, task.c.ld, m, cols, whole_c);
      wait_async();
      __syncwarp();
      tile.load(s_c, ld, m, tile.group < present ? cols : 0);
    }
    apply_reflectors<Shape>(tile, s_v, ld, s_v + 2 * ld * Shape::cols, k, task.op == Op::transpose);
    __syncwarp();
    tile.store(s_c, ld, m, cols);
    __syncwarp();
    for (int g = 0; g < present; ++g)
      stage_out(s_warp + g * size + ld * Shape::cols, ld, g_c + g * task.c.stride, task.c.ld, m, cols, whole_c);
    __syncwarp();
  }
}

template <class Shape, class T>
void launch_shape(const Launch& launch, const ApplySmall<Cuda, T>& task) {
  constexpr Index per_block = apply_warps<T> * Shape::matrices;
  constexpr std::size_t bytes = sizeof(T) * per_block * static_cast<std::size_t>(apply_elements<Shape>());
  const auto kernel = apply_small_kernel<Shape>;
  allow_shared_memory(kernel, bytes, "apply_small");
  kernel<<<static_cast<unsigned>((task.v.count + per_block - 1) / per_block), 32 * apply_warps<T>, bytes,
           launch.stream>>>(launch.condition, task, moves_whole(task.v, task.table), moves_whole(task.c, nullptr));
  check_launch("apply_small");
}

}  // namespace

template <class T>
void apply_small(const Queue& queue, const ApplySmall<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.v.count == 0 || task.v.rows == 0 || task.v.cols == 0 || task.c.cols == 0) return;
  const bool fits = with_shape<T>(task.v.rows, task.v.cols, [&](auto shape) {
    launch_shape<decltype(shape)>(launch, task);
    return true;
  });
  detail::check(fits, ErrorCode::invalid_argument, "apply_small: ", task.v.rows, " x ", task.v.cols,
                " does not fit one warp");
}

template void apply_small<float>(const Queue&, const ApplySmall<Cuda, float>&);
template void apply_small<double>(const Queue&, const ApplySmall<Cuda, double>&);

}  // namespace qrane::backend::cuda
