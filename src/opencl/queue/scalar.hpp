// SPDX-License-Identifier: Apache-2.0
// What the host side of the kernels says about a scalar type. Internal to this backend.
#pragma once

#include <type_traits>

#include "opencl/queue/device.hpp"

namespace qrane::backend::opencl {

template <class T>
constexpr const char* type_name = std::is_same_v<T, double> ? "double" : "float";

/// The defines that every file needs.
template <class T>
Defines real_defines(int work_group) {
  return {{"REAL", type_name<T>},
          {"REAL_IS_DOUBLE", std::is_same_v<T, double> ? "1" : "0"},
          {"WG", std::to_string(work_group)}};
}

/// Throws Error{unavailable} when kernels of this scalar cannot run on the device.
template <class T>
void check_scalar(const Device& device) {
  detail::check(!std::is_same_v<T, double> || device.has_double(), ErrorCode::unavailable,
                "OpenCL: this device has no double precision (cl_khr_fp64)");
}

/// The reductions of reduce.cl.
enum class Reduction : int { sum_squares = 0, sum_abs = 1, max_abs = 2 };

/// Work-items along the rows of a strip (common.cl): a power of two, no more than the rows ask for.
inline int strip_lanes(Index rows, int work_group) {
  int lanes = 1;
  while (lanes < work_group && lanes < rows) lanes *= 2;
  return lanes;
}

/// Strips of a batch, as strip_count in common.cl computes them.
inline Index strip_count(Index rows, Index cols, Index count, int lanes, int work_group) {
  const Index strip_rows = 8 * lanes, strip_cols = work_group / lanes;
  return (rows + strip_rows - 1) / strip_rows * ((cols + strip_cols - 1) / strip_cols) * count;
}

/// Groups of an element-wise kernel; each takes strips in turn, so that no launch is too large for a driver.
inline Index strip_groups(Index strips) { return strips < 65536 ? strips : 65536; }

}  // namespace qrane::backend::opencl
