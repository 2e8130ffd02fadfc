// SPDX-License-Identifier: Apache-2.0
// The papers' own operations on CUDA.
#pragma once

#include "cuda/whole.hpp"
#include "paper/tiles/front_tiles.hpp"
#include "paper/updates/rotations.hpp"

namespace qrane::backend::cuda {

/// `bundle`: most row tiles of a bundle, at most widest_bundle.
template <class T>
void run_tile_round(const Queue& queue, const FrontTileRound<Cuda, T>& round, std::int32_t bundle);

template <class T>
void make_rotations(const Queue& queue, const Rotations<Cuda, T>& task);
template <class T>
void rotate(const Queue& queue, const Rotate<Cuda, T>& task);

}  // namespace qrane::backend::cuda
