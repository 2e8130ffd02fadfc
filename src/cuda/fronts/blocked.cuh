// SPDX-License-Identifier: Apache-2.0
// A front in the shared memory of one block, factored by blocks of 8 columns.
//
//      block k    k+1     columns still to come, 16 to a warp
//     | r r r  | r r r | r r r r r ...           Warp 0 takes block k + 1 into its registers (a lane holds every 32nd
//     | v r r  | x x x | x x x x x ...           row), updated by block k first, and factors it without a barrier;
//     | v v r  | x x x | x x x x x ...           the other warps meanwhile update all columns right of it by block k:
//     | v v v  | x x x | x x x x x ...           C^T := C^T - ((C^T V) T) V^T, products on the tensor cores.
//
// Block k's V lies beside the matrix with its ones and zeros, from a multiple of 8 rows on. Two barriers a block: when
// V and T have been written, and when nobody needs them any more.
//
// The chain of reflectors is what takes time: a step is a sum over the rows of 8 columns, whose stages of shuffles,
// root and reciprocal follow each other.
#pragma once

#include <type_traits>

#include "cuda/collectives/tile_mma.cuh"
#include "cuda/fronts/whole.cuh"

namespace qrane::backend::cuda {

constexpr int block_cols = 8;

/// How a front lies in shared memory, in elements.
struct BlockedLayout {
  int ld, v_rows;

  /// `spread`: columns begin in different banks.
  __host__ __device__ BlockedLayout(int rows, bool spread) : ld((rows + 7) / 8 * 8), v_rows((rows + 31) / 32 * 32) {
    if (spread && ld % 16 == 0) ld += 8;
  }
  template <class T>
  __host__ __device__ std::int64_t v_elements() const {
    return block_cols * (v_rows + VTile<T>::slack);
  }
  template <class T>
  __host__ __device__ std::int64_t elements(std::int64_t cols) const {
    return ld * cols + v_elements<T>() + block_cols * block_cols;
  }
};

/// What warp 0 tells the others about the block that it has factored, and what it passes to itself.
template <class T>
struct BlockShared {
  int first_col, cols, first_row, rows, next_row;  // first_row: a multiple of 8, as is rows
  T heads[block_cols];
  alignas(16) T sums[block_cols];
};

/// warps: of the thread block; most_slabs: 32 rows each, that warp 0 holds.
template <class T, int warps, int most_slabs>
class BlockedFront {
 public:
  using Shared = BlockShared<T>;

  __device__ BlockedFront(WholeFront<T>& front, const BlockedLayout& layout, Shared& s)
      : whole(front),
        shared(s),
        v{front.a + static_cast<std::int64_t>(front.ld) * front.all_cols, layout.v_rows + VTile<T>::slack},
        t(v.data + layout.v_elements<T>()) {}

  /// T of panels is finished by make_t() if `keep_q` (panels of a multiple of 8 columns).
  __device__ void factor(bool keep_q) {
    const int cols = whole.shape.cols;
    bool more = cols > 0 && whole.rows > 0;
    if (more && warp == 0) next_block(0, 0, keep_q);
    int end = 0;
    while (more) {
      barrier();
      const int first = shared.first_col, row = shared.next_row;
      end = first + shared.cols;
      more = end < cols && row < whole.rows;
      const int next = min(end + block_cols, cols);
      if (more && warp == 0) {
        update(end, next - end);
        __syncwarp();
      }
      const bool also_factors = more && warp == 0;
      // with several warps, the first has its hands full
      if (warps == 1 || !also_factors) {
        const int begin = more ? next : end, worker = warps > 1 && more ? warp - 1 : warp;
        const int workers = warps > 1 && more ? warps - 1 : warps;
        for (int c = begin + worker * tile_cols; c < whole.all_cols; c += workers * tile_cols)
          update(c, min(tile_cols, whole.all_cols - c));
        if (keep_q) products_with_earlier(first, workers - 1 - worker, workers);
      }
      if (also_factors)
        next_block(end, row, keep_q);
      else
        barrier();
    }
    if (threadIdx.x == 0) shared.first_col = whole.progress.r_rows, shared.first_row = whole.progress.row;
    __syncthreads();
    whole.progress.full_from = end;
    whole.progress.r_rows = shared.first_col;
    whole.progress.row = shared.first_row;
  }

  /// T of whole panels, of which the blocks on the diagonal and (V_1^T V_2) T_22 are there:
  /// T_12 = -T_11 (V_1^T V_2) T_22.
  __device__ void make_t() const {
    const int panel = whole.f.panel, cols = whole.shape.cols;
    for (int first = warp * panel; first < cols; first += warps * panel) {
      for (int b = first + block_cols; b < min(first + panel, cols); b += block_cols) {
        const int count = min(block_cols, cols - b), above = b - first;
        T sums[block_cols] = {};
        for (int l = 0; l < above; ++l) {
          const T x = lane <= l ? whole.t_column(first + l)[lane] : T(0);
#pragma unroll
          for (int k = 0; k < block_cols; ++k)
            if (k < count) sums[k] = fma(x, whole.t_column(b + k)[l], sums[k]);
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < block_cols; ++k)
          if (k < count && lane < above) whole.t_column(b + k)[lane] = -sums[k];
        __syncwarp();
      }
    }
  }

 private:
  static constexpr int tile_cols = 16, no_row = 1 << 30;
  using Mma = TileMma<T>;

  /// Warps of the block come here from different places.
  __device__ static void barrier() {
    if constexpr (warps == 1)
      __syncwarp();
    else
      asm volatile("bar.sync 1, %0;" ::"n"(warps * warp_size) : "memory");
  }

  // ---- updates: lane (g, q) of a warp as in tile_mma.cuh

  /// W = C^T V of the block's V, in two sums that take turns.
  __device__ void multiply_by_v(T (&w)[4], const T* lower, const T* upper, bool has_lower, bool has_upper) const {
    const T* const s_v = v.column(g) + 2 * q;
    const int rows = shared.rows;
    T other[4] = {};
    for (int i = 0; i < 4; ++i) w[i] = T(0);
#pragma unroll 2
    for (int i = 0; i < rows; i += 16) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = i + 8 * half;
        if (at < rows) {
          T low[2] = {}, high[2] = {}, b[2];
          if (has_lower) load_pair(low, lower + at);
          if (has_upper) load_pair(high, upper + at);
          load_pair(b, s_v + at);
          const T c[4] = {low[0], low[1], high[0], high[1]};
          Mma::multiply(half ? other : w, Mma::prepare(c), b);
        }
      }
    }
    for (int i = 0; i < 4; ++i) w[i] += other[i];
  }

  /// W T.
  __device__ void multiply_by_t(T (&result)[4], const T (&w)[4]) const {
    T b[2];
    load_pair(b, t + g * block_cols + 2 * q);
    for (int i = 0; i < 4; ++i) result[i] = T(0);
    Mma::multiply(result, Mma::prepare(w), b);
  }

  /// Columns c .. c + count - 1, up to 16, by the block.
  __device__ void update(int c, int count) const {
    const bool has_lower = g < count, has_upper = g + 8 < count;
    T* const lower = whole.a + (c + g) * whole.ld + shared.first_row + 2 * q;
    T* const upper = lower + 8 * whole.ld;
    T w[4], wt[4];
    multiply_by_v(w, lower, upper, has_lower, has_upper);
    multiply_by_t(wt, w);
    for (int i = 0; i < 4; ++i) wt[i] = -wt[i];
    const auto factor = Mma::prepare(wt);
    const T *const v0 = v.column(2 * q) + g, *const v1 = v.column(2 * q + 1) + g;
    const int rows = shared.rows;
#pragma unroll 4
    for (int at = 0; at < rows; at += 8) {
      T low[2] = {}, high[2] = {};
      if (has_lower) load_pair(low, lower + at);
      if (has_upper) load_pair(high, upper + at);
      const T b[2] = {v0[at], v1[at]};
      T x[4] = {low[0], low[1], high[0], high[1]};
      Mma::multiply(x, factor, b);
      if (has_lower) *reinterpret_cast<Pair<T>*>(lower + at) = {x[0], x[1]};
      if (has_upper) *reinterpret_cast<Pair<T>*>(upper + at) = {x[2], x[3]};
    }
  }

  /// (V_1^T V_2) T_22 to T of the panel, V_2 the block, V_1 the reflectors before it in its panel.
  __device__ void products_with_earlier(int first, int worker, int workers) const {
    const int panel_first = first / whole.f.panel * whole.f.panel;
    for (int c = panel_first + worker * tile_cols; c < first; c += workers * tile_cols) {
      const bool has_lower = c + g < first, has_upper = c + g + 8 < first;
      const T* const lower = whole.a + (c + g) * whole.ld + shared.first_row + 2 * q;
      T w[4], wt[4];
      multiply_by_v(w, lower, lower + 8 * whole.ld, has_lower, has_upper);
      multiply_by_t(wt, w);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (2 * q + i >= shared.cols) continue;
        T* const to = whole.t_column(first + 2 * q + i) + (c - panel_first + g);
        if (has_lower) to[0] = wt[i];
        if (has_upper) to[8] = wt[2 + i];
      }
    }
  }

  // ---- factorization of one block, by warp 0

  __device__ void next_block(int first, int row, bool keep_q) {
    const int cols = min(block_cols, whole.shape.cols - first);
    const int first_row = row / 8 * 8;
    const int height = min(whole.rows, max(whole.stair[first + cols - 1], row + cols));
    const int rows = (height - first_row + 7) / 8 * 8, slabs = (rows + warp_size - 1) / warp_size;
    with_slabs(slabs,
               [&](auto count) { factor_block<decltype(count)::value>(first, cols, first_row, rows, row, keep_q); });
  }

  /// f(std::integral_constant) with the smallest number that is compiled of at least `slabs`.
  template <class F>
  __device__ __forceinline__ static void with_slabs(int slabs, F&& f) {
    if constexpr (most_slabs > 4) {
      if (slabs <= 2) return f(std::integral_constant<int, 2>{});
      if (slabs <= 4) return f(std::integral_constant<int, 4>{});
      if (slabs <= 6) return f(std::integral_constant<int, 6>{});
    } else if constexpr (most_slabs > 1) {
      if (slabs <= 1) return f(std::integral_constant<int, 1>{});
      if (slabs <= 2) return f(std::integral_constant<int, 2>{});
    }
    f(std::integral_constant<int, most_slabs>{});
  }

  template <int slabs>
  __device__ __forceinline__ void factor_block(int first, int cols, int first_row, int rows, int row, bool keep_q) {
    T a[block_cols][slabs], t_row[block_cols];  // t_row: row `lane` of T
    int pivot_row[block_cols];                  // less first_row
    T* const s_a = whole.a + first * whole.ld + first_row + lane;
#pragma unroll
    for (int c = 0; c < block_cols; ++c) {
      t_row[c] = T(0);
      pivot_row[c] = no_row;
#pragma unroll
      for (int i = 0; i < slabs; ++i)
        a[c][i] = c < cols && i * warp_size + lane < rows ? s_a[c * whole.ld + i * warp_size] : T(0);
    }
    const bool pivotal = first + lane < whole.shape.pivots && lane < cols;
    const int exponent =
        pivotal && whole.f.exponents != nullptr ? whole.f.exponents[whole.shape.first_col + first + lane] : 0;
    const double limit = pivotal ? drop_limit(whole.f, whole.tolerance, exponent) : -1.0;
    FrontProgress& progress = whole.progress;
#pragma unroll
    for (int j = 0; j < block_cols; ++j) {
      if (j < cols && row < whole.rows) {
        const bool may_drop = first + j < whole.shape.pivots;
        const int p = row - first_row;  // within the first slab
        step<slabs>(a, t_row, j, p, __shfl_sync(full_warp, limit, j), __shfl_sync(full_warp, exponent, j),
                    pivot_row[j]);
        if (pivot_row[j] == p) ++row;
        if (may_drop) progress.r_rows = row;
      }
    }
    progress.row = row;
#pragma unroll
    for (int c = 0; c < block_cols; ++c) {
      if (c >= cols) continue;
#pragma unroll
      for (int i = 0; i < slabs; ++i)
        if (i * warp_size + lane < rows) s_a[c * whole.ld + i * warp_size] = a[c][i];
      if (lane == 0) whole.pivot[first + c] = pivot_row[c] < no_row ? first_row + pivot_row[c] : -1;
      if (keep_q && lane < block_cols) {
        T* const g_t = whole.t_column(first + c) + first % whole.f.panel;
        if (first % whole.f.panel + lane < whole.f.panel) g_t[lane] = t_row[c];
        for (int i = first % whole.f.panel + block_cols + lane; i < whole.f.panel; i += block_cols)
          whole.t_column(first + c)[i] = T(0);
      }
    }
    if (first > 0) barrier();  // nobody reads V and T of the block before any more
#pragma unroll
    for (int c = 0; c < block_cols; ++c) {
      T* const s_v = v.column(c) + lane;
#pragma unroll
      for (int i = 0; i < slabs; ++i) {
        const int below = i * warp_size + lane - pivot_row[c];
        if (i * warp_size + lane < rows) s_v[i * warp_size] = below > 0 ? a[c][i] : T(below == 0 ? 1 : 0);
      }
      if (lane < block_cols) t[c * block_cols + lane] = t_row[c];
    }
    if (lane == 0) {
      shared.first_col = first, shared.cols = cols;
      shared.first_row = first_row, shared.rows = rows, shared.next_row = row;
    }
  }

  /// Reflector j, whose pivot row is row p of the first slab: all columns right of it are updated, T gets its column.
  template <int slabs>
  __device__ __forceinline__ void step(T (&a)[block_cols][slabs], T (&t_row)[block_cols], int j, int p, double limit,
                                       int exponent, int& pivot_row) {
    T x[slabs], sums[block_cols];
#pragma unroll
    for (int i = 0; i < slabs; ++i) x[i] = i > 0 || lane > p ? a[j][i] : T(0);
    if (lane == p) {
#pragma unroll
      for (int c = 0; c < block_cols; ++c) shared.heads[c] = a[c][0];
    }
#pragma unroll
    for (int c = 0; c < block_cols; ++c) {
      sums[c] = T(0);
#pragma unroll
      for (int i = 0; i < slabs; ++i) sums[c] = fma(x[i], a[c][i], sums[c]);
    }
    const T total = sum_slot_of_lane(sums);
    if (lane < block_cols) shared.sums[lane] = total;
    __syncwarp();
    T z[block_cols];
#pragma unroll
    for (int c = 0; c < block_cols; ++c) z[c] = shared.heads[c], sums[c] = shared.sums[c];
    __syncwarp();
    const Reflection<T> h(z[j], sums[j], limit, exponent);
    if (!h.live) {
      whole.progress.dropped += h.dropped;
#pragma unroll
      for (int i = 0; i < slabs; ++i) a[j][i] = i > 0 || lane >= p ? T(0) : a[j][i];
      return;
    }
    pivot_row = p;
    T sum = T(0);  // row `lane` of T (V^T v)
#pragma unroll
    for (int c = 0; c < block_cols; ++c) {
      z[c] = fma(sums[c], h.inverse, z[c]);  // v_c^T v, or a_c^T v
      if (c < j) sum = fma(t_row[c], z[c], sum);
      if (c > j) {
        const T w = h.tau * z[c], factor = -w * h.inverse;
#pragma unroll
        for (int i = 0; i < slabs; ++i) a[c][i] = fma(factor, x[i], a[c][i]);
        if (lane == p) a[c][0] -= w;
      }
    }
    t_row[j] = lane == j ? h.tau : lane < j ? -h.tau * sum : T(0);
#pragma unroll
    for (int i = 0; i < slabs; ++i) a[j][i] = i > 0 || lane > p ? a[j][i] * h.inverse : a[j][i];
    if (lane == p) a[j][0] = h.beta;
  }

  WholeFront<T>& whole;
  Shared& shared;
  const VTile<T> v;
  T* const t;
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int g = lane / 4, q = lane % 4;
};

}  // namespace qrane::backend::cuda
