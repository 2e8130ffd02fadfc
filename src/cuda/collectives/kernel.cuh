// SPDX-License-Identifier: Apache-2.0
// What the element-wise kernels and the reductions share: the condition of a launch, vectors of
// 16 bytes, and a walk over the columns of a batch of matrices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/queue/launch.hpp"
#include "cuda/queue/status.hpp"

namespace qrane::backend::cuda {

/// True when a launch made by Queue::when must do nothing.
__device__ inline bool skipped(const std::int32_t* condition) { return condition != nullptr && *condition == 0; }

/// N scalars moved by one instruction (N * sizeof(T) is 4, 8 or 16).
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T v[N];
};

template <int N, class T>
bool is_aligned(const DeviceMatrix<Cuda, T>& a) {
  constexpr std::uintptr_t bytes = N * sizeof(T);
  return reinterpret_cast<std::uintptr_t>(a.data) % bytes == 0 && (a.cols < 2 || a.ld % N == 0) &&
         (a.count < 2 || a.stride % N == 0);
}

/// True when all elements of the batch are adjacent in memory.
template <class T>
bool is_contiguous(const DeviceMatrix<Cuda, T>& a) {
  return (a.cols < 2 || a.ld == a.rows) && (a.count < 2 || (a.stride == a.rows * a.cols));
}

/// The same elements as one column.
template <class T>
DeviceMatrix<Cuda, T> as_column(const DeviceMatrix<Cuda, T>& a) {
  const Index elements = a.rows * a.cols * a.count;
  return {a.data, elements, 1, std::max<Index>(elements, 1), 0, 1};
}

/// A grid of 256-thread blocks over chunks x cols x count: x along the column, y over columns, z over the batch.
struct Walk {
  dim3 grid, block;
};

/// At most max_blocks blocks; kernels loop over what the grid does not cover.
inline Walk plan_walk(Index chunks, Index cols, Index count, Index max_blocks) {
  unsigned x = 1;
  while (x < 256 && x < chunks) x *= 2;
  const unsigned y = 256 / x;
  const Index limit = std::max<Index>(max_blocks, 1);
  const Index gx = std::clamp<Index>((chunks + x - 1) / x, 1, std::min<Index>(limit, 1 << 30));
  const Index gy = std::clamp<Index>((cols + y - 1) / y, 1, std::min<Index>(std::max<Index>(limit / gx, 1), 65535));
  const Index gz = std::clamp<Index>(count, 1, std::min<Index>(std::max<Index>(limit / (gx * gy), 1), 65535));
  return {dim3(static_cast<unsigned>(gx), static_cast<unsigned>(gy), static_cast<unsigned>(gz)), dim3(x, y, 1)};
}

}  // namespace qrane::backend::cuda
