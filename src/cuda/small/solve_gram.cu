// SPDX-License-Identifier: Apache-2.0
// Least squares from a Gram matrix's factor (dense/solve/least_squares.hpp), all in double but A, b and x:
//
//   solve_gram         c := Aᵀ b (every block a share of the rows, partial sums), then in one block
//                      x := W (Wᵀ c), W = R^-1, and what says how far R is from singular
//   residual_squares   ‖b - A x‖² of every column, without storing the residual
//
// Each reads A once, at the speed of memory, for up to four right-hand sides; more take further passes. Sums are in a
// fixed order.
#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/reduce.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/small.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int group = 4;     // columns that a warp takes at once
constexpr int most_rhs = 4;  // right-hand sides of one pass
constexpr int solve_threads = 1024;
constexpr int most_columns = 256;
constexpr Index most_chunk = 1024;  // rows of b in shared memory

__device__ double warp_sum(double x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

template <class T>
struct Projection {
  DeviceMatrix<Cuda, T> a, b;  // b has as many columns as the kernel is made for
  double* partial;             // [rhs][column][block]
  Index chunk;                 // rows, a multiple of 32 * V
};

/// Thread map: a warp takes four columns, lanes run along V rows each. Shared memory: a chunk of b in double, then this
/// block's sums, rhs * columns.
template <class T, int V, int R>
__global__ void __launch_bounds__(threads) project_kernel(const std::int32_t* condition, Projection<T> p) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int n = static_cast<int>(p.a.cols), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  double* const s_b = shared;
  double* const s_sum = shared + R * p.chunk;
  for (int k = threadIdx.x; k < n * R; k += threads) s_sum[k] = 0;
  for (Index first = blockIdx.x * p.chunk; first < p.a.rows; first += gridDim.x * p.chunk) {
    const int rows = static_cast<int>(min(p.chunk, p.a.rows - first)), whole = rows / V * V;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; ++r)
      for (int i = threadIdx.x; i < rows; i += threads)
        s_b[r * p.chunk + i] = static_cast<double>(p.b.data[first + i + r * p.b.ld]);
    __syncthreads();
    for (int j0 = warp * group; j0 < n; j0 += warps * group) {
      const T* column[group];
#pragma unroll
      for (int g = 0; g < group; ++g) column[g] = p.a.data + first + Index(min(j0 + g, n - 1)) * p.a.ld;
      double sum[group][R] = {};
#pragma unroll 2
      for (int i = lane * V; i < whole; i += 32 * V) {
        Vector<T, V> x[group];
#pragma unroll
        for (int g = 0; g < group; ++g) x[g] = *reinterpret_cast<const Vector<T, V>*>(column[g] + i);
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
          for (int r = 0; r < R; ++r) {
            const double b = s_b[r * p.chunk + i + v];
#pragma unroll
            for (int g = 0; g < group; ++g) sum[g][r] = fma(static_cast<double>(x[g].v[v]), b, sum[g][r]);
          }
      }
      if (whole + lane < rows) {
#pragma unroll
        for (int g = 0; g < group; ++g)
#pragma unroll
          for (int r = 0; r < R; ++r)
            sum[g][r] = fma(static_cast<double>(column[g][whole + lane]), s_b[r * p.chunk + whole + lane], sum[g][r]);
      }
#pragma unroll
      for (int g = 0; g < group; ++g)
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const double total = warp_sum(sum[g][r]);
          if (lane == 0 && j0 + g < n) s_sum[r * n + j0 + g] += total;
        }
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < n * R; k += threads) p.partial[k * Index(gridDim.x) + blockIdx.x] = s_sum[k];
}

template <class T>
struct Solve {
  DeviceMatrix<Cuda, double> r, inverse;
  DeviceMatrix<Cuda, T> x;
  DeviceMatrix<Cuda, double> y;
  const double* partial;
  int parts;
  double* facts;  // null: written by an earlier pass
};

/// One block. Shared memory: c and y, rhs * columns each, and a sum for each quarter of the threads.
template <class T, int R>
__global__ void __launch_bounds__(solve_threads) solve_gram_kernel(const std::int32_t* condition, Solve<T> p) {
  if (skipped(condition)) return;
  __shared__ double s_c[R * most_columns], s_y[R * most_columns], s_x[solve_threads];
  const int n = static_cast<int>(p.r.rows), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = warp; k < n * R; k += solve_threads / 32) {
    double sum = 0;
    for (int b = lane; b < p.parts; b += 32) sum += p.partial[k * Index(p.parts) + b];
    sum = warp_sum(sum);
    if (lane == 0) s_c[k] = sum;
  }
  __syncthreads();
  const auto larger = [](double a, double b) { return a != a || a > b ? a : b; };
  double one_norm = 0, inverse_one_norm = 0, longest = 0, inverse_square = 0;  // NaN wins
  for (int j = warp; j < n; j += solve_threads / 32) {
    double y[R] = {}, sizes[4] = {};  // sums of |R|, |W|, R², W² along column j
    for (int i = lane; i <= j; i += 32) {
      const double w = p.inverse.data[i + j * p.inverse.ld], r = p.r.data[i + j * p.r.ld];
#pragma unroll
      for (int k = 0; k < R; ++k) y[k] = fma(w, s_c[k * n + i], y[k]);
      sizes[0] += fabs(r), sizes[1] += fabs(w), sizes[2] = fma(r, r, sizes[2]), sizes[3] = fma(w, w, sizes[3]);
    }
#pragma unroll
    for (int k = 0; k < R; ++k) {
      y[k] = warp_sum(y[k]);
      if (lane == 0) s_y[k * n + j] = p.y.data[j + k * p.y.ld] = y[k];
    }
    one_norm = larger(warp_sum(sizes[0]), one_norm);
    inverse_one_norm = larger(warp_sum(sizes[1]), inverse_one_norm);
    longest = larger(warp_sum(sizes[2]), longest);
    inverse_square += warp_sum(sizes[3]);
  }
  if (p.facts != nullptr) {
    one_norm = block_reduce(one_norm, 0.0, larger);
    inverse_one_norm = block_reduce(inverse_one_norm, 0.0, larger);
    longest = block_reduce(longest, 0.0, larger);
    inverse_square = block_reduce(lane == 0 ? inverse_square : 0.0, 0.0, Add{});
    if (threadIdx.x == 0) {
      p.facts[0] = one_norm * inverse_one_norm;
      p.facts[1] = sqrt(longest) * sqrt(inverse_square);
    }
  }
  __syncthreads();
  constexpr int quarters = solve_threads / most_columns;
  const int i = threadIdx.x % most_columns, quarter = threadIdx.x / most_columns;
#pragma unroll
  for (int k = 0; k < R; ++k) {
    double sum = 0;
    if (i < n) {
#pragma unroll 8
      for (int j = quarter; j < n; j += quarters)
        if (j >= i) sum = fma(p.inverse.data[i + j * p.inverse.ld], s_y[k * n + j], sum);
    }
    __syncthreads();
    s_x[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < n) {
      double x = 0;
      for (int q = 0; q < quarters; ++q) x += s_x[q * most_columns + threadIdx.x];
      p.x.data[threadIdx.x + k * p.x.ld] = static_cast<T>(x);
    }
  }
}

/// Thread map: V rows a thread, all columns in turn. Shared memory: x in double. partial[rhs][block].
template <class T, int V, int R>
__global__ void __launch_bounds__(threads)
    residual_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> x,
                    DeviceMatrix<Cuda, T> b, double* partial) {
  if (skipped(condition)) return;
  extern __shared__ double s_x[];
  const int n = static_cast<int>(a.cols);
#pragma unroll
  for (int r = 0; r < R; ++r)
    for (int j = threadIdx.x; j < n; j += threads) s_x[j * R + r] = static_cast<double>(x.data[j + r * x.ld]);
  __syncthreads();
  double square[R] = {};
  const Index whole = a.rows / V;
  for (Index c = blockIdx.x * Index(threads) + threadIdx.x; c < whole; c += gridDim.x * Index(threads)) {
    double left[V][R];
#pragma unroll
    for (int v = 0; v < V; ++v)
#pragma unroll
      for (int r = 0; r < R; ++r) left[v][r] = static_cast<double>(b.data[c * V + v + r * b.ld]);
    const T* row = a.data + c * V;
#pragma unroll 8
    for (int j = 0; j < n; ++j) {
      const Vector<T, V> e = *reinterpret_cast<const Vector<T, V>*>(row + j * a.ld);
#pragma unroll
      for (int v = 0; v < V; ++v)
#pragma unroll
        for (int r = 0; r < R; ++r) left[v][r] = fma(-static_cast<double>(e.v[v]), s_x[j * R + r], left[v][r]);
    }
#pragma unroll
    for (int v = 0; v < V; ++v)
#pragma unroll
      for (int r = 0; r < R; ++r) square[r] = fma(left[v][r], left[v][r], square[r]);
  }
  if (const Index i = whole * V + threadIdx.x; blockIdx.x == 0 && i < a.rows) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      double left = static_cast<double>(b.data[i + r * b.ld]);
      for (int j = 0; j < n; ++j) left = fma(-static_cast<double>(a.data[i + j * a.ld]), s_x[j * R + r], left);
      square[r] = fma(left, left, square[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const double sum = block_reduce(square[r], 0.0, Add{});
    if (threadIdx.x == 0) partial[r * Index(gridDim.x) + blockIdx.x] = sum;
  }
}

/// result[r] := the sum of the r-th `count` partial results; a block each.
__global__ void __launch_bounds__(threads)
    finish_kernel(const std::int32_t* condition, const double* partial, int count, double* result) {
  if (skipped(condition)) return;
  double sum = 0;
  for (int k = threadIdx.x; k < count; k += threads) sum += partial[blockIdx.x * Index(count) + k];
  sum = block_reduce(sum, 0.0, Add{});
  if (threadIdx.x == 0) result[blockIdx.x] = sum;
}

/// body(std::integral_constant<int, R>) for R = 1, 2 or 4 columns at a time, from column `first`.
template <class Body>
void for_rhs(Index count, Body&& body) {
  Index first = 0;
  for (; first + 4 <= count; first += 4) body(std::integral_constant<int, 4>{}, first);
  for (; first + 2 <= count; first += 2) body(std::integral_constant<int, 2>{}, first);
  for (; first < count; ++first) body(std::integral_constant<int, 1>{}, first);
}

template <class T>
constexpr int width = 16 / sizeof(T);

int most_blocks() { return 2 * multiprocessors(); }

}  // namespace

Index least_squares_scratch_bytes(const Queue& queue, Index columns) {
  const Launch launch(queue);
  return most_rhs * std::max<Index>(columns, 8) * most_blocks() * 8 + 256;
}
std::int32_t max_solve_gram() { return most_columns; }

template <class T>
void solve_gram(const Queue& queue, const GramSolve<Cuda, T>& task, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  const Index n = task.a.cols;
  detail::check(n > 0 && n <= most_columns, ErrorCode::invalid_argument, "solve_gram of ", n,
                " columns: this backend takes 1 to ", most_columns);
  detail::check(scratch.bytes >= least_squares_scratch_bytes(queue, n), ErrorCode::invalid_argument,
                "solve_gram needs ", least_squares_scratch_bytes(queue, n), " bytes of scratch, got ", scratch.bytes);
  const bool aligned = is_aligned<width<T>>(task.a);
  const Index step = 32 * width<T>;
  const Index share = (task.a.rows + most_blocks() - 1) / most_blocks();
  const Index chunk = std::clamp<Index>((share + step - 1) / step * step, step, most_chunk);
  const int blocks = static_cast<int>(std::clamp<Index>((task.a.rows + chunk - 1) / chunk, 1, most_blocks()));
  auto* partial = reinterpret_cast<double*>(scratch.data);
  bool first_pass = true;
  for_rhs(task.b.cols, [&](auto rhs, Index first) {
    constexpr int R = decltype(rhs)::value;
    const Projection<T> p{task.a, task.b.columns(first, R), partial, chunk};
    auto* kernel = aligned ? project_kernel<T, width<T>, R> : project_kernel<T, 1, R>;
    kernel<<<blocks, threads, static_cast<std::size_t>(R * (chunk + n) * 8), launch.stream>>>(launch.condition, p);
    check_launch("project kernel");
    const Solve<T> s{task.r,  task.inverse, task.x.columns(first, R),         task.y.columns(first, R),
                     partial, blocks,       first_pass ? task.facts : nullptr};
    solve_gram_kernel<T, R><<<1, solve_threads, 0, launch.stream>>>(launch.condition, s);
    check_launch("solve_gram kernel");
    first_pass = false;
  });
}

template <class T>
void residual_squares(const Queue& queue, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& x,
                      const DeviceMatrix<Cuda, T>& b, double* squares, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  detail::check(scratch.bytes >= least_squares_scratch_bytes(queue, 8), ErrorCode::invalid_argument,
                "residual_squares needs ", least_squares_scratch_bytes(queue, 8), " bytes of scratch, got ",
                scratch.bytes);
  const bool aligned = is_aligned<width<T>>(a);
  const Index chunks = aligned ? a.rows / width<T> : a.rows;
  const int blocks = static_cast<int>(std::clamp<Index>((chunks + threads - 1) / threads, 1, 4 * most_blocks()));
  auto* partial = reinterpret_cast<double*>(scratch.data);
  const Index most = shared_memory_limit() - 1024;
  for_rhs(b.cols, [&](auto rhs, Index first) {
    constexpr int R = decltype(rhs)::value;
    auto* kernel = aligned ? residual_kernel<T, width<T>, R> : residual_kernel<T, 1, R>;
    const Index bytes = (a.cols * R + 1) / 2 * 16;  // the compiled kernel reads pairs
    detail::check(bytes <= most, ErrorCode::invalid_argument, "residual_squares of ", a.cols, " columns: at most ",
                  max_residual_columns());
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
               "cudaFuncSetAttribute(residual)");
    kernel<<<blocks, threads, static_cast<std::size_t>(bytes), launch.stream>>>(
        launch.condition, a, x.columns(first, R), b.columns(first, R), partial);
    check_launch("residual kernel");
    finish_kernel<<<R, threads, 0, launch.stream>>>(launch.condition, partial, blocks, squares + first);
    check_launch("residual's last kernel");
  });
}

std::int32_t max_residual_columns() { return (shared_memory_limit() - 1024) / (8 * most_rhs); }

#define QRANE_INSTANTIATE(T)                                                                               \
  template void solve_gram(const Queue&, const GramSolve<Cuda, T>&, const Scratch<Cuda>&);                 \
  template void residual_squares(const Queue&, const DeviceMatrix<Cuda, T>&, const DeviceMatrix<Cuda, T>&, \
                                 const DeviceMatrix<Cuda, T>&, double*, const Scratch<Cuda>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
