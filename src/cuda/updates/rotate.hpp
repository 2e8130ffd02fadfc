// SPDX-License-Identifier: Apache-2.0
// Launchers of rotate.cu.
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/rotations.hpp"

namespace qrane::backend::cuda {

template <class T>
void launch_make_rotations(const Launch& launch, const Rotations<Cuda, T>& task);
template <class T>
void launch_rotate(const Launch& launch, const Rotate<Cuda, T>& task);

}  // namespace qrane::backend::cuda
