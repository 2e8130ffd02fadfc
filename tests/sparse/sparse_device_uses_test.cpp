// SPDX-License-Identifier: Apache-2.0
// Factors used on the device that holds them: every kind of right-hand side, many at once, against each other and
// against the matrix itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <qrane/sparse_qr.hpp>

#include "support/backends.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::Factor;
using sparse::FactorOptions;
using sparse::KeepQ;

/// Singletons, subtrees, and a root of several blocks and panels; `deficient`: columns that others make up.
Triplets matrix(bool deficient) {
  const Index n = small_run() ? 120 : 1000;  // beside the singletons
  Triplets a{40 + n * 64 / 25, n + 40, {}, {}, {}};
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<Index> local(0, n * 3 / 20 - 1), far(n * 3 / 5, n - 1), any(0, n - 1);
  const auto source = [&](Index j) { return deficient && j % 37 == 5 ? j - 5 : j; };
  for (Index i = 40; i < a.rows; ++i) {
    const Index group = i % 4 * (n * 3 / 20);
    for (int k = 0; k < 5; ++k) {
      const Index j = k < 3 ? group + local(generator) : far(generator);
      const double v = value(generator);
      a.add(i, j, v);
      if (source(j) != j) a.value.back() = 0;
    }
    a.add(i, i % n, source(i % n) != i % n ? 0.0 : 4.0);
  }
  for (Index k = 0; k < 40; ++k) {  // the singletons, each with entries in others and in columns of fronts
    a.add(k, n + k, 3 + value(generator));
    if (k > 0) a.add(k, n + k / 2, value(generator));
    a.add(k, any(generator), value(generator));
  }
  return a;
}

template <class Where>
class SparseDeviceUses : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using W = Wide<T>;
  static constexpr double eps = std::numeric_limits<T>::epsilon() / 2;
  using BackendTest<Where>::context;

  struct Problem {
    explicit Problem(bool deficient) : a(matrix(deficient)), values(a.value.begin(), a.value.end()) {}
    sparse::SparseView<T> view() const {
      return sparse::by_triplets(a.rows, a.cols, static_cast<Index>(values.size()), a.row.data(), a.col.data(),
                                 values.data());
    }
    /// b - A x, or b - Aᵀ x.
    std::vector<W> residual(const Dense<T>& b, const Dense<T>& x, Index j, bool transpose) const {
      std::vector<W> r(b.column(j), b.column(j) + b.rows);
      for (std::size_t k = 0; k < values.size(); ++k) {
        const Index row = transpose ? a.col[k] : a.row[k], col = transpose ? a.row[k] : a.col[k];
        r[static_cast<std::size_t>(row)] -= static_cast<W>(values[k]) * x(col, j);
      }
      return r;
    }
    Triplets a;
    std::vector<T> values;
  };

  static Factor<T> factor(const Problem& p, FactorOptions options, MatrixView<const T> rhs = {}) {
    options.processor = sparse::Processor::device;
    sparse::AnalyzeOptions analyze;
    analyze.ordering = sparse::Ordering::colamd;
    return sparse::analyze(context(), p.view(), analyze).factor(p.view(), options, rhs);
  }
  static FactorOptions with(KeepQ q) {
    FactorOptions options;
    options.q = q;
    return options;
  }
  static W norm(const std::vector<W>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), W(0))); }

  static void expect_least_squares(const Problem& p, const Factor<T>& f, const Dense<T>& b, const Solution<T>& solution,
                                   double slack) {
    const Dense<T> x = TestFixtureHost(solution.x);
    W norm_a = 0;
    for (const T v : p.values) norm_a += static_cast<W>(v) * v;
    norm_a = std::sqrt(norm_a);
    ASSERT_EQ(static_cast<Index>(solution.residual_norms.size()), b.cols);
    for (Index j = 0; j < b.cols; ++j) {
      const std::vector<W> r = p.residual(b, x, j, false);
      std::vector<W> z(static_cast<std::size_t>(p.a.cols), 0);
      for (std::size_t k = 0; k < p.values.size(); ++k)
        z[static_cast<std::size_t>(p.a.col[k])] +=
            static_cast<W>(p.values[k]) * r[static_cast<std::size_t>(p.a.row[k])];
      const double unit = static_cast<double>(p.a.cols + 10) * eps;
      EXPECT_LE(norm(z), slack * unit * norm_a * norm(std::vector<W>(b.column(j), b.column(j) + b.rows)));
      EXPECT_NEAR(solution.residual_norms[static_cast<std::size_t>(j)], norm(r), 1e3 * eps * norm(r));
    }
    Index zeros = 0;
    for (Index k = 0; k < x.rows; ++k) zeros += x(k, 0) == T(0);
    EXPECT_GE(zeros, x.rows - f.rank());
  }
  static Dense<T> TestFixtureHost(const Matrix<T>& a) { return BackendTest<Where>::host(a); }

  static Dense<T> column(const Dense<T>& a, Index j) {
    Dense<T> c(a.rows, 1);
    std::copy(a.column(j), a.column(j) + a.rows, c.column(0));
    return c;
  }
};
TYPED_TEST_SUITE(SparseDeviceUses, Everywhere, Names);

TYPED_TEST(SparseDeviceUses, LeastSquares) {
  using T = typename TypeParam::Scalar;
  for (const bool deficient : {false, true}) {
    const typename TestFixture::Problem p(deficient);
    const Dense<T> b = random_normal<T>(p.a.rows, 5, 1);
    for (const KeepQ q : {KeepQ::keep, KeepQ::discard}) {
      const Factor<T> f = TestFixture::factor(p, TestFixture::with(q), b.view());
      EXPECT_TRUE(f.facts().on_device);
      EXPECT_EQ(f.rank() < p.a.cols, deficient);
      TestFixture::expect_least_squares(p, f, b, f.solve(b.view()), q == KeepQ::keep ? 1 : 100);
      TestFixture::expect_least_squares(p, f, b, f.solve(), 1);
    }
  }
}

TYPED_TEST(SparseDeviceUses, EveryRightHandSideTheSameBitsInAnyCompanyAndPlace) {
  using T = typename TypeParam::Scalar;
  const typename TestFixture::Problem p(true);
  const Index m = p.a.rows, n = p.a.cols, cols = 19;
  const Dense<T> b = random_normal<T>(m, cols, 2);
  for (const KeepQ q : {KeepQ::keep, KeepQ::discard}) {
    const Factor<T> f = TestFixture::factor(p, TestFixture::with(q));
    const auto all = f.solve(b.view());
    const Dense<T> x = TestFixture::host(all.x);
    EXPECT_EQ(TestFixture::host(f.solve(b.view()).x), x) << "again";
    for (const Index j : {Index{0}, Index{7}, cols - 1}) {
      const Dense<T> one = TestFixture::column(b, j);
      const auto alone = f.solve(one.view());
      EXPECT_EQ(TestFixture::host(alone.x), TestFixture::column(x, j)) << "column " << j;
      EXPECT_EQ(alone.residual_norms[0], all.residual_norms[static_cast<std::size_t>(j)]);
    }
    std::vector<T> strided(static_cast<std::size_t>((m + 3) * cols), std::numeric_limits<T>::quiet_NaN());
    std::vector<T> rows(static_cast<std::size_t>((cols + 2) * m), std::numeric_limits<T>::quiet_NaN());
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < m; ++i) {
        strided[static_cast<std::size_t>(i + j * (m + 3))] = b(i, j);
        rows[static_cast<std::size_t>(i * (cols + 2) + j)] = b(i, j);
      }
    EXPECT_EQ(TestFixture::host(f.solve(MatrixView<const T>(strided.data(), m, cols, m + 3)).x), x);
    const MatrixView<const T> by_rows(rows.data(), m, cols, cols + 2, Memory::host, Layout::row_major);
    EXPECT_EQ(TestFixture::host(f.solve(by_rows).x), x);
    const Matrix<T> device = this->context().template to_device<T>(b.view());
    const auto there = f.solve(device.view());
    EXPECT_EQ(there.x.memory(), device.memory());
    EXPECT_EQ(TestFixture::host(there.x), x);
    const Dense<T> none(m, 0);
    const auto nothing = f.solve(none.view());
    EXPECT_EQ(nothing.x.rows(), n);
    EXPECT_EQ(nothing.x.cols(), 0);
    EXPECT_TRUE(nothing.residual_norms.empty());
  }
}

TYPED_TEST(SparseDeviceUses, LeastNorm) {
  using T = typename TypeParam::Scalar;
  using W = Wide<T>;
  const typename TestFixture::Problem p(false);
  const Dense<T> b = random_normal<T>(p.a.cols, 18, 3);
  const Factor<T> f = TestFixture::factor(p, {});
  const auto solution = f.solve_transposed(b.view());
  const Dense<T> x = TestFixture::host(solution.x);
  const Matrix<T> device = this->context().template to_device<T>(b.view());
  EXPECT_EQ(TestFixture::host(f.solve_transposed(device.view()).x), x);
  Dense<T> c = x;  // in the range of A: what Qᵀ has below R is nothing
  f.apply_qt(c.view());
  for (Index j = 0; j < b.cols; ++j) {
    const std::vector<W> r = p.residual(b, x, j, true);
    const W length = TestFixture::norm(std::vector<W>(x.column(j), x.column(j) + x.rows));
    const double bound = 30 * static_cast<double>(p.a.cols + 10) * TestFixture::eps * static_cast<double>(length);
    EXPECT_LE(TestFixture::norm(r), 20 * bound);
    EXPECT_NEAR(solution.residual_norms[static_cast<std::size_t>(j)], static_cast<double>(TestFixture::norm(r)), bound);
    EXPECT_LE(TestFixture::norm(std::vector<W>(c.column(j) + f.rank(), c.column(j) + c.rows)), bound);
  }
}

TYPED_TEST(SparseDeviceUses, QAndItsTranspose) {
  using T = typename TypeParam::Scalar;
  using W = Wide<T>;
  for (const bool deficient : {false, true}) {
    const typename TestFixture::Problem p(deficient);
    const Factor<T> f = TestFixture::factor(p, {});
    const Dense<T> c = random_normal<T>(p.a.rows, 21, 4);
    Dense<T> there = c;
    f.apply_qt(there.view());
    Matrix<T> device = this->context().template to_device<T>(c.view());
    f.apply_qt(device.view());
    EXPECT_EQ(TestFixture::host(device), there);
    Dense<T> one = TestFixture::column(c, 20);
    f.apply_qt(one.view());
    EXPECT_EQ(one, TestFixture::column(there, 20));
    Dense<T> back = there;
    f.apply_q(back.view());
    const double unit = 30 * static_cast<double>(p.a.cols + 10) * TestFixture::eps;
    for (Index j = 0; j < c.cols; ++j) {
      W gap = 0, length = 0;
      for (Index i = 0; i < c.rows; ++i) {
        gap += (static_cast<W>(back(i, j)) - c(i, j)) * (static_cast<W>(back(i, j)) - c(i, j));
        length += static_cast<W>(c(i, j)) * c(i, j);
      }
      EXPECT_LE(std::sqrt(gap), unit * std::sqrt(length)) << "column " << j;
    }
    // columns of A: Qᵀ A P = R
    const Index apart = small_run() ? 15 : 100;
    const auto r = f.r();
    const std::vector<Index> permutation = f.permutation();
    Dense<T> a(p.a.rows, 8);
    for (std::size_t k = 0; k < p.values.size(); ++k)
      for (Index j = 0; j < a.cols; ++j)
        if (p.a.col[k] == permutation[static_cast<std::size_t>(j * apart)]) a(p.a.row[k], j) += p.values[k];
    const Dense<T> before = a;
    f.apply_qt(a.view());
    for (Index j = 0; j < a.cols; ++j) {
      std::vector<W> gap(a.column(j), a.column(j) + a.rows);
      const auto mine = static_cast<std::size_t>(j * apart);
      for (Index q = r.pointers[mine]; q < r.pointers[mine + 1]; ++q)
        gap[static_cast<std::size_t>(r.row_indices[static_cast<std::size_t>(q)])] -=
            r.values[static_cast<std::size_t>(q)];
      const std::vector<W> column(before.column(j), before.column(j) + a.rows);
      EXPECT_LE(TestFixture::norm(gap), 2 * unit * TestFixture::norm(column)) << "column " << j;
    }
  }
}

TYPED_TEST(SparseDeviceUses, HugeTinyAndBadRightHandSides) {
  using T = typename TypeParam::Scalar;
  const typename TestFixture::Problem p(false);
  FactorOptions options = TestFixture::with(KeepQ::keep);
  const Factor<T> f = TestFixture::factor(p, options);
  Dense<T> b = random_normal<T>(p.a.rows, 2, 5);
  const T large = sizeof(T) == 4 ? T(1e30) : T(1e290);
  const auto plain = f.solve(b.view());
  for (const T scale : {large, 1 / large}) {
    Dense<T> scaled = b;
    for (T& v : scaled.values) v *= scale;
    const auto solution = f.solve(scaled.view());
    for (std::size_t j = 0; j < 2; ++j)
      EXPECT_NEAR(solution.residual_norms[j] / static_cast<double>(scale), plain.residual_norms[j],
                  1e4 * TestFixture::eps * plain.residual_norms[j]);
  }
  b(17, 1) = std::numeric_limits<T>::quiet_NaN();
  const auto spoilt = f.solve(b.view());
  const Dense<T> x = TestFixture::host(spoilt.x);
  EXPECT_EQ(TestFixture::column(x, 0), TestFixture::column(TestFixture::host(plain.x), 0));
  EXPECT_TRUE(std::isnan(spoilt.residual_norms[1]));
  options.check_finite = true;
  const Factor<T> checked = TestFixture::factor(p, options);
  const Matrix<T> device = this->context().template to_device<T>(b.view());
  for (const MatrixView<const T> view : {MatrixView<const T>(b.view()), device.view()})
    EXPECT_TRUE(refuses([&] { checked.solve(view); }, ErrorCode::not_finite, {"row 17", "column 1"}));
  EXPECT_TRUE(refuses([&] { checked.apply_qt(b.view()); }, ErrorCode::not_finite, {"row 17", "column 1"}));
  EXPECT_TRUE(refuses([&] { TestFixture::factor(p, options, b.view()); }, ErrorCode::not_finite,
                      {"right-hand side", "row 17"}));
}

TYPED_TEST(SparseDeviceUses, RefactorizationIsUsedAfterwards) {
  using T = typename TypeParam::Scalar;
  const typename TestFixture::Problem p(false), q(true);
  const Dense<T> b = random_normal<T>(p.a.rows, 3, 6);
  Factor<T> f = TestFixture::factor(p, {});
  const Dense<T> first = TestFixture::host(f.solve(b.view()).x);
  f.refactor(q.values.data());
  TestFixture::expect_least_squares(q, f, b, f.solve(b.view()), 1);
  f.refactor(p.values.data());
  EXPECT_EQ(TestFixture::host(f.solve(b.view()).x), first);
}

}  // namespace
}  // namespace qrane::test
