// SPDX-License-Identifier: Apache-2.0
// What launch_multiply_full (multiply_full.cu) takes.
#pragma once

#include <cstdint>

namespace qrane::backend::cuda {

constexpr std::int32_t max_multiply_full = 192;  // columns

}  // namespace qrane::backend::cuda
