// SPDX-License-Identifier: Apache-2.0
// What update.cu (one panel) and update_pair.cu (two at once) share: the tiles of V and C in shared memory,
// their copies, and the two products.
//
// Shared memory: a column of a tile is 16 or 8 pieces of 16 bytes, piece p of column c at p ^ swizzle(c), so that all
// reads of a warp are free of bank conflicts: two neighbouring columns by four pieces, and eight rows of four columns,
// even or odd ones. W and X (k fastest) are stored the same way.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/collectives/cluster.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/tile_mma.cuh"
#include "cuda/reach.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda::front_update {

constexpr int panel_cols = 32, threads = 256, piece_bytes = 16;

template <class T>
constexpr int per_piece = piece_bytes / static_cast<int>(sizeof(T));

/// Sizes for `panels` panels at once. A tile: columns of all panels, then `strip` columns of C.
template <class T, int panels>
struct Geometry {
  static constexpr int strip = panels == 1 ? front_update_strip : front_update_pair_strip;
  static constexpr int pieces = panels == 1 ? 16 : 8;
  static constexpr int column_bytes = pieces * piece_bytes, rows = pieces * per_piece<T>;
  static constexpr int panel_bytes = panel_cols * column_bytes, v_bytes = panels * panel_bytes;
  static constexpr int stage_bytes = v_bytes + strip * column_bytes;
};

__device__ constexpr int swizzle(int column) { return (column & 1) << 2 ^ (column & 6); }

/// The place of a piece within columns of `column_bytes`.
template <int column_bytes>
__device__ int place(int column, int piece) {
  return column * column_bytes + (piece ^ swizzle(column)) * piece_bytes;
}

/// Lane (g, q) of a warp.
struct Lane {
  int g = threadIdx.x % warp_size / 4, q = threadIdx.x % 4;
};

/// What a block works on: tiles from matrix row `first_tile` on, of which rows [begin, end) count, and of panel p's V
/// rows v_begin[p] .. v_end[p] - 1. Lies in shared memory: the loops over tiles have no registers for it.
template <class T, int panels>
struct Share {
  using G = Geometry<T, panels>;
  const T* g_v[panels];
  T* g_c;
  std::int64_t ld;
  int v_cols[panels], v_begin[panels], v_end[panels];
  int c_cols, begin, end;
  int first_tile, tiles;
  int first_whole, end_whole;  // tiles all rows of which count for every panel, and are aligned
  bool aligned;                // 16 bytes from every fourth (float) or second (double) row on
  bool complete;               // all columns of V, as they lie in the front

  __device__ int tile_row(int tile) const { return first_tile + tile * G::rows; }
  __device__ bool whole(int tile) const { return tile >= first_whole && tile < end_whole; }
};

/// The share of block `rank` of `blocks`; nothing to do where begin = end.
template <class T, int panels>
__device__ Share<T, panels> make_share(const Fronts<Cuda, T>& f, const FrontUpdateTask& task, unsigned rank,
                                       unsigned blocks) {
  using G = Geometry<T, panels>;
  constexpr int grain = 64 / static_cast<int>(sizeof(T));  // rows that tiles begin at a multiple of: 64 bytes
  const FrontShape& shape = f.shapes[task.front];
  Share<T, panels> share;
  T* const g_front = f.storage + shape.matrix;
  share.ld = shape.ld;
  share.g_c = g_front + static_cast<std::int64_t>(task.first) * share.ld;
  share.c_cols = task.cols;
  share.begin = share.end = 0;
  share.complete = true;
  int whole_begin = 0, whole_end = shape.ld;
#pragma unroll
  for (int p = 0; p < panels; ++p) {
    const int first_col = (task.panel + p) * f.panel;
    const FrontPanelState state = f.panels[shape.panels + task.panel + p];
    share.g_v[p] = g_front + first_col * share.ld;
    share.v_begin[p] = state.first_row;
    share.v_end[p] = state.first_row + state.height;
    share.v_cols[p] = state.height > 0 ? min(f.panel, shape.cols - first_col) : 0;
    share.complete = share.complete && share.v_cols[p] == panel_cols;
    if (state.height == 0) continue;
    share.begin = share.end == 0 ? state.first_row : min(share.begin, state.first_row);
    share.end = max(share.end, share.v_end[p]);
    whole_begin = max(whole_begin, share.v_begin[p]), whole_end = min(whole_end, share.v_end[p]);
  }
  const int origin = share.begin / grain * grain;
  const unsigned all = (share.end - origin + G::rows - 1) / G::rows;
  const int first = static_cast<int>(all * rank / blocks), last = static_cast<int>(all * (rank + 1) / blocks);
  share.first_tile = origin + first * G::rows;
  share.tiles = last - first;
  share.aligned = reinterpret_cast<std::uintptr_t>(g_front) % piece_bytes == 0 && share.ld % per_piece<T> == 0;
  share.first_whole = max(whole_begin - share.first_tile + G::rows - 1, 0) / G::rows;
  share.end_whole = share.aligned ? max(whole_end - share.first_tile, 0) / G::rows : 0;
  return share;
}

/// Copies to shared memory, asynchronous. A thread copies the same piece of every 16th (or 32nd) column, which all have
/// the same swizzle. Addresses are made anew for every tile.
template <class T, int panels>
struct Feed {
  using G = Geometry<T, panels>;
  static constexpr int column_step = threads / G::pieces;

  /// Starts the copy of a tile of V and of C; zeros where V is not, or is none of the panel's. Columns of C that the
  /// task has not are left: nothing of theirs is kept.
  static __device__ void fetch(const Share<T, panels>& s_share, int tile, std::byte* stage) {
    std::byte* const s_to = stage + place<G::column_bytes>(column(), piece());
    if (s_share.complete && s_share.whole(tile)) {
      const std::int64_t step = column_step * s_share.ld;
      const std::int64_t offset = column() * s_share.ld + s_share.tile_row(tile) + piece() * per_piece<T>;
      const T* g_from = s_share.g_v[0] + offset;
#pragma unroll
      for (int c = 0; c < panels * panel_cols; c += column_step, g_from += step)
        __pipeline_memcpy_async(s_to + c * G::column_bytes, g_from, piece_bytes);
      g_from = s_share.g_c + offset;
      const int left = s_share.c_cols - column();
#pragma unroll
      for (int c = 0; c < G::strip; c += column_step, g_from += step)
        if (c < left) __pipeline_memcpy_async(s_to + G::v_bytes + c * G::column_bytes, g_from, piece_bytes);
    } else {
      fetch_part(s_share, tile, s_to);
    }
  }

 private:
  static __device__ int piece() { return threadIdx.x % G::pieces; }
  static __device__ int column() { return threadIdx.x / G::pieces; }

  /// A tile with rows that do not count. A call, so that the loops keep their registers.
  static __device__ __noinline__ void fetch_part(const Share<T, panels>& s_share, int tile, std::byte* s_to) {
#pragma unroll 1
    for (int p = 0; p < panels; ++p)
      fetch_columns(s_share, tile, s_to + p * G::panel_bytes, s_share.g_v[p], s_share.v_cols[p], panel_cols,
                    s_share.v_begin[p], s_share.v_end[p]);
    fetch_columns(s_share, tile, s_to + G::v_bytes, s_share.g_c, s_share.c_cols, s_share.c_cols, s_share.begin,
                  s_share.end);
  }

  /// Rows begin .. end - 1 of `cols` columns; zeros around them, and up to `padded` columns.
  static __device__ void fetch_columns(const Share<T, panels>& s_share, int tile, std::byte* s_to, const T* g_from,
                                       int cols, int padded, int begin, int end) {
    const std::int64_t step = column_step * s_share.ld;
    const int row = s_share.tile_row(tile) + piece() * per_piece<T>;
    const int before = begin - row, until = end - row;
    g_from += column() * s_share.ld + row;
#pragma unroll 1
    for (int c = column(); c < padded; c += column_step, s_to += column_step * G::column_bytes, g_from += step) {
      auto* const s_piece = reinterpret_cast<T*>(s_to);
      if (s_share.aligned && before <= 0 && until >= per_piece<T> && c < cols) {
        __pipeline_memcpy_async(s_piece, g_from, piece_bytes);
      } else {
#pragma unroll
        for (int i = 0; i < per_piece<T>; ++i) {
          if (i >= before && i < until && c < cols) {
            __pipeline_memcpy_async(s_piece + i, g_from + i, sizeof(T));
          } else {
            s_piece[i] = T(0);
          }
        }
      }
    }
  }
};

/// Wᵀ (32 columns of C by 32 of V) += Cᵀ V over the rows in pieces 4 group .. + 3 of a tile. c_cols: columns of C from
/// s_c on.
template <class T, int panels>
__device__ void multiply_forth(double (&w)[2][4][4], const std::byte* s_c, const std::byte* s_v, int group,
                               int c_cols) {
  constexpr int column_bytes = Geometry<T, panels>::column_bytes;
  using Piece = Vector<T, per_piece<T>>;
  const Lane lane;
  const int at = place<column_bytes>(lane.g, 4 * group + lane.q);
  Piece b[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) b[n] = *reinterpret_cast<const Piece*>(s_v + n * 8 * column_bytes + at);
#pragma unroll
  for (int s = 0; s < per_piece<T> / 2; ++s) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      if (16 * m >= c_cols) break;
      const std::byte* const s_from = s_c + 16 * m * column_bytes + at + 2 * s * sizeof(T);
      const auto upper = *reinterpret_cast<const Vector<T, 2>*>(s_from);
      const auto lower = *reinterpret_cast<const Vector<T, 2>*>(s_from + 8 * column_bytes);
      const double a[4] = {upper.v[0], lower.v[0], upper.v[1], lower.v[1]};
#pragma unroll
      for (int n = 0; n < 4; ++n) mma_16x8x8(w[m][n], a, b[n].v[2 * s], b[n].v[2 * s + 1]);
    }
  }
}

/// T(8k + 2q .. + 1, 8n + g) for k = 0 .. 3.
template <class T>
__device__ void load_t(double (&t)[4][2], const T* g_t, int ld, int cols, int n) {
  const Lane lane;
  const int column = 8 * n + lane.g;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 8 * k + 2 * lane.q + i;
      t[k][i] = row <= column && column < cols ? static_cast<double>(g_t[row + column * ld]) : 0.0;
    }
  }
}

/// The sum of what the blocks have at the place of s_mine, in their order.
__device__ inline Vector<double, 2> sum_of_blocks(std::byte* s_mine, int blocks) {
  using Pair = Vector<double, 2>;
  Pair sum = *reinterpret_cast<const Pair*>(in_block(s_mine, 0));
#pragma unroll 4
  for (int r = 1; r < blocks; ++r) {
    const Pair x = *reinterpret_cast<const Pair*>(in_block(s_mine, r));
    sum.v[0] += x.v[0];
    sum.v[1] += x.v[1];
  }
  return sum;
}

/// The way back: Cᵀ += Xᵀ Vᵀ for 16 columns and the warp's rows of a tile (one panel: a half of them); X, negative,
/// lies in s_w with all panels' k.
template <class T, int panels>
struct Back {
  using G = Geometry<T, panels>;
  static constexpr int row_groups = threads / warp_size * 16 / G::strip, rows = G::rows / row_groups;
  double x[4 * panels][4];

  static __device__ int column() { return static_cast<int>(threadIdx.x) / warp_size / row_groups * 16; }
  static __device__ int first_row() { return static_cast<int>(threadIdx.x) / warp_size % row_groups * rows; }

  __device__ explicit Back(const std::byte* s_w) {
    constexpr int w_column_bytes = panels * panel_cols * static_cast<int>(sizeof(double));
    using Pair = Vector<double, 2>;
    const Lane lane;
#pragma unroll
    for (int k = 0; k < 4 * panels; ++k) {
      const std::byte* const s_x = s_w + place<w_column_bytes>(column() + lane.g, 4 * k + lane.q);
      const auto upper = *reinterpret_cast<const Pair*>(s_x);
      const auto lower = *reinterpret_cast<const Pair*>(s_x + 8 * w_column_bytes);
      x[k][0] = upper.v[0], x[k][1] = lower.v[0], x[k][2] = upper.v[1], x[k][3] = lower.v[1];
    }
  }

  __device__ void multiply(const Share<T, panels>& s_share, const std::byte* stage, int tile) const {
    constexpr int element = static_cast<int>(sizeof(T));
    Lane lane;
    lane.g = anew(lane.g);  // not all addresses of a tile fit into registers
    const int left = s_share.c_cols - column();
    if (left <= 0) return;
    const bool whole = s_share.whole(tile) && left >= 16;  // and may be stored in pairs
    const std::byte* const s_c = stage + G::v_bytes + column() * G::column_bytes;
    const std::byte* const s_v = stage + 2 * lane.q * G::column_bytes;
    const int even = swizzle(2 * lane.q), odd = swizzle(2 * lane.q + 1);
    const std::int64_t step = 8 * s_share.ld;
    T* g_to = s_share.g_c + (column() + lane.g) * s_share.ld + s_share.tile_row(tile) + first_row() + 2 * lane.q;
#pragma unroll
    for (int i = 0; i < rows / 8; ++i, g_to += 8) {
      const int c_row = first_row() + 8 * i + 2 * lane.q, v_row = first_row() + 8 * i + lane.g;  // of the tile
      const int c_at = place<G::column_bytes>(lane.g, c_row / per_piece<T>) + c_row % per_piece<T> * element;
      const auto upper = *reinterpret_cast<const Vector<T, 2>*>(s_c + c_at);
      const auto lower = *reinterpret_cast<const Vector<T, 2>*>(s_c + 8 * G::column_bytes + c_at);
      double c[4] = {upper.v[0], upper.v[1], lower.v[0], lower.v[1]};
      const int piece = v_row / per_piece<T>, within = v_row % per_piece<T> * element;
      const int at_even = (piece ^ even) * piece_bytes + within, at_odd = (piece ^ odd) * piece_bytes + within;
#pragma unroll
      for (int k = 0; k < 4 * panels; ++k) {
        const std::byte* const s_k = s_v + 8 * k * G::column_bytes;
        const double b0 = *reinterpret_cast<const T*>(s_k + at_even);
        const double b1 = *reinterpret_cast<const T*>(s_k + G::column_bytes + at_odd);
        mma_16x8x8(c, x[k], b0, b1);
      }
      if (whole) {
        *reinterpret_cast<Vector<T, 2>*>(g_to) = {static_cast<T>(c[0]), static_cast<T>(c[1])};
        *reinterpret_cast<Vector<T, 2>*>(g_to + step) = {static_cast<T>(c[2]), static_cast<T>(c[3])};
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = s_share.tile_row(tile) + c_row + e % 2;
          if (row >= s_share.begin && row < s_share.end && lane.g + e / 2 * 8 < left)
            g_to[e / 2 * step + e % 2] = static_cast<T>(c[e]);
        }
      }
    }
  }
};

/// Launches `kernel` with a cluster for each task.
template <class T, class Kernel>
void launch_clusters(Kernel* kernel, int shared_bytes, const Launch& launch, const Fronts<Cuda, T>& fronts,
                     const FrontTasks<Cuda, FrontUpdateTask>& tasks, const char* name) {
  const int blocks = has_clusters() ? tasks.blocks : 1;
  const ClusterShape shape{dim3(static_cast<unsigned>(tasks.count * blocks)), threads, blocks, shared_bytes};
  launch_cluster(kernel, name, shape, launch.stream, launch.condition, fronts, tasks.tasks, blocks);
}

/// Checks what both launches must satisfy.
template <class T>
void check_update(const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks, const char* name) {
  detail::check(fronts.panel <= panel_cols, ErrorCode::invalid_argument, name, ": panels of ", fronts.panel,
                " columns, at most ", panel_cols, " are possible");
  detail::check(tasks.count <= 0x7fffffff / front_update_blocks, ErrorCode::invalid_argument, name, ": ", tasks.count,
                " tasks are too many for one launch");
  detail::check(tasks.blocks >= 1 && tasks.blocks <= front_update_blocks && (tasks.blocks & (tasks.blocks - 1)) == 0,
                ErrorCode::invalid_argument, name, ": ", tasks.blocks, " blocks for a task");
}

}  // namespace qrane::backend::cuda::front_update
