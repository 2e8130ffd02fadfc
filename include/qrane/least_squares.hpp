// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for many right-hand sides in one call; least norm when A is wide.
#pragma once

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

struct LeastSquaresOptions {
  SolveOptions solve{};                        ///< tolerance, and what to do about rank deficiency
  Algorithm algorithm = Algorithm::automatic;  ///< any but cholesky_qr, which keeps no reflectors
  bool check_finite = false;  ///< refuse NaN and Inf in A or b, naming the first (waits for the device)
};

template <class T>
QRANE_API Solution<T> least_squares(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                                    std::type_identity_t<MatrixView<const T>> b,
                                    const LeastSquaresOptions& options = {});

/// Solves min ‖A x - b‖_2 for A, m x n, and every column of b, m x nrhs, by QR of A, or of A^T when m < n (LAPACK name:
/// gels; rank-deficient: gelsy). A and b are only read, in host or device memory; x lives where b does.
/// A rank-deficient A shows in the result's rank, and is solved as SolveOptions ask, or refused: Error{rank_deficient}.
/// Otherwise throws as qr().
template <MatrixLike A, MatrixLike B>
Solution<ScalarOf<A>> least_squares(const Context& context, const A& a, const B& b,
                                    const LeastSquaresOptions& options = {}) {
  return least_squares<ScalarOf<A>>(context, as_view(a), as_view(b), options);
}

}  // namespace qrane
