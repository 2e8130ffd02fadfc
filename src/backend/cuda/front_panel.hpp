// SPDX-License-Identifier: Apache-2.0
// Launcher of front_panel.cu.
#pragma once

#include "backend/cuda/launch.hpp"
#include "backend/fronts.hpp"

namespace qrane::backend::cuda {

template <class T>
void launch_factor_front_panels(const Launch& launch, const Fronts<Cuda, T>& fronts,
                                const FrontTasks<Cuda, FrontPanelTask>& tasks);

}  // namespace qrane::backend::cuda
