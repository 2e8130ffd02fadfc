// SPDX-License-Identifier: Apache-2.0
// A page of the vocabulary of its own: which fronts (fronts.hpp) a backend does whole as fast as it can; for plans.
#pragma once

#include <limits>

#include "vocabulary/kernels.hpp"

namespace qrane::backend {

struct Cuda;

/// Fronts of more rows go by panels, however few elements they have.
template <class B>
inline constexpr Index most_whole_rows = std::numeric_limits<Index>::max();

/// What a warp's registers hold of a block of columns; beyond, a front would go column by column.
template <>
inline constexpr Index most_whole_rows<Cuda> = 256;

}  // namespace qrane::backend
