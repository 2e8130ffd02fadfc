// SPDX-License-Identifier: Apache-2.0
// The CPU backend's tag: plain pointers, a pool of threads, BLAS underneath for products.
#pragma once

#include "vocabulary/kernels.hpp"

namespace qrane::backend {

namespace cpu {
class Queue;
}

struct Cpu {
  static constexpr const char* name = "cpu";
  template <class T>
  using Pointer = T*;
  using Queue = cpu::Queue;
};

}  // namespace qrane::backend
