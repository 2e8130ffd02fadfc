// SPDX-License-Identifier: Apache-2.0
// The papers' own operations on OpenCL devices.
#pragma once

#include "opencl/whole.hpp"
#include "paper/updates/rotations.hpp"

namespace qrane::backend::opencl {

template <class T>
void make_rotations(const Queue& queue, const Rotations<OpenCL, T>& task);
template <class T>
void rotate(const Queue& queue, const Rotate<OpenCL, T>& task);

}  // namespace qrane::backend::opencl
