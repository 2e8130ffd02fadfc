// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/whole.hpp"
#include "paper/tiles/front_tiles.hpp"

namespace qrane::backend::cuda {

/// `bundle`: most row tiles of a bundle, at most widest_bundle.
template <class T>
void run_tile_round(const Queue& queue, const FrontTileRound<Cuda, T>& round, std::int32_t bundle);

}  // namespace qrane::backend::cuda
