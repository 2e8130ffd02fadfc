// SPDX-License-Identifier: Apache-2.0
// What every least-squares solve of qrane returns, and the rule by which ranks are decided.
//
// A relative_tolerance is relative to the largest diagonal element of the column-pivoted R (svd: to the largest
// singular value). Negative: default_relative_tolerance. The rank is the count of diagonal elements (singular values)
// above the product of both, the absolute_tolerance. svd, QR, pivoted QR and least squares share this rule. Sparse
// factorizations do not pivot, and have an absolute tolerance of their own (sparse_qr.hpp).
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane {

/// (min(m, n) + 10) eps: the rounding errors of a QR by a tree do not grow with the larger dimension.
template <class T>
double default_relative_tolerance(Index rows, Index cols) {
  return static_cast<double>(std::min(rows, cols) + 10) * static_cast<double>(std::numeric_limits<T>::epsilon());
}

/// The rank of R, by column pivoting, or of a matrix, by its singular values.
struct RankReport {
  Index rank = 0;                 ///< diagonal elements of the pivoted R, or singular values, above absolute_tolerance
  Index full = 0;                 ///< min(m, n)
  double absolute_tolerance = 0;  ///< relative tolerance times the largest diagonal element or singular value
  double condition = 0;  ///< of R: estimate of its 1-norm condition number; of singular values: their ratio. Infinity
                         ///< when singular
};

struct SolveOptions {
  double relative_tolerance = -1;  ///< where the rank ends (see above); < 0: default_relative_tolerance
  bool least_norm = true;          ///< rank-deficient: the solution of least norm, else a basic one
  bool refuse_deficient = false;   ///< rank-deficient: throw Error{rank_deficient} instead
};

/// A least-squares solution for every right-hand side.
template <class T>
struct Solution {
  Matrix<T> x;           ///< n x nrhs, in the memory where the right-hand sides are
  Index rank = 0;        ///< < full: A is rank-deficient to the tolerance, and x is basic or of least norm
  Index full = 0;        ///< min(m, n)
  double condition = 0;  ///< estimate of R's 1-norm condition number; 0: not computed (sparse)
  std::vector<double> residual_norms;  ///< ‖A x - b‖_2 of each column: from least_squares and sparse solves, else empty
  bool from_gram = false;              ///< least_squares: solved by A's Gram matrix, which was proven accurate enough
  bool deficient() const { return rank < full; }
};

}  // namespace qrane
