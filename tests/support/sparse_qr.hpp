// SPDX-License-Identifier: Apache-2.0
// The fixture of numeric sparse QR's tests: values beside their triplets, backends by both ways of factoring, and what
// is asked of a factorization and of a least-squares solution.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include <qrane/sparse_qr.hpp>

#include "support/backends.hpp"
#include "support/sparse.hpp"

namespace qrane::test {

using sparse::AnalyzeOptions;
using sparse::Factor;
using sparse::FactorOptions;
using sparse::KeepQ;
using sparse::Ordering;
using sparse::SparseMatrix;

template <class T>
struct Values {
  explicit Values(const Triplets& a) : triplets(a), values(a.value.begin(), a.value.end()) {}
  sparse::SparseView<T> view() const {
    return sparse::by_triplets(triplets.rows, triplets.cols, static_cast<Index>(values.size()), triplets.row.data(),
                               triplets.col.data(), values.data());
  }
  Dense<T> dense() const {  // duplicates summed wider, as the library does
    Dense<Wide<T>> a(triplets.rows, triplets.cols);
    for (std::size_t k = 0; k < values.size(); ++k) a(triplets.row[k], triplets.col[k]) += values[k];
    return convert<T>(a);
  }
  Triplets triplets;
  std::vector<T> values;
};

/// A x, in wider arithmetic.
template <class T>
std::vector<Wide<T>> product(const Values<T>& a, const std::vector<Wide<T>>& x, bool transpose) {
  std::vector<Wide<T>> y(static_cast<std::size_t>(transpose ? a.triplets.cols : a.triplets.rows), 0);
  for (std::size_t k = 0; k < a.values.size(); ++k) {
    const auto i = static_cast<std::size_t>(a.triplets.row[k]), j = static_cast<std::size_t>(a.triplets.col[k]);
    if (transpose)
      y[j] += static_cast<Wide<T>>(a.values[k]) * x[i];
    else
      y[i] += static_cast<Wide<T>>(a.values[k]) * x[j];
  }
  return y;
}

template <class W>
W norm_of(const std::vector<W>& x) {
  W sum = 0;
  for (const W v : x) sum += v * v;
  return std::sqrt(sum);
}

/// The rank, where the singular values leave no doubt about it in T.
template <class T>
std::optional<Index> clear_rank(const Triplets& a) {
  Dense<double> d(a.rows, a.cols);
  for (std::size_t k = 0; k < a.value.size(); ++k) d(a.row[k], a.col[k]) += a.value[k];
  if (d.values.empty()) return 0;
  const std::vector<double> s = singular_values(d);
  const double noise = s[0] * 1e-12, doubtful = s[0] * (sizeof(T) == 4 ? 5e-2 : 1e-7);
  if (std::any_of(s.begin(), s.end(), [&](double x) { return x > noise && x < doubtful; })) return std::nullopt;
  return std::count_if(s.begin(), s.end(), [&](double x) { return x > noise; });
}

/// A backend's context and scalar, factoring as `automatic` would (small matrices: on the CPU) or by its kernels.
template <Backend backend, class Scalar, sparse::Processor processor_>
struct By : On<backend, Scalar> {
  static constexpr sparse::Processor processor = processor_;
};
constexpr auto automatic = sparse::Processor::automatic, device = sparse::Processor::device;
using Ways = ::testing::Types<
    By<Backend::cpu, float, automatic>, By<Backend::cpu, double, automatic>, By<Backend::opencl, float, automatic>,
    By<Backend::opencl, double, automatic>, By<Backend::cuda, float, automatic>, By<Backend::cuda, double, automatic>,
    By<Backend::cpu, float, device>, By<Backend::cpu, double, device>, By<Backend::opencl, float, device>,
    By<Backend::opencl, double, device>, By<Backend::cuda, float, device>, By<Backend::cuda, double, device>>;
struct WayNames {
  template <class Way>
  static std::string GetName(int k) {
    return Names::GetName<Way>(k) + (Way::processor == device ? "_device" : "");
  }
};

template <class Where>
class SparseQr : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using W = Wide<T>;
  static constexpr double eps = std::numeric_limits<T>::epsilon() / 2;
  using BackendTest<Where>::context;

  static FactorOptions options() {
    FactorOptions options;
    options.processor = Where::processor;
    return options;
  }
  static Factor<T> factor(const Values<T>& a, const FactorOptions& options = SparseQr::options(),
                          Ordering ordering = Ordering::colamd, MatrixView<const T> rhs = {}) {
    AnalyzeOptions analyze;
    analyze.ordering = ordering;
    return sparse::analyze(context(), a.view(), analyze).factor(a.view(), options, rhs);
  }

  /// R as an m x n array; a permutation and an upper trapezoid are expected.
  static Dense<T> expect_r(const Factor<T>& f) {
    const Index m = f.rows(), n = f.cols();
    std::vector<Index> sorted = f.permutation();
    std::sort(sorted.begin(), sorted.end());
    for (Index k = 0; k < n; ++k) EXPECT_EQ(sorted[k], k);
    const SparseMatrix<T> sparse_r = f.r();
    EXPECT_EQ(sparse_r.rows, f.rank());
    EXPECT_EQ(sparse_r.cols, n);
    Dense<T> r(m, n);
    for (Index j = 0; j < n; ++j)
      for (Index p = sparse_r.pointers[j]; p < sparse_r.pointers[j + 1]; ++p) {
        EXPECT_TRUE(p == sparse_r.pointers[j] || sparse_r.row_indices[p - 1] < sparse_r.row_indices[p]);
        EXPECT_LE(sparse_r.row_indices[p], j);
        r(sparse_r.row_indices[p], j) = sparse_r.values[p];
      }
    return r;
  }

  /// (j, norm): what column j of R may be off by where it was dropped. In float, by default, also what double drops.
  static auto dropped_by(const Values<T>& a, const Factor<T>& f) {
    const Dense<W> dense = convert<W>(a.dense());
    W longest = 0;
    for (Index j = 0; j < dense.cols; ++j) longest = std::max(longest, column_norm(dense, j));
    const W absolute = static_cast<W>(f.facts().absolute_tolerance), own = static_cast<W>(f.facts().column_tolerance);
    const W least = own > 0 ? static_cast<W>(20 * static_cast<double>(dense.rows + dense.cols) * 0x1p-52) * longest : 0;
    return [rank = f.rank(), absolute, own, least](Index j, W norm) {
      return j < rank ? W(0) : std::max({absolute, own * norm, least});
    };
  }

  /// A P = Q [R; 0] column by column, Q orthogonal, R upper trapezoidal; dropped columns are off by the tolerance.
  static void expect_factorization(const Values<T>& a, const Factor<T>& f) {
    const Dense<T> dense = a.dense();
    const Index m = dense.rows, n = dense.cols;
    const std::vector<Index> permutation = f.permutation();
    const Dense<T> r = expect_r(f);
    Dense<T> q = identity<T>(m);
    f.apply_q(q.view());
    const double unit = static_cast<double>(std::min(m, n) + 10) * eps;
    EXPECT_LE(departure_from_orthonormal(convert<W>(q)), 30 * unit);
    const Dense<W> qr = multiply(convert<W>(q), convert<W>(r));
    const auto tolerance = dropped_by(a, f);
    const W underflow = static_cast<W>(m * n) * std::numeric_limits<T>::denorm_min();
    for (Index j = 0; j < n; ++j) {
      W gap = 0, length = 0;
      for (Index i = 0; i < m; ++i) {
        const W x = dense(i, permutation[j]);
        gap += (x - qr(i, j)) * (x - qr(i, j));
        length += x * x;
      }
      EXPECT_LE(std::sqrt(gap), 30 * unit * std::sqrt(length) + tolerance(j, std::sqrt(length)) + underflow)
          << "column " << j;
    }
    Dense<T> c = dense;  // Qᵀ A P = [R; 0]
    f.apply_qt(c.view());
    const Dense<W> wide = convert<W>(dense);
    for (Index j = 0; j < n; ++j) {
      W gap = 0;
      for (Index i = 0; i < m; ++i)
        gap += (static_cast<W>(c(i, permutation[j])) - r(i, j)) * (static_cast<W>(c(i, permutation[j])) - r(i, j));
      const W norm = column_norm(wide, permutation[j]);
      EXPECT_LE(std::sqrt(gap), 60 * unit * norm + tolerance(j, norm) + underflow) << "column " << j << " of Qᵀ A P";
    }
  }

  /// Pᵀ Aᵀ A P = Rᵀ R element by element, R upper trapezoidal; dropped columns are off by the tolerance.
  static void expect_gram(const Values<T>& a, const Factor<T>& f) {
    const Dense<W> wide = convert<W>(a.dense()), r = convert<W>(expect_r(f));
    const Index m = wide.rows, n = wide.cols;
    const std::vector<Index> permutation = f.permutation();
    Dense<W> permuted(m, n);
    for (Index j = 0; j < n; ++j) std::copy_n(wide.column(permutation[j]), m, permuted.column(j));
    const Dense<W> gap = subtract(multiply_transposed(permuted, permuted), multiply_transposed(r, r));
    const W unit = static_cast<W>(30 * static_cast<double>(std::min(m, n) + 10) * eps);
    const W underflow = static_cast<W>(m * n) * std::numeric_limits<T>::denorm_min();
    const auto tolerance = dropped_by(a, f);
    std::vector<W> norms, off;
    for (Index j = 0; j < n; ++j) {
      norms.push_back(column_norm(permuted, j));
      off.push_back(unit * norms.back() + tolerance(j, norms.back()) + underflow);
    }
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i <= j; ++i) {
        EXPECT_LE(std::abs(gap(i, j)), off[i] * norms[j] + off[j] * norms[i] + off[i] * off[j]) << i << ", " << j;
      }
  }

  /// ‖Aᵀ (b - A x)‖ is rounding.
  static void expect_least_squares(const Values<T>& a, const Dense<T>& b, const Dense<T>& x, double slack = 1) {
    ASSERT_EQ(x.rows, a.triplets.cols);
    ASSERT_EQ(x.cols, b.cols);
    W norm_a = 0;
    for (const T v : a.values) norm_a += static_cast<W>(v) * v;
    norm_a = std::sqrt(norm_a);
    const double unit = static_cast<double>(std::min(a.triplets.rows, a.triplets.cols) + 10) * eps;
    for (Index j = 0; j < b.cols; ++j) {
      const std::vector<W> xj(x.column(j), x.column(j) + x.rows);
      std::vector<W> residual(b.column(j), b.column(j) + b.rows);
      const std::vector<W> ax = product(a, xj, false);
      for (std::size_t i = 0; i < residual.size(); ++i) residual[i] -= ax[i];
      const W scale = norm_a * (norm_of(std::vector<W>(b.column(j), b.column(j) + b.rows)) + norm_a * norm_of(xj));
      EXPECT_LE(norm_of(product(a, residual, true)), 30 * unit * slack * scale) << "right-hand side " << j;
    }
  }
};

}  // namespace qrane::test
