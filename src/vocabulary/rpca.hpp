// SPDX-License-Identifier: Apache-2.0
// Robust PCA (rpca/iteration.hpp): element-wise passes over the data, and the stopping test on the device.
//
//   robust_pca_pass(queue, pass, scratch)      every backend has it
//
// Limits::max_rpca_step says up to how many columns robust_pca_step does a whole iteration after its SVD.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// One fused pass over m x n elements, all contiguous with equal ld:
///     s := shrink(m - l + y / mu, threshold),  z = m - l - s,  y := y + mu z,  x := m - s + y / mu_next
/// and the sum of z².
template <class B, class T>
struct RobustPcaPass {
  DeviceMatrix<B, T> m, l;     // in: data, low-rank part
  DeviceMatrix<B, T> y, s, x;  // y in/out; s, x out
  double mu = 0, mu_next = 0, threshold = 0;
  typename B::template Pointer<double> residual_squared{};  // out: sum z^2, one double, summed in a fixed order
};

/// All of an iteration after its SVD, in one pass over the data:
///     L = X P,  S = shrink(M - L + Y / mu, threshold),  Z = M - L - S,  Y' = Y + mu Z,  X' = M - S + Y' / mu_next
/// and the sum of Z's squares. It replaces gemm and robust_pca_pass.
template <class B, class T>
struct RobustPcaStep {
  DeviceMatrix<B, T> m, x, y;         // in
  DeviceMatrix<B, double> projector;  // in: P, n x n
  double mu = 0, mu_next = 0, threshold = 0;
  DeviceMatrix<B, T> x_next, y_next;                        // out, or null; not x and y
  DeviceMatrix<B, T> l, s;                                  // out, or null
  typename B::template Pointer<double> residual_squared{};  // out: one double, summed in a fixed order
};
template <class Queue, class B, class T>
Default robust_pca_step(const Queue&, const RobustPcaStep<B, T>&, const Scratch<B>&) {
  return not_whole("robust_pca_step");
}

/// The stopping test of an iteration, on the device. With residual = sqrt(*residual_squared) / norm (norm 0: not
/// divided) and L's singular values max(0, sigma - threshold):
///     record := residual, rank;  before := L's singular values
///     *running := 0 when residual is NaN, or when it is at most `tolerance` and (with `settle`) the singular values
///     have moved by no more than tolerance * norm in the Euclidean norm
template <class B>
struct RobustPcaVerdict {
  typename B::template Pointer<double> residual_squared{}, sigma{};  // in: one, n
  typename B::template Pointer<double> before{};                     // in/out: n
  typename B::template Pointer<double> record{};                     // out: two
  typename B::template Pointer<std::int32_t> running{};              // out
  Index n = 0;
  double threshold = 0, norm = 0, tolerance = 0;
  bool settle = false;
};
template <class Queue, class B>
Default robust_pca_verdict(const Queue&, const RobustPcaVerdict<B>&) {
  return not_whole("robust_pca_verdict");
}

}  // namespace qrane::backend
