// SPDX-License-Identifier: Apache-2.0
// apply_qt_h and apply_qt_tree: C := (I - V op(T) V^T) C for the rows of every block, op(T) = T^T for Q^T.
//
// After Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS 2011),
// section IV. Here C stays in registers between its two uses, as tiles of C^T in the tensor cores' accumulator order:
//     W^T = C^T V,   W^T := -W^T op(T)^T,   C^T += W^T V^T
// so C is read and written once, and each result is the next product's operand where it lies (tile_mma.cuh).
//
//            16 columns        A warp holds `tile_rows` rows of 16 columns of C. The CTA's warps form a grid of
//          | w0 | w2 | w4 |    row groups (down) by column groups (across); V lies in shared memory for all of them;
//     rows | w1 | w3 | w5 |    the row groups' parts of W^T are added through shared memory in a fixed order.
//
// Columns of C are scaled to a largest magnitude near 1 by exact powers of two and scaled back at the end, so that
// neither the products nor their low parts (float: 3xTF32) over- or underflow.
//
// Cost per block: 4 rows NB columns flops, and reading V once per `columns_per_cta` columns of C.
#include <algorithm>

#include "backend/cuda/tile_mma.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int warp_columns = 16;

template <class T>
constexpr int tile_rows = sizeof(T) == 4 ? 128 : 64;

/// Sizes of one launch; the shared memory of a CTA is V, T, the parts of W^T, and the parts of the column maxima.
template <class T, int NB>
struct ApplyShape {
  int row_groups;
  int column_groups;

  static constexpr int t_ld = NB + 8;

  __host__ __device__ int rows() const { return row_groups * tile_rows<T>; }
  __host__ __device__ int warps() const { return row_groups * column_groups; }
  __host__ __device__ int v_ld() const { return rows() + VTile<T>::slack; }
  __host__ __device__ int v_size() const { return NB * v_ld(); }
  __host__ __device__ int t_size() const { return NB * t_ld; }
  __host__ __device__ int w_size() const { return row_groups > 1 ? warps() * warp_columns * NB : 0; }
  __host__ __device__ int max_size() const { return warps() * warp_columns; }
  std::size_t bytes() const { return sizeof(T) * static_cast<std::size_t>(v_size() + t_size() + w_size() + max_size()); }
};

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

/// Two neighbours in shared memory, aligned as a pair.
template <class T>
__device__ void load_pair(T (&to)[2], const T* s_from) {
  const auto pair = *reinterpret_cast<const Pair<T>*>(s_from);
  to[0] = pair.x;
  to[1] = pair.y;
}

/// A warp's part of C^T: c[i] is the 16 x 8 tile of rows first_row + 8 i .. + 7. A lane's pairs of rows of columns g
/// and g + 8 (tile_mma.cuh).
template <class T, bool tree>
struct WarpTile {
  static constexpr int tiles = tile_rows<T> / 8;

  T c[tiles][4];
  const BlockRows<tree>& map;
  T* g_c[2];        // the lane's two columns
  bool exists[2];   // whether C has them
  int first_row;    // the lane's first row of tile 0
  bool paired;      // pairs of rows may be moved as one aligned vector

  __device__ explicit WarpTile(const BlockRows<tree>& rows) : map(rows) {}

  __device__ void load() {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const int r = first_row + 8 * i;
      const std::int64_t at = map.matrix_row(r);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        T x = 0, y = 0;
        if (exists[h] && r < map.rows) {
          if (paired && r + 1 < map.rows) {
            const auto pair = *reinterpret_cast<const Pair<T>*>(g_c[h] + at);
            x = pair.x;
            y = pair.y;
          } else {
            x = g_c[h][at];
            if (r + 1 < map.rows) y = g_c[h][map.matrix_row(r + 1)];
          }
        }
        c[i][2 * h] = x;
        c[i][2 * h + 1] = y;
      }
    }
  }

  __device__ void store(const T (&unscale)[2]) {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const int r = first_row + 8 * i;
      const std::int64_t at = map.matrix_row(r);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const T x = c[i][2 * h] * unscale[h], y = c[i][2 * h + 1] * unscale[h];
        if (exists[h] && r < map.rows) {
          if (paired && r + 1 < map.rows) {
            *reinterpret_cast<Pair<T>*>(g_c[h] + at) = Pair<T>{x, y};
          } else {
            g_c[h][at] = x;
            if (r + 1 < map.rows) g_c[h][map.matrix_row(r + 1)] = y;
          }
        }
      }
    }
  }

  /// Largest magnitudes of the lane's two columns within this warp's rows, equal in the four lanes that share them.
  __device__ void largest(T (&most)[2]) const {
    most[0] = most[1] = T(0);
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) most[e / 2] = larger(most[e / 2], static_cast<T>(abs(c[i][e])));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      most[h] = larger(most[h], __shfl_xor_sync(full_warp, most[h], 1));
      most[h] = larger(most[h], __shfl_xor_sync(full_warp, most[h], 2));
    }
  }

  __device__ void scale(const T (&by)[2]) {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) c[i][e] *= by[e / 2];
    }
  }
};

/// V of one block into shared memory: the stored tails, ones at the pivots, zeros elsewhere.
template <class T, bool tree>
__device__ void load_v(VTile<T> s_v, int columns, int padded_rows, const BlockRows<tree>& map, const T* g_v,
                       std::int64_t ld, int cols, const std::int32_t* pivots) {
  const int lane = threadIdx.x % warp_size;
  for (int c = threadIdx.x / warp_size; c < columns; c += blockDim.x / warp_size) {
    T* s_column = s_v.column(c);
    const T* g_column = g_v + c * ld;
    const bool exists = c < cols;
    const int pivot = exists && pivots != nullptr ? pivots[c] : c;
    const bool reflects = exists && pivot >= 0;
#pragma unroll 8
    for (int r = lane; r < padded_rows; r += warp_size) {
      const bool stored = tree ? r >= map.head && map.row_in_head(r) <= c : r > pivot;
      T value = r == pivot && reflects ? T(1) : T(0);
      if (reflects && stored && r < map.rows) value = g_column[map.matrix_row(r)];
      s_column[r] = value;
    }
  }
}

/// s_t(k, n) = -op(T)^T, the right factor of W^T, stored at n * ld + k with zeros up to NB.
template <class T, int NB>
__device__ void load_t(T* s_t, int s_ld, const T* g_t, int ld, int cols, bool transposed) {
  for (int e = threadIdx.x; e < NB * NB; e += blockDim.x) {
    const int i = e % NB, j = e / NB;
    const T value = i <= j && j < cols ? -g_t[i + static_cast<std::int64_t>(j) * ld] : T(0);
    s_t[transposed ? j * s_ld + i : i * s_ld + j] = value;
  }
}

/// Thread map: warp w is row group w % row_groups of column group w / row_groups.
template <class T, int NB, bool tree>
__global__ void __launch_bounds__(256, 2)
    apply_kernel(const std::int32_t* condition, Apply<Cuda, T> apply, ApplyShape<T, NB> shape, int column_tiles) {
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char s_bytes[];
  const VTile<T> s_v{reinterpret_cast<T*>(s_bytes), shape.v_ld()};
  T* const s_t = s_v.data + shape.v_size();
  T* const s_w = s_t + shape.t_size();
  T* const s_max = s_w + shape.w_size();

  const int index = blockIdx.x / column_tiles;
  const Panel<Cuda, T>& panel = apply.panel;
  const BlockTask task = panel.tasks[index];
  const BlockRows<tree> map(task);
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int row_group = warp % shape.row_groups, column_group = warp / shape.row_groups;
  const int g = lane / 4, q = lane % 4;

  WarpTile<T, tree> tile(map);
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x % column_tiles) * shape.column_groups + column_group) * warp_columns + g;
  T* const g_c = apply.c.data + task.matrix * apply.c.stride;
  for (int h = 0; h < 2; ++h) {
    tile.g_c[h] = g_c + (column + 8 * h) * apply.c.ld;
    tile.exists[h] = column + 8 * h < apply.c.cols;
  }
  tile.first_row = row_group * tile_rows<T> + 2 * q;
  tile.paired = apply.c.ld % 2 == 0 && reinterpret_cast<std::uintptr_t>(g_c + map.first) % (2 * sizeof(T)) == 0 &&
                (!tree || (map.head % 2 == 0 && map.jump % 2 == 0));
  tile.load();

  const std::int32_t* pivots = !tree && panel.pivots != nullptr
                                   ? panel.pivots + static_cast<std::int64_t>(index) * panel.max_cols
                                   : nullptr;
  load_v(s_v, NB, shape.rows(), map, panel.a.data + task.matrix * panel.a.stride + task.col * panel.a.ld, panel.a.ld,
         task.cols, pivots);
  load_t<T, NB>(s_t, shape.t_ld, panel.t + task.t, panel.inner, task.cols, apply.op == Op::transpose);

  T most[2], by[2], unscale[2];
  tile.largest(most);
  if (q == 0) {
    for (int h = 0; h < 2; ++h) s_max[warp * warp_columns + g + 8 * h] = most[h];
  }
  __syncthreads();
  for (int h = 0; h < 2; ++h) {
    for (int w = column_group * shape.row_groups; w < (column_group + 1) * shape.row_groups; ++w) {
      most[h] = larger(most[h], s_max[w * warp_columns + g + 8 * h]);
    }
    const int exponent = scale_exponent(most[h]);
    by[h] = Bits<T>::power_of_two(-exponent);
    unscale[h] = Bits<T>::power_of_two(exponent);
  }
  tile.scale(by);

  // W^T = C^T V over this warp's rows
  constexpr int parts = NB / 8;
  T w[parts][4] = {};
#pragma unroll
  for (int i = 0; i < tile.tiles; ++i) {
    const auto a = TileMma<T>::prepare(tile.c[i]);
#pragma unroll
    for (int n = 0; n < parts; ++n) {
      T b[2];
      load_pair(b, s_v.column(8 * n + g) + tile.first_row + 8 * i);
      TileMma<T>::multiply(w[n], a, b);
    }
  }
  if (shape.row_groups > 1) {
    #pragma unroll
    for (int n = 0; n < parts; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) s_w[((warp * parts + n) * 4 + e) * warp_size + lane] = w[n][e];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < parts; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) w[n][e] = T(0);
    }
    for (int other = column_group * shape.row_groups; other < (column_group + 1) * shape.row_groups; ++other) {
#pragma unroll
      for (int n = 0; n < parts; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) w[n][e] += s_w[((other * parts + n) * 4 + e) * warp_size + lane];
      }
    }
  }

  // W^T := -W^T op(T)^T
  T u[parts][4] = {};
#pragma unroll
  for (int k = 0; k < parts; ++k) {
    const auto a = TileMma<T>::prepare(w[k]);
#pragma unroll
    for (int n = 0; n < parts; ++n) {
      T b[2];
      load_pair(b, s_t + (8 * n + g) * shape.t_ld + 8 * k + 2 * q);
      TileMma<T>::multiply(u[n], a, b);
    }
  }

  // C^T += W^T V^T
#pragma unroll
  for (int k = 0; k < parts; ++k) {
    const auto a = TileMma<T>::prepare(u[k]);
    const T* left = s_v.column(8 * k + 2 * q) + row_group * tile_rows<T> + g;
    const T* right = s_v.column(8 * k + 2 * q + 1) + row_group * tile_rows<T> + g;
#pragma unroll
    for (int i = 0; i < tile.tiles; ++i) {
      const T b[2] = {left[8 * i], right[8 * i]};
      TileMma<T>::multiply(tile.c[i], a, b);
    }
  }
  tile.store(unscale);
}

/// CTAs of at most eight warps, fewer when C is narrow.
template <class T, int NB, bool tree>
void launch_width(const Launch& launch, const Apply<Cuda, T>& apply, const char* name) {
  const int row_groups = std::max(1, (apply.panel.max_rows + tile_rows<T> - 1) / tile_rows<T>);
  const Index groups = (apply.c.cols + warp_columns - 1) / warp_columns;
  const ApplyShape<T, NB> shape{row_groups, static_cast<int>(std::min<Index>(std::max(1, 8 / row_groups), groups))};
  const Index column_tiles = (groups + shape.column_groups - 1) / shape.column_groups;
  const Index grid = column_tiles * apply.panel.task_count;
  detail::check(grid <= 0x7fffffff, ErrorCode::invalid_argument, name, ": ", apply.panel.task_count, " tasks of ",
                apply.c.cols, " columns are too many for one launch");
  const auto kernel = apply_kernel<T, NB, tree>;
  allow_shared_memory(kernel, shape.bytes(), name);
  kernel<<<static_cast<unsigned>(grid), static_cast<unsigned>(shape.warps() * warp_size), shape.bytes(),
           launch.stream>>>(launch.condition, apply, shape, static_cast<int>(column_tiles));
}

template <class T, bool tree>
void launch(const Launch& launch, const Apply<Cuda, T>& apply, const char* name) {
  const Panel<Cuda, T>& panel = apply.panel;
  if (panel.task_count == 0 || panel.max_cols == 0 || panel.max_rows == 0 || apply.c.cols == 0) return;
  check_panel(panel, name, tallest_block<T>);
  if (panel.max_cols <= 8) {
    launch_width<T, 8, tree>(launch, apply, name);
  } else if (panel.max_cols <= 16) {
    launch_width<T, 16, tree>(launch, apply, name);
  } else {
    launch_width<T, 32, tree>(launch, apply, name);
  }
  check_launch(name);
}

}  // namespace

template <class T>
void launch_apply_qt_h(const Launch& where, const Apply<Cuda, T>& apply) {
  launch<T, false>(where, apply, "apply_qt_h");
}

template <class T>
void launch_apply_qt_tree(const Launch& where, const Apply<Cuda, T>& apply) {
  launch<T, true>(where, apply, "apply_qt_tree");
}

template void launch_apply_qt_h<float>(const Launch&, const Apply<Cuda, float>&);
template void launch_apply_qt_h<double>(const Launch&, const Apply<Cuda, double>&);
template void launch_apply_qt_tree<float>(const Launch&, const Apply<Cuda, float>&);
template void launch_apply_qt_tree<double>(const Launch&, const Apply<Cuda, double>&);

}  // namespace qrane::backend::cuda
