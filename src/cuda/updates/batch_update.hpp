// SPDX-License-Identifier: Apache-2.0
// Launcher of batch_update.cu.
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/batch_update.hpp"

namespace qrane::backend::cuda {

/// Whether matrices of m x n and p rows or columns fit a block.
template <class T>
bool takes_batch_update(Index m, Index n, Index p);
template <class T>
void launch_batch_update(const Launch& launch, const BatchUpdate<Cuda, T>& task);

}  // namespace qrane::backend::cuda
