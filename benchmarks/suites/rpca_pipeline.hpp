// SPDX-License-Identifier: Apache-2.0
// Table II of the CAQR paper: one robust PCA pipeline in which nothing changes but the QR factorization.
//
// An iteration of inexact ALM (Lin, Chen, Ma, 2010, algorithm 5) on M, m x n, as the paper's section VI runs it:
//   X := M - S + Y / mu           on the device
//   X = Q R                       on the device, by CAQR or by BLAS2 Householder QR
//   R = U diag(s) Vᵀ              on the host, by LAPACK
//   L := Q [U max(s - 1/mu, 0) Vᵀ; 0]
//   S := shrink(M - L + Y / mu, lambda / mu), Y := Y + mu (M - L - S), mu := 1.5 mu
// BLAS2 QR is kernels/blas2.cu on a CUDA device, and LAPACK's unblocked geqr2 and orm2r on the CPU.
#pragma once

#include <functional>

#include "session.hpp"

namespace qrane::bench {

enum class PipelineQr { caqr, blas2 };

/// What the pipeline gives after some iterations.
struct PipelineState {
  int iterations = 0;
  Index rank = 0;       ///< singular values above the last threshold
  double residual = 0;  ///< ‖M - L - S‖_F / ‖M‖_F
};

template <class T>
class RpcaPipeline {
 public:
  virtual ~RpcaPipeline() = default;
  /// S := 0, Y := 0; then at most `iterations` iterations, fewer when the residual is at most `tolerance` or
  /// `on_iteration` returns false.
  virtual PipelineState run(int iterations, double tolerance,
                            const std::function<bool(const PipelineState&)>& on_iteration) = 0;
  /// Milliseconds of `function` on the pipeline's device.
  virtual double time_ms(const std::function<void()>& function) = 0;
};

/// M is in host memory, m >= n. Throws Error{unavailable} on a backend that has no BLAS2 QR here (OpenCL).
template <class T>
std::unique_ptr<RpcaPipeline<T>> make_pipeline(Session& session, MatrixView<const T> m, PipelineQr qr);

}  // namespace qrane::bench
