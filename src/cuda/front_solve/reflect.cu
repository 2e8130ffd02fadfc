// SPDX-License-Identifier: Apache-2.0
// reflect_front_lines, multiply_front_panels, update_front_lines: C := (I - V op(T) Vᵀ) C for a panel of a front. A
// block of threads has a part of the panel's rows and up to `tile` right-hand sides (grid.y).
//
// Vᵀ C: warp w goes down columns 4 w .. 4 w + 3 of V, lane l having rows l, l + 32, ...; C goes through shared memory,
// and sums are brought together at the end. C - V W: a thread has a row. V is read twice for each tile, C twice and
// written once.
#include "cuda/collectives/tile.cuh"
#include "cuda/front_solve/line_tiles.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256, warps = threads / warp_size;
constexpr int most_panel = 32, warp_cols = most_panel / warps;
constexpr int chunk = 128;  // rows in shared memory at a time

template <class T, int tile>
struct Memory {
  T lines[chunk][tile + 1];
  T products[most_panel][tile];  // Vᵀ C, or what the parts of it add up to
  T w[most_panel][tile];         // op(T) of it
  T t[most_panel][most_panel + 1];
};

/// A panel and the lines of its rows.
template <class T>
struct Panel {
  const FrontReflect<Cuda, T>& f;
  FrontPanelState state;
  int cols;  // 0: nothing to do
  std::int64_t ld;
  const T *v, *t;
  const std::int32_t* ids;

  __device__ Panel(const FrontReflect<Cuda, T>& reflect, int front, int panel) : f(reflect) {
    const FrontShape& shape = f.shapes[front];
    state = f.panels[shape.panels + panel];
    const int begin = panel * f.panel;
    cols = state.live > 0 ? min(f.panel, shape.cols - begin) : 0;
    ld = shape.ld;
    v = f.storage + shape.matrix + begin * ld + state.first_row;
    t = f.storage + shape.t + static_cast<std::int64_t>(begin) * f.panel;
    ids = f.row_ids + shape.row_ids + state.first_row;
  }
  __device__ T* line(int i) const { return f.lines + static_cast<std::int64_t>(ids[i]) * f.cols; }
};

/// s.products := Vᵀ C of rows [first, last). Ends with a barrier.
template <class T, int tile>
__device__ void multiply(const Panel<T>& panel, int first, int last, int c0, Memory<T, tile>& s) {
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  T sums[warp_cols][tile];
#pragma unroll
  for (int j = 0; j < warp_cols; ++j)
#pragma unroll
    for (int c = 0; c < tile; ++c) sums[j][c] = 0;
  for (int i0 = first; i0 < last; i0 += chunk) {
    __syncthreads();
    for (int e = threadIdx.x; e < chunk * tile; e += threads) {
      const int i = i0 + e / tile, c = c0 + e % tile;
      s.lines[e / tile][e % tile] = i < last && c < panel.f.cols ? panel.line(i)[c] : T(0);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < chunk / warp_size; ++k) {
      const int i = lane + k * warp_size;
#pragma unroll
      for (int j = 0; j < warp_cols; ++j) {
        const int col = warp * warp_cols + j;
        const T v = i0 + i < last && col < panel.cols ? panel.v[i0 + i + col * panel.ld] : T(0);
#pragma unroll
        for (int c = 0; c < tile; ++c) sums[j][c] += v * s.lines[i][c];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < warp_cols; ++j)
#pragma unroll
    for (int c = 0; c < tile; ++c) {
      T sum = sums[j][c];
#pragma unroll
      for (int width = warp_size / 2; width > 0; width /= 2) sum += __shfl_xor_sync(full_warp, sum, width);
      if (lane == 0) s.products[warp * warp_cols + j][c] = sum;
    }
  __syncthreads();
}

/// C of rows [first, last) -= V op(T) s.products. Begins behind a barrier.
template <class T, int tile>
__device__ void subtract(const Panel<T>& panel, int first, int last, int c0, Op op, Memory<T, tile>& s) {
  const int n = panel.cols;
  for (int e = threadIdx.x; e < n * n; e += threads) {
    const int i = e % n, j = e / n;
    s.t[i][j] = i <= j ? panel.t[i + j * panel.f.panel] : T(0);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < n * tile; e += threads) {
    const int i = e / tile, c = e % tile;
    T sum = 0;
    if (op == Op::transpose)
      for (int j = 0; j <= i; ++j) sum += s.t[j][i] * s.products[j][c];
    else
      for (int j = i; j < n; ++j) sum += s.t[i][j] * s.products[j][c];
    s.w[i][c] = sum;
  }
  __syncthreads();
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += threads) {
    T* const line = panel.line(i) + c0;
    T sums[tile];
#pragma unroll
    for (int c = 0; c < tile; ++c) sums[c] = 0;
    const T* v = panel.v + i;
#pragma unroll 8
    for (int j = 0; j < n; ++j, v += panel.ld)
#pragma unroll
      for (int c = 0; c < tile; ++c) sums[c] += *v * s.w[j][c];
#pragma unroll
    for (int c = 0; c < tile; ++c)
      if (c0 + c < panel.f.cols) line[c] -= sums[c];
  }
}

template <class T, int tile>
__global__ void __launch_bounds__(threads)
    reflect_kernel(const std::int32_t* condition, const FrontReflect<Cuda, T> f, const std::int32_t* list, Op op) {
  if (skipped(condition)) return;
  __shared__ Memory<T, tile> s;
  const int front = list[blockIdx.x], c0 = blockIdx.y * tile, count = (f.shapes[front].cols + f.panel - 1) / f.panel;
  for (int p = 0; p < count; ++p) {
    const Panel<T> panel(f, front, op == Op::transpose ? p : count - 1 - p);
    if (panel.cols == 0) continue;
    multiply(panel, 0, panel.state.height, c0, s);
    subtract(panel, 0, panel.state.height, c0, op, s);
    __syncthreads();
  }
}

/// What a block has of a task: the panel, some of its rows, the right-hand sides from c0 on.
template <class T, int tile>
struct Part {
  FrontPanelPart task;
  Panel<T> panel;
  int first, last, c0;

  __device__ Part(const FrontReflect<Cuda, T>& f, const FrontPanelPart* tasks)
      : task(tasks[blockIdx.x]),
        panel(f, task.front, task.panel),
        first(row(task.part)),
        last(row(task.part + 1)),
        c0(blockIdx.y * tile) {}
  __device__ int row(int part) const { return static_cast<int>(std::int64_t{panel.state.height} * part / task.parts); }
};

template <class T, int tile>
__global__ void __launch_bounds__(threads)
    multiply_kernel(const std::int32_t* condition, const FrontReflect<Cuda, T> f, const FrontPanelPart* tasks) {
  if (skipped(condition)) return;
  __shared__ Memory<T, tile> s;
  const Part<T, tile> part(f, tasks);
  if (part.panel.cols == 0) return;
  multiply(part.panel, part.first, part.last, part.c0, s);
  T* const out = f.products + static_cast<std::int64_t>(blockIdx.x) * f.panel * f.cols;
  for (int e = threadIdx.x; e < part.panel.cols * tile; e += threads) {
    const int j = e / tile, c = e % tile;
    if (part.c0 + c < f.cols) out[j * f.cols + part.c0 + c] = s.products[j][c];
  }
}

template <class T, int tile>
__global__ void __launch_bounds__(threads)
    update_lines_kernel(const std::int32_t* condition, const FrontReflect<Cuda, T> f, const FrontPanelPart* tasks,
                        Op op) {
  if (skipped(condition)) return;
  __shared__ Memory<T, tile> s;
  const Part<T, tile> part(f, tasks);
  if (part.panel.cols == 0) return;
  const std::int64_t size = static_cast<std::int64_t>(f.panel) * f.cols;
  const T* const parts = f.products + (static_cast<std::int64_t>(blockIdx.x) - part.task.part) * size;
  for (int e = threadIdx.x; e < part.panel.cols * tile; e += threads) {
    const int j = e / tile, c = e % tile;
    T sum = 0;
    if (part.c0 + c < f.cols)
#pragma unroll 8
      for (int p = 0; p < part.task.parts; ++p) sum += parts[p * size + j * f.cols + part.c0 + c];
    s.products[j][c] = sum;
  }
  subtract(part.panel, part.first, part.last, part.c0, op, s);
}

template <class T>
bool takes(const FrontReflect<Cuda, T>& f, Index count) {
  detail::check(f.panel > 0 && f.panel <= most_panel, ErrorCode::invalid_argument, "panels of fronts have 1 to ",
                most_panel, " columns, got ", f.panel);
  return count > 0 && f.cols > 0;
}

}  // namespace

template <class T>
void reflect_front_lines(const Queue& queue, const FrontReflect<Cuda, T>& f, const FrontTasks<Cuda, std::int32_t>& list,
                         Op op) {
  const Launch launch(queue);
  if (!takes(f, list.count)) return;
  by_tiles(list.count, f.cols, [&](auto tile, dim3 grid) {
    reflect_kernel<T, tile.value><<<grid, threads, 0, launch.stream>>>(launch.condition, f, list.tasks, op);
  });
  check_launch("reflect_front_lines");
}

template <class T>
void multiply_front_panels(const Queue& queue, const FrontReflect<Cuda, T>& f,
                           const FrontTasks<Cuda, FrontPanelPart>& tasks) {
  const Launch launch(queue);
  if (!takes(f, tasks.count)) return;
  by_tiles(tasks.count, f.cols, [&](auto tile, dim3 grid) {
    multiply_kernel<T, tile.value><<<grid, threads, 0, launch.stream>>>(launch.condition, f, tasks.tasks);
  });
  check_launch("multiply_front_panels");
}

template <class T>
void update_front_lines(const Queue& queue, const FrontReflect<Cuda, T>& f,
                        const FrontTasks<Cuda, FrontPanelPart>& tasks, Op op) {
  const Launch launch(queue);
  if (!takes(f, tasks.count)) return;
  by_tiles(tasks.count, f.cols, [&](auto tile, dim3 grid) {
    update_lines_kernel<T, tile.value><<<grid, threads, 0, launch.stream>>>(launch.condition, f, tasks.tasks, op);
  });
  check_launch("update_front_lines");
}

#define QRANE_INSTANTIATE(T)                                                                                           \
  template void reflect_front_lines(const Queue&, const FrontReflect<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, \
                                    Op);                                                                               \
  template void multiply_front_panels(const Queue&, const FrontReflect<Cuda, T>&,                                      \
                                      const FrontTasks<Cuda, FrontPanelPart>&);                                        \
  template void update_front_lines(const Queue&, const FrontReflect<Cuda, T>&,                                         \
                                   const FrontTasks<Cuda, FrontPanelPart>&, Op);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
