// SPDX-License-Identifier: Apache-2.0
// How far a factorization has drifted, in units of decision 9's limits: (min(m, n) + 10) u.
//
//     orthogonality   ‖(QᵀQ - I) v‖ for vectors v of random signs: the mean square over them is ‖QᵀQ - I‖_F² on average
//     residual        ‖sᵀ(A - Q R) e_j‖ / ‖sᵀ A e_j‖ for random signs s, column by column: either is the norm of its
//                     column on average
//     residual of R   the same of RᵀR and AᵀA on column-scaled vectors, where Q is not kept
//
// Two or three passes over Q and A with a block of vectors; the same vectors every time. Waits.
#pragma once

#include <cmath>
#include <limits>

#include "dense/pivoted_matrix.hpp"
#include "dense/transfer.hpp"

namespace qrane::update {

namespace detail {

constexpr Index drift_vectors = 16;

/// rows x drift_vectors signs, times `scale`.
template <class T>
Matrix<T> random_signs(Index rows, T scale) {
  Matrix<T> signs = Matrix<T>::host(rows, drift_vectors);
  std::uint64_t state = 1;
  for (Index c = 0; c < drift_vectors; ++c)
    for (Index i = 0; i < rows; ++i) signs(i, c) = (dense::random_bits(state) & 1) != 0 ? scale : -scale;
  return signs;
}

/// Squares of the norms of the columns.
template <class T>
std::vector<double> column_squares(const Matrix<T>& a) {
  std::vector<double> squares(static_cast<std::size_t>(a.cols()), 0.0);
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i) {
      const auto x = static_cast<double>(a(i, j));
      squares[static_cast<std::size_t>(j)] += x * x;
    }
  return squares;
}

/// The larger one, and NaN before everything.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace detail

template <class T>
double drift_unit(Index m, Index n) {
  return static_cast<double>(std::min(m, n) + 10) * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
}

template <class T>
void check_lent_matrix(MatrixView<const T> a, Index m, Index n) {
  dense::check_view("a", a);
  qrane::detail::check((a.rows == 0 && a.cols == 0) || (a.rows == m && a.cols == n), ErrorCode::invalid_argument,
                       "a is ", a.rows, " x ", a.cols, ", but the matrix is ", m, " x ", n);
}

/// ‖QᵀQ - I‖_F, estimated. multiply(x, y): y := Q x; project(y, x): x := Qᵀ y; Q is rows x cols.
template <class B, class T, class Multiply, class Project>
double orthogonality_drift(typename B::Queue& queue, Index rows, Index cols, Multiply multiply, Project project) {
  if (cols == 0) return 0;
  const Matrix<T> signs = detail::random_signs<T>(cols, T(1));
  const dense::Temporary<B, T> x(queue, cols, signs.cols()), y(queue, rows, signs.cols());
  dense::load<B, T>(queue, signs.view(), x.matrix);
  multiply(x.matrix, y.matrix);
  project(y.matrix, x.matrix);
  Matrix<T> back = Matrix<T>::host(cols, signs.cols());
  dense::store<B, T>(queue, x.matrix, back.view());
  for (Index c = 0; c < back.cols(); ++c)
    for (Index i = 0; i < cols; ++i) back(i, c) -= signs(i, c);
  double sum = 0;
  for (const double square : detail::column_squares(back)) sum += square;
  return std::sqrt(sum / static_cast<double>(back.cols()));
}

/// max_j ‖a_j - Q r_j‖ / ‖a_j‖, estimated. a: m x n on the device; r: k x n, its upper trapezoid read; project as
/// above.
template <class B, class T, class Project>
double residual_drift(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                      const backend::DeviceMatrix<B, T>& r, Project project) {
  using namespace backend;
  if (a.rows == 0 || a.cols == 0) return 0;
  const Matrix<T> signs = detail::random_signs<T>(a.rows, T(1) / std::sqrt(static_cast<T>(a.rows)));
  const dense::Temporary<B, T> s(queue, a.rows, signs.cols()), of_a(queue, signs.cols(), a.cols),
      in_q(queue, r.rows, signs.cols()), upper(queue, r.rows, a.cols);
  dense::load<B, T>(queue, signs.view(), s.matrix);
  gemm(queue, Op::transpose, Op::none, T(1), s.matrix, a, T(0), of_a.matrix);
  Matrix<T> host = Matrix<T>::host(signs.cols(), a.cols);
  dense::store<B, T>(queue, of_a.matrix, host.view());
  const std::vector<double> norms = detail::column_squares(host);
  if (r.rows > 0) {
    copy(queue, r, upper.matrix, Part::upper);
    project(s.matrix, in_q.matrix);
    gemm(queue, Op::transpose, Op::none, T(-1), in_q.matrix, upper.matrix, T(1), of_a.matrix);
  }
  dense::store<B, T>(queue, of_a.matrix, host.view());
  const std::vector<double> left = detail::column_squares(host);
  double worst = 0;
  for (std::size_t j = 0; j < left.size(); ++j)
    if (left[j] != 0) worst = detail::worse(std::sqrt(left[j] / norms[j]), worst);
  return worst;
}

/// The same where only R is kept: ‖D (AᵀA - RᵀR) D v‖ over ‖D AᵀA D v‖, D making A's columns of one length.
template <class B, class T>
double triangle_drift(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                      const backend::DeviceMatrix<B, T>& r) {
  using namespace backend;
  if (a.rows == 0 || a.cols == 0) return 0;
  const Index n = a.cols, vectors = detail::drift_vectors;
  const Matrix<T> rows = detail::random_signs<T>(r.rows, T(1) / std::sqrt(static_cast<T>(std::max<Index>(r.rows, 1))));
  const dense::Temporary<B, T> s(queue, a.rows, vectors), of_r(queue, vectors, n), x(queue, n, vectors),
      y(queue, n, vectors), upper(queue, r.rows, n), w(queue, r.rows, vectors);
  dense::load<B, T>(queue, rows.view(), w.matrix);
  copy(queue, r, upper.matrix, Part::upper);
  gemm(queue, Op::transpose, Op::none, T(1), w.matrix, upper.matrix, T(0),
       of_r.matrix);  // R's columns are as long as A's
  Matrix<T> host = Matrix<T>::host(vectors, n);
  dense::store<B, T>(queue, of_r.matrix, host.view());
  std::vector<double> scale = detail::column_squares(host);
  for (double& value : scale) value = value > 0 ? std::exp2(-std::rint(std::log2(value) / 2)) : 1;
  Matrix<T> v = detail::random_signs<T>(n, T(1));
  for (Index c = 0; c < vectors; ++c)
    for (Index j = 0; j < n; ++j) v(j, c) *= static_cast<T>(scale[static_cast<std::size_t>(j)]);
  dense::load<B, T>(queue, std::as_const(v).view(), x.matrix);
  gemm(queue, Op::none, Op::none, T(1), a, x.matrix, T(0), s.matrix);
  gemm(queue, Op::transpose, Op::none, T(1), a, s.matrix, T(0), y.matrix);
  const auto total = [&] {
    Matrix<T> out = Matrix<T>::host(n, vectors);
    dense::store<B, T>(queue, y.matrix, out.view());
    double sum = 0;
    for (Index c = 0; c < vectors; ++c)
      for (Index j = 0; j < n; ++j) {
        const double value = static_cast<double>(out(j, c)) * scale[static_cast<std::size_t>(j)];
        sum += value * value;
      }
    return std::sqrt(sum);
  };
  const double whole = total();
  gemm(queue, Op::none, Op::none, T(1), upper.matrix, x.matrix, T(0), w.matrix);
  gemm(queue, Op::transpose, Op::none, T(-1), upper.matrix, w.matrix, T(1), y.matrix);
  const double left = total();
  return left == 0 ? 0 : left / whole;
}

}  // namespace qrane::update
