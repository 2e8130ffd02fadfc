// SPDX-License-Identifier: Apache-2.0
// Rounds of tile tasks on the CPU: what they mean, task after task. The CPU's own sparse QR is sparse/host/numeric.hpp.
#pragma once

#include "cpu/whole.hpp"
#include "paper/tiles/front_tiles.hpp"

namespace qrane::backend::cpu {

template <class T>
void run_tile_round(const Queue& queue, const FrontTileRound<Cpu, T>& round, std::int32_t bundle);

}  // namespace qrane::backend::cpu
