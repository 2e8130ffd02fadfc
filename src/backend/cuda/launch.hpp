// SPDX-License-Identifier: Apache-2.0
// What the CUDA queue calls and the .cu files define: one launcher per kernel of the vocabulary
// (backend/kernels.hpp says what each computes), explicitly instantiated for float and double.
#pragma once

#include <cuda_runtime_api.h>

#include "backend/kernels.hpp"

namespace qrane::backend {

namespace cuda {
class Queue;

/// Stream to launch on, and the condition of Queue::when: kernels return at once when it is set and *condition == 0.
struct Launch {
  cudaStream_t stream = nullptr;
  const std::int32_t* condition = nullptr;
};
}  // namespace cuda

struct Cuda {
  static constexpr const char* name = "cuda";
  template <class T>
  using Pointer = T*;
  using Queue = cuda::Queue;
};

namespace cuda {

// factor.cu, apply.cu: QR tile kernels
template <class T>
void launch_factor(const Launch& launch, const Panel<Cuda, T>& panel);
template <class T>
void launch_factor_tree(const Launch& launch, const Panel<Cuda, T>& panel);
template <class T>
void launch_apply_qt_h(const Launch& launch, const Apply<Cuda, T>& apply);
template <class T>
void launch_apply_qt_tree(const Launch& launch, const Apply<Cuda, T>& apply);
/// Largest rows of a contiguous block (or heads * cols) that the tile kernels take at 32 columns.
template <class T>
std::int32_t max_block_rows();

}  // namespace cuda
}  // namespace qrane::backend
