// SPDX-License-Identifier: Apache-2.0
// copy_table: matrices whose addresses are in a table, to or from contiguous memory. A block per matrix, its threads
// along the columns; one read and one write.
#include "cuda/collectives/kernel.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/batch.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 128;

/// Thread map: x along rows x cols, column by column.
template <class T>
__global__ void __launch_bounds__(threads) copy_table_kernel(const std::int32_t* condition, CopyTable<Cuda, T> task) {
  if (skipped(condition)) return;
  T* const there = task.table[blockIdx.x];
  T* const here = task.a.data + blockIdx.x * task.a.stride;
  const Index rows = task.a.rows, elements = rows * task.a.cols;
  Index i = threadIdx.x % rows, j = threadIdx.x / rows;
  const Index row_step = threads % rows, col_step = threads / rows;
  for (Index e = threadIdx.x; e < elements; e += threads) {
    if (task.gather)
      here[i + j * task.a.ld] = there[i + j * task.ld];
    else
      there[i + j * task.ld] = here[i + j * task.a.ld];
    i += row_step;
    j += col_step;
    if (i >= rows) i -= rows, ++j;
  }
}

}  // namespace

template <class T>
void copy_table(const Queue& queue, const CopyTable<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.a.count == 0 || task.a.rows == 0 || task.a.cols == 0) return;
  copy_table_kernel<<<static_cast<unsigned>(task.a.count), threads, 0, launch.stream>>>(launch.condition, task);
  check_launch("copy_table");
}

template void copy_table<float>(const Queue&, const CopyTable<Cuda, float>&);
template void copy_table<double>(const Queue&, const CopyTable<Cuda, double>&);

}  // namespace qrane::backend::cuda
