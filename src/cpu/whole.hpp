// SPDX-License-Identifier: Apache-2.0
// What the CPU does whole: its overloads of operations that have a default (tests/vocabulary/whole_test.cpp holds it to
// this list). Limits says how far each reaches.
#pragma once

#include "cpu/basic.hpp"

namespace qrane::backend::cpu {

// products
template <class T>
void multiply_full(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q);

// updates
template <class T>
void sweep(const Queue& queue, const Sweep<Cpu, T>& task);
template <class T>
void update_rows(const Queue& queue, const RowUpdate<Cpu, T>& task);

// small
inline Index small_svd_work(const Queue&, Index) { return 0; }  // LAPACK's is its own
void small_svd(const Queue& queue, const SmallSvd<Cpu>& task);

// rpca
void robust_pca_verdict(const Queue& queue, const RobustPcaVerdict<Cpu>& verdict);

}  // namespace qrane::backend::cpu
