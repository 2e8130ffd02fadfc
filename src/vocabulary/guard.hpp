// SPDX-License-Identifier: Apache-2.0
// The guard of Cholesky-based methods: a Cholesky factor with a bound on the condition number.
//
//   guarded_cholesky(queue, task)      every backend has it
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// One n x n Cholesky factorization with its proof (see dense/cholesky_qr.hpp).
///
/// With D = diag(G)^(1/2): G = D (R̂ᵀ R̂ - shift I) D, R = R̂ D, W = R^-1, kappa = ‖R̂‖_F ‖R̂^-1‖_F, and the bound is
/// kappa + n * rounding * kappa^2, infinite when a pivot is not positive or anything is not finite, and where a backend
/// sees early that it exceeds both limits.
/// `failed` is set to 1 when the bound exceeds `fit_limit`; else it is left at its value (so that several passes share
/// one flag). R and W of a finite bound are given whatever the limits.
template <class B, class T>
struct GuardedCholesky {
  DeviceMatrix<B, double> gram;                          // in: upper triangle read, and kept
  DeviceMatrix<B, double> r;                             // out: R upper, zeros below, wide
  DeviceMatrix<B, double> inverse;                       // out: W = R^-1 upper, zeros below
  typename B::template Pointer<std::int32_t> failed{};   // in/out, unless null
  typename B::template Pointer<std::int32_t> verdict{};  // out, unless null: four flags, the bound is [0] within limit,
                                                         // [1] beyond it, [2] beyond it but within fit_limit,
                                                         // [3] beyond fit_limit
  typename B::template Pointer<double> condition{};      // out: one double, kappa's upper bound
  double limit = 0;
  double fit_limit = 0;  // R still makes a preconditioner; limit if that is larger
  double rounding = 0;
  double shift = 0;
};

}  // namespace qrane::backend
