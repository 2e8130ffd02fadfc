// SPDX-License-Identifier: Apache-2.0
#include "kernels/rpca_steps.hpp"

#include <array>
#include <cmath>

#include "kernels/device.hpp"

namespace qrane::bench {
namespace {

constexpr int threads = 256, ctas = 8 * 132;

template <class T>
__global__ void form_x_kernel(const T* m, const T* s, const T* y, T inverse_mu, T* x, std::int64_t count) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; k < count; k += threads * ctas)
    x[k] = m[k] - s[k] + y[k] * inverse_mu;
}

template <class T>
__global__ void update_kernel(const T* m, T* l, T* s, T* y, T threshold, T mu, std::int64_t count) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; k < count; k += threads * ctas) {
    const T rest = m[k] - l[k] + y[k] / mu, size = (rest < 0 ? -rest : rest) - threshold;
    const T sparse = size > 0 ? (rest < 0 ? -size : size) : T(0), gap = m[k] - l[k] - sparse;
    s[k] = sparse;
    y[k] += mu * gap;
    l[k] = gap;
  }
}

/// One partial sum of squares a block.
template <class T>
__global__ void sum_kernel(const T* x, std::int64_t count, double* sums) {
  __shared__ double part[threads];
  double sum = 0;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; k < count; k += threads * ctas)
    sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  part[threadIdx.x] = sum;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

template <class T>
__global__ void shrink_kernel(T* values, T threshold, int count) {
  const int k = blockIdx.x * threads + threadIdx.x;
  if (k < count) values[k] = values[k] > threshold ? values[k] - threshold : T(0);
}

}  // namespace

template <class T>
void form_x(const T* m, const T* s, const T* y, double mu, T* x, std::int64_t count, cudaStream_t stream) {
  form_x_kernel<<<ctas, threads, 0, stream>>>(m, s, y, static_cast<T>(1 / mu), x, count);
  check(cudaGetLastError(), "form_x");
}

template <class T>
void update_parts(const T* m, T* low_rank_then_gap, T* s, T* y, double lambda, double mu, std::int64_t count,
                  cudaStream_t stream) {
  update_kernel<<<ctas, threads, 0, stream>>>(m, low_rank_then_gap, s, y, static_cast<T>(lambda / mu),
                                              static_cast<T>(mu), count);
  check(cudaGetLastError(), "update_parts");
}

template <class T>
double norm(const T* x, std::int64_t count, cudaStream_t stream) {
  const DeviceArray<double> sums(ctas);
  std::array<double, ctas> parts{};
  sum_kernel<<<ctas, threads, 0, stream>>>(x, count, sums.get());
  check(cudaGetLastError(), "norm");
  check(cudaMemcpyAsync(parts.data(), sums.get(), sizeof parts, cudaMemcpyDeviceToHost, stream), "norm");
  check(cudaStreamSynchronize(stream), "norm");
  double total = 0;
  for (const double part : parts) total += part;
  return std::sqrt(total);
}

template <class T>
void shrink_values(T* values, double threshold, int count, cudaStream_t stream) {
  shrink_kernel<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(
      values, static_cast<T>(threshold), count);
  check(cudaGetLastError(), "shrink_values");
}

template void form_x(const float*, const float*, const float*, double, float*, std::int64_t, cudaStream_t);
template void form_x(const double*, const double*, const double*, double, double*, std::int64_t, cudaStream_t);
template double norm(const float*, std::int64_t, cudaStream_t);
template double norm(const double*, std::int64_t, cudaStream_t);
template void update_parts(const float*, float*, float*, float*, double, double, std::int64_t, cudaStream_t);
template void update_parts(const double*, double*, double*, double*, double, double, std::int64_t, cudaStream_t);
template void shrink_values(float*, double, int, cudaStream_t);
template void shrink_values(double*, double, int, cudaStream_t);

}  // namespace qrane::bench
