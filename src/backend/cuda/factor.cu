// SPDX-License-Identifier: Apache-2.0
// factor and factor_tree: Householder QR of every block of a panel, one CTA per block (panel.cuh says how).
// The two differ only in where a block's rows lie and in which of its elements are the panel's (backend/kernels.hpp).
//
// After Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS 2011),
// section IV; the one-reduction column step and the scaling are this code's own.
//
// Reads and writes the panel once; T is written as a cols x cols square with zeros below the diagonal.
#include "backend/cuda/panel.cuh"

namespace qrane::backend::cuda {
namespace {

/// Thread map: thread t owns rows t + k * Threads. Shared memory: PanelShared, and V (dynamic).
template <class T, int NB, int Rows, int Threads, int Blocks, bool tree>
__global__ void __launch_bounds__(Threads, Blocks) factor_kernel(const std::int32_t* condition, Panel<Cuda, T> panel) {
  if (skipped(condition)) return;
  using Tile = PanelTile<T, NB, Rows, Threads>;
  __shared__ typename Tile::Shared shared;
  extern __shared__ __align__(16) unsigned char s_v[];

  const BlockTask task = panel.tasks[blockIdx.x];
  const BlockRows<tree> map(task);
  const int cols = task.cols;
  T* const g_a = panel.a.data + task.matrix * panel.a.stride + task.col * panel.a.ld;
  const std::int32_t* heights =
      !tree && panel.staircase != nullptr && task.staircase >= 0 ? panel.staircase + task.staircase : nullptr;

  Tile tile(shared);
  std::int64_t at[Rows];  // rows of the matrix
  int last[Rows];         // the row's first column: columns left of it are not the panel's (tree), or all (no such row)
#pragma unroll
  for (int k = 0; k < Rows; ++k) {
    const int r = tile.row(k);
    at[k] = map.matrix_row(r);
    last[k] = r < map.rows ? (tree ? map.row_in_head(r) : 0) : NB;
  }
#pragma unroll
  for (int c = 0; c < NB; ++c) {
    const T* g_column = g_a + c * panel.a.ld;
    const int height = heights != nullptr && c < cols ? heights[c] : Rows * Threads;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      tile.a[k][c] = c < cols && last[k] <= c && tile.row(k) < height ? g_column[at[k]] : T(0);
    }
  }
  tile.scale_columns();

  std::int32_t* pivots = !tree && panel.pivots != nullptr
                             ? panel.pivots + static_cast<std::int64_t>(blockIdx.x) * panel.max_cols
                             : nullptr;
  const double drop_tolerance = pivots != nullptr ? panel.drop_tolerance : -1.0;
  tile.factor(cols, map.rows, drop_tolerance, pivots);

  const std::int64_t ld = anew(panel.a.ld);
#pragma unroll
  for (int position = 0; position < NB; ++position) {
    const int c = tile.finished_column(position);
    T* g_column = g_a + c * ld;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      if (c < cols && last[k] <= c) g_column[at[k]] = tile.a[k][position];
    }
  }
  tile.gram(cols, reinterpret_cast<T*>(s_v));
  if (tile.warp == 0) build_t<T, NB>(shared, panel.t + task.t, panel.inner, cols);
}

template <class T, int NB, int Rows, int Threads, int Blocks, bool tree>
void launch_shape(const Launch& launch, const Panel<Cuda, T>& panel) {
  const unsigned grid = static_cast<unsigned>(panel.task_count);
  const std::size_t bytes = sizeof(T) * NB * (Rows * Threads + VTile<T>::slack);
  const auto kernel = factor_kernel<T, NB, Rows, Threads, Blocks, tree>;
  allow_shared_memory(kernel, bytes, "factor");
  kernel<<<grid, Threads, bytes, launch.stream>>>(launch.condition, panel);
}

/// The smallest CTA that holds the tallest block: fewer warps wait at each barrier.
template <class T, int NB, bool tree>
void launch_width(const Launch& launch, const Panel<Cuda, T>& panel) {
  constexpr bool single = sizeof(T) == 4;
  constexpr bool narrow = NB < 32;
  if (panel.max_rows <= 64) {
    launch_shape<T, NB, 1, 64, single ? 8 : 6, tree>(launch, panel);
  } else if (panel.max_rows <= 128) {
    launch_shape<T, NB, single ? 2 : 1, single ? 64 : 128, single ? 8 : 3, tree>(launch, panel);
  } else if (panel.max_rows <= 256) {
    launch_shape<T, NB, narrow ? 4 : 2, narrow ? 64 : 128, (single ? 4 : 2) * (narrow ? 2 : 1), tree>(launch, panel);
  } else if constexpr (single) {
    launch_shape<T, NB, narrow ? 4 : 2, narrow ? 128 : 256, narrow ? 4 : 2, tree>(launch, panel);
  }
}

template <class T, bool tree>
void launch(const Launch& launch, const Panel<Cuda, T>& panel, const char* name) {
  if (panel.task_count == 0 || panel.max_cols == 0) return;
  check_panel(panel, name, tallest_block<T>);
  detail::check(panel.task_count <= 0x7fffffff, ErrorCode::invalid_argument, name, ": ", panel.task_count,
                " tasks, at most 2147483647 are possible");
  if (panel.max_cols <= 8) {
    launch_width<T, 8, tree>(launch, panel);
  } else if (panel.max_cols <= 16) {
    launch_width<T, 16, tree>(launch, panel);
  } else {
    launch_width<T, 32, tree>(launch, panel);
  }
  check_launch(name);
}

}  // namespace

template <class T>
void launch_factor(const Launch& where, const Panel<Cuda, T>& panel) {
  launch<T, false>(where, panel, "factor");
}

template <class T>
void launch_factor_tree(const Launch& where, const Panel<Cuda, T>& panel) {
  launch<T, true>(where, panel, "factor_tree");
}

template <class T>
std::int32_t max_block_rows() {
  return tallest_block<T>;
}

template void launch_factor<float>(const Launch&, const Panel<Cuda, float>&);
template void launch_factor<double>(const Launch&, const Panel<Cuda, double>&);
template void launch_factor_tree<float>(const Launch&, const Panel<Cuda, float>&);
template void launch_factor_tree<double>(const Launch&, const Panel<Cuda, double>&);
template std::int32_t max_block_rows<float>();
template std::int32_t max_block_rows<double>();

}  // namespace qrane::backend::cuda
