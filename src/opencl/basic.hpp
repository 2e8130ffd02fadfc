// SPDX-License-Identifier: Apache-2.0
// The basic operations on OpenCL devices.
#pragma once

#include "opencl/queue/queue.hpp"
#include "vocabulary/front_solve.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::backend::opencl {

using Self = OpenCL;
template <class T>
using Mat = DeviceMatrix<Self, T>;

#include "vocabulary/basic.hpp"

template <class T>
Index pivoted_factor_scratch_bytes(const Queue&, Index, Index, T) {
  return 0;
}

}  // namespace qrane::backend::opencl
