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
// Cost per block: 4 rows NB columns flops. A CTA reads V and T once, asynchronously, and walks over tiles of columns.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "cuda/collectives/tile_mma.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/panels.hpp"

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
  int column_tiles;  // tiles of 16 * column_groups columns
  int ctas;          // CTAs per block: CTA k walks over tiles k, k + ctas, ...

  static constexpr int t_ld = NB + 8;

  __host__ __device__ int rows() const { return row_groups * tile_rows<T>; }
  __host__ __device__ int warps() const { return row_groups * column_groups; }
  __host__ __device__ int v_ld() const { return rows() + VTile<T>::slack; }
  __host__ __device__ int v_size() const { return NB * v_ld(); }
  __host__ __device__ int t_size() const { return NB * t_ld; }
  __host__ __device__ int w_size() const { return warps() * warp_columns * NB; }
  __host__ __device__ int max_size() const { return warps() * warp_columns; }
  std::size_t bytes() const {
    return sizeof(T) * static_cast<std::size_t>(v_size() + t_size() + w_size()) + sizeof(int) * max_size();
  }
};

/// A warp's part of C^T: c[i] is the 16 x 8 tile of rows first_row + 8 i .. + 7, in the order of tile_mma.cuh: a lane
/// holds pairs of rows of two columns.
template <class T, bool tree>
struct WarpTile {
  static constexpr int tiles = tile_rows<T> / 8;

  T c[tiles][4];
  const BlockRows<tree>& map;
  T* g_c;  // the lane's first column; its second is 8 columns on
  std::int64_t ld;
  int columns_left;  // columns of C from the lane's first on
  int first_row;     // the lane's first row of tile 0
  int exponent[2];   // the lane's columns are scaled by 2^-exponent
  bool paired;       // pairs of rows may be moved as one aligned vector

  __device__ explicit WarpTile(const BlockRows<tree>& rows) : map(rows) {}

  __device__ bool exists(int h) const { return columns_left > 8 * h; }

  /// Whether all of the tile is C's and may be moved as pairs; equal in all lanes of the warp.
  __device__ bool whole() const {
    const bool mine = paired && columns_left > 8 && first_row + 8 * (tiles - 1) + 1 < map.rows;
    return __all_sync(full_warp, mine);
  }

  __device__ void load() {
    const BlockRows<tree> rows = map.anew();
    if (whole()) {
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        const T* g_pair = g_c + rows.matrix_row(first_row + 8 * i);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const auto pair = *reinterpret_cast<const Pair<T>*>(g_pair + 8 * h * ld);
          c[i][2 * h] = pair.x;
          c[i][2 * h + 1] = pair.y;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        const int row = anew(first_row) + 8 * i;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = row + e % 2;
          c[i][e] = exists(e / 2) && r < rows.rows ? g_c[e / 2 * 8 * ld + rows.matrix_row(r)] : T(0);
        }
      }
    }
  }

  __device__ void store() {
    const BlockRows<tree> rows = map.anew();
    const T unscale[2] = {Bits<T>::power_of_two(exponent[0]), Bits<T>::power_of_two(exponent[1])};
    if (whole()) {
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        T* g_pair = g_c + rows.matrix_row(first_row + 8 * i);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          *reinterpret_cast<Pair<T>*>(g_pair + 8 * h * ld) =
              Pair<T>{c[i][2 * h] * unscale[h], c[i][2 * h + 1] * unscale[h]};
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < tiles; ++i) {
        const int row = anew(first_row) + 8 * i;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int r = row + e % 2;
          if (exists(e / 2) && r < rows.rows) g_c[e / 2 * 8 * ld + rows.matrix_row(r)] = c[i][e] * unscale[e / 2];
        }
      }
    }
  }

  /// Largest magnitudes of the lane's two columns within this warp's rows, equal in the four lanes that share them.
  __device__ void largest(int (&most)[2]) const {
    most[0] = most[1] = 0;
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) most[e / 2] = max(most[e / 2], magnitude(c[i][e]));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      most[h] = max(most[h], __shfl_xor_sync(full_warp, most[h], 1));
      most[h] = max(most[h], __shfl_xor_sync(full_warp, most[h], 2));
    }
  }

  /// Scales columns whose largest magnitudes are `most`.
  __device__ void scale(const int (&most)[2]) {
    T by[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      exponent[h] = scale_exponent<T>(most[h]);
      by[h] = Bits<T>::power_of_two(-exponent[h]);
    }
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) c[i][e] *= by[e / 2];
    }
  }
};

/// V of one block into shared memory: the stored tails, ones at the reflectors' heads, zeros elsewhere. Asynchronous.
template <class T, bool tree>
__device__ void load_v(VTile<T> s_v, int columns, int padded_rows, const BlockRows<tree>& map, const T* g_v,
                       std::int64_t ld, int cols) {
  const int lane = threadIdx.x % warp_size;
  for (int c = threadIdx.x / warp_size; c < columns; c += blockDim.x / warp_size) {
    T* s_column = s_v.column(c);
    const T* g_column = g_v + c * ld;
    const bool reflects = c < cols;
#pragma unroll 4
    for (int r = lane; r < padded_rows; r += warp_size) {
      const bool stored = tree ? r >= map.head && map.row_in_head(r) <= c : r > c;
      if (reflects && stored && r < map.rows) {
        __pipeline_memcpy_async(s_column + r, g_column + map.matrix_row(r), sizeof(T));
      } else {
        s_column[r] = r == c && reflects ? T(1) : T(0);
      }
    }
  }
}

/// s_t(k, n) = op(T)^T, the right factor of W^T, stored at n * s_ld + k with zeros up to NB. Asynchronous.
template <class T, int NB>
__device__ void load_t(T* s_t, int s_ld, const T* g_t, int ld, int cols, bool transposed) {
  for (int e = threadIdx.x; e < NB * NB; e += blockDim.x) {
    const int i = e % NB, j = e / NB;
    T* s_to = s_t + (transposed ? j * s_ld + i : i * s_ld + j);
    if (i <= j && j < cols) {
      __pipeline_memcpy_async(s_to, g_t + i + static_cast<std::int64_t>(j) * ld, sizeof(T));
    } else {
      *s_to = T(0);
    }
  }
}

/// W^T = C^T V over the warp's rows.
template <class T, int parts, bool tree>
__device__ void multiply_v(T (&w)[parts][4], const WarpTile<T, tree>& tile, VTile<T> s_v) {
  const int g = threadIdx.x % warp_size / 4;
#pragma unroll
  for (int n = 0; n < parts; ++n) w[n][0] = w[n][1] = w[n][2] = w[n][3] = T(0);
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
}

/// Adds the parts of W^T that the row groups of one column group hold, in their order.
template <class T, int parts>
__device__ void sum_row_groups(T (&w)[parts][4], T* s_w, int warp, int first, int row_groups) {
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int n = 0; n < parts; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) s_w[((warp * parts + n) * 4 + e) * warp_size + lane] = w[n][e];
  }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < parts; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      T sum = s_w[((first * parts + n) * 4 + e) * warp_size + lane];
      for (int k = 1; k < row_groups; ++k) sum += s_w[(((first + k) * parts + n) * 4 + e) * warp_size + lane];
      w[n][e] = sum;
    }
  }
}

/// W^T := -W^T op(T)^T in place: part n needs the parts up to n of an upper triangular factor, those from n on of a
/// lower one.
template <class T, int parts, bool upper>
__device__ void multiply_t(T (&w)[parts][4], const T* s_t, int s_ld) {
  const int g = threadIdx.x % warp_size / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int step = 0; step < parts; ++step) {
    const int n = upper ? parts - 1 - step : step;
    T sum[4] = {};
#pragma unroll
    for (int k = upper ? 0 : n; k < (upper ? n + 1 : parts); ++k) {
      T b[2];
      load_pair(b, s_t + (8 * n + g) * s_ld + 8 * k + 2 * q);
      TileMma<T>::multiply(sum, TileMma<T>::prepare(w[k]), b);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) w[n][e] = -sum[e];
  }
}

/// C^T += W^T V^T.
template <class T, int parts, bool tree>
__device__ void add_product(WarpTile<T, tree>& tile, const T (&w)[parts][4], VTile<T> s_v) {
  const int g = threadIdx.x % warp_size / 4, q = threadIdx.x % 4;
  const int row = tile.first_row - 2 * q + g;
#pragma unroll
  for (int k = 0; k < parts; ++k) {
    const auto a = TileMma<T>::prepare(w[k]);
    const T* s_left = s_v.column(8 * k + 2 * q) + row;
    const T* s_right = s_v.column(8 * k + 2 * q + 1) + row;
#pragma unroll
    for (int i = 0; i < tile.tiles; ++i) {
      const T b[2] = {s_left[8 * i], s_right[8 * i]};
      TileMma<T>::multiply(tile.c[i], a, b);
    }
  }
}

/// Thread map: warp w is row group w % row_groups of column group w / row_groups.
template <class T, int NB, bool tree>
__global__ void __launch_bounds__(256, 2)
    apply_kernel(const std::int32_t* condition, Apply<Cuda, T> apply, ApplyShape<T, NB> shape) {
  if (block_skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char s_bytes[];
  const VTile<T> s_v{reinterpret_cast<T*>(s_bytes), shape.v_ld()};
  T* const s_t = s_v.data + shape.v_size();
  T* const s_w = s_t + shape.t_size();
  int* const s_max = reinterpret_cast<int*>(s_w + shape.w_size());

  const int index = blockIdx.x / shape.ctas;
  const Panel<Cuda, T>& panel = apply.panel;
  const BlockTask task = panel.tasks[index];
  const BlockRows<tree> map(task);
  const bool transposed = apply.op == Op::transpose;
  load_v(s_v, NB, shape.rows(), map, panel.a.data + task.matrix * panel.a.stride + task.col * panel.a.ld, panel.a.ld,
         task.cols);
  load_t<T, NB>(s_t, shape.t_ld, panel.t + task.t, panel.inner, task.cols, transposed);
  __pipeline_commit();

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int row_group = warp % shape.row_groups, column_group = warp / shape.row_groups;
  const int first_warp = warp - row_group;  // of this column group
  const int g = lane / 4, q = lane % 4;
  T* const g_c = apply.c.data + task.matrix * apply.c.stride;
  WarpTile<T, tree> tile(map);
  tile.ld = apply.c.ld;
  tile.first_row = row_group * tile_rows<T> + 2 * q;
  tile.paired = apply.c.ld % 2 == 0 && reinterpret_cast<std::uintptr_t>(g_c + map.first) % (2 * sizeof(T)) == 0 &&
                (!tree || (map.head % 2 == 0 && map.jump % 2 == 0));

  for (int k = blockIdx.x % shape.ctas; k < shape.column_tiles; k += shape.ctas) {
    const std::int64_t first = (static_cast<std::int64_t>(k) * shape.column_groups + column_group) * warp_columns;
    const bool active = first < apply.c.cols;  // idle warps only meet the others at barriers
    tile.g_c = g_c + (first + g) * tile.ld;
    tile.columns_left = static_cast<int>(min(apply.c.cols - first, Index(warp_columns))) - g;
    int most[2];
    T w[NB / 8][4];
    if (active) {
      tile.load();
      tile.largest(most);
      if (q == 0) {
        for (int h = 0; h < 2; ++h) s_max[warp * warp_columns + g + 8 * h] = most[h];
      }
    }
    __pipeline_wait_prior(0);  // V and T, the first time
    __syncthreads();
    if (active) {
      for (int h = 0; h < 2; ++h) {
        for (int r = 0; r < shape.row_groups; ++r) {
          most[h] = max(most[h], s_max[(first_warp + r) * warp_columns + g + 8 * h]);
        }
      }
      tile.scale(most);
      multiply_v(w, tile, s_v);
    }
    // All warps of a CTA pass this barrier; it also keeps the next tile's maxima from overtaking this one's.
    sum_row_groups(w, s_w, warp, first_warp, shape.row_groups);
    if (active) {
      if (transposed) {
        multiply_t<T, NB / 8, true>(w, s_t, shape.t_ld);
      } else {
        multiply_t<T, NB / 8, false>(w, s_t, shape.t_ld);
      }
      add_product(tile, w, s_v);
      tile.store();
    }
  }
}

/// CTAs of at most eight warps, fewer when C is narrow; more than one per block where there are few blocks.
template <class T, int NB, bool tree>
void launch_width(const Launch& launch, const Apply<Cuda, T>& apply, const char* name) {
  constexpr Index plenty = 1024;  // CTAs that keep any device busy
  const int row_groups = (apply.panel.max_rows + tile_rows<T> - 1) / tile_rows<T>;
  const Index groups = (apply.c.cols + warp_columns - 1) / warp_columns;
  const Index most_groups = std::max(1, 8 / row_groups);
  const Index tiles = (groups + most_groups - 1) / most_groups;
  const Index ctas = std::clamp<Index>((plenty + apply.panel.task_count - 1) / apply.panel.task_count, 1, tiles);
  const Index grid = ctas * apply.panel.task_count;
  detail::check(grid <= 0x7fffffff && tiles <= 0x7fffffff, ErrorCode::invalid_argument, name, ": ",
                apply.panel.task_count, " tasks of ", apply.c.cols, " columns are too many for one launch");
  const ApplyShape<T, NB> shape{row_groups, static_cast<int>((groups + tiles - 1) / tiles), static_cast<int>(tiles),
                                static_cast<int>(ctas)};
  const auto kernel = apply_kernel<T, NB, tree>;
  allow_shared_memory(kernel, shape.bytes(), name);
  kernel<<<static_cast<unsigned>(grid), static_cast<unsigned>(shape.warps() * warp_size), shape.bytes(),
           launch.stream>>>(launch.condition, apply, shape);
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
void apply_qt_h(const Queue& queue, const Apply<Cuda, T>& apply) {
  const Launch where(queue);
  launch<T, false>(where, apply, "apply_qt_h");
}

template <class T>
void apply_qt_tree(const Queue& queue, const Apply<Cuda, T>& apply) {
  const Launch where(queue);
  launch<T, true>(where, apply, "apply_qt_tree");
}

template void apply_qt_h<float>(const Queue&, const Apply<Cuda, float>&);
template void apply_qt_h<double>(const Queue&, const Apply<Cuda, double>&);
template void apply_qt_tree<float>(const Queue&, const Apply<Cuda, float>&);
template void apply_qt_tree<double>(const Queue&, const Apply<Cuda, double>&);

}  // namespace qrane::backend::cuda
