// SPDX-License-Identifier: Apache-2.0
// Solves by sparse QR: least squares, least norm, with Q and without, right-hand sides in any memory and order.
#include <gtest/gtest.h>

#include "support/sparse_qr.hpp"

namespace qrane::test {
namespace {

template <class Where>
class SparseQrSolve : public SparseQr<Where> {};
TYPED_TEST_SUITE(SparseQrSolve, Ways, WayNames);

TYPED_TEST(SparseQrSolve, LeastSquaresWithManyRightHandSides) {
  using T = typename TypeParam::Scalar;
  for (const NamedTriplets& odd : odd_matrices()) {
    if (odd.a.rows < odd.a.cols) continue;
    SCOPED_TRACE(odd.name);
    const Values<T> a(odd.a);
    const Dense<T> b = random_normal<T>(a.triplets.rows, 3, 5);
    const auto solution = TestFixture::factor(a).solve(b.view());
    const Dense<T> x = TestFixture::host(solution.x);
    EXPECT_EQ(solution.rank, clear_rank<T>(odd.a).value_or(solution.rank));
    TestFixture::expect_least_squares(a, b, x);
    const Dense<T> dense = a.dense();
    const Wide<T> norm_a = norm(dense);
    for (Index j = 0; j < b.cols; ++j) {
      Wide<T> sum = 0;
      for (Index i = 0; i < b.rows; ++i) {
        Wide<T> r = b(i, j);
        for (Index k = 0; k < x.rows; ++k) r -= static_cast<Wide<T>>(dense(i, k)) * x(k, j);
        sum += r * r;
      }
      const double scale = static_cast<double>(1 + std::sqrt(sum) + norm_a * column_norm(convert<Wide<T>>(x), j) / 10);
      EXPECT_NEAR(solution.residual_norms[j], std::sqrt(sum), 1e3 * TestFixture::eps * scale);
    }
    Index zeros = 0;  // basic: as many zeros as dropped columns
    for (Index k = 0; k < x.rows; ++k) zeros += x(k, 0) == T(0);
    EXPECT_GE(zeros, x.rows - solution.rank);
  }
}

TYPED_TEST(SparseQrSolve, WithoutQ) {
  using T = typename TypeParam::Scalar;
  const Values<T> a(random_sparse(120, 50, 0.08, 3));
  const Dense<T> b = random_normal<T>(120, 2, 6);
  FactorOptions options = TestFixture::options();
  options.q = KeepQ::discard;
  const Factor<T> f = TestFixture::factor(a, options, Ordering::colamd, b.view()), kept = TestFixture::factor(a);
  EXPECT_EQ(f.rank(), kept.rank());
  options.q = KeepQ::keep;
  EXPECT_LT(f.facts().bytes, TestFixture::factor(a, options, Ordering::colamd, b.view()).facts().bytes + 1);
  const auto on_the_fly = f.solve(), seminormal = f.solve(b.view());
  TestFixture::expect_least_squares(a, b, TestFixture::host(on_the_fly.x));
  TestFixture::expect_least_squares(a, b, TestFixture::host(seminormal.x), 100);
  const auto reference = kept.solve(b.view());
  for (Index j = 0; j < 2; ++j)
    EXPECT_NEAR(on_the_fly.residual_norms[j], reference.residual_norms[j],
                1e3 * TestFixture::eps * reference.residual_norms[j]);
  Dense<T> c = b;
  EXPECT_TRUE(refuses([&] { f.apply_q(c.view()); }, ErrorCode::unavailable, {"KeepQ::discard"}));
  EXPECT_TRUE(refuses([&] { kept.solve(); }, ErrorCode::unavailable, {"rhs"}));
  EXPECT_EQ(c, b);
}

TYPED_TEST(SparseQrSolve, LeastNormOfWideMatrices) {
  using T = typename TypeParam::Scalar;
  for (unsigned seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Triplets triplets = random_sparse(20, 45, 0.15, 300 + seed);
    for (Index i = 0; i < 20; ++i) triplets.add(i, 2 * i, 3.0);  // full row rank
    const Values<T> a(triplets);
    const Dense<T> b = random_normal<T>(20, 2, seed);
    const auto solution = sparse::least_squares<T>(this->context(), a.view(), b.view(), {}, TestFixture::options());
    const Dense<T> x = TestFixture::host(solution.x);
    ASSERT_EQ(x.rows, 45);
    EXPECT_EQ(solution.rank, 20);
    // the least norm is that of the dense solution Aᵀ (A Aᵀ)^-1 b, and b is met
    const Dense<Wide<T>> wide = widen(a.dense());
    const auto qr = householder_qr(transposed(wide));
    const Dense<Wide<T>> q = qr.q(20);
    for (Index j = 0; j < 2; ++j) {
      const std::vector<Wide<T>> xj(x.column(j), x.column(j) + x.rows);
      std::vector<Wide<T>> gap = product(a, xj, false);
      for (std::size_t i = 0; i < gap.size(); ++i) gap[i] -= b(static_cast<Index>(i), j);
      EXPECT_LE(norm_of(gap), 1e4 * TestFixture::eps * norm_of(xj));
      EXPECT_NEAR(solution.residual_norms[j], norm_of(gap), 1e4 * TestFixture::eps * norm_of(xj));
      Wide<T> outside = norm_of(xj) * norm_of(xj);  // of Aᵀ's range
      for (Index k = 0; k < 20; ++k) {
        const Wide<T> along = dot(45, q.column(k), xj.data());
        outside -= along * along;
      }
      EXPECT_LE(outside, 1e4 * TestFixture::eps * norm_of(xj) * norm_of(xj));
    }
  }
}

TYPED_TEST(SparseQrSolve, RightHandSidesInDeviceMemoryAndByRows) {
  using T = typename TypeParam::Scalar;
  const Values<T> a(random_sparse(60, 20, 0.2, 14));
  const Dense<T> b = random_normal<T>(60, 3, 15);
  const Factor<T> f = TestFixture::factor(a);
  const Dense<T> expected = TestFixture::host(f.solve(b.view()).x);
  const Matrix<T> device = this->context().template to_device<T>(b.view());
  const auto solution = f.solve(device.view());
  EXPECT_EQ(solution.x.memory(), device.memory());
  EXPECT_EQ(TestFixture::host(solution.x), expected);
  const Dense<T> by_rows = transposed(b);
  const MatrixView<const T> view(by_rows.values.data(), 60, 3, 3, Memory::host, Layout::row_major);
  EXPECT_EQ(TestFixture::host(f.solve(view).x), expected);
  Matrix<T> c = this->context().template to_device<T>(b.view());
  f.apply_qt(c.view());
  f.apply_q(c.view());
  EXPECT_LE(norm(subtract(TestFixture::host(c), b)), 1e3 * TestFixture::eps * norm(b));
}

}  // namespace
}  // namespace qrane::test
