// SPDX-License-Identifier: Apache-2.0
// solve_front_rows and update_front_rows: a block of threads has a task and up to `tile` right-hand sides (grid.y).
//
// Products with R's rows: thread (row, g) of 64 x 4 goes along every fourth column of R, the row's sums for all
// right-hand sides of the tile in registers, lines of x in shared memory. Products with R's columns: thread (column, g)
// likewise, R through shared memory. R is read once for each tile, the numbers of right-hand sides once for each task.
//
// A triangle is solved in shared memory, a warp for two right-hand sides at a time, lane r having rows r and r + 32. It
// multiplies by reciprocals of the diagonal where none of them, nor the diagonal, is near the end of the range.
#include "cuda/collectives/tile.cuh"
#include "cuda/front_solve/line_tiles.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int side = front_block_rows;  // rows, or columns, of a task
constexpr int ways = 4;                 // threads that share one
constexpr int threads = side * ways;
constexpr int ld = side + 1;

/// Columns, and rows, that are in shared memory at a time: more of them where lines are short, to wait less often. Sums
/// go by the same order.
template <int tile>
inline constexpr int column_chunk = tile == 1 ? 128 : 32;
template <int tile>
inline constexpr int row_chunk = tile == 1 ? 64 : 32;

/// A front as a solve sees it.
template <class T>
struct SolveFront {
  const FrontSolve<Cuda, T>& f;
  const FrontShape& shape;
  std::int64_t first_line;
  int r_rows;

  __device__ SolveFront(const FrontSolve<Cuda, T>& solve, int front)
      : f(solve), shape(solve.shapes[front]), first_line(solve.r_begin[front]), r_rows(solve.states[front].r_rows) {}

  __device__ bool has(int q) const { return q < r_rows || q >= shape.r_bound; }
  __device__ int local(int q) const {
    return q < shape.r_bound ? f.live[first_line + q] : shape.pivots + q - shape.r_bound;
  }
  __device__ const T* column(int q) const {
    const std::int64_t j = local(q), m = shape.r_bound, whole = min(min(j, std::int64_t{shape.pivots}), m);
    return f.r + shape.r + whole * (whole + 1) / 2 + (j - whole) * m;
  }
  __device__ T* y(int i) const { return f.y + (first_line + i) * f.cols; }
  __device__ T* x(int q) const {
    return f.x + static_cast<std::int64_t>(f.front_cols[shape.columns + local(q)]) * f.cols;
  }
  __device__ T* w(int q) const { return f.w + (shape.columns + local(q)) * f.cols; }
};

/// Lines of a tile of right-hand sides in shared memory, and where the columns of a chunk are.
template <class T, int tile>
struct Chunk {
  T line[column_chunk<tile>][tile];
  const T* column[column_chunk<tile> > side ? column_chunk<tile> : side];
};

/// sums[c] of thread (row, 0) := sum over columns [first, last) of R(row0 + row, .) x(., c0 + c), in a fixed order.
template <class T, int tile>
__device__ void multiply_rows(const SolveFront<T>& front, int row0, int rows, int first, int last, int c0, int cols,
                              Chunk<T, tile>& s, T (*s_sums)[tile], T (&sums)[tile]) {
  constexpr int chunk = column_chunk<tile>;
  const int row = threadIdx.x % side, g = threadIdx.x / side;
#pragma unroll
  for (int c = 0; c < tile; ++c) sums[c] = 0;
  for (int q0 = first; q0 < last; q0 += chunk) {
    __syncthreads();
    for (int q = threadIdx.x; q < chunk; q += threads)
      s.column[q] = q0 + q < last && front.has(q0 + q) ? front.column(q0 + q) : nullptr;
    for (int e = threadIdx.x; e < chunk * tile; e += threads) {
      const int q = q0 + e / tile, c = c0 + e % tile;
      s.line[e / tile][e % tile] = q < last && c < cols && front.has(q) ? front.x(q)[c] : T(0);
    }
    __syncthreads();
    if (row < rows) {
#pragma unroll
      for (int k = 0; k < chunk / ways; ++k) {
        const int q = g + k * ways;
        const T* const column = s.column[q];
        const T r = column ? column[row0 + row] : T(0);
#pragma unroll
        for (int c = 0; c < tile; ++c) sums[c] += r * s.line[q][c];
      }
    }
  }
  for (int way = 1; way < ways; ++way) {
    __syncthreads();
    if (g == way)
#pragma unroll
      for (int c = 0; c < tile; ++c) s_sums[row][c] = sums[c];
    __syncthreads();
    if (g == 0)
#pragma unroll
      for (int c = 0; c < tile; ++c) sums[c] += s_sums[row][c];
  }
}

/// w of `count` <= side columns from `first` on -= R(row0 .. row0 + rows - 1, .)ᵀ y of these rows.
template <class T, int tile>
__device__ void subtract_from_columns(const SolveFront<T>& front, int row0, int rows, int first, int count, int c0,
                                      int cols, Chunk<T, tile>& s, T (*s_r)[side], T (*s_sums)[tile]) {
  constexpr int chunk = row_chunk<tile>;
  const int j = threadIdx.x % side, g = threadIdx.x / side;
  T sums[tile];
#pragma unroll
  for (int c = 0; c < tile; ++c) sums[c] = 0;
  __syncthreads();
  if (threadIdx.x < side) s.column[j] = j < count && front.has(first + j) ? front.column(first + j) : nullptr;
  for (int i0 = 0; i0 < rows; i0 += chunk) {
    __syncthreads();
    for (int e = threadIdx.x; e < chunk * side; e += threads) {  // s_r[column][row], skewed
      const int i = e % chunk, q = e / chunk;
      const T* const column = s.column[q];
      s_r[i][(q + i) % side] = column && i0 + i < rows ? column[row0 + i0 + i] : T(0);
    }
    for (int e = threadIdx.x; e < chunk * tile; e += threads) {
      const int i = i0 + e / tile, c = c0 + e % tile;
      s.line[e / tile][e % tile] = i < rows && c < cols ? front.y(row0 + i)[c] : T(0);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < chunk / ways; ++k) {
      const int i = g + k * ways;
      const T r = s_r[i][(j + i) % side];
#pragma unroll
      for (int c = 0; c < tile; ++c) sums[c] += r * s.line[i][c];
    }
  }
  for (int way = 1; way < ways; ++way) {
    __syncthreads();
    if (g == way)
#pragma unroll
      for (int c = 0; c < tile; ++c) s_sums[j][c] = sums[c];
    __syncthreads();
    if (g == 0)
#pragma unroll
      for (int c = 0; c < tile; ++c) sums[c] += s_sums[j][c];
  }
  if (g == 0 && s.column[j]) {
    T* const w = front.w(first + j);
#pragma unroll
    for (int c = 0; c < tile; ++c)
      if (c0 + c < cols) w[c0 + c] -= sums[c];
  }
}

/// Where a task's arrays lie in shared memory.
template <class T, int tile>
struct UpdateMemory {
  Chunk<T, tile> part;
  T sums[side][tile];
  T r[row_chunk<tile>][side];
};

template <class T, int tile>
__global__ void __launch_bounds__(threads)
    update_kernel(const std::int32_t* condition, const FrontSolve<Cuda, T> f, const FrontBlock* tasks, Op op) {
  if (skipped(condition)) return;
  __shared__ UpdateMemory<T, tile> s;
  const FrontBlock task = tasks[blockIdx.x];
  const SolveFront<T> front(f, task.front);
  const int c0 = blockIdx.y * tile, rows = min(task.rows, front.r_rows - task.row);
  if (rows <= 0) return;
  if (op == Op::transpose) {
    subtract_from_columns(front, task.row, rows, task.first, task.cols, c0, f.cols, s.part, s.r, s.sums);
    return;
  }
  T sums[tile];
  multiply_rows(front, task.row, rows, task.first, task.first + task.cols, c0, f.cols, s.part, s.sums, sums);
  if (static_cast<int>(threadIdx.x) >= rows) return;
  T* const y = front.y(task.row + threadIdx.x);
#pragma unroll
  for (int c = 0; c < tile; ++c)
    if (c0 + c < f.cols) y[c0 + c] -= sums[c];
}

/// A triangle in shared memory and the lines that it is solved for.
template <class T, int tile>
struct TriangleMemory {
  T r[side][ld];  // r[column][row]
  T lines[side][tile];
  T reciprocal[side];
};

template <class T>
__device__ bool in_the_middle(T x) {
  constexpr T large = sizeof(T) == 8 ? T(1e290) : T(1e34f);
  return abs(x) < large && abs(x) > 1 / large;
}

/// One right-hand side by a warp; lanes hold rows lane and lane + 32. `exact`: divisions.
template <class T, int tile>
__device__ void solve_lines(const TriangleMemory<T, tile>& s, int rows, Op op, bool exact, T& low, T& high) {
  const int lane = threadIdx.x % warp_size;
  for (int step = 0; step < rows; ++step) {
    const int k = op == Op::none ? rows - 1 - step : step;
    const T held = __shfl_sync(full_warp, k < warp_size ? low : high, k % warp_size);
    const T value = exact ? held / s.r[k][k] : held * s.reciprocal[k];
    const auto next = [&](T& mine, int i) {
      if (i == k)
        mine = value;
      else if (op == Op::none ? i < k : i > k && i < rows)
        mine -= value * (op == Op::none ? s.r[k][i] : s.r[i][k]);
    };
    next(low, lane);
    next(high, lane + warp_size);
  }
}

template <class T, int tile>
__global__ void __launch_bounds__(threads)
    solve_kernel(const std::int32_t* condition, const FrontSolve<Cuda, T> f, const FrontBlock* tasks, Op op) {
  if (skipped(condition)) return;
  __shared__ union Memory {
    UpdateMemory<T, tile> update;
    TriangleMemory<T, tile> triangle;
  } s;
  const FrontBlock task = tasks[blockIdx.x];
  const SolveFront<T> front(f, task.front);
  const int c0 = blockIdx.y * tile, tid = threadIdx.x, rows = min(task.rows, front.r_rows - task.row);
  if (rows <= 0) return;
  T sums[tile];
  if (op == Op::none && task.cols > 0) {
    multiply_rows(front, task.row, rows, task.first, task.first + task.cols, c0, f.cols, s.update.part, s.update.sums,
                  sums);
    __syncthreads();
  } else {
#pragma unroll
    for (int c = 0; c < tile; ++c) sums[c] = 0;
  }
  // the triangle, its right-hand sides, reciprocals
  for (int k = tid / side; k < rows; k += ways) {
    const int i = tid % side;
    if (i <= k) s.triangle.r[k][i] = front.column(task.row + k)[task.row + i];
  }
  if (tid < rows) {
    const T* const from = op == Op::none ? front.y(task.row + tid) : front.w(task.row + tid);
#pragma unroll
    for (int c = 0; c < tile; ++c) s.triangle.lines[tid][c] = c0 + c < f.cols ? from[c0 + c] - sums[c] : T(0);
  }
  __syncthreads();
  const bool plain = tid >= rows || in_the_middle(s.triangle.r[tid][tid]);
  if (tid < rows) s.triangle.reciprocal[tid] = 1 / s.triangle.r[tid][tid];
  const bool exact = !__syncthreads_and(plain);
  const int lane = tid % warp_size;
  for (int c = tid / warp_size; c < tile && c0 + c < f.cols; c += threads / warp_size) {
    T low = lane < rows ? s.triangle.lines[lane][c] : T(0);
    T high = lane + warp_size < rows ? s.triangle.lines[lane + warp_size][c] : T(0);
    solve_lines(s.triangle, rows, op, exact, low, high);
    if (lane < rows) s.triangle.lines[lane][c] = low;
    if (lane + warp_size < rows) s.triangle.lines[lane + warp_size][c] = high;
  }
  __syncthreads();
  for (int e = tid; e < rows * tile; e += threads) {
    const int k = e / tile, c = c0 + e % tile;
    if (c >= f.cols) continue;
    const T value = s.triangle.lines[k][e % tile];
    front.y(task.row + k)[c] = value;
    if (op == Op::none) front.x(task.row + k)[c] = value;
  }
  if (op == Op::none || task.cols == 0) return;
  __syncthreads();  // this block's own lines of y are read next
  for (int first = 0; first < task.cols; first += side)
    subtract_from_columns(front, task.row, rows, task.first + first, min(side, task.cols - first), c0, f.cols,
                          s.update.part, s.update.r, s.update.sums);
}

}  // namespace

template <class T>
void solve_front_rows(const Queue& queue, const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks,
                      Op op) {
  const Launch launch(queue);
  if (tasks.count == 0 || f.cols == 0) return;
  by_tiles(tasks.count, f.cols, [&](auto tile, dim3 grid) {
    solve_kernel<T, tile.value><<<grid, threads, 0, launch.stream>>>(launch.condition, f, tasks.tasks, op);
  });
  check_launch("solve_front_rows");
}

template <class T>
void update_front_rows(const Queue& queue, const FrontSolve<Cuda, T>& f, const FrontTasks<Cuda, FrontBlock>& tasks,
                       Op op) {
  const Launch launch(queue);
  if (tasks.count == 0 || f.cols == 0) return;
  by_tiles(tasks.count, f.cols, [&](auto tile, dim3 grid) {
    update_kernel<T, tile.value><<<grid, threads, 0, launch.stream>>>(launch.condition, f, tasks.tasks, op);
  });
  check_launch("update_front_rows");
}

#define QRANE_INSTANTIATE(T)                                                                                         \
  template void solve_front_rows(const Queue&, const FrontSolve<Cuda, T>&, const FrontTasks<Cuda, FrontBlock>&, Op); \
  template void update_front_rows(const Queue&, const FrontSolve<Cuda, T>&, const FrontTasks<Cuda, FrontBlock>&, Op);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
