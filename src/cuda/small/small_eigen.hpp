// SPDX-License-Identifier: Apache-2.0
// Small eigenproblems by tridiagonal matrices (small_eigen.cu): faster than Jacobi's way, not for every matrix.
#pragma once

#include "cuda/queue/launch.hpp"
#include "vocabulary/small.hpp"

namespace qrane::backend::cuda {

using SmallSvd = backend::SmallSvd<Cuda>;

/// Doubles of SmallSvd::work that either of these needs.
std::int64_t small_eigen_work(Index n);

/// V and sigma of a Gram matrix: whether a task is one for it.
bool takes_small_eigen(const SmallSvd& task);
/// Does the task, or leaves it: returns a flag on the device that is 1 where another way must follow.
const std::int32_t* launch_small_eigen(const Launch& launch, const SmallSvd& task);

/// Of a triangle R = U diag(sigma) Vᵀ something near U, orthonormal, and X = Rᵀ U, whose columns are nearly orthogonal
/// then: n x n each without gaps, where `missing` is 0. All null: not of this task.
struct NearVectors {
  const double *u = nullptr, *x = nullptr;
  const std::int32_t* missing = nullptr;
};
NearVectors launch_near_vectors(const Launch& launch, const SmallSvd& task);

}  // namespace qrane::backend::cuda
