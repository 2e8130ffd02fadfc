// SPDX-License-Identifier: Apache-2.0
// How many columns the windows of a chain (update/chains/chain.hpp) have: a rule of the device's limits, for chains and
// prices.
#pragma once

#include <algorithm>

#include "vocabulary/queue.hpp"

namespace qrane::update {

/// Windows of at least and at most so many columns; a sweep takes carries of up to twice the least.
constexpr Index least_window = 32, most_window = 512;

/// Where tiles are narrow, on GPUs, a window that goes up and is factored as a matrix of its own takes about as long
/// with 200 columns as with 40: two small factorizations, mostly launches.
constexpr Index least_window_up = 192;

/// Whether one task of the tile kernels factors such a window.
constexpr bool is_one_task(const backend::Limits& limits, Index rows, Index cols) {
  return rows <= limits.max_block_rows && cols <= limits.max_panel_cols;
}

/// Columns of a window: `wanted`, if that is positive. Explicit windows cost least when they are about as wide as the
/// carry.
constexpr Index window_cols(const backend::Limits& limits, Index carry, Index wanted, bool down) {
  if (wanted > 0) return wanted;
  const bool narrow_tiles = limits.max_panel_cols <= least_window;
  const Index narrow = std::min<Index>(least_window, limits.max_panel_cols);
  if (narrow_tiles && narrow + carry <= limits.max_block_rows && (down || carry <= limits.max_panel_cols))
    return narrow;
  const Index least = narrow_tiles && !down ? least_window_up : least_window;
  return std::clamp(carry, least, most_window);
}

}  // namespace qrane::update
