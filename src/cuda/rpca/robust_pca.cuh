// SPDX-License-Identifier: Apache-2.0
// One element of a robust PCA iteration, and the last sum of its residual.
#pragma once

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/reduce.cuh"
#include "vocabulary/rpca.hpp"

namespace qrane::backend::cuda {

template <class T>
struct RobustPcaConstants {
  T mu, inverse_mu, inverse_mu_next, threshold;

  RobustPcaConstants(double mu, double mu_next, double threshold)
      : mu(static_cast<T>(mu)),
        inverse_mu(static_cast<T>(1 / mu)),
        inverse_mu_next(static_cast<T>(1 / mu_next)),
        threshold(static_cast<T>(threshold)) {}
};

/// Updates y, returns z.
template <class T>
__device__ T pass_element(const RobustPcaConstants<T>& k, T m, T l, T& y, T& s, T& x) {
  const T rest = m - l, v = rest + y * k.inverse_mu;
  s = v > k.threshold ? v - k.threshold : (v < -k.threshold ? v + k.threshold : v * T(0));  // NaN stays NaN
  const T z = rest - s;
  y += k.mu * z;
  x = m - s + y * k.inverse_mu_next;
  return z;
}

/// *result := the sum of `count` partial sums, in a fixed order.
void launch_robust_pca_sum(const Launch& launch, const double* partial, int count, double* result);

}  // namespace qrane::backend::cuda
