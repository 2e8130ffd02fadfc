// SPDX-License-Identifier: Apache-2.0
// factor_front_panels in float, of tall panels: Householder reflections found from the panel's Gram matrix, which is
// summed in double. One cluster of blocks per panel, each with a share of its rows:
//
//     G = Aᵀ A                  one pass over the rows; the blocks' sums are added
//     H_0 .. H_31, by G         a step's scalars are elements of a row of G, no longer sums over all rows:
//                                 beta = -sign(alpha) G_jj^(1/2),  R_jk = G_jk / beta,  w_jk = A_jk - R_jk
//                               and G - R_jᵀ R_j is the next Gram matrix; of A's rows the first 32 are enough
//     V = A M, S = Vᵀ V         M = W^-1, since A = [R; 0] + V W: a second pass, but for V's first 32 rows
//     T                         from S with tau_j = 2 / S_jj: Q is orthogonal however V was rounded
//
// A column of what is left is A n_j. Where |A| |n_j| is so much larger than the column that G does not say its norm
// accurately, the sweep ends before it: columns to the left get their V, those to the right are updated, and a new
// sweep begins with their own Gram matrix, which comes with S. A sweep's first column needs no such care: any panel is
// finished. Columns that are not pivotal and of which no more is left than rounding (`neglected`) are taken for done:
// their norms nobody asks for, and reflectors made of noise would be the end of most sweeps. (Householder vectors as a
// product: Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen, "Reconstructing Householder vectors from tall-skinny
// QR", 2015.)
//
// Every block goes through the 32 columns for itself, with the same bits.
// Cost: 3 m b^2 flops in double, 12 m b bytes and 4 exchanges; of few rows the 32 steps take most of the time.
#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/fronts/panel_gram.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"
#include "cuda/collectives/kernel.cuh"
#include "cuda/fronts/panel_gram.cuh"
#include "cuda/fronts/panel_task.cuh"

namespace qrane::backend::cuda {
namespace {

using namespace front_panel_gram;
using PanelOfFloat = Panel<float>;

/// s.sum of all blocks := the sum of all warps' c, both triangles. The old one is not read any more when
/// all have begun.
__device__ void sum_up(Shared& s, const double (&c)[tiles][4], int rank, int blocks) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int n = 0; n < tiles; ++n)
#pragma unroll
    for (int h = 0; h < 4; ++h) s.warp_sums[warp][n * tile_size + h * 32 + lane] = c[n][h];
  __syncthreads();
#pragma unroll
  for (int q = 0; q < sums / threads; ++q) {
    const int e = q * threads + threadIdx.x;
    double all[warps];
#pragma unroll
    for (int i = 0; i < warps; ++i) all[i] = s.warp_sums[i][e];
    s.block_sums[e] = tree_sum(all);
  }
  cluster_sync(blocks);
  const int piece = sums / blocks;
  for (int k = threadIdx.x; k < piece; k += threads) {
    const int e = rank * piece + k;
    double all[most_blocks];
#pragma unroll
    for (int i = 0; i < most_blocks; ++i)
      all[i] = i < blocks ? *(blocks > 1 ? in_block(&s.block_sums[e], i) : &s.block_sums[e]) : 0.0;
    const double sum = tree_sum(all);
    const Place place(e / tile_size, e % 32, e % tile_size / 32);
    for (int i = 0; i < blocks; ++i) {
      double* const to = blocks > 1 ? in_block(&s.sum[0][0], i) : &s.sum[0][0];
      to[place.row * order + place.col] = sum;
      if (place.col >= 16 && place.row < 16) to[place.col * order + place.row] = sum;
    }
  }
  cluster_sync(blocks);
}

/// What a thread has of the small matrices: column `lane`, rows warp + 8 r.
struct Small {
  double gram[own_rows], top[own_rows];
};

/// 1 / x and 1 / sqrt(x) of normal numbers, beginning from what 20 bits say: nothing else has so few steps. Volatile:
/// begun at once, and not in branches, in which one would wait for another.
__device__ inline double reciprocal(double x) {
  double y;
  asm volatile("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x, y, 1.0);
  return fma(fma(e, e, e), y, y);
}
__device__ inline double reciprocal_root(double x) {
  double y;
  asm volatile("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x * y, y, 1.0);
  return fma(fma(0.375, e, 0.5), y * e, y);
}

/// By the first warp: what a column's square, and its reach, are compared with.
__device__ void set_limits(Shared& s) {
  const int lane = threadIdx.x;
  const double limit = s.limit[lane], start = s.sum[lane][lane];
  s.limit_square[lane] = limit < 0 ? -HUGE_VAL : limit * limit;
  s.neglected[lane] = limit < 0 ? fmax(negligible, neglected * start) : negligible;
  s.most_reach[lane] =
      static_cast<float>(limit < 0 ? most_growth_of_neglected * sqrt(start) : most_growth_of_dropped * limit);
}

/// Columns from `first` on, as many as the Gram matrix is good for; returns the next one. bent_set: those with tau not
/// 0. A step has the next column in the Gram matrix and the one before it in the first rows; the two do not wait for
/// each other, unless a column has no reflector, whose row then leaves the Gram matrix in a step of its own.
__device__ int sweep(PanelOfFloat& panel, Shared& s, Small& a, unsigned& bent_set, int first) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float reach = static_cast<float>(sqrt(s.sum[lane][lane]));  // at least the norm of |A| |n_lane|
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const int i = warp + warps * r;
    a.gram[r] = s.sum[i][lane];
    s.w[i][lane] = 0;
  }
  if (warp == 0) s.inverse[lane] = 1;
  int next = first, last = -1, pivot = panel.live;  // columns; of the last one:
  bool bent = false, late = false, bad = false;
  double norm = 0, root = 0, row = 0;  // root: 1 / norm
  for (int turn = 0;; turn ^= 1) {
    const bool more = !late && next < panel.cols;
    double *const row_of_gram = s.row_of_gram[turn], *const row_of_top = s.row_of_top[turn];
    double top_last[own_rows];
#pragma unroll
    for (int r = 0; r < own_rows; ++r) {
      if (warp + warps * r == next) row_of_gram[lane] = a.gram[r];
      if (warp + warps * r == pivot) row_of_top[lane] = a.top[r];
      top_last[r] = __shfl_sync(0xffffffffu, a.top[r], last & 31);
    }
    __syncthreads();
    if (bad) {
      panel.take_back(last);
      bent_set &= ~(1u << last);
      return last;
    }
    const int col = min(next, panel.cols - 1);
    const double alpha = row_of_top[last & 31], e = row_of_top[lane], square = row_of_gram[col], g = row_of_gram[lane];
    const double size = bent ? fabs(alpha) + norm : 1.0;
    const double inverse_square = reciprocal(square), inverse = copysign(reciprocal(size), alpha);
    const double next_root = reciprocal_root(square);
    // the last column's reflector and the first rows
    const double r_lane = lane == last ? -copysign(norm, alpha) : row * -copysign(root, alpha);
    const double w = bent && lane > last ? e - r_lane : 0.0, step = w * inverse;
    // the next column and the Gram matrix
    const bool has_row = more && panel.live < panel.room;
    const bool next_live = has_row && !(square <= s.limit_square[col]);
    const bool next_bent = next_live && !(square <= s.neglected[col]);
    const double gram_step = next_bent && lane > next ? g * inverse_square : 0.0;
#pragma unroll
    for (int r = 0; r < own_rows; ++r) {
      const int i = warp + warps * r;
      a.gram[r] = fma(-row_of_gram[i], gram_step, a.gram[r]);
      const double below = lane == last ? top_last[r] * inverse : fma(-top_last[r], step, a.top[r]);
      a.top[r] = i > pivot && bent ? below : i == pivot && bent && lane >= last ? r_lane : a.top[r];
    }
    reach = fmaf(fabsf(static_cast<float>(step)), __shfl_sync(0xffffffffu, reach, last & 31), reach);
    if (bent && warp == last % warps) {
      s.w[last][lane] = w;
      if (lane == last) s.inverse[last] = inverse;
    }
    if (late) {
#pragma unroll
      for (int r = 0; r < own_rows; ++r)
        if (lane > last) a.gram[r] = fma(-row_of_top[warp + warps * r], e, a.gram[r]);
    } else if (!more) {
      return panel.cols;
    }
    root = next_root;
    norm = square * root;
    row = g;
    const float most = next_bent ? most_growth * static_cast<float>(norm) : s.most_reach[col];
    bad = has_row && next > first && __shfl_sync(0xffffffffu, reach, col) > most;
    late = next_live && !next_bent;
    bent = next_bent;
    pivot = panel.live;
    last = more ? next : -1;
    if (!more) continue;
    if (threadIdx.x == 0) s.dropped[next] = has_row && !next_live ? square : 0.0;
    bent_set |= static_cast<unsigned>(bent) << next;
    panel.count(next++, next_live);
  }
}

/// M := W^-1 by halves, but for zeros in the columns first .. stop - 1 that have no V below the first rows. W's
/// diagonal is in s.inverse. Begins and ends with a barrier.
__device__ void invert(Shared& s, unsigned bent_set, int first, int stop) {
  constexpr int n = order / 2;
  const int lane = threadIdx.x % 32, begin = lane / n * n;
  __syncthreads();
  if (threadIdx.x < 32) {
    const bool none = lane >= first && lane < stop && (bent_set >> lane & 1) == 0;
    double x[n];
#pragma unroll
    for (int i = n - 1; i >= 0; --i) {
      double sum = lane % n == i && !none ? 1.0 : 0.0;
#pragma unroll
      for (int l = n - 1; l > i; --l) sum = fma(-s.w[begin + i][begin + l], x[l], sum);
      x[i] = sum * s.inverse[begin + i];
      s.m[begin + i][lane] = x[i];
      s.m[n - begin + i][lane] = 0;
    }
  }
  __syncthreads();
  const int i = threadIdx.x / n, k = threadIdx.x % n;
  static_assert(threads == n * n);
  double sum = 0;
#pragma unroll
  for (int l = 0; l < n; ++l) sum = fma(s.w[i][n + l], s.m[n + l][n + k], sum);
  s.half_product[i][k] = sum;
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int l = 0; l < n; ++l) sum = fma(-s.m[i][l], s.half_product[l][k], sum);
  s.m[i][n + k] = sum;
  __syncthreads();
}

/// What comes of a sweep's columns first .. stop - 1, and of those to the right, into shared memory.
__device__ void publish(const PanelOfFloat& panel, Shared& s, Small& a, unsigned bent_set, int first, int stop) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pivot = panel.live_before(lane);
  const bool live = panel.is_live(lane), bent = (bent_set >> lane & 1) != 0;
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const int i = warp + warps * r;
    float top = 0;
    if (lane >= stop) {
      if (i >= panel.live) a.top[r] = top = static_cast<float>(a.top[r]);
    } else if (live) {
      top = i == pivot ? 1.0f : i > pivot && bent ? static_cast<float>(a.top[r]) : 0.0f;
    }
    s.top[lane][i] = top;
  }
  invert(s, bent_set, first, stop);
}

/// R to the corner.
__device__ void store_r(const PanelOfFloat& panel, const Small& a) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int end = panel.live_before(lane) + panel.is_live(lane);
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const int i = warp + warps * r;
    if (lane < panel.cols && i < panel.ld_corner)
      panel.corner[i + lane * panel.ld_corner] = i < end ? static_cast<float>(a.top[r]) : 0.0f;
  }
}

/// T = (strict upper part of S = Vᵀ V, and half of its diagonal)^-1, without the columns that have no reflector.
__device__ void form_t(const PanelOfFloat& panel, Shared& s, unsigned bent_set) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto bent = [&](int col) { return (bent_set >> col & 1) != 0; };
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const int i = warp + warps * r;
    s.w[i][lane] = i < lane && bent(i) && bent(lane) ? s.sum[i][lane] : 0.0;
  }
  if (warp == 0) s.inverse[lane] = bent(lane) ? 2.0 / s.sum[lane][lane] : 0.0;
  invert(s, bent_set, 0, order);
#pragma unroll
  for (int r = 0; r < own_rows; ++r) {
    const int j = warp + warps * r;
    if (j < panel.cols && lane < panel.ld_corner)
      panel.t[lane + j * panel.ld_corner] = static_cast<float>(s.m[lane][j]);
  }
}

/// Thread map: cluster i for task i; a warp per chunk of 32 rows. Shared memory: Shared.
__global__ void __launch_bounds__(threads, 1)
    front_panel_gram_kernel(const std::int32_t* condition, Fronts<Cuda, float> f, const FrontPanelTask* tasks,
                            int blocks) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  Shared& s = *reinterpret_cast<Shared*>(shared);
  const int rank = blocks > 1 ? cluster_rank() : 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const FrontPanelTask task = tasks[blockIdx.x / blocks];
  const FrontShape& shape = f.shapes[task.front];
  const FrontState state = f.states[task.front];
  PanelOfFloat panel = begin(f, task, shape, state, s.limit);
  if (panel.room <= 0) {
    cluster_sync(blocks);  // everybody has read the state, which will change
    if (rank != 0) return;
    for (int e = threadIdx.x; e < panel.cols * panel.ld_corner; e += threads) panel.corner[e] = panel.t[e] = 0.0f;
    if (warp == 0) conclude(panel, f, task, shape, state.position, s.dropped);
    return;
  }
  const int shift = state.position % 4;  // rows count from a multiple of four on
  const Rows rows(panel.device.a - shift, panel.device.ld, shift, shift + panel.rows, panel.cols);
  const Share share(rows.end, rank, blocks);
  Small a;
  unsigned bent_set = 0;  // columns whose tau is not 0
#pragma unroll
  for (int r = 0; r < own_rows; ++r) a.top[r] = panel.device(warp + warps * r, lane);
  double c[tiles][4] = {};
  multiply_rows(share, rows, c);
  sum_up(s, c, rank, blocks);
  if (warp == 0) set_limits(s);
  for (int begin = 0, end = 0; end < panel.cols; begin = end) {
    end = sweep(panel, s, a, bent_set, begin);
    publish(panel, s, a, bent_set, begin, end);
    double products[tiles][4] = {};
    transform_rows(share, rows, s, products);
    sum_up(s, products, rank, blocks);  // of V, and of what is left of the others
  }
  if (rank == blocks - 1) form_t(panel, s, bent_set);
  if (rank != 0) return;
  store_r(panel, a);
  if (warp == 0) s.dropped[lane] = sqrt(fmax(s.dropped[lane], 0.0));
  if (warp == 0) conclude(panel, f, task, shape, state.position, s.dropped);
}

}  // namespace

void launch_factor_front_panels_by_gram(const Launch& launch, const Fronts<Cuda, float>& f,
                                        const FrontTasks<Cuda, FrontPanelTask>& tasks) {
  constexpr int rows_of_block = 512;
  int blocks = 1;
  if (has_clusters())
    while (blocks < most_blocks && blocks * rows_of_block < tasks.max_rows) blocks *= 2;
  const ClusterShape shape{dim3(static_cast<unsigned>(tasks.count * blocks)), threads, blocks, sizeof(Shared)};
  launch_cluster(front_panel_gram_kernel, "front_panel_gram kernel", shape, launch.stream, launch.condition, f,
                 tasks.tasks, blocks);
}

}  // namespace qrane::backend::cuda
