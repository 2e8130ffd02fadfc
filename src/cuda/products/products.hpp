// SPDX-License-Identifier: Apache-2.0
// The fused kernels under gram, multiply_wide and trsm, for callers that have a launch of their own.
#pragma once

#include "cuda/queue/launch.hpp"

namespace qrane::backend::cuda {

/// AᵀA on fp64 tensor cores, a.cols <= max_fused_gram. Scratch: gram_partial_bytes at least.
template <class T>
void launch_gram(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                 const Scratch<Cuda>& scratch);
/// Bytes of one block's partial Gram matrix, for n columns.
std::int64_t gram_partial_bytes(Index n);

/// Q := A W, W upper triangular and held in shared memory, a.cols <= max_fused_multiply(); Q may be A.
template <class T>
void launch_multiply_wide(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                          const DeviceMatrix<Cuda, T>& q);

/// B := alpha A^-1 B for a batch of upper triangles; false, and nothing done, where they are too large.
template <class T>
bool launch_solve_upper(const Launch& launch, T alpha, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, T>& b);

}  // namespace qrane::backend::cuda
