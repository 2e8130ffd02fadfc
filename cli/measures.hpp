// SPDX-License-Identifier: Apache-2.0
// How good a factorization is, in arithmetic wider than its own, for matrices small enough to ask on the host.
//   orthogonality  ‖I - QᵀQ‖_F / (p u)              p = min(m, n) + 10, u the unit roundoff of T;
//   residual       max_j ‖a_j - Q r_j‖ / (p u ‖a_j‖)   both at most 30 for a backward stable method
//   gram_residual  ‖AᵀA - RᵀR‖_F / ‖A‖_F²           what R alone can show
// Cost: m k² and 2 m k n wide multiply-adds for k columns of Q; m n² for the Gram residual.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include <cli/common.hpp>
#include <qrane/matrix.hpp>

namespace qrane::cli {

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

struct QrErrors {
  std::optional<double> orthogonality, residual, gram_residual;
  double seconds = 0;  ///< what measuring takes, about
};

/// Wide multiply-adds that are done in about a second.
template <class T>
constexpr double cheap_operations = std::is_same_v<T, float> ? 1e9 : 3e8;

template <class T>
Wide<T> wide_dot(const T* x, const T* y, Index n) {
  Wide<T> sum = 0;
  for (Index i = 0; i < n; ++i) sum += static_cast<Wide<T>>(x[i]) * static_cast<Wide<T>>(y[i]);
  return sum;
}

/// p u of decision 9.
template <class T>
double error_unit(Index rows, Index cols) {
  return static_cast<double>(std::min(rows, cols) + 10) * std::numeric_limits<T>::epsilon() / 2;
}

template <class T>
double orthogonality_error(MatrixView<const T> q, double unit) {
  Wide<T> sum = 0;
  for (Index j = 0; j < q.cols; ++j) {
    for (Index i = 0; i <= j; ++i) {
      const Wide<T> gap = wide_dot(q.data + i * q.ld, q.data + j * q.ld, q.rows) - (i == j ? 1 : 0);
      sum += gap * gap * (i == j ? 1 : 2);
    }
  }
  return static_cast<double>(std::sqrt(sum)) / unit;
}

template <class T>
double residual_error(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r, double unit) {
  double worst = 0;
  std::vector<Wide<T>> gap(static_cast<std::size_t>(a.rows));
  for (Index j = 0; j < a.cols; ++j) {
    const T* column = a.data + j * a.ld;
    std::copy_n(column, a.rows, gap.begin());
    for (Index k = 0; k <= std::min(j, q.cols - 1); ++k) {
      const Wide<T> r_kj = r.data[k + j * r.ld];
      for (Index i = 0; i < a.rows; ++i) gap[i] -= r_kj * q.data[i + k * q.ld];
    }
    Wide<T> sum = 0;
    for (const Wide<T> g : gap) sum += g * g;
    const Wide<T> norm = std::sqrt(wide_dot(column, column, a.rows));
    const Wide<T> error = std::sqrt(sum);
    if (!(error == 0)) worst = std::max(worst, static_cast<double>(error / norm) / unit);
  }
  return worst;
}

template <class T>
double gram_error(MatrixView<const T> a, MatrixView<const T> r) {
  Wide<T> sum = 0, trace = 0;
  for (Index j = 0; j < a.cols; ++j) {
    for (Index i = 0; i <= j; ++i) {
      const Wide<T> gram = wide_dot(a.data + i * a.ld, a.data + j * a.ld, a.rows);
      const Wide<T> gap = gram - wide_dot(r.data + i * r.ld, r.data + j * r.ld, std::min(i + 1, r.rows));
      sum += gap * gap * (i == j ? 1 : 2);
      if (i == j) trace += gram;
    }
  }
  return trace > 0 ? static_cast<double>(std::sqrt(sum) / trace) : 0;
}

/// Host views; q may be null (R alone). What would take long is left out.
template <class T>
QrErrors cheap_errors(MatrixView<const T> a, const MatrixView<const T>* q, MatrixView<const T> r) {
  QrErrors errors;
  const double m = static_cast<double>(a.rows), n = static_cast<double>(a.cols);
  if (q == nullptr) {
    errors.seconds = m * n * n / cheap_operations<T>;
    if (m * n * n <= cheap_operations<T>) errors.gram_residual = gram_error(a, r);
    return errors;
  }
  const double k = static_cast<double>(q->cols);
  errors.seconds = (m * k * k + 2 * m * std::min(k, n) * n) / cheap_operations<T>;
  if (errors.seconds > 1) return errors;
  const double unit = error_unit<T>(a.rows, a.cols);
  errors.orthogonality = orthogonality_error(*q, unit);
  errors.residual = residual_error(a, *q, r, unit);
  return errors;
}

/// To the terminal and to the file.
inline void report_errors(const Words& say, Json& json, const QrErrors& errors) {
  if (errors.orthogonality) {
    say("orthogonality  ", brief(*errors.orthogonality), "  (in units of (min(m, n) + 10) u; at most 30)");
    say("residual       ", brief(*errors.residual), "  (the worst column, in the same units; at most 30)");
    json["orthogonality"] = *errors.orthogonality;
    json["residual"] = *errors.residual;
  }
  if (errors.gram_residual) {
    say("gram residual  ", brief(*errors.gram_residual), "  (norm of A'A - R'R over norm(A)^2)");
    json["gram_residual"] = *errors.gram_residual;
  }
  if (errors.seconds > 1) {
    say("quality        not measured: in wider arithmetic that takes about ", brief(errors.seconds, 2), " s");
  }
}

}  // namespace qrane::cli
