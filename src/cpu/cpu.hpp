// SPDX-License-Identifier: Apache-2.0
// The CPU backend's tag: plain pointers, a pool of threads, BLAS underneath for products.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

namespace cpu {
class Queue;
}

struct Cpu {
  static constexpr const char* name = "cpu";
  template <class T>
  using Pointer = T*;
  using Queue = cpu::Queue;
  static constexpr bool has_side = false;     // Queue::side() and lane() are queues of their own
  static constexpr bool records = false;      // Queue::recorded() keeps work
  static constexpr bool reaches_host = true;  // kernels read and write Queue::allocate_host's memory
  template <class T>
  static T* from_host(T* p) {
    return p;
  }
  /// Sums of float are rounded to nearest, so that updates of float need no double (see cuda/cuda.hpp).
  static constexpr bool float_sums_lean = false;
};

}  // namespace qrane::backend
