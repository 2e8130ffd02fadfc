// SPDX-License-Identifier: Apache-2.0
// Launchers of front_lines.cu, front_solve.cu and front_reflect.cu (vocabulary/front_solve.hpp says what each
// computes).
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::backend::cuda {

template <class T>
void launch_copy_lines(const Launch& launch, const CopyLines<Cuda, T>& task);
template <class T>
void launch_sum_lines(const Launch& launch, const SumLines<Cuda, T>& task);
template <class T>
void launch_norm_lines(const Launch& launch, const NormLines<Cuda, T>& task);

template <class T>
void launch_solve_front_rows(const Launch& launch, const FrontSolve<Cuda, T>& f,
                             const FrontTasks<Cuda, FrontBlock>& tasks, Op op);
template <class T>
void launch_update_front_rows(const Launch& launch, const FrontSolve<Cuda, T>& f,
                              const FrontTasks<Cuda, FrontBlock>& tasks, Op op);

template <class T>
void launch_reflect_front_lines(const Launch& launch, const FrontReflect<Cuda, T>& f,
                                const FrontTasks<Cuda, std::int32_t>& list, Op op);
template <class T>
void launch_multiply_front_panels(const Launch& launch, const FrontReflect<Cuda, T>& f,
                                  const FrontTasks<Cuda, FrontPanelPart>& tasks);
template <class T>
void launch_update_front_lines(const Launch& launch, const FrontReflect<Cuda, T>& f,
                               const FrontTasks<Cuda, FrontPanelPart>& tasks, Op op);

}  // namespace qrane::backend::cuda
