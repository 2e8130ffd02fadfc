// SPDX-License-Identifier: Apache-2.0
// solve_upper: B := alpha R^-1 B for a batch of upper triangles. A warp per right-hand side, which lies in shared
// memory while the columns of R, from the last, are taken out of it; the warps of a CTA share one R through the caches.
//
// n^2 flops a right-hand side; bound by the latency of n steps, which a batch hides.
#include <algorithm>

#include "cuda/collectives/tile.cuh"
#include "cuda/products/products.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/batch.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int warps = 4;

/// Thread map: lanes along a column of R. Dynamic shared memory: n elements a warp.
template <class T>
__global__ void __launch_bounds__(32 * warps)
    solve_upper_kernel(const std::int32_t* condition, T alpha, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> b) {
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char shared[];
  const Index n = b.rows;
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  T* const s_x = reinterpret_cast<T*>(shared) + warp * n;
  const T* const g_r = a.data + blockIdx.x * a.stride;
  for (Index column = static_cast<Index>(blockIdx.y) * warps + warp; column < b.cols; column += gridDim.y * warps) {
    T* const g_b = b.data + blockIdx.x * b.stride + column * b.ld;
    for (Index i = lane; i < n; i += warp_size) s_x[i] = alpha * g_b[i];
    __syncwarp();
    for (Index j = n - 1; j >= 0; --j) {
      const T* const g_column = g_r + j * a.ld;
      const T x = s_x[j] / g_column[j];
      __syncwarp();
      if (lane == 0) s_x[j] = x;
      for (Index i = lane; i < j; i += warp_size) s_x[i] = fma(-g_column[i], x, s_x[i]);
      __syncwarp();
    }
    for (Index i = lane; i < n; i += warp_size) g_b[i] = s_x[i];
    __syncwarp();
  }
}

}  // namespace

template <class T>
bool launch_solve_upper(const Launch& launch, T alpha, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& b) {
  constexpr std::size_t most = 128 * 1024;
  const std::size_t bytes = sizeof(T) * warps * static_cast<std::size_t>(b.rows);
  if (bytes > most || b.count > 0x7fffffff) return false;
  const auto kernel = solve_upper_kernel<T>;
  allow_shared_memory(kernel, bytes, "solve_upper");
  const dim3 grid(static_cast<unsigned>(b.count),
                  static_cast<unsigned>(std::min<Index>((b.cols + warps - 1) / warps, 65535)));
  kernel<<<grid, 32 * warps, bytes, launch.stream>>>(launch.condition, alpha, a, b);
  check_launch("solve_upper");
  return true;
}

template bool launch_solve_upper<float>(const Launch&, float, const DeviceMatrix<Cuda, float>&,
                                        const DeviceMatrix<Cuda, float>&);
template bool launch_solve_upper<double>(const Launch&, double, const DeviceMatrix<Cuda, double>&,
                                         const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
