// SPDX-License-Identifier: Apache-2.0
// Launches over lines of right-hand sides: one alone, or tiles of sixteen.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "vocabulary/memory.hpp"

namespace qrane::backend::cuda {

/// run(tile, grid): `tile` is an integral constant; the grid has a block per task (x) and tile of right-hand sides (y).
template <class Run>
void by_tiles(Index tasks, int cols, Run run) {
  constexpr int most = 16;
  const auto blocks = static_cast<unsigned>(tasks);
  if (cols == 1)
    run(std::integral_constant<int, 1>{}, dim3(blocks));
  else
    run(std::integral_constant<int, most>{}, dim3(blocks, static_cast<unsigned>((cols + most - 1) / most)));
}

}  // namespace qrane::backend::cuda
