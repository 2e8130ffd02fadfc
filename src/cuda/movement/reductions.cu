// SPDX-License-Identifier: Apache-2.0
// sum_squares, sum_abs, max_abs and first_not_finite: every block reduces its share of the elements to
// one partial result in scratch, then one block reduces those. The share of a block depends on the
// shape and the scratch alone and no order is left to chance, so results repeat. Reads A once.
#include <limits>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/reduce.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/movement.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256;
constexpr Index blocks_per_multiprocessor = 4;
constexpr int batch = 4;  // loads that a thread has in flight

struct SumSquares {
  using State = double;
  static constexpr State neutral = 0;
  template <class T>
  __device__ static State value(T x, Index) {
    return static_cast<double>(x) * static_cast<double>(x);
  }
  __device__ State operator()(State a, State b) const { return a + b; }
};

struct SumAbs {
  using State = double;
  static constexpr State neutral = 0;
  template <class T>
  __device__ static State value(T x, Index) {
    return fabs(static_cast<double>(x));
  }
  __device__ State operator()(State a, State b) const { return a + b; }
};

struct MaxAbs {
  using State = double;
  static constexpr State neutral = 0;
  template <class T>
  __device__ static State value(T x, Index) {
    return fabs(static_cast<double>(x));
  }
  __device__ State operator()(State a, State b) const { return a != a || a > b ? a : b; }  // NaN wins from both sides
};

struct FirstNotFinite {
  using State = long long;  // i + j * rows, or none
  static constexpr State neutral = std::numeric_limits<State>::max();
  template <class T>
  __device__ static State value(T x, Index position) {
    return isfinite(x) ? neutral : static_cast<State>(position);
  }
  __device__ State operator()(State a, State b) const { return a < b ? a : b; }
};

/// Thread map: x along chunks of V rows, y over columns; partial[blockIdx.x + blockIdx.y * gridDim.x].
template <class Reduction, class T, int V>
__global__ void __launch_bounds__(threads)
    reduce_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, typename Reduction::State* partial) {
  if (skipped(condition)) return;
  using State = typename Reduction::State;
  const Reduction op;
  const Index whole = a.rows / V, step = Index(gridDim.x) * blockDim.x;
  const Index first = blockIdx.x * Index(blockDim.x) + threadIdx.x;
  State state = Reduction::neutral;
  for (Index j = blockIdx.y * Index(blockDim.y) + threadIdx.y; j < a.cols; j += Index(gridDim.y) * blockDim.y) {
    const T* column = a.data + j * a.ld;
    const auto* chunks = reinterpret_cast<const Vector<T, V>*>(column);
    const auto take = [&](const Vector<T, V>& x, Index c) {
#pragma unroll
      for (int v = 0; v < V; ++v) state = op(state, Reduction::value(x.v[v], c * V + v + j * a.rows));
    };
    Index c = first;
    for (; c + (batch - 1) * step < whole; c += batch * step) {
      Vector<T, V> x[batch];
#pragma unroll
      for (int u = 0; u < batch; ++u) x[u] = chunks[c + u * step];
#pragma unroll
      for (int u = 0; u < batch; ++u) take(x[u], c + u * step);
    }
    for (; c < whole; c += step) take(chunks[c], c);
    for (Index i = whole * V + first; i < a.rows; i += step)
      state = op(state, Reduction::value(column[i], i + j * a.rows));
  }
  state = block_reduce(state, Reduction::neutral, op);
  if (threadIdx.x == 0 && threadIdx.y == 0) partial[blockIdx.x + std::size_t(blockIdx.y) * gridDim.x] = state;
}

/// The partial results of all blocks to the answer: `result` one double, or two int64 (row and column).
template <class Reduction, class Result>
__global__ void __launch_bounds__(1024)
    finish_kernel(const std::int32_t* condition, const typename Reduction::State* partial, int count, Index rows,
                  Result* result) {
  if (skipped(condition)) return;
  const Reduction op;
  auto state = Reduction::neutral;
  for (int k = threadIdx.x; k < count; k += blockDim.x) state = op(state, partial[k]);
  state = block_reduce(state, Reduction::neutral, op);
  if (threadIdx.x != 0) return;
  if constexpr (std::is_same_v<Result, double>) {
    *result = state;
  } else {
    const bool none = state == Reduction::neutral;
    result[0] = none ? -1 : state % rows;
    result[1] = none ? -1 : state / rows;
  }
}

template <class Reduction, class T, class Result>
void run(const Launch& launch, const DeviceMatrix<Cuda, T>& matrix, Result* result, const Scratch<Cuda>& scratch) {
  using State = typename Reduction::State;
  detail::check(matrix.count == 1, ErrorCode::invalid_argument, "a reduction takes one matrix, not ", matrix.count);
  detail::check(scratch.bytes >= Index(sizeof(State)), ErrorCode::invalid_argument, "a reduction needs ", sizeof(State),
                " bytes of scratch or more, got ", scratch.bytes);
  constexpr int width = 16 / sizeof(T);
  const bool flat = is_contiguous(matrix);
  const DeviceMatrix<Cuda, T> a = flat ? as_column(matrix) : matrix;
  const bool wide = is_aligned<width>(a);
  const Index blocks =
      std::min<Index>(scratch.bytes / Index(sizeof(State)), blocks_per_multiprocessor * multiprocessors());
  const Walk walk = plan_walk(wide ? (a.rows + width - 1) / width : a.rows, a.cols, 1, blocks);
  auto* partial = reinterpret_cast<State*>(scratch.data);
  auto* kernel = wide ? reduce_kernel<Reduction, T, width> : reduce_kernel<Reduction, T, 1>;
  kernel<<<walk.grid, walk.block, 0, launch.stream>>>(launch.condition, a, partial);
  check_launch("reduction kernel");
  const int count = static_cast<int>(walk.grid.x * walk.grid.y);
  finish_kernel<Reduction, Result>
      <<<1, 1024, 0, launch.stream>>>(launch.condition, partial, count, std::max<Index>(matrix.rows, 1), result);
  check_launch("reduction's last kernel");
}

}  // namespace

template <class T>
void sum_squares(const Queue& queue, const DeviceMatrix<Cuda, T>& a, double* sum, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  run<SumSquares>(launch, a, sum, scratch);
}

template <class T>
void sum_abs(const Queue& queue, const DeviceMatrix<Cuda, T>& a, double* sum, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  run<SumAbs>(launch, a, sum, scratch);
}

template <class T>
void max_abs(const Queue& queue, const DeviceMatrix<Cuda, T>& a, double* maximum, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  run<MaxAbs>(launch, a, maximum, scratch);
}

template <class T>
void first_not_finite(const Queue& queue, const DeviceMatrix<Cuda, T>& a, std::int64_t* position,
                      const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  run<FirstNotFinite>(launch, a, position, scratch);
}

#define QRANE_INSTANTIATE(T)                                                                            \
  template void sum_squares(const Queue&, const DeviceMatrix<Cuda, T>&, double*, const Scratch<Cuda>&); \
  template void sum_abs(const Queue&, const DeviceMatrix<Cuda, T>&, double*, const Scratch<Cuda>&);     \
  template void max_abs(const Queue&, const DeviceMatrix<Cuda, T>&, double*, const Scratch<Cuda>&);     \
  template void first_not_finite(const Queue&, const DeviceMatrix<Cuda, T>&, std::int64_t*, const Scratch<Cuda>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
