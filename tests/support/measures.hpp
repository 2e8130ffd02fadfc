// SPDX-License-Identifier: Apache-2.0
// The acceptance measures of a QR factorization, evaluated in wider arithmetic (double for float, long
// double for double). With p = min(m, n) + 10 and u the unit roundoff (2^-24, 2^-53):
//
//     ‖I - QᵀQ‖_F       <= 30 p u
//     ‖a_j - Q r_j‖     <= 30 p u ‖a_j‖ + what underflow alone loses      for every column j
//
// and R is exactly zero below its diagonal. Columns are scaled by exact powers of two first, so that no
// norm overflows or vanishes on the way, and a tiny column counts as much as a huge one.
//
// R alone is good when *some* orthonormal Q makes these residuals small. The textbook choice is the polar
// factor of A Rᵀ, but forming A Rᵀ squares the condition number: at 1e16 it would need twice the digits of
// the wider type. `polar_residual` therefore builds one such Q without that product. With A = Q0 R0 in
// wide arithmetic (column-scaled, R scaled alike) and rotations V that make the columns of R V orthogonal
// with falling norms (Jacobi), both R0 V and R V are brought to triangular form by reflections,
//
//     R0 V = Z L,   R V = Z1 L1,   W = Z D Z1ᵀ,  D = diag(±1) matching the signs of the diagonals,
//
// and the residual is that of Q = Q0 W: the columns of Q0ᵀ(A - Q R) = Z (L - D L1) Vᵀ. The measure is sound,
// since W is orthogonal whatever R is: a bad R cannot pass. It is complete up to a small factor: if
// R0 = W' R + E for any orthogonal W', then R0 V = W' Z1 L1 + E V, L1 is diagonal with falling entries s_i,
// and to first order |L - D L1|_ij <= |E V|_ij-like terms (1 + s_j / s_i) <= 2 ‖E‖; where s_j is of the size
// of ‖E‖ itself the entries are bounded by it. Rank-deficient R needs nothing special: the reflections
// complete Z and Z1.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/dense.hpp"

namespace qrane::test {

template <class T>
constexpr double unit_roundoff = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;

/// 30 p u.
template <class T>
double limit(Index m, Index n) {
  return 30.0 * static_cast<double>(std::min(m, n) + 10) * unit_roundoff<T>;
}

/// What gradual underflow alone may lose in a column: a rounding of the smallest number per entry and step.
template <class T>
Wide<T> underflow_allowance(Index m, Index n) {
  return 30 * static_cast<Wide<T>>(std::min(m, n) + 10) * std::sqrt(static_cast<Wide<T>>(m)) *
         static_cast<Wide<T>>(std::numeric_limits<T>::denorm_min());
}

/// Exponents e_j with max_i |a_ij| in [2^e_j, 2^(e_j + 1)); 0 for a zero column.
template <class T>
std::vector<int> column_exponents(const Dense<T>& a) {
  std::vector<int> e(static_cast<std::size_t>(a.cols), 0);
  for (Index j = 0; j < a.cols; ++j) {
    T largest = 0;
    for (Index i = 0; i < a.rows; ++i) largest = std::max(largest, std::abs(a(i, j)));
    if (largest > 0) e[static_cast<std::size_t>(j)] = std::ilogb(largest);
  }
  return e;
}

/// Column j times 2^-e_j.
template <class T>
Dense<Wide<T>> scaled(const Dense<T>& a, const std::vector<int>& e) {
  Dense<Wide<T>> b = widen(a);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) b(i, j) = std::ldexp(b(i, j), -e[static_cast<std::size_t>(j)]);
  return b;
}

/// Largest ratio of a column of `residual` to its limit; all in the scaled units of `a` (m x n).
template <class T>
double worst_column(const Dense<Wide<T>>& residual, const Dense<Wide<T>>& a, const std::vector<int>& e) {
  const auto unit = static_cast<Wide<T>>(limit<T>(a.rows, a.cols));
  double worst = 0;
  for (Index j = 0; j < a.cols; ++j) {
    const Wide<T> allowed =
        unit * column_norm(a, j) + std::ldexp(underflow_allowance<T>(a.rows, a.cols), -e[static_cast<std::size_t>(j)]);
    const auto ratio = static_cast<double>(column_norm(residual, j) / allowed);
    if (!(ratio <= worst)) worst = ratio;  // NaN is worse than all
    if (std::isnan(ratio)) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

/// ‖I - QᵀQ‖_F in units of its limit for an m x n problem: at most 1 is within.
template <class T>
double orthogonality(const Dense<T>& q, Index m, Index n) {
  const auto d = static_cast<double>(departure_from_orthonormal(widen(q)));
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d / limit<T>(m, n);
}

/// max_j ‖a_j - Q r_j‖ in units of its limit.
template <class T>
double residual(const Dense<T>& a, const Dense<T>& q, const Dense<T>& r) {
  const auto e = column_exponents(a);
  const auto as = scaled(a, e);
  return worst_column<T>(subtract(as, multiply(widen(q), scaled(r, e))), as, e);
}

/// max_j ‖a_j - Q r_j‖ for an orthonormal Q made from A and R (see above), in units of its limit.
template <class T>
double polar_residual(const Dense<T>& a, const Dense<T>& r) {
  using W = Wide<T>;
  if (!all_finite(r)) return std::numeric_limits<double>::infinity();
  const auto e = column_exponents(a);
  const Dense<W> as = scaled(a, e), rs = scaled(r, e);
  const Dense<W> r0 = a.rows > a.cols ? householder_qr(as).r : as;
  const Jacobi<W> turned = jacobi(rs);
  const Dense<W> l = householder_qr(multiply(r0, turned.v)).r;
  const Dense<W> l1 = householder_qr(turned.b).r;
  Dense<W> difference = l;
  for (Index i = 0; i < l.rows; ++i) {
    const W sign = l(i, i) * l1(i, i) < 0 ? W(-1) : W(1);
    for (Index j = 0; j < l.cols; ++j) difference(i, j) -= sign * l1(i, j);
  }
  return worst_column<T>(multiply(difference, transposed(turned.v)), as, e);
}

template <class T>
::testing::AssertionResult upper_triangular(const Dense<T>& r) {
  for (Index j = 0; j < r.cols; ++j)
    for (Index i = j + 1; i < r.rows; ++i)
      if (r(i, j) != T(0)) return ::testing::AssertionFailure() << "R(" << i << ", " << j << ") = " << r(i, j);
  return ::testing::AssertionSuccess();
}

template <class T>
::testing::AssertionResult has_shape(const Dense<T>& a, Index rows, Index cols) {
  if (a.rows == rows && a.cols == cols) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got " << a.rows << " x " << a.cols << ", want " << rows << " x " << cols;
}

inline ::testing::AssertionResult at_most_one(double value, const char* what) {
  if (value <= 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << what << " is " << value << " times its limit";
}

/// A = Q R with orthonormal Q (thin or full) and upper trapezoidal R.
template <class T>
::testing::AssertionResult is_qr_of(const Dense<T>& a, const Dense<T>& q, const Dense<T>& r) {
  const Index k = std::min(a.rows, a.cols);
  const bool full = q.cols == a.rows && r.rows == a.rows;
  if (auto shape = has_shape(q, a.rows, full ? a.rows : k); !shape) return shape << " for Q";
  if (auto shape = has_shape(r, full ? a.rows : k, a.cols); !shape) return shape << " for R";
  if (auto triangle = upper_triangular(r); !triangle) return triangle;
  if (auto good = at_most_one(orthogonality(q, a.rows, a.cols), "the departure of Q from orthonormal"); !good)
    return good;
  return at_most_one(residual(a, q, r), "the largest column residual");
}

/// R is the triangular factor of a QR factorization of a matrix that differs from A by rounding.
template <class T>
::testing::AssertionResult is_r_of(const Dense<T>& a, const Dense<T>& r) {
  if (auto shape = has_shape(r, std::min(a.rows, a.cols), a.cols); !shape) return shape << " for R";
  if (auto triangle = upper_triangular(r); !triangle) return triangle;
  return at_most_one(polar_residual(a, r), "the largest column residual of R");
}

/// Columns of `got` and `want` differ by at most 30 p u times `scale` times the norm of the wanted column.
template <class T>
::testing::AssertionResult columns_agree(const Dense<T>& got, const Dense<T>& want, Index m, Index n,
                                         double scale = 1) {
  if (auto shape = has_shape(got, want.rows, want.cols); !shape) return shape;
  const auto e = column_exponents(want);
  const auto w = scaled(want, e);
  const auto difference = subtract(scaled(got, e), w);
  for (Index j = 0; j < want.cols; ++j) {
    const auto allowed = static_cast<Wide<T>>(scale * limit<T>(m, n)) * column_norm(w, j) +
                         std::ldexp(underflow_allowance<T>(m, n), -e[static_cast<std::size_t>(j)]);
    if (!(column_norm(difference, j) <= allowed))
      return ::testing::AssertionFailure()
             << "column " << j << " differs by " << static_cast<double>(column_norm(difference, j) / allowed)
             << " times what is allowed";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace qrane::test
