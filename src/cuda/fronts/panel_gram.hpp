// SPDX-License-Identifier: Apache-2.0
// Panels of tall fronts in float, by their Gram matrices (panel_gram.cu).
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {

/// Fronts of more rows go by their Gram matrices.
inline constexpr std::int32_t front_gram_rows = 1024;
void launch_factor_front_panels_by_gram(const Launch& launch, const Fronts<Cuda, float>& fronts,
                                        const FrontTasks<Cuda, FrontPanelTask>& tasks);

}  // namespace qrane::backend::cuda
