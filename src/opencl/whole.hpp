// SPDX-License-Identifier: Apache-2.0
// What OpenCL devices do whole: nothing yet, so that every operation with a default takes it.
#pragma once

#include "opencl/basic.hpp"
#include "vocabulary/rotations.hpp"

namespace qrane::backend::opencl {

// updates by Givens rotations
template <class T>
void make_rotations(const Queue& queue, const Rotations<OpenCL, T>& task);
template <class T>
void rotate(const Queue& queue, const Rotate<OpenCL, T>& task);

}  // namespace qrane::backend::opencl
