// SPDX-License-Identifier: Apache-2.0
// front_tiles.cu's launcher, and the queue's function over it.
#pragma once

#include "cuda/queue/launch.hpp"
#include "cuda/whole.hpp"
#include "vocabulary/front_tiles.hpp"

namespace qrane::backend::cuda {

/// `bundle`: most row tiles of a bundle, at most widest_bundle.
template <class T>
void launch_tile_round(const Launch& launch, const FrontTileRound<Cuda, T>& round, std::int32_t bundle);

template <class T>
void run_tile_round(Queue& queue, const FrontTileRound<Cuda, T>& round, std::int32_t bundle) {
  launch_tile_round(Launch(queue), round, bundle);
}

}  // namespace qrane::backend::cuda
