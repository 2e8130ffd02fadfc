// SPDX-License-Identifier: Apache-2.0
// copy_lines, sum_lines, norm_lines: what moves right-hand sides between layouts, sparse products and levels of
// singletons, and norms. All of it is bound by memory; threads of a warp take neighbouring numbers of a line.
#include "cuda/collectives/tile.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256;
constexpr Index most_blocks = 1 << 16;

unsigned blocks_for(Index elements) {
  return static_cast<unsigned>(std::clamp<Index>((elements + threads - 1) / threads, 1, most_blocks));
}

/// visit(line, column) for this thread's elements; `across`: neighbours take lines, not columns.
template <class Visit>
__device__ void for_elements(Index count, int cols, bool across, Visit visit) {
  const Index all = count * cols, stride = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index e = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; e < all; e += stride)
    across ? visit(e % count, static_cast<int>(e / count)) : visit(e / cols, static_cast<int>(e % cols));
}

template <class T>
__global__ void copy_lines_kernel(const std::int32_t* condition, CopyLines<Cuda, T> task) {
  if (skipped(condition)) return;
  // what is not contiguous is the user's; its columns are
  const bool across = task.source_step != 1 || task.target_step != 1;
  for_elements(task.count, task.cols, across, [&](Index k, int c) {
    const Index from = task.source_index ? task.source_index[k] : k, to = task.target_index ? task.target_index[k] : k;
    T value = task.source[from * task.source_line + c * task.source_step];
    if (task.exponents)
      if (const int exponent = task.sign * task.exponents[k]; exponent != 0) value = ldexp(value, exponent);
    T& place = task.target[to * task.target_line + c * task.target_step];
    place = task.add ? place + value : value;
  });
}

template <class T>
__global__ void sum_lines_kernel(const std::int32_t* condition, SumLines<Cuda, T> task) {
  if (skipped(condition)) return;
  const auto value = [&](std::int64_t p) { return task.values ? task.values[task.entry ? task.entry[p] : p] : T(1); };
  for_elements(task.count, task.cols, false, [&](Index k, int c) {
    const Index o = task.list ? task.list[k] : k, i = task.in_index ? task.in_index[o] : o;
    const std::int64_t begin = task.begin[o], end = task.begin[o + 1];
    T sum = task.in && i >= 0 ? task.in[i * task.cols + c] : T(0);
    const T sign = static_cast<T>(task.sign);
#pragma unroll 4
    for (std::int64_t p = begin + task.skip; p < end; ++p)
      sum += sign * value(p) * task.x[static_cast<Index>(task.index[p]) * task.cols + c];
    task.out[o * task.cols + c] = task.skip > 0 ? sum / value(begin) : sum;
  });
}

/// A block has a part; its threads take columns c, c + lanes, ... of every so-manieth line, however many columns there
/// are.
template <class T>
__global__ void __launch_bounds__(threads) norm_lines_kernel(const std::int32_t* condition, NormLines<Cuda, T> task) {
  if (skipped(condition)) return;
  __shared__ double s_value[threads];
  constexpr int lanes = 8, lines = threads / lanes;
  const int c0 = threadIdx.x % lanes, l0 = threadIdx.x / lanes;
  const Index part = blockIdx.x, begin = task.count * part / task.parts, end = task.count * (part + 1) / task.parts;
  const auto number = [&](Index k, int c) {
    double value = static_cast<double>(task.lines[k * task.cols + c]);
    if (task.exponents) value = ldexp(value, task.sign * task.exponents[k]);
    return abs(value);
  };
  // of all threads of a column, in a fixed order; every thread calls it
  const auto combined = [&](double mine, auto combine) {
    __syncthreads();
    s_value[threadIdx.x] = mine;
    __syncthreads();
    double result = s_value[c0];
    for (int l = 1; l < lines; ++l) result = combine(result, s_value[c0 + l * lanes]);
    return result;
  };
  for (int first = 0; first < task.cols; first += lanes) {
    const int c = first + c0;
    const bool mine = c < task.cols;
    double scale = 0, sum = 0;
    if (mine)
      for (Index k = begin + l0; k < end; k += lines) scale = fmax(scale, number(k, c));
    scale = combined(scale, [](double a, double b) { return fmax(a, b); });
    if (!(scale > 0 && isfinite(scale))) scale = 1;
    if (mine)
      for (Index k = begin + l0; k < end; k += lines) {
        const double x = number(k, c) / scale;
        sum += x * x;
      }
    sum = combined(sum, [](double a, double b) { return a + b; });
    if (mine && l0 == 0) {
      double* const out = task.partials + 2 * (part * task.cols + c);
      out[0] = scale;
      out[1] = sum;
    }
  }
}

}  // namespace

template <class T>
void copy_lines(const Queue& queue, const CopyLines<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.count == 0 || task.cols == 0) return;
  copy_lines_kernel<<<blocks_for(task.count * task.cols), threads, 0, launch.stream>>>(launch.condition, task);
  check_launch("copy_lines");
}

template <class T>
void sum_lines(const Queue& queue, const SumLines<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.count == 0 || task.cols == 0) return;
  sum_lines_kernel<<<blocks_for(task.count * task.cols), threads, 0, launch.stream>>>(launch.condition, task);
  check_launch("sum_lines");
}

template <class T>
void norm_lines(const Queue& queue, const NormLines<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.parts == 0 || task.cols == 0) return;
  norm_lines_kernel<<<static_cast<unsigned>(task.parts), threads, 0, launch.stream>>>(launch.condition, task);
  check_launch("norm_lines");
}

#define QRANE_INSTANTIATE(T)                                         \
  template void copy_lines(const Queue&, const CopyLines<Cuda, T>&); \
  template void sum_lines(const Queue&, const SumLines<Cuda, T>&);   \
  template void norm_lines(const Queue&, const NormLines<Cuda, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
