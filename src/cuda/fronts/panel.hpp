// SPDX-License-Identifier: Apache-2.0
// Launchers of front_panel.cu and, for tall fronts in float, front_panel_gram.cu.
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {

template <class T>
void launch_factor_front_panels(const Launch& launch, const Fronts<Cuda, T>& fronts,
                                const FrontTasks<Cuda, FrontPanelTask>& tasks);
/// Fronts of more rows go by their Gram matrices.
inline constexpr std::int32_t front_gram_rows = 1024;
void launch_factor_front_panels_by_gram(const Launch& launch, const Fronts<Cuda, float>& fronts,
                                        const FrontTasks<Cuda, FrontPanelTask>& tasks);

}  // namespace qrane::backend::cuda
