// SPDX-License-Identifier: Apache-2.0
// How good a factorization is, by arithmetic that shares nothing with the factorization: products in double by the
// linked BLAS, on the host, over chunks of rows. With p = min(m, n) + 10 and u the unit roundoff of T:
//
//   orthogonality  ‖I - QᵀQ‖_F / (p u)                    at most 30 for a backward stable method
//   residual       max_j ‖a_j - Q r_j‖ / (p u ‖a_j‖)      at most 30
//
// For R alone Q is the orthogonal polar factor of A Rᵀ, which makes ‖A - QR‖_F least. With A = Q₂R₂ (Cholesky QR of
// A's Gram matrix in double; the benchmark matrices are well conditioned) that factor is Q₂W, W the polar factor of the
// n x n matrix R₂Rᵀ, and a_j - Q r_j has the norm of column j of R₂ - W R: no m x n matrix is needed but A.
//
// Where A may be ill-conditioned, R₂ comes from LAPACK's Householder QR in double, one chunk of rows after the other,
// and the polar factor of R₂Rᵀ would lose half the digits. There W = Z Uᵀ, from the SVD R = U S Vᵀ and the QR
// factorization R₂V = Z T: were R₂ and R factors of the same matrix, T would be S. Errors of either appear in T - S at
// their own size, small singular values or not.
#pragma once

#include <string>

#include <qrane/matrix.hpp>

namespace qrane::bench {

/// In units of p u; negative where it does not apply.
struct ErrorMeasures {
  double orthogonality = -1;
  double residual = -1;
  std::string how;  ///< "all columns", what R alone was compared with, or what was sampled

  static constexpr double limit = 30;
  bool good() const { return orthogonality <= limit && residual <= limit && residual == residual; }
};

/// flops that the checks may spend; beyond them columns and probe vectors are sampled.
struct CheckBudget {
  double flops = 1e11;
};

/// Q is m x k and R is k x n with k = min(m, n), host, column-major. With more flops than the budget, the residual is
/// taken of 64 columns, and ‖I - QᵀQ‖_F estimated by 16 probe vectors of random signs (its expectation is exact).
template <class T>
ErrorMeasures check_factors(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                            const CheckBudget& budget);

/// How check_r_alone finds R₂: the Gram matrix costs half as much and serves only well-conditioned matrices.
enum class ReferenceR { gram, householder };

/// Whether check_r_alone applies: affordable, and for the Gram matrix tall enough that A is surely well conditioned.
bool can_check_r_alone(Index rows, Index cols, ReferenceR reference, const CheckBudget& budget);

/// R alone (above). m n^2 or 2 m n^2 flops, and two n x n decompositions.
template <class T>
ErrorMeasures check_r_alone(MatrixView<const T> a, MatrixView<const T> r, ReferenceR reference = ReferenceR::gram);

/// Ratio of the largest to the smallest singular value of a square R, in double.
template <class T>
double condition_of(MatrixView<const T> r);

}  // namespace qrane::bench
