// SPDX-License-Identifier: Apache-2.0
// Launcher of front_update.cu (backend/fronts.hpp says what it computes).
#pragma once

#include "backend/cuda/launch.hpp"
#include "backend/fronts.hpp"

namespace qrane::backend::cuda {

/// Most columns of one task.
constexpr int front_update_strip = 64;

template <class T>
void launch_update_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                          const FrontTasks<Cuda, FrontUpdateTask>& tasks);

}  // namespace qrane::backend::cuda
