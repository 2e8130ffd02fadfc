// SPDX-License-Identifier: Apache-2.0
// Launchers of front_update.cu and front_update_pair.cu (vocabulary/fronts.hpp says what they compute).
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {

/// Most columns of one task: by one panel, and by two at once.
constexpr int front_update_strip = 64, front_update_pair_strip = 128;

template <class T>
void launch_update_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                          const FrontTasks<Cuda, FrontUpdateTask>& tasks);

template <class T>
void launch_update_fronts_pair(const Launch& launch, const Fronts<Cuda, T>& fronts,
                               const FrontTasks<Cuda, FrontUpdateTask>& tasks);

}  // namespace qrane::backend::cuda
