// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for many right-hand sides in one call; least norm when A is wide.
#pragma once

#include <qrane/qr.hpp>

namespace qrane {

struct LeastSquaresOptions {
  SolveOptions solve;
  Algorithm algorithm = Algorithm::automatic;
  bool check_finite = false;
};

template <class T>
struct LeastSquaresResult {
  Solution<T> solution;
  Matrix<double> residual_norms;  ///< nrhs x 1, host: ‖A x - b‖_2 of each column
};

/// Solves min ‖A x - b‖_2 by QR of A, or of A^T when m < n (LAPACK name: gels; rank-deficient: gelsy).
/// A rank-deficient A is reported in the result's rank, and solved as SolveOptions ask.
template <class T>
LeastSquaresResult<T> least_squares(const Context& context, MatrixView<const T> a, MatrixView<const T> b,
                                    const LeastSquaresOptions& options = {});

}  // namespace qrane
