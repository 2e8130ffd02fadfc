// SPDX-License-Identifier: Apache-2.0
// S := Omega A, a CountSketch whose rows of A are read 32 at a time (vocabulary/sketch.hpp has the map and its source).
// A warp owns 32 rows and `columns` columns of S and adds up one block of A after the other, in order: no atomics,
// the same bits every time. Bytes: A once, S once.
#include "cuda/collectives/kernel.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/products.hpp"
#include "vocabulary/sketch.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int columns = 4;  // of S per warp
constexpr int unroll = 2;   // blocks of A that a thread has in flight

/// Thread map: x over the rows of S (a warp is a group of 32), y over quadruples of columns.
template <class T>
__global__ void __launch_bounds__(256)
    sketch_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> s) {
  if (skipped(condition)) return;
  const auto groups = static_cast<std::uint32_t>(s.rows / 32);
  const std::uint32_t target = blockIdx.x * blockDim.x + threadIdx.x, group = target / 32, lane = target % 32;
  const Index j0 = (blockIdx.y * Index(blockDim.y) + threadIdx.y) * columns;
  if (group >= groups || j0 >= a.cols) return;
  const auto blocks = static_cast<std::uint32_t>((a.rows + s.rows - 1) / s.rows);
  T sum[columns] = {};
  for (std::uint32_t b = 0; b < blocks; b += unroll) {
    T x[unroll][columns] = {};
    bool negative[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::uint32_t source = (group + groups - count_sketch::offset(b + u, groups)) % groups;
      const Index i = Index(b + u) * s.rows + 32 * source + (lane ^ count_sketch::turn(b + u));
      negative[u] = count_sketch::sign(static_cast<std::uint32_t>(i)) != 0;
#pragma unroll
      for (int c = 0; c < columns; ++c)
        if (i < a.rows && j0 + c < a.cols) x[u][c] = a.data[i + (j0 + c) * a.ld];
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u)
#pragma unroll
      for (int c = 0; c < columns; ++c) sum[c] += negative[u] ? -x[u][c] : x[u][c];
  }
#pragma unroll
  for (int c = 0; c < columns; ++c)
    if (j0 + c < a.cols) s.data[target + (j0 + c) * s.ld] = sum[c];
}

}  // namespace

template <class T>
void apply_sketch(const Queue& queue, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& s) {
  const Launch launch(queue);
  if (s.rows == 0 || s.cols == 0) return;
  const Index quads = (a.cols + columns - 1) / columns;
  const dim3 block(64, 4);
  const dim3 grid(static_cast<unsigned>((s.rows + 63) / 64), static_cast<unsigned>((quads + 3) / 4));
  sketch_kernel<<<grid, block, 0, launch.stream>>>(launch.condition, a, s);
  check_launch("sketch kernel");
}

template void apply_sketch(const Queue&, const DeviceMatrix<Cuda, float>&, const DeviceMatrix<Cuda, float>&);
template void apply_sketch(const Queue&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
