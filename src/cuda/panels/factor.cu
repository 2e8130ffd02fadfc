// SPDX-License-Identifier: Apache-2.0
// factor and factor_tree: Householder QR of every block of a panel, one CTA per block (panel.cuh says how).
// The two differ only in where a block's rows lie and in which of its elements are the panel's
// (vocabulary/panels.hpp).
//
// After Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs" (IPDPS 2011),
// section IV; the one-reduction column step and the scaling are this code's own.
//
// A few blocks of double by themselves, as the windows of updates are, have a kernel of their own with shorter steps.
//
// Reads and writes the panel once; T is written as a cols x cols square with zeros below the diagonal.
#include "cuda/collectives/panel.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/panels.hpp"

namespace qrane::backend::cuda {
namespace {

/// Thread map: thread t owns rows t + k * Threads. Shared memory: PanelShared, and V (dynamic).
template <class T, int NB, int Rows, int Threads, int Blocks, bool tree>
__global__ void __launch_bounds__(Threads, Blocks) factor_kernel(const std::int32_t* condition, Panel<Cuda, T> panel) {
  if (block_skipped(condition)) return;
  using Tile = PanelTile<T, NB, Rows, Threads>;
  __shared__ typename Tile::Shared shared;
  extern __shared__ __align__(16) unsigned char s_v[];

  const BlockTask task = panel.tasks[blockIdx.x];
  const BlockRows<tree> map(task);
  const int cols = task.cols;
  T* const g_a = panel.a.data + task.matrix * panel.a.stride + task.col * panel.a.ld;

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
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      tile.a[k][c] = c < cols && last[k] <= c ? g_column[at[k]] : T(0);
    }
  }
  tile.scale_columns();

  tile.factor(cols, map.rows);

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

constexpr int window_warps = 8, window_cols = 32;

/// The same for a few contiguous blocks that everything waits for, of up to Rows * 8 rows: steps as short as they can
/// be. Thread map: lane c has column c, warp w rows w, w + 8, .... A step broadcasts the pivot column within warps,
/// sums over the eight by one barrier, and with the sums for the columns at the right gets those for the finished ones,
/// which are the Gram matrix that T is made from. Norms and tau are rounded to nearest: a chain may meet the same
/// lengths thousands of times (off_unit in update/thin_q/rows.hpp), and a reciprocal root's error there would be the
/// same each time.
template <class T, int Rows>
__global__ void __launch_bounds__(32 * window_warps, 1)
    factor_window_kernel(const std::int32_t* condition, Panel<Cuda, T> panel) {
  if (block_skipped(condition)) return;
  __shared__ PanelShared<T, window_cols, window_warps> shared;
  const BlockTask task = panel.tasks[blockIdx.x];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size, cols = task.cols;
  T* const g_column = panel.a.data + task.matrix * panel.a.stride + task.row + (task.col + lane) * panel.a.ld;
  const auto row = [&](int r) { return r * window_warps + warp; };
  T a[Rows];
  int largest = 0;
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    a[r] = row(r) < task.rows && lane < cols ? g_column[row(r)] : T(0);
    largest = max(largest, magnitude(a[r]));
  }
  shared.largest[warp][lane] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < window_warps; ++w) largest = max(largest, shared.largest[w][lane]);
  const int exponent = scale_exponent<T>(largest);
  const T scale = Bits<T>::power_of_two(-exponent), unscale = Bits<T>::power_of_two(exponent);
#pragma unroll
  for (int r = 0; r < Rows; ++r) a[r] *= scale;

#pragma unroll
  for (int i = 0; i < window_cols / window_warps; ++i) {
    for (int w = 0; w < window_warps && i * window_warps + w < cols; ++w) {
      const int k = i * window_warps + w, buffer = k & 1;
      T x[Rows], even = T(0), odd = T(0);
#pragma unroll
      for (int r = i; r < Rows; ++r) {
        const T pivot = __shfl_sync(full_warp, a[r], k);
        x[r] = row(r) > k ? pivot : T(0);
        (r % 2 == 0 ? even : odd) = fma(x[r], a[r], r % 2 == 0 ? even : odd);
      }
      shared.partial[buffer][warp][lane] = even + odd;
      if (warp == w) shared.pivot_row[buffer][lane] = a[i];
      __syncthreads();
      T parts[window_warps];
#pragma unroll
      for (int v = 0; v < window_warps; ++v) parts[v] = shared.partial[buffer][v][lane];
      const T tail = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
      const T alpha = shared.pivot_row[buffer][k], pivot = shared.pivot_row[buffer][lane];
      const T tail_squares = __shfl_sync(full_warp, tail, k), squares = fma(alpha, alpha, tail_squares);
      const T norm = sqrt(squares);
      // Comparisons are written so that NaN makes a reflector of NaN rather than none.
      const bool reflects = k < task.rows && !(tail_squares == T(0)) && !(squares < negligible<T>);
      T beta = alpha, tau = T(0), inverse = T(0), dot = T(0);
      if (reflects) {
        beta = -copysign(norm, alpha);
        tau = T(1) + abs(alpha) / norm;  // (beta - alpha) / beta
        inverse = copysign(reciprocal(abs(alpha) + norm), alpha);
        dot = fma(tail, inverse, pivot);
      }
      if (warp == 0) {
        if (lane < k) shared.gram[k][lane] = dot;
        if (lane == k) shared.tau[k] = tau;
      }
      const T factor = lane > k ? -tau * dot : T(0);
#pragma unroll
      for (int r = i; r < Rows; ++r) {
        const T v = x[r] * inverse;
        if (row(r) > k && lane >= k) a[r] = lane == k ? v : fma(factor, v, a[r]);
      }
      if (warp == w && lane >= k) a[i] = lane == k ? beta : a[i] + factor;
    }
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r)
    if (row(r) < task.rows && lane < cols) g_column[row(r)] = row(r) <= lane ? a[r] * unscale : a[r];
  __syncthreads();
  if (warp == 0) build_t<T, window_cols>(shared, panel.t + task.t, panel.inner, cols);
}

/// Whether factor_window_kernel is the faster one for double: so few blocks that each has a multiprocessor to itself
/// (64 x 32 on an H200: 21 us instead of 27; float gains nothing).
template <class T>
bool is_window(const Panel<Cuda, T>& panel) {
  constexpr Index few = 16;
  return panel.task_count <= few && panel.max_cols > 8 && panel.max_rows <= 16 * window_warps;
}

template <class T>
void launch_window(const Launch& launch, const Panel<Cuda, T>& panel) {
  const auto kernel = panel.max_rows <= 8 * window_warps ? factor_window_kernel<T, 8> : factor_window_kernel<T, 16>;
  kernel<<<static_cast<unsigned>(panel.task_count), 32 * window_warps, 0, launch.stream>>>(launch.condition, panel);
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
  if constexpr (!tree && sizeof(T) == 8) {
    if (is_window(panel)) {
      launch_window(launch, panel);
      return check_launch(name);
    }
  }
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
void factor(const Queue& queue, const Panel<Cuda, T>& panel) {
  const Launch where(queue);
  launch<T, false>(where, panel, "factor");
}

template <class T>
void factor_tree(const Queue& queue, const Panel<Cuda, T>& panel) {
  const Launch where(queue);
  launch<T, true>(where, panel, "factor_tree");
}

template <class T>
std::int32_t max_block_rows() {
  return tallest_block<T>;
}

template void factor<float>(const Queue&, const Panel<Cuda, float>&);
template void factor<double>(const Queue&, const Panel<Cuda, double>&);
template void factor_tree<float>(const Queue&, const Panel<Cuda, float>&);
template void factor_tree<double>(const Queue&, const Panel<Cuda, double>&);
template std::int32_t max_block_rows<float>();
template std::int32_t max_block_rows<double>();

}  // namespace qrane::backend::cuda
