// SPDX-License-Identifier: Apache-2.0
// The basic operations on the CPU.
#pragma once

#include "cpu/queue/queue.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::backend::cpu {

using Self = Cpu;
template <class T>
using Mat = DeviceMatrix<Self, T>;

#include "vocabulary/basic.hpp"

template <class T>
Index pivoted_factor_scratch_bytes(const Queue&, Index, Index, T) {
  return 0;
}

}  // namespace qrane::backend::cpu
