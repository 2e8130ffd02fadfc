// SPDX-License-Identifier: Apache-2.0
// Launchers of front_assembly.cu and front_whole.cu (vocabulary/fronts.hpp says what each computes).
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {

template <class T>
void launch_lay_out_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                           const FrontTasks<Cuda, std::int32_t>& list);
template <class T>
void launch_assemble_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                            const FrontTasks<Cuda, FrontShare>& tasks);
template <class T>
void launch_finish_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                          const FrontTasks<Cuda, FrontShare>& tasks);

template <class T>
void launch_pack_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                        const FrontTasks<Cuda, FrontPieceTask>& tasks);
template <class T>
void launch_unpack_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                          const FrontTasks<Cuda, FrontPieceTask>& tasks);

/// Most elements of a front of launch_factor_whole_fronts on the current device.
template <class T>
Index front_whole_elements();
template <class T>
void launch_factor_whole_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                                const FrontTasks<Cuda, std::int32_t>& list, bool keep_q);

}  // namespace qrane::backend::cuda
