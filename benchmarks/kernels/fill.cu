// SPDX-License-Identifier: Apache-2.0
// Seeded matrices on the device. A thread makes a row of an ill-conditioned matrix in three passes over its numbers,
// which it computes anew each time; products and sums are rounded one by one, as the host's are.
#include "kernels/fill.hpp"

#include "common/seeded_matrix.hpp"
#include "kernels/device.hpp"

namespace qrane::bench {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void fill_uniform(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; k < count; k += stride)
    data[k] = static_cast<T>(uniform_at(seed, static_cast<std::uint64_t>(k)));
}

/// mix: scale, first and second of ColumnMix, `cols` numbers each.
template <class T>
__global__ void fill_mixed(T* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, const double* mix) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= rows) return;
  const double *scale = mix, *first = mix + cols, *second = mix + 2 * cols;
  const auto scaled = [&](std::int64_t j) {
    return __dmul_rn(scale[j], uniform_at(seed, static_cast<std::uint64_t>(i + j * rows)));
  };
  const auto reflected = [](double x, double v, double sum) { return __dadd_rn(x, -__dmul_rn(2 * v, sum)); };
  double sum1 = 0, sum2 = 0;
  for (std::int64_t j = 0; j < cols; ++j) sum1 = __dadd_rn(sum1, __dmul_rn(first[j], scaled(j)));
  for (std::int64_t j = 0; j < cols; ++j)
    sum2 = __dadd_rn(sum2, __dmul_rn(second[j], reflected(scaled(j), first[j], sum1)));
  for (std::int64_t j = 0; j < cols; ++j)
    data[i + j * rows] = static_cast<T>(reflected(reflected(scaled(j), first[j], sum1), second[j], sum2));
}

template <class T>
void fill(T* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition) {
  if (rows * cols == 0) return;
  if (condition == 1) {
    const std::int64_t blocks = std::min<std::int64_t>((rows * cols + threads - 1) / threads, 1 << 16);
    fill_uniform<<<static_cast<unsigned>(blocks), threads>>>(data, rows * cols, seed);
  } else {
    const ColumnMix host(cols, condition);
    DeviceArray<double> mix(3 * static_cast<std::size_t>(cols));
    const std::size_t bytes = static_cast<std::size_t>(cols) * sizeof(double);
    check(cudaMemcpy(mix.get(), host.scale.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(mix.get() + cols, host.first.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(mix.get() + 2 * cols, host.second.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    fill_mixed<<<static_cast<unsigned>((rows + threads - 1) / threads), threads>>>(data, rows, cols, seed, mix.get());
  }
  check(cudaGetLastError(), "filling a matrix");
  check(cudaDeviceSynchronize(), "filling a matrix");
}

}  // namespace

void fill_on_device(float* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition) {
  fill(data, rows, cols, seed, condition);
}
void fill_on_device(double* data, std::int64_t rows, std::int64_t cols, std::uint64_t seed, double condition) {
  fill(data, rows, cols, seed, condition);
}

}  // namespace qrane::bench
