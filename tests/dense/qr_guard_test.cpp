// SPDX-License-Identifier: Apache-2.0
// The guard of cholesky_qr: whatever the condition of the input, results stay within the measures; beyond the
// guard's limit it must hand over to the tree, and on easy input it must not.
#include <qrane/qr.hpp>

#include <map>
#include <set>

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

/// From 1 to beyond 1 / eps: the measures hold, and a harder matrix never gets an earlier stage.
TYPED_TEST(QrGuard, HoldsOverEveryCondition) {
  using T = typename TypeParam::Scalar;
  const double last = 64 / std::numeric_limits<T>::epsilon();
  for (const QForm form : {QForm::none, QForm::thin})
    for (const Index n : in_turn({4, 17})) {
      const Index m = 45 * n;
      std::set<Stage> seen;
      Stage before = Stage::one_pass;
      const double step = sizeof(T) == 4 ? 4 : 40;
      // two passes are for a narrow range in float, which a small run must not step over
      const auto coarse = [](double condition) { return small_run() && (sizeof(T) == 8 || condition < 1e5); };
      for (double condition = 1; condition < last; condition *= coarse(condition) ? step * step : step) {
        SCOPED_TRACE(std::string(qrane::to_string(form)) + ", condition " + std::to_string(condition));
        const auto a = geometric_spectrum<T>(m, n, condition, 77);
        auto f = this->factored(a, form);
        const auto r = this->host(f.r());
        EXPECT_TRUE(form == QForm::none ? is_r_of(a, r) : is_qr_of(a, this->host(f.q()), r));
        const double true_condition = scaled_condition(a);
        if (true_condition > 1.01 * f.plan().expert.guard_limit) {
          EXPECT_NE(guard_report(f).stage, Stage::one_pass) << true_condition;
        }
        if (true_condition < 0.5 * f.plan().expert.guard_limit) {
          EXPECT_EQ(guard_report(f).stage, Stage::one_pass) << true_condition;
        }
        EXPECT_GE(guard_report(f).stage, before) << "an earlier stage than at a lower condition";
        before = guard_report(f).stage;
        seen.insert(before);
      }
      // the entries of A are rounded, which hides a condition above 1/eps: the last stage may not be called for
      EXPECT_TRUE(seen.contains(Stage::one_pass) && seen.contains(Stage::two_passes));
      EXPECT_EQ(seen.contains(Stage::sketch), sizeof(T) == 8);
    }
}

/// Around each limit, in small steps and many seeds: the edges themselves.
TYPED_TEST(QrGuard, HoldsAtItsEdges) {
  using T = typename TypeParam::Scalar;
  const Index n = 8, m = 40 * n;
  for (const QForm form : {QForm::none, QForm::thin}) {
    const Plan plan = plan_qr<T>(this->context(), m, n, options_for({Algorithm::cholesky_qr, form}));
    const double limit = plan.expert.guard_limit, last = 1 / std::numeric_limits<T>::epsilon();
    ASSERT_GT(limit, 1);
    const std::uint64_t seeds = small_run() ? 1 : this->thorough ? 8 : 2;
    for (const double edge : {limit, sizeof(T) == 8 ? 4e6 : limit, last}) {
      std::map<Stage, int> stages;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        for (double condition = edge / 30; condition < 3 * edge; condition *= small_run() ? 9 : 1.7) {
          SCOPED_TRACE(std::string(qrane::to_string(form)) + ", condition " + std::to_string(condition));
          const auto a = geometric_spectrum<T>(m, n, condition, seed);
          auto f = this->factored(a, form);
          const auto r = this->host(f.r());
          EXPECT_TRUE(form == QForm::none ? is_r_of(a, r) : is_qr_of(a, this->host(f.q()), r));
          ++stages[guard_report(f).stage];
        }
      if (edge < last) {
        EXPECT_GE(stages.size(), 2u) << "both sides of " << edge;
      }
    }
  }
}

/// A few rows that carry everything, rows of falling size, all of it tiny or huge: who answers may differ, the
/// measures may not.
TYPED_TEST(QrGuard, HoldsForGradedRowsAndScales) {
  using T = typename TypeParam::Scalar;
  const Index m = 400, n = 10;
  const double far = sizeof(T) == 4 ? 30 : 150;
  for (const double condition : {10.0, 1e5, 0.5 / std::numeric_limits<T>::epsilon()})
    for (const double scale : in_turn({0.0, -far, far}))
      for (const bool graded : {false, true}) {
        SCOPED_TRACE(testing::Message() << "condition " << condition << ", scale 1e" << scale
                                        << (graded ? ", graded" : ""));
        auto a = geometric_spectrum<T>(m, n, condition, 5);
        for (Index j = 0; j < n; ++j)
          for (Index i = 0; i < m; ++i)
            a(i, j) =
                static_cast<T>(double(a(i, j)) * std::pow(10.0, scale - (graded ? 6.0 * double(i) / double(m) : 0)));
        auto f = this->factored(a, QForm::thin);
        EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r()))) << to_string(guard_report(f).stage);
        EXPECT_TRUE(is_r_of(a, this->host(this->factored(a, QForm::none).r())));
      }
}

/// Without enough rows for a sketch double goes from two passes to the tree.
TYPED_TEST(QrGuard, AFewRowsNeedNoSketch) {
  using T = typename TypeParam::Scalar;
  const Index m = 60, n = 12;
  for (const double condition : {1e3, 0.1 / std::numeric_limits<T>::epsilon()}) {
    const auto a = geometric_spectrum<T>(m, n, condition, 9);
    auto f = this->factored(a, QForm::thin);
    EXPECT_EQ(f.plan().expert.sketch_rows, 0);
    EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r())));
    EXPECT_NE(guard_report(f).stage, Stage::sketch);
    if (sizeof(T) == 8) {
      EXPECT_EQ(guard_report(f).stage, condition < 1e6 ? Stage::two_passes : Stage::tree);
    }
  }
}

TYPED_TEST(QrGuard, GradedColumnsAreEasyAfterScaling) {
  using T = typename TypeParam::Scalar;
  const Index m = 300, n = 12;
  auto a = random_normal<T>(m, n, 3);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < m; ++i)
      a(i, j) *= static_cast<T>(std::pow(10.0, (sizeof(T) == 4 ? 1.5 : 10) * (double(j) - 6)));
  auto f = this->factored(a, QForm::thin);
  EXPECT_TRUE(is_qr_of(a, this->host(f.q()), this->host(f.r())));
  EXPECT_EQ(guard_report(f).stage, Stage::one_pass);
}

TYPED_TEST(QrGuard, RankDeficientInputFallsBack) {
  using T = typename TypeParam::Scalar;
  for (const char* name : {"duplicate columns", "product of low rank", "zero", "zero columns", "ones"})
    for (const auto& input : hostile::inputs<T>()) {
      if (std::string(input.name) != name) continue;
      SCOPED_TRACE(name);
      EXPECT_TRUE(guard_report(this->factored(input.make(200, 12, 5), QForm::thin)).fell_back);
      EXPECT_TRUE(guard_report(this->factored(input.make(200, 12, 5), QForm::none)).fell_back);
    }
}

/// Each matrix is judged anew: the flag of a hard one does not stick to an easy one, nor the other way round.
TYPED_TEST(QrGuard, RefactorJudgesAnew) {
  using T = typename TypeParam::Scalar;
  const auto easy = random_normal<T>(150, 9, 1), hard = hostile::duplicate_columns<T>(150, 9, 2);
  for (const QForm form : {QForm::none, QForm::thin}) {
    auto f = this->factored(easy, form);
    const auto r = this->host(f.r());
    EXPECT_FALSE(guard_report(f).fell_back);
    f.refactor(hard.view());
    EXPECT_TRUE(guard_report(f).fell_back);
    EXPECT_TRUE(is_r_of(hard, this->host(f.r())));
    f.refactor(easy.view());
    EXPECT_FALSE(guard_report(f).fell_back);
    EXPECT_EQ(this->host(f.r()), r);
  }
}

/// Where only the tree is left it may start beside the guard and be called off: who answers is decided by the data, and
/// what was begun in vain, this time or the last, leaves no trace.
TYPED_TEST(QrGuard, ATreeCalledOffLeavesNoTrace) {
  using T = typename TypeParam::Scalar;
  const Index m = small_run() ? 160 : 700, n = small_run() ? 20 : 70;
  for (const QForm form : {QForm::none, QForm::thin}) {
    std::vector<Dense<T>> inputs;
    for (const double condition : {1.0, 1e4, 1e13}) inputs.push_back(geometric_spectrum<T>(m, n, condition, 31));
    auto f = this->factored(inputs[0], form);
    EXPECT_EQ(f.plan().expert.sketch_rows, 0);
    std::vector<Dense<T>> first(inputs.size());
    for (int repeat = 0; repeat < (small_run() ? 1 : 4); ++repeat)
      for (const std::size_t k : {0, 1, 2, 1, 0, 2}) {
        SCOPED_TRACE(testing::Message() << qrane::to_string(form) << ", input " << k << ", repeat " << repeat);
        f.refactor(inputs[k].view());
        const auto r = this->host(f.r());
        if (first[k].cols == 0) {
          first[k] = r;
          EXPECT_TRUE(form == QForm::none ? is_r_of(inputs[k], r) : is_qr_of(inputs[k], this->host(f.q()), r));
        }
        EXPECT_EQ(r, first[k]);
        if (sizeof(T) == 8) {
          EXPECT_EQ(guard_report(f).stage, k == 0 ? Stage::one_pass : k == 1 ? Stage::two_passes : Stage::tree);
        }
      }
  }
}

TYPED_TEST(QrGuard, TreesNeverFallBack) {
  using T = typename TypeParam::Scalar;
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
    Options options;
    options.algorithm = algorithm;
    if (algorithm == Algorithm::blocked) options.expert.panel_kind = PanelKind::tree;
    auto f = qr<T>(this->context(), Dense<T>(50, 5).view(), options);
    EXPECT_FALSE(guard_report(f).fell_back);
    EXPECT_EQ(guard_report(f).stage, Stage::planned);
  }
}

TYPED_TEST(QrGuard, SpeaksForEveryPanelOfBlocked) {
  using T = typename TypeParam::Scalar;
  if (!this->context().device().has_double) GTEST_SKIP() << "Cholesky panels need double";
  const Index m = 200, n = 40;
  Options options;
  options.algorithm = Algorithm::blocked;
  options.expert.panel_kind = PanelKind::cholesky;
  options.expert.panel_cols = 10;
  const auto easy = random_normal<T>(m, n, 9);
  auto f = qr<T>(this->context(), easy.view(), options);
  EXPECT_FALSE(guard_report(f).fell_back);
  const auto r = this->host(f.r());
  for (const Index column : {Index(3), Index(17), n - 1}) {  // in the first panel, in a middle one, in the last
    auto hard = easy;
    for (Index i = 0; i < m; ++i) hard(i, column) = 0;
    f.refactor(hard.view());
    EXPECT_TRUE(guard_report(f).fell_back) << column;
    EXPECT_TRUE(is_r_of(hard, this->host(f.r())));
  }
  f.refactor(easy.view());
  EXPECT_FALSE(guard_report(f).fell_back);
  EXPECT_EQ(this->host(f.r()), r);
}

}  // namespace
}  // namespace qrane::test
