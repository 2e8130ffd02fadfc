// SPDX-License-Identifier: Apache-2.0
// What CUDA does whole: its overloads of operations that have a default (tests/vocabulary/whole_test.cpp holds it to
// this list). Limits says how far each reaches.
#pragma once

#include "cuda/basic.hpp"

namespace qrane::backend::cuda {

// products
void solve_wide(const Queue& queue, const Mat<double>& a, const Mat<double>& r, const Mat<double>& q);
template <class T>
void multiply_full(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q);

// panels
template <class T>
Chains absorb_chains(Cuda, T, Index rows, Index cols, bool checkpoints, int multiprocessors);
template <class T>
void absorb(const Queue& queue, const Absorb<Cuda, T>& task);
template <class T>
void form_absorbed(const Queue& queue, const FormAbsorbed<Cuda, T>& task);
template <class T>
void reflect_panel(const Queue& queue, const ReflectPanel<Cuda, T>& task, const Scratch<Cuda>& scratch);
template <class T>
void householder_panel(const Queue& queue, const HouseholderPanel<Cuda, T>& task);

// batch
template <class T>
void factor_small(const Queue& queue, const FactorSmall<Cuda, T>& task);
template <class T>
void apply_small(const Queue& queue, const ApplySmall<Cuda, T>& task);
template <class T>
void factor_whole_panel(const Queue& queue, const WholePanel<Cuda, T>& task);
template <class T>
void copy_table(const Queue& queue, const CopyTable<Cuda, T>& task);

// updates
void sweep(const Queue& queue, const Sweep<Cuda, double>& task);
void wide_sweep(const Queue& queue, const WideSweep<Cuda, float>& task);
template <class T>
void update_rows(const Queue& queue, const RowUpdate<Cuda, T>& task);
template <class T>
bool takes_batch_update(const Queue& queue, Index rows, Index cols, Index p, T);
template <class T>
void batch_update(const Queue& queue, const BatchUpdate<Cuda, T>& task);

// small
Index small_svd_work(const Queue& queue, Index n);
void small_svd(const Queue& queue, const SmallSvd<Cuda>& task);
Index least_squares_scratch_bytes(const Queue& queue, Index columns);

template <class T>
void solve_gram(const Queue& queue, const GramSolve<Cuda, T>& task, const Scratch<Cuda>& scratch);
template <class T>
void residual_squares(const Queue& queue, const Mat<T>& a, const Mat<T>& x, const Mat<T>& b, double* squares,
                      const Scratch<Cuda>& scratch);

// rpca
template <class T>
void robust_pca_step(const Queue& queue, const RobustPcaStep<Cuda, T>& step, const Scratch<Cuda>& scratch);
void robust_pca_verdict(const Queue& queue, const RobustPcaVerdict<Cuda>& verdict);

// fronts
template <class T>
void update_fronts_pair(const Queue& queue, const Fronts<Cuda, T>& f, const FrontTasks<Cuda, FrontUpdateTask>& tasks);

}  // namespace qrane::backend::cuda
