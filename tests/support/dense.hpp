// SPDX-License-Identifier: Apache-2.0
// Host matrices for tests and the little linear algebra that judges results: plain loops, any scalar,
// meant for wider arithmetic than what is judged (double for float, long double for double).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::test {

/// Column-major, contiguous, copyable.
template <class T>
struct Dense {
  Index rows = 0;
  Index cols = 0;
  std::vector<T> values;

  Dense() = default;
  Dense(Index m, Index n, T value = T(0)) : rows(m), cols(n), values(static_cast<std::size_t>(m * n), value) {}

  T* column(Index j) { return values.data() + j * rows; }
  const T* column(Index j) const { return values.data() + j * rows; }
  T& operator()(Index i, Index j) { return values[static_cast<std::size_t>(i + j * rows)]; }
  const T& operator()(Index i, Index j) const { return values[static_cast<std::size_t>(i + j * rows)]; }
  MatrixView<T> view() { return {values.data(), rows, cols, std::max<Index>(rows, 1)}; }
  MatrixView<const T> view() const { return {values.data(), rows, cols, std::max<Index>(rows, 1)}; }
  bool operator==(const Dense&) const = default;
};

template <class T>
struct WideOf;
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<double> {
  using type = long double;
};
/// What results in T are judged in.
template <class T>
using Wide = typename WideOf<T>::type;

template <class U, class T>
Dense<U> convert(const Dense<T>& a) {
  Dense<U> b(a.rows, a.cols);
  std::transform(a.values.begin(), a.values.end(), b.values.begin(), [](T x) { return static_cast<U>(x); });
  return b;
}

template <class T>
Dense<Wide<T>> widen(const Dense<T>& a) {
  return convert<Wide<T>>(a);
}

template <class T>
Dense<T> identity(Index n) {
  Dense<T> a(n, n);
  for (Index i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

template <class T>
Dense<T> transposed(const Dense<T>& a) {
  Dense<T> b(a.cols, a.rows);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) b(j, i) = a(i, j);
  return b;
}

template <class T>
Dense<T> columns(const Dense<T>& a, Index first, Index count) {
  Dense<T> b(a.rows, count);
  std::copy(a.column(first), a.column(first) + count * a.rows, b.values.begin());
  return b;
}

template <class T>
T dot(Index n, const T* x, const T* y) {
  T sum = 0;
  for (Index i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T>
T column_norm(const Dense<T>& a, Index j) {
  return std::sqrt(dot(a.rows, a.column(j), a.column(j)));
}

/// ‖A‖_F; the caller sees to it that squares neither overflow nor vanish.
template <class T>
T norm(const Dense<T>& a) {
  return std::sqrt(dot(static_cast<Index>(a.values.size()), a.values.data(), a.values.data()));
}

template <class T>
Dense<T> multiply(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.rows, b.cols);
  for (Index j = 0; j < b.cols; ++j)
    for (Index l = 0; l < a.cols; ++l) {
      const T factor = b(l, j);
      if (factor == T(0)) continue;
      const T* x = a.column(l);
      T* y = c.column(j);
      for (Index i = 0; i < a.rows; ++i) y[i] += factor * x[i];
    }
  return c;
}

/// A^T B.
template <class T>
Dense<T> multiply_transposed(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.cols, b.cols);
  for (Index j = 0; j < b.cols; ++j)
    for (Index i = 0; i < a.cols; ++i) c(i, j) = dot(a.rows, a.column(i), b.column(j));
  return c;
}

template <class T>
Dense<T> subtract(Dense<T> a, const Dense<T>& b) {
  for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] -= b.values[k];
  return a;
}

/// ‖I - QᵀQ‖_F.
template <class T>
T departure_from_orthonormal(const Dense<T>& q) {
  T sum = 0;
  for (Index j = 0; j < q.cols; ++j)
    for (Index i = 0; i <= j; ++i) {
      const T d = dot(q.rows, q.column(i), q.column(j)) - T(i == j);
      sum += (i == j ? 1 : 2) * d * d;
    }
  return std::sqrt(sum);
}

template <class T>
bool all_finite(const Dense<T>& a) {
  return std::all_of(a.values.begin(), a.values.end(), [](T x) { return std::isfinite(x); });
}

/// y := y - tau v (vᵀ y).
template <class T>
void reflect(Index n, const T* v, T tau, T* y) {
  const T w = tau * dot(n, v, y);
  for (Index i = 0; i < n; ++i) y[i] -= w * v[i];
}

template <class T>
struct HouseholderQR {
  Dense<T> v;          // m x k, v_j = [0; 1; tail]
  std::vector<T> tau;  // k
  Dense<T> r;          // k x n

  /// c := Q c or Qᵀ c.
  void apply(Dense<T>& c, bool transpose) const {
    const Index k = v.cols;
    for (Index step = 0; step < k; ++step) {
      const Index j = transpose ? step : k - 1 - step;
      for (Index l = 0; l < c.cols; ++l)
        reflect(c.rows - j, v.column(j) + j, tau[static_cast<std::size_t>(j)], c.column(l) + j);
    }
  }
  /// The first `count` columns of Q.
  Dense<T> q(Index count) const {
    Dense<T> c(v.rows, count);
    for (Index i = 0; i < count; ++i) c(i, i) = 1;
    apply(c, false);
    return c;
  }
};

/// Textbook Householder QR. Columns may be graded, but squares must neither overflow nor vanish.
template <class T>
HouseholderQR<T> householder_qr(Dense<T> a) {
  const Index k = std::min(a.rows, a.cols);
  HouseholderQR<T> f{Dense<T>(a.rows, k), std::vector<T>(static_cast<std::size_t>(k)), Dense<T>(k, a.cols)};
  for (Index j = 0; j < k; ++j) {
    const Index n = a.rows - j;
    T* x = a.column(j) + j;
    T* v = f.v.column(j) + j;
    const T length = std::sqrt(dot(n, x, x));
    v[0] = 1;
    if (length != T(0)) {
      const T beta = x[0] > 0 ? -length : length;
      f.tau[static_cast<std::size_t>(j)] = (beta - x[0]) / beta;
      for (Index i = 1; i < n; ++i) v[i] = x[i] / (x[0] - beta);
      for (Index l = j; l < a.cols; ++l) reflect(n, v, f.tau[static_cast<std::size_t>(j)], a.column(l) + j);
    }
    for (Index l = j; l < a.cols; ++l) f.r(j, l) = a(j, l);
  }
  return f;
}

/// One-sided Jacobi: a product of rotations V (n x n, orthonormal to rounding) with B = A V of mutually
/// orthogonal columns in order of falling norm.
template <class T>
struct Jacobi {
  Dense<T> b, v;
};

template <class T>
Jacobi<T> jacobi(const Dense<T>& a) {
  const Index n = a.cols;
  Dense<T> b = a, v = identity<T>(n);
  const T tolerance = 8 * std::numeric_limits<T>::epsilon();
  const auto rotate = [](Index count, T* x, T* y, T c, T s) {
    for (Index i = 0; i < count; ++i) {
      const T xi = x[i], yi = y[i];
      x[i] = c * xi - s * yi;
      y[i] = s * xi + c * yi;
    }
  };
  bool turned = true;
  for (int sweep = 0; sweep < 40 && turned; ++sweep) {
    turned = false;
    for (Index p = 0; p < n; ++p)
      for (Index q = p + 1; q < n; ++q) {
        const T alpha = dot(b.rows, b.column(p), b.column(p));
        const T beta = dot(b.rows, b.column(q), b.column(q));
        const T gamma = dot(b.rows, b.column(p), b.column(q));
        if (std::abs(gamma) <= tolerance * std::sqrt(alpha) * std::sqrt(beta)) continue;
        const T zeta = (beta - alpha) / (2 * gamma);
        const T t = (zeta >= 0 ? T(1) : T(-1)) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const T c = 1 / std::sqrt(1 + t * t);
        rotate(b.rows, b.column(p), b.column(q), c, c * t);
        rotate(n, v.column(p), v.column(q), c, c * t);
        turned = true;
      }
  }
  std::vector<T> norms(static_cast<std::size_t>(n));
  for (Index j = 0; j < n; ++j) norms[static_cast<std::size_t>(j)] = column_norm(b, j);
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) {
    return norms[static_cast<std::size_t>(i)] > norms[static_cast<std::size_t>(j)];
  });
  Jacobi<T> sorted{Dense<T>(b.rows, n), Dense<T>(n, n)};
  for (Index j = 0; j < n; ++j) {
    const Index from = order[static_cast<std::size_t>(j)];
    std::copy(b.column(from), b.column(from) + b.rows, sorted.b.column(j));
    std::copy(v.column(from), v.column(from) + n, sorted.v.column(j));
  }
  return sorted;
}

/// Singular values, falling (A with columns not too many: Jacobi).
template <class T>
std::vector<T> singular_values(const Dense<T>& a) {
  const Dense<T> tall = a.rows >= a.cols ? a : transposed(a);
  const Jacobi<T> j = jacobi(householder_qr(tall).r);
  std::vector<T> s;
  for (Index i = 0; i < tall.cols; ++i) s.push_back(column_norm(j.b, i));
  return s;
}

}  // namespace qrane::test
