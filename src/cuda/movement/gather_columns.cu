// SPDX-License-Identifier: Apache-2.0
// gather_columns: columns of a matrix in a given order; one read, one write.
#include "cuda/collectives/kernel.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/movement.hpp"

namespace qrane::backend::cuda {
namespace {

/// Thread map: x along the rows, y over the columns.
template <class T>
__global__ void __launch_bounds__(256)
    gather_columns_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> source, const std::int32_t* columns,
                          DeviceMatrix<Cuda, T> target) {
  if (skipped(condition)) return;
  for (Index j = blockIdx.y; j < target.cols; j += gridDim.y) {
    const Index from = columns[j];
    if (from >= source.cols) continue;
    for (Index i = blockIdx.x * Index(256) + threadIdx.x; i < target.rows; i += gridDim.x * Index(256))
      target.data[i + j * target.ld] = source.data[i + from * source.ld];
  }
}

}  // namespace

template <class T>
void gather_columns(const Queue& queue, const DeviceMatrix<Cuda, T>& source, std::int32_t* columns,
                    const DeviceMatrix<Cuda, T>& target) {
  const Launch launch(queue);
  if (target.rows == 0 || target.cols == 0) return;
  const dim3 grid(static_cast<unsigned>(std::clamp<Index>((target.rows + 255) / 256, 1, 1024)),
                  static_cast<unsigned>(std::min<Index>(target.cols, 65535)));
  gather_columns_kernel<T><<<grid, 256, 0, launch.stream>>>(launch.condition, source, columns, target);
  check_launch("gather_columns kernel");
}

template void gather_columns(const Queue&, const DeviceMatrix<Cuda, float>&, std::int32_t*,
                             const DeviceMatrix<Cuda, float>&);
template void gather_columns(const Queue&, const DeviceMatrix<Cuda, double>&, std::int32_t*,
                             const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
