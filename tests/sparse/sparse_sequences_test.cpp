// SPDX-License-Identifier: Apache-2.0
// Random sequences of refactorizations with values that are bad, huge, or cancel: what comes after them is what a new
// factorization gives, bit for bit; and systems without rows or columns.
#include <gtest/gtest.h>

#include <random>

#include "support/sparse_qr.hpp"

namespace qrane::test {
namespace {

template <class Where>
class SparseSequences : public SparseQr<Where> {
 protected:
  using T = typename Where::Scalar;

  static void expect_same(const SparseMatrix<T>& a, const SparseMatrix<T>& b) {
    EXPECT_EQ(a.pointers, b.pointers);
    EXPECT_EQ(a.row_indices, b.row_indices);
    EXPECT_EQ(a.values, b.values);
  }
  /// Any of them NaN, infinite, zero or the largest number.
  static std::vector<T> spoiled(std::vector<T> values, std::mt19937& generator) {
    constexpr T bad[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), T(0),
                         std::numeric_limits<T>::max()};
    const unsigned one_in = 2 + generator() % 20;
    for (T& v : values)
      if (generator() % one_in == 0) v = bad[generator() % 4];
    return values;
  }
};
TYPED_TEST_SUITE(SparseSequences, Ways, WayNames);

TYPED_TEST(SparseSequences, RefactorAfterBadValuesIsAsGoodAsNew) {
  using T = typename TypeParam::Scalar;
  for (unsigned seed = 0; seed < (small_run() ? 8 : 60); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 generator(seed);
    const Index m = generator() % 50, n = generator() % 40;
    const Values<T> a(random_sparse(m, n, 0.02 + 0.01 * (generator() % 30), seed));
    const Dense<T> b = random_normal<T>(m, 2, seed);
    FactorOptions options = TestFixture::options();
    options.q = generator() % 2 ? KeepQ::keep : KeepQ::discard;
    options.detect_rank = generator() % 3 > 0;
    options.refuse_deficient = generator() % 4 == 0;
    options.check_finite = generator() % 4 == 0;
    MatrixView<const T> rhs;
    if (generator() % 2) rhs = b.view();
    const sparse::Analysis analysis = sparse::analyze(TestFixture::context(), a.view());
    std::optional<Factor<T>> fresh;
    try {
      fresh.emplace(analysis.factor(a.view(), options, rhs));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::rank_deficient) << error.what();
      continue;
    }
    Factor<T> f = analysis.factor(a.view(), options, rhs);
    for (int step = 0; step < 3; ++step) {
      const std::vector<T> bad = TestFixture::spoiled(a.values, generator);
      try {
        f.refactor(bad.data(), generator() % 2 ? rhs : MatrixView<const T>{});
        f.solve(b.view());
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::rank_deficient || error.code() == ErrorCode::not_finite) << error.what();
      }
      f.refactor(a.values.data(), rhs);
      TestFixture::expect_same(f.r(), fresh->r());
      EXPECT_EQ(TestFixture::host(f.solve(b.view()).x), TestFixture::host(fresh->solve(b.view()).x));
      if (rhs.cols > 0) {
        EXPECT_EQ(TestFixture::host(f.solve().x), TestFixture::host(fresh->solve().x));
      }
    }
  }
}

TYPED_TEST(SparseSequences, HugeDuplicatesThatCancelLeaveTheRest) {
  using T = typename TypeParam::Scalar;
  Triplets triplets = random_sparse(30, 12, 0.3, 3);
  const Values<T> plain(triplets);
  const T huge = 0x1p20;
  const std::size_t entries = triplets.value.size();
  for (const T sign : {huge, -huge})
    for (std::size_t k = 0; k < entries; k += 2) triplets.add(triplets.row[k], triplets.col[k], sign);
  const Values<T> a(triplets);
  // (v + huge) - huge in T would be off by huge times T's roundoff
  const double allowed =
      1e3 * TestFixture::eps + 1e2 * static_cast<double>(huge * std::numeric_limits<Wide<T>>::epsilon());
  const SparseMatrix<T> r = TestFixture::factor(a).r(), expected = TestFixture::factor(plain).r();
  ASSERT_EQ(r.pointers, expected.pointers);
  for (std::size_t k = 0; k < r.values.size(); ++k)
    EXPECT_NEAR(r.values[k], expected.values[k], allowed) << "entry " << k;
}

TYPED_TEST(SparseSequences, SystemsWithoutRowsOrColumns) {
  using T = typename TypeParam::Scalar;
  for (const auto& [m, n] : {std::pair<Index, Index>{0, 20}, {20, 0}, {0, 0}}) {
    SCOPED_TRACE(m);
    const Values<T> a(Triplets{m, n, {}, {}, {}});
    const Dense<T> b(m, 2, T(3));
    Factor<T> f = TestFixture::factor(a, TestFixture::options(), Ordering::colamd, b.view());
    for (int pass = 0; pass < 2; ++pass) {
      for (const auto& solution : {f.solve(), f.solve(b.view())}) {
        EXPECT_EQ(TestFixture::host(solution.x), Dense<T>(n, 2));
        ASSERT_EQ(solution.residual_norms.size(), 2U);
        EXPECT_NEAR(solution.residual_norms[0], 3 * std::sqrt(static_cast<double>(m)), 1e-5);
      }
      EXPECT_EQ(TestFixture::host(f.solve_transposed(Dense<T>(n, 2).view()).x), Dense<T>(m, 2));
      f.refactor(a.values.data(), b.view());
    }
  }
}

}  // namespace
}  // namespace qrane::test
