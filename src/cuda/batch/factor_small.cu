// SPDX-License-Identifier: Apache-2.0
// factor_small: Householder QR of many small matrices, each in the registers of one warp or of a part of one
// (small.cuh has the layout), LAPACK-shaped: R above, V below the diagonal, tau beside.
//
// Column step j, with x the tail of column j below row j (all columns scaled to a largest magnitude near 1):
//     s_c = sum_{i > j} x_i a_ic  for all c;  s_j = ||x||^2
//     beta = -sign(alpha) sqrt(alpha^2 + s_j),  tau = (beta - alpha) / beta,  v = [1; x / (alpha - beta)]
//     w_c = tau (a_jc + s_c / (alpha - beta)),  a_jc -= w_c,  a_ic -= w_c / (alpha - beta) x_i
// x is published in shared memory where the column was staged, and stays unscaled in its registers until the end. One
// warp synchronization and no barrier per step.
//
// Each matrix is read once and written once. Cost: about 2 m n^2 flops and 3 m n words of shared memory.
#include "cuda/queue/launch.hpp"
#include "vocabulary/batch.hpp"
#include "cuda/batch/small.cuh"

namespace qrane::backend::cuda {
namespace {

/// A matrix while it is factored; lanes of one matrix share s and heads.
template <class Shape>
struct SmallFactor {
  using T = typename Shape::Scalar;
  static constexpr int R = Shape::R, L = Shape::L, NCL = Shape::NCL, C = Shape::C, V = Shape::V;

  SmallTile<Shape> tile;
  T inverse[C] = {}, tau[C] = {};
  T* s;      // columns in shared memory, s_ld apart
  T* heads;  // alpha of every column
  int s_ld;

  /// Step j = (Q L + p) V + E.
  template <int Q, int E>
  __device__ void step(int j, int p) {
    constexpr int r = Q * V + E;
    auto& a = tile.a;
    T* const s_x = s + j * s_ld;
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (tile.column(slot) == j) publish<Q, E>(s_x, slot, j, p);
    }
    __syncwarp();
    const T alpha = heads[j];
    T x[R], sums[C] = {}, pivot[C];
#pragma unroll
    for (int q = Q; q < Shape::chunks; ++q) {
      const auto chunk = *reinterpret_cast<const Chunk<T>*>(s_x + tile.chunk(q) * V);
#pragma unroll
      for (int e = 0; e < V; ++e) x[q * V + e] = chunk.v[e];
    }
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (finished<Q>(slot)) continue;
#pragma unroll
      for (int i = Q * V; i < R; ++i) sums[slot] = fma(x[i], a[slot][i], sums[slot]);
      sums[slot] = tile.sum_parts(sums[slot]);
      pivot[slot] = L > 1 ? __shfl_sync(full_warp, a[slot][r], (threadIdx.x % warp_size) / L * L + p) : a[slot][r];
    }
    T mine = sums[0];
#pragma unroll
    for (int slot = 1; slot < C; ++slot) mine = j >= slot * NCL ? sums[slot] : mine;
    const T tail_squares = __shfl_sync(full_warp, mine, tile.group * Shape::lanes + j % NCL * L);

    // Comparisons are written so that NaN makes a reflector of NaN rather than none.
    const T squares = fma(alpha, alpha, tail_squares);
    const T root = reciprocal_root(squares);
    const T norm = squares * root;
    const bool reflects = !(tail_squares == T(0)) && !(squares < negligible<T>);
    const T beta = reflects ? -copysign(norm, alpha) : alpha;
    const T t = reflects ? fma(abs(alpha), root, T(1)) : T(0);
    const T inv = reflects ? copysign(reciprocal(abs(alpha) + norm), alpha) : T(0);
    const bool has_row = tile.part == p;
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (finished<Q>(slot)) continue;
      const int c = tile.column(slot);
      if (c > j && reflects) {
        const T w = t * fma(sums[slot], inv, pivot[slot]), f = -w * inv;
        if (has_row) a[slot][r] -= w;
#pragma unroll
        for (int i = Q * V; i < R; ++i) a[slot][i] = fma(f, x[i], a[slot][i]);
      }
      if (c == j) {
        if (has_row) a[slot][r] = beta;
        inverse[slot] = inv;
        tau[slot] = t;
      }
    }
  }

  /// All columns of the slot lie left of step (Q L + p) V.
  template <int Q>
  static constexpr bool finished(int slot) {
    return NCL * (slot + 1) <= Q * L * V;
  }

  template <int Q, int E>
  __device__ void publish(T* s_x, int slot, int j, int p) {
    const auto& a = tile.a;
#pragma unroll
    for (int q = Q; q < Shape::chunks; ++q) {
      Chunk<T> x;
#pragma unroll
      for (int e = 0; e < V; ++e)
        x.v[e] = q > Q || tile.part > p || (tile.part == p && e > E) ? a[slot][q * V + e] : T(0);
      *reinterpret_cast<Chunk<T>*>(s_x + tile.chunk(q) * V) = x;
    }
    if (tile.part == p) heads[j] = a[slot][Q * V + E];
  }

  template <int Q, int E>
  __device__ bool steps_of_chunk(int p, int steps) {
    const int j = (Q * L + p) * V + E;
    if (j >= steps) return false;
    step<Q, E>(j, p);
    if constexpr (E + 1 < V) return steps_of_chunk<Q, E + 1>(p, steps);
    return true;
  }

  template <int Q = 0>
  __device__ void factor(int steps) {
#pragma unroll 1
    for (int p = 0; p < L; ++p) {
      if (!steps_of_chunk<Q, 0>(p, steps)) return;
    }
    if constexpr ((Q + 1) * L * V < Shape::cols && Q + 1 < Shape::chunks) factor<Q + 1>(steps);
  }

  /// V := x / (alpha - beta) below the diagonal, R unscaled on and above it.
  __device__ void finish(const int (&exponent)[C]) {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      const T unscale = Bits<T>::power_of_two(exponent[slot]);
#pragma unroll
      for (int r = 0; r < R; ++r) tile.a[slot][r] *= tile.row(r) > tile.column(slot) ? inverse[slot] : unscale;
    }
  }
};

/// Shared memory of one matrix, in elements: the columns and their heads.
template <class Shape>
__host__ __device__ int small_elements() {
  return small_ld<Shape>(Shape::rows) * Shape::cols + (Shape::cols + 3) / 4 * 4;
}

/// Thread map: small.cuh. Dynamic shared memory: small_elements for every matrix of the CTA.
template <class Shape>
__global__ void __launch_bounds__(32 * small_warps)
    factor_small_kernel(const std::int32_t* condition, FactorSmall<Cuda, typename Shape::Scalar> task, bool whole_in,
                        bool whole_out) {
  if (skipped(condition)) return;
  using T = typename Shape::Scalar;
  extern __shared__ __align__(16) unsigned char shared[];
  const int warp = threadIdx.x / warp_size;
  const Index first = (static_cast<Index>(blockIdx.x) * small_warps + warp) * Shape::matrices;
  const Index count = task.a.count;
  const int m = static_cast<int>(task.a.rows), n = static_cast<int>(task.a.cols), k = min(m, n);
  const int ld = small_ld<Shape>(Shape::rows);
  T* const s_warp = reinterpret_cast<T*>(shared) + warp * Shape::matrices * small_elements<Shape>();
  if (first >= count) return;
  const int present = static_cast<int>(min(static_cast<Index>(Shape::matrices), count - first));
  for (int g = 0; g < present; ++g)
    stage_in(s_warp + g * small_elements<Shape>(), ld, matrix_at(task.source, task.source_table, first + g),
             task.source.ld, m, n, whole_in);
  wait_async();
  __syncwarp();

  SmallFactor<Shape> f;
  f.s = s_warp + f.tile.group * small_elements<Shape>();
  f.heads = f.s + ld * Shape::cols;
  f.s_ld = ld;
  f.tile.load(f.s, ld, m, f.tile.group < present ? n : 0);
  __syncwarp();
  int exponent[Shape::C];
  scale_columns<Shape::L>(f.tile.a, exponent);
  f.factor(k);
  f.finish(exponent);
  __syncwarp();
  f.tile.store(f.s, ld, m, n);
  if (f.tile.group < present && f.tile.part == 0) {
#pragma unroll
    for (int slot = 0; slot < Shape::C; ++slot)
      if (f.tile.column(slot) < k)
        task.tau.data[(first + f.tile.group) * task.tau.stride + f.tile.column(slot)] = f.tau[slot];
  }
  __syncwarp();
  for (int g = 0; g < present; ++g)
    stage_out(s_warp + g * small_elements<Shape>(), ld, matrix_at(task.a, task.table, first + g), task.a.ld, m, n,
              whole_out);
}

template <class Shape, class T>
void launch_shape(const Launch& launch, const FactorSmall<Cuda, T>& task) {
  constexpr Index per_block = small_warps * Shape::matrices;
  const auto kernel = factor_small_kernel<Shape>;
  const std::size_t bytes = sizeof(T) * per_block * static_cast<std::size_t>(small_elements<Shape>());
  allow_shared_memory(kernel, bytes, "factor_small");
  kernel<<<static_cast<unsigned>((task.a.count + per_block - 1) / per_block), 32 * small_warps, bytes, launch.stream>>>(
      launch.condition, task, moves_whole(task.source, task.source_table), moves_whole(task.a, task.table));
  check_launch("factor_small");
}

}  // namespace

template <class T>
void factor_small(const Queue& queue, const FactorSmall<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.a.count == 0 || task.a.rows == 0 || task.a.cols == 0) return;
  const bool fits = with_shape<T>(task.a.rows, task.a.cols, [&](auto shape) {
    launch_shape<decltype(shape)>(launch, task);
    return true;
  });
  detail::check(fits, ErrorCode::invalid_argument, "factor_small: ", task.a.rows, " x ", task.a.cols,
                " does not fit one warp");
}

template void factor_small<float>(const Queue&, const FactorSmall<Cuda, float>&);
template void factor_small<double>(const Queue&, const FactorSmall<Cuda, double>&);

}  // namespace qrane::backend::cuda
