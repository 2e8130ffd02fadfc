// SPDX-License-Identifier: Apache-2.0
// Robust principal component analysis: M = L + S, L of low rank, S sparse.
//   inexact_alm  Lin, Chen, Ma, "The augmented Lagrange multiplier method for exact recovery of corrupted
//                low-rank matrices" (2010), algorithm 5: mu grows by rho each iteration
//   alternating  Yuan, Yang, "Sparse and low-rank matrix decomposition via alternating direction methods"
//                (2009), as in Anderson et al. (2011), figure 11: fixed mu, hundreds of iterations
#pragma once

#include <functional>

#include <qrane/export.h>
#include <qrane/context.hpp>
#include <qrane/matrix.hpp>
#include <qrane/qr.hpp>

namespace qrane {

enum class RobustPcaMethod { inexact_alm, alternating };

struct RobustPcaProgress {
  int iteration = 0;    ///< from 1
  double residual = 0;  ///< ‖M - L - S‖_F / ‖M‖_F
  Index rank = 0;       ///< of L in this iteration
  double mu = 0;
  double seconds = 0;  ///< since the start
};

struct RobustPcaOptions {
  RobustPcaMethod method = RobustPcaMethod::inexact_alm;
  double tolerance = 1e-4;  ///< on the residual; 1e-6 can be reached in float. With the fixed mu of `alternating`
                            ///< also on the change of L's singular values, relative to ‖M‖_F
  int max_iterations = 1000;
  double lambda_multiplier = 1;  ///< lambda = multiplier / sqrt(max(m, n))
  double mu = 0;                 ///< 0: 1.25 / ‖M‖_2 (inexact_alm), m n / (4 ‖M‖_1) (alternating)
  double rho = 1.5;              ///< inexact_alm: growth of mu
  /// How the tall matrix of an iteration is reduced for its singular values. automatic: to its Gram matrix, in double,
  /// where that costs the result nothing, else by the QR that its plan takes; any other: by that QR
  Algorithm algorithm = Algorithm::automatic;
  bool check_finite = false;  ///< refuse NaN and Inf, naming the first (waits for the device)
  /// Called after every iteration; returning false stops with what there is (converged = false).
  std::function<bool(const RobustPcaProgress&)> on_iteration;
};

template <class T>
struct RobustPca {
  Matrix<T> low_rank;  ///< m x n, where M lives
  Matrix<T> sparse;    ///< m x n
  int iterations = 0;
  Index rank = 0;  ///< of the last L
  double residual = 0;
  bool converged = false;
  double seconds = 0;  ///< of the iterations, without transfers
};

/// Separates M (m x n, only read; m >= n is the fast shape) into low rank and sparse. Reaching max_iterations is no
/// error: see RobustPca::converged. Takes five matrices of M's size in device memory, and those of the QR where it
/// needs one. On CUDA, to 128 columns, an iteration never waits for the host; without `on_iteration` the host looks at
/// every eighth. Throws Error{invalid_argument} for options that make no sense, else as qr().
template <class T>
QRANE_API RobustPca<T> robust_pca(const Context& context, MatrixView<const T> m, const RobustPcaOptions& options = {});

}  // namespace qrane
