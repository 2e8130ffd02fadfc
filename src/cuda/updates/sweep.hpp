// SPDX-License-Identifier: Apache-2.0
// Launchers of sweep.cu; that of double alone stands with the others.
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/wide_sweep.hpp"

namespace qrane::backend::cuda {

template <>
void launch_sweep(const Launch& launch, const Sweep<Cuda, double>& task);
void launch_wide_sweep(const Launch& launch, const WideSweep<Cuda, float>& task);

}  // namespace qrane::backend::cuda
