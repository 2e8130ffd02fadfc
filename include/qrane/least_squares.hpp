// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for many right-hand sides in one call; least norm when A is wide.
#pragma once

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

struct LeastSquaresOptions {
  SolveOptions solve;                          ///< tolerance, and what to do about rank deficiency
  Algorithm algorithm = Algorithm::automatic;  ///< any but cholesky_qr, which keeps no reflectors
  bool check_finite = false;  ///< refuse NaN and Inf in A or b, naming the first (waits for the device)
};

template <class T>
struct LeastSquaresResult {
  Solution<T> solution;
  Matrix<double> residual_norms;  ///< nrhs x 1, host: ‖A x - b‖_2 of each column
  bool from_gram = false;         ///< solved by A's Gram matrix, which was proven good enough; else by QR
};

/// Solves min ‖A x - b‖_2 for A, m x n, and every column of b, m x nrhs, by QR of A, or of A^T when m < n (LAPACK name:
/// gels; rank-deficient: gelsy). A and b are only read, in host or device memory; x lives where b does.
/// A rank-deficient A shows in the result's rank, and is solved as SolveOptions ask, or refused: Error{rank_deficient}.
template <class T>
QRANE_API LeastSquaresResult<T> least_squares(const Context& context, MatrixView<const T> a, MatrixView<const T> b,
                                              const LeastSquaresOptions& options = {});

}  // namespace qrane
