// SPDX-License-Identifier: Apache-2.0
// Column-pivoted, rank-revealing QR: A P = Q R with |r_00| >= |r_11| >= ... (LAPACK name: geqp3).
#pragma once

#include <vector>

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

/// How pivots are chosen.
enum class Pivoting {
  automatic,   ///< exact, or randomized where min(m, n) is large and the backend has it
  exact,       ///< the longest column that is left, at every step (Businger, Golub 1965), as LAPACK's geqp3 does
  randomized,  ///< blocks of pivots from a seeded sketch of what is left (Duersch, Gu 2017; Martinsson and others
               ///< 2017): the same bits every time; |r_kk| is within a factor of 10 of every later one's, and in
               ///< practice of 2
};

QRANE_API const char* to_string(Pivoting pivoting);
QRANE_API Pivoting pivoting_from_string(const std::string& name);

struct PivotOptions {
  double tolerance = -1;  ///< relative to |r_00|: where the rank ends; < 0: (min(m, n) + 10) eps
  Index max_rank = -1;    ///< columns to factor at most; < 0: min(m, n)
  bool truncate =
      false;  ///< end at the rank: R is rank x n, Q m x rank, and what is left out is of the tolerance's size
  QForm q = QForm::implicit;  ///< implicit, thin or none
  Pivoting pivoting = Pivoting::automatic;
  bool check_finite = false;  ///< refuse NaN and Inf, naming the first (waits for the device)
};

namespace detail {
template <class T>
class QRANE_API PivotedState;
}

/// A P = Q R. `kept` below is min(m, n), max_rank, or the rank of a truncated factorization. Results live where A
/// lived. NaN and Inf spread to what they touch; a column that holds one is pivoted last.
template <class T>
class QRANE_API PivotedQR {
 public:
  PivotedQR(PivotedQR&&) noexcept;
  PivotedQR& operator=(PivotedQR&&) noexcept;
  ~PivotedQR();

  Index rows() const;
  Index cols() const;
  /// Leading diagonal elements of R above the tolerance. Waits for the device, as everything below.
  Index rank() const;
  Index kept() const;
  /// tolerance * |r_00|.
  double tolerance() const;
  /// How the pivots were chosen; never automatic.
  Pivoting pivoting() const;
  /// Column j of A P is column permutation()[j] of A; n numbers.
  std::vector<Index> permutation() const;
  /// R, kept x n, upper trapezoidal with zeros below.
  Matrix<T> r() const;
  /// Q, m x kept. Throws Error{unavailable} with QForm::none.
  Matrix<T> q() const;
  /// C := Q C (C has m rows) or C Q (C has m columns) with the m x m Q, in place. Throws Error{unavailable} unless
  /// QForm::implicit kept the reflectors.
  void apply_q(MatrixView<T> c, Side side = Side::left) const;
  /// C := Q^T C or C Q^T, in place.
  void apply_qt(MatrixView<T> c, Side side = Side::left) const;
  /// Least-squares solution of A x = b for every column of b, m x nrhs, from the leading `rank` columns (by
  /// options.tolerance, < 0: the factorization's own): of least norm, or basic, with n - rank zeros. Throws
  /// Error{unavailable} with QForm::none, Error{rank_deficient} where options refuse deficiency.
  Solution<T> solve(MatrixView<const T> b, const SolveOptions& options = {}) const;

  /// For qrane itself.
  explicit PivotedQR(std::unique_ptr<detail::PivotedState<T>> state);

 private:
  std::unique_ptr<detail::PivotedState<T>> state_;
};

/// Factors a copy of A, m x n, any shape, host or device memory. A matrix with more rows than columns is reduced to its
/// triangle first, by any algorithm of qr(); the triangle is pivoted. Throws Error{invalid_argument} for QForm::lapack.
template <class T>
QRANE_API PivotedQR<T> pivoted_qr(const Context& context, MatrixView<const T> a, const PivotOptions& options = {});

}  // namespace qrane
