// SPDX-License-Identifier: Apache-2.0
// How far the kernels reach on a device, for Queue::limits and for the launches' own checks.
#pragma once

#include "opencl/queue/device.hpp"

namespace qrane::backend::opencl {

constexpr int panel_cols = 32;  // NB of factor.cl

/// Rows of a block of panel_cols columns that are fast; taller blocks work in place in global memory.
template <class T>
int max_block_rows(const Device& device);

/// Columns of C that a group of update_fronts takes: what local memory and the largest group hold.
template <class T>
int front_update_cols(const Device& device);

}  // namespace qrane::backend::opencl
