// SPDX-License-Identifier: Apache-2.0
// The CUDA backend's tag: plain pointers into device memory.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

namespace cuda {
class Queue;
}

struct Cuda {
  static constexpr const char* name = "cuda";
  template <class T>
  using Pointer = T*;
  using Queue = cuda::Queue;
  static constexpr bool has_side = true;      // Queue::side() and lane() are queues of their own
  static constexpr bool records = true;       // Queue::recorded() keeps work
  static constexpr bool reaches_host = true;  // kernels read and write Queue::allocate_host's memory
  template <class T>
  static T* from_host(T* p) {
    return p;
  }
  /// Sums of float on tensor cores are truncated, not rounded, and errors of updates would add up: chains of updates
  /// are found in double, and applied to Q in double.
  static constexpr bool float_sums_lean = true;
};

}  // namespace qrane::backend
