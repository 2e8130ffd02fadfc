// SPDX-License-Identifier: Apache-2.0
// The guard of cholesky_qr: whatever the condition of the input, results stay within the measures; beyond the
// guard's limit it must hand over to the tree, and on easy input it must not.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrGuard : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  static QR<T> factored(const Dense<T>& a, QForm q) {
    return qr<T>(BackendTest<Where>::context(), a.view(), options_for({Algorithm::cholesky_qr, q}));
  }
};

TYPED_TEST_SUITE(QrGuard, Everywhere, Names);

/// ‖R̂‖_F ‖R̂^-1‖_F of A with columns scaled to unit norm, from singular values in wide arithmetic.
template <class T>
double scaled_condition(const Dense<T>& a) {
  auto as = scaled(a, column_exponents(a));
  for (Index j = 0; j < as.cols; ++j) {
    const auto length = column_norm(as, j);
    for (Index i = 0; i < as.rows; ++i) as(i, j) /= length;
  }
  double squares = 0, inverse_squares = 0;
  for (const auto s : singular_values(as)) {
    squares += static_cast<double>(s * s);
    inverse_squares += static_cast<double>(1 / (s * s));
  }
  return std::sqrt(squares * inverse_squares);
}

TYPED_TEST(QrGuard, HoldsOverEveryCondition) {
  using T = typename TypeParam::Scalar;
  const Index m = 400, n = 17;
  const double last = 8 / std::numeric_limits<T>::epsilon();
  for (const QForm form : {QForm::none, QForm::thin}) {
    bool ever = false, always = true, was_good = true;
    for (double condition = 1; condition < last; condition *= sizeof(T) == 4 ? 3 : 20) {
      SCOPED_TRACE(std::string(qrane::to_string(form)) + ", condition " + std::to_string(condition));
      const auto a = geometric_spectrum<T>(m, n, condition, 77);
      auto f = this->factored(a, form);
      const auto r = this->host(f.r());
      EXPECT_TRUE(form == QForm::none ? is_r_of(a, r) : is_qr_of(a, this->host(f.q()), r));
      const bool fell_back = f.fell_back();
      const double true_condition = scaled_condition(a);
      // (in float the entries of A are rounded, which hides what is above 1/eps)
      if (true_condition > 1.01 * f.plan().guard_limit) {
        EXPECT_TRUE(fell_back) << true_condition;
      }
      if (true_condition < 0.1 * f.plan().guard_limit) {
        EXPECT_FALSE(fell_back) << true_condition;
      }
      EXPECT_TRUE(was_good || fell_back) << "good again after a fall-back at a lower condition";
      was_good = !fell_back;
      ever = ever || fell_back;
      always = always && fell_back;
    }
    EXPECT_TRUE(ever) << "no input was too hard";
    EXPECT_FALSE(always) << "no input was easy enough";
  }
}

/// Around the limit, in small steps and many seeds: the edge itself.
TYPED_TEST(QrGuard, HoldsAtItsEdge) {
  using T = typename TypeParam::Scalar;
  const Index m = 150, n = 8;
  for (const QForm form : {QForm::none, QForm::thin}) {
    const double limit = plan_qr<T>(this->context(), m, n, options_for({Algorithm::cholesky_qr, form})).guard_limit;
    ASSERT_GT(limit, 1);
    int fallen = 0, stayed = 0;
    const std::uint64_t seeds = this->thorough ? 12 : 3;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
      for (double condition = limit / 30; condition < 3 * limit; condition *= 1.7) {
        SCOPED_TRACE(std::string(qrane::to_string(form)) + ", condition " + std::to_string(condition));
        const auto a = geometric_spectrum<T>(m, n, condition, seed);
        auto f = this->factored(a, form);
        const auto r = this->host(f.r());
        EXPECT_TRUE(form == QForm::none ? is_r_of(a, r) : is_qr_of(a, this->host(f.q()), r));
        ++(f.fell_back() ? fallen : stayed);
      }
    EXPECT_GT(fallen, 0);
    EXPECT_GT(stayed, 0);
  }
}

TYPED_TEST(QrGuard, GradedColumnsAreEasyAfterScaling) {
  using T = typename TypeParam::Scalar;
  const Index m = 300, n = 12;
  auto a = random_normal<T>(m, n, 3);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i) a(i, j) *= static_cast<T>(std::pow(10.0, (sizeof(T) == 4 ? 1.5 : 10) * (double(j) - 6)));
  auto f = this->factored(a, QForm::thin);
  EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r())));
  EXPECT_FALSE(f.fell_back());
}

TYPED_TEST(QrGuard, RankDeficientInputFallsBack) {
  using T = typename TypeParam::Scalar;
  for (const char* name : {"duplicate columns", "product of low rank", "zero", "zero columns", "ones"})
    for (const auto& input : hostile::inputs<T>()) {
      if (std::string(input.name) != name) continue;
      SCOPED_TRACE(name);
      EXPECT_TRUE(this->factored(input.make(200, 12, 5), QForm::thin).fell_back());
      EXPECT_TRUE(this->factored(input.make(200, 12, 5), QForm::none).fell_back());
    }
}

/// Each matrix is judged anew: the flag of a hard one does not stick to an easy one, nor the other way round.
TYPED_TEST(QrGuard, RefactorJudgesAnew) {
  using T = typename TypeParam::Scalar;
  const auto easy = random_normal<T>(150, 9, 1), hard = hostile::duplicate_columns<T>(150, 9, 2);
  for (const QForm form : {QForm::none, QForm::thin}) {
    auto f = this->factored(easy, form);
    const auto r = this->host(f.r());
    EXPECT_FALSE(f.fell_back());
    f.refactor(hard.view());
    EXPECT_TRUE(f.fell_back());
    EXPECT_TRUE(is_r_of(hard, this->host(f.r())));
    f.refactor(easy.view());
    EXPECT_FALSE(f.fell_back());
    EXPECT_EQ(this->host(f.r()), r);
  }
}

TYPED_TEST(QrGuard, TreesNeverFallBack) {
  using T = typename TypeParam::Scalar;
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
    Options options;
    options.algorithm = algorithm;
    if (algorithm == Algorithm::blocked) options.panel_kind = PanelKind::tree;
    EXPECT_FALSE(qr<T>(this->context(), Dense<T>(50, 5).view(), options).fell_back());
  }
}

TYPED_TEST(QrGuard, SpeaksForEveryPanelOfBlocked) {
  using T = typename TypeParam::Scalar;
  if (!this->context().device().has_double) GTEST_SKIP() << "Cholesky panels need double";
  const Index m = 200, n = 40;
  Options options;
  options.algorithm = Algorithm::blocked;
  options.panel_kind = PanelKind::cholesky;
  options.panel_cols = 10;
  const auto easy = random_normal<T>(m, n, 9);
  auto f = qr<T>(this->context(), easy.view(), options);
  EXPECT_FALSE(f.fell_back());
  const auto r = this->host(f.r());
  for (const Index column : {Index(3), Index(17), n - 1}) {  // in the first panel, in a middle one, in the last
    auto hard = easy;
    for (Index i = 0; i < m; ++i) hard(i, column) = 0;
    f.refactor(hard.view());
    EXPECT_TRUE(f.fell_back()) << column;
    EXPECT_TRUE(is_r_of(hard, this->host(f.r())));
  }
  f.refactor(easy.view());
  EXPECT_FALSE(f.fell_back());
  EXPECT_EQ(this->host(f.r()), r);
}

}  // namespace
}  // namespace qrane::test
