// SPDX-License-Identifier: Apache-2.0
// qr: every algorithm, every form of Q, every hostile input, on shapes and trees that cross every boundary,
// judged by the acceptance measures (support/measures.hpp). R, thin Q and full Q.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class Qr : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using BackendTest<Where>::context;
  using BackendTest<Where>::host;

  /// Factors and judges whatever this form gives.
  static void check(const Dense<T>& a, const Options& options) {
    auto f = qr<T>(context(), a.view(), options);
    EXPECT_EQ(f.rows(), a.rows);
    EXPECT_EQ(f.cols(), a.cols);
    const Dense<T> r = host(f.r());
    if (options.q == QForm::none) {
      EXPECT_TRUE(is_r_of(a, r));
    } else {
      EXPECT_TRUE(is_qr_of(a, host(f.q()), r));
    }
  }

  static void check_all_inputs(Shape s, Combo combo, Tree tree) {
    for (const auto& input : hostile::sweep<T>()) {
      SCOPED_TRACE(label(input.name, s, combo, tree));
      check(input.make(s.rows, s.cols, 11), options_for(combo, tree));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
};

TYPED_TEST_SUITE(Qr, Everywhere, Names);

/// Leaves of 16 rows in pairs and panels of 4: a tree of 5 levels, and a grid redrawn for each panel.
TYPED_TEST(Qr, HostileInputsThroughADeepTree) {
  for (const Combo combo : all_combos())
    for (const Shape s : {Shape{131, 10}})
      if (legal(combo, s)) this->check_all_inputs(s, combo, {16, 2, 4});
}

/// Wide, square and one more row than columns.
TYPED_TEST(Qr, HostileInputsInEveryAspect) {
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn({Shape{24, 24}, Shape{18, 17}, Shape{9, 21}}))
      if (legal(combo, s)) this->check_all_inputs(s, combo, this->thorough ? Tree{12, 3, 5} : Tree{});
}

/// The tuned plan, on a matrix that is tall enough for the tall algorithms and wide enough for two panels.
TYPED_TEST(Qr, HostileInputsThroughTheTunedPlan) {
  for (const Combo combo : all_combos()) {
    const Shape s = combo.algorithm == Algorithm::tsqr ? Shape{523, 32} : Shape{523, 37};
    if (this->thorough || combo.algorithm == Algorithm::automatic) this->check_all_inputs(s, combo, {});
  }
}

/// Tall enough for several leaves and levels of every backend's tuned tree.
TYPED_TEST(Qr, TallMatricesThroughTheTunedPlan) {
  using T = typename TypeParam::Scalar;
  const auto shapes = small_run() ? std::vector<Shape>{{2311, 32}, {2403, 45}, {3013, 5}}
                                  : std::vector<Shape>{{20011, 32}, {17001, 45}, {60013, 5}};
  for (const Shape s : shapes)
    for (const char* name : some_of({"random normal", "graded columns", "near-dependent columns", "huge and tiny"}, 4))
      for (const auto& input : hostile::inputs<T>()) {
        if (std::string(input.name) != name || (!this->thorough && s.cols == 45)) continue;
        const auto a = input.make(s.rows, s.cols, 12);
        for (const Combo combo : all_combos()) {
          if (!legal(combo, s)) continue;
          SCOPED_TRACE(label(name, s, combo, {}));
          this->check(a, options_for(combo));
        }
      }
}

/// Sizes next to warps, tiles and leaves, primes, single rows and columns.
TYPED_TEST(Qr, EverySizeAcrossTheBoundaries) {
  using T = typename TypeParam::Scalar;
  std::vector<Shape> shapes = {{1, 1},   {2, 1},    {1, 2},   {1, 40},  {40, 1},   {31, 31},  {32, 32},
                               {33, 33}, {33, 32},  {32, 33}, {31, 67}, {255, 16}, {256, 16}, {257, 16},
                               {257, 1}, {127, 29}, {64, 63}, {65, 64}, {63, 65},  {289, 33}, {7, 3}};
  if (this->thorough)
    shapes.insert(shapes.end(), {{509, 67}, {513, 31}, {1031, 8}, {1024, 32}, {130, 129}, {100, 211}, {2053, 5}});
  for (const Shape s : shapes)
    for (const Combo combo : in_turn(legal_combos())) {
      if (!legal(combo, s)) continue;
      SCOPED_TRACE(label("random normal", s, combo, {}));
      this->check(random_normal<T>(s.rows, s.cols, 7), options_for(combo));
    }
}

/// Every shape of tree on one matrix: any leaf height, arity and panel width gives a factorization.
TYPED_TEST(Qr, EveryShapeOfTree) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(203, 13, 1e3, 3);
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked, Algorithm::cholesky_qr})
    for (const std::int64_t block_rows : some_of<std::int64_t>({1, 13, 26, 27, 50, 101, 102, 128}, 5))
      for (const int arity : some_of({2, 3, 5}, 2))
        for (const int panel_cols : some_of({1, 3, 13}, 2)) {
          if (!this->thorough && (block_rows % 2 == 0 || arity == 3)) continue;
          if ((algorithm == Algorithm::tsqr || algorithm == Algorithm::cholesky_qr) && panel_cols != 13) continue;
          const Combo combo{algorithm, algorithm == Algorithm::cholesky_qr ? QForm::thin : QForm::implicit};
          const Tree tree{block_rows, arity, panel_cols};
          SCOPED_TRACE(label("geometric spectrum", {203, 13}, combo, tree));
          this->check(a, options_for(combo, tree));
        }
}

TYPED_TEST(Qr, FullQAndFullR) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : combos_of_full_q()) {
    for (const Shape s : in_turn({Shape{70, 9}, Shape{20, 20}, Shape{11, 30}, Shape{40, 1}}, 2))
      for (const char* name :
           in_turn({"random normal", "graded columns", "duplicate columns", "zero", "zero columns"})) {
        SCOPED_TRACE(label(name, s, combo, {16, 2, 4}));
        for (const auto& input : hostile::inputs<T>()) {
          if (std::string(input.name) != name) continue;
          const auto a = input.make(s.rows, s.cols, 5);
          auto f = qr<T>(this->context(), a.view(), options_for(combo, {16, 2, 4}));
          const auto full = this->host(f.q(Columns::full)), thin = this->host(f.q());
          EXPECT_TRUE(is_qr_of(a, full, this->host(f.r(Columns::full))));
          // thin Q is full Q's first columns, to rounding
          EXPECT_TRUE(columns_agree(thin, columns(full, 0, std::min(s.rows, s.cols)), s.rows, s.cols));
        }
      }
  }
}

/// Q and R agree between forms and algorithms where the problem determines them: well-conditioned, up to signs.
TYPED_TEST(Qr, AlgorithmsAgreeOnAWellConditionedMatrix) {
  using T = typename TypeParam::Scalar;
  const Index m = 300, n = 12;
  const auto a = geometric_spectrum<T>(m, n, 10, 8);
  const auto reference = householder_qr(widen(a)).r;
  for (const Combo combo : all_combos()) {
    SCOPED_TRACE(to_string(combo));
    auto r = this->host(qr<T>(this->context(), a.view(), options_for(combo)).r());
    for (Index i = 0; i < n; ++i)
      if (static_cast<Wide<T>>(r(i, i)) * reference(i, i) < 0)
        for (Index j = i; j < n; ++j) r(i, j) = -r(i, j);
    EXPECT_TRUE(columns_agree(r, convert<T>(reference), m, n, 10));
  }
}

TYPED_TEST(Qr, EmptyMatrices) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : all_combos())
    for (const Shape s : {Shape{0, 0}, Shape{5, 0}, Shape{0, 4}}) {
      if (!legal(combo, s)) continue;
      SCOPED_TRACE(label("empty", s, combo, {}));
      const Dense<T> a(s.rows, s.cols);
      auto f = qr<T>(this->context(), a.view(), options_for(combo));
      EXPECT_TRUE(has_shape(this->host(f.r()), 0, s.cols));
      if (combo.q == QForm::none) continue;
      EXPECT_TRUE(has_shape(this->host(f.q()), s.rows, 0));
      if (!keeps_reflectors(combo.q)) continue;
      EXPECT_EQ(this->host(f.q(Columns::full)), identity<T>(s.rows));
      EXPECT_EQ(this->host(f.r(Columns::full)), Dense<T>(s.rows, s.cols));
    }
}

TYPED_TEST(Qr, PlansNameWhatTheyDo) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : all_combos()) {
    const Shape s{400, 20};
    const Options options = options_for(combo, {64, 2, 10});
    const Plan plan = plan_qr<T>(this->context(), s.rows, s.cols, options);
    SCOPED_TRACE(to_string(combo) + "\n" + plan.explain());
    EXPECT_NE(plan.algorithm, Algorithm::automatic);
    EXPECT_TRUE(combo.algorithm == Algorithm::automatic || plan.algorithm == combo.algorithm);
    EXPECT_EQ(plan.q, combo.q);
    EXPECT_EQ(plan.rows, s.rows);
    EXPECT_EQ(plan.cols, s.cols);
    EXPECT_EQ(plan.scalar_bytes, static_cast<int>(sizeof(T)));
    EXPECT_NEAR(plan.flops, 2.0 * 400 * 20 * 20 - 2.0 * 20 * 20 * 20 / 3, 1);
    EXPECT_EQ(plan.expert.block_rows, 64);
    EXPECT_EQ(plan.expert.arity, 2);
    for (const char* word :
         {qrane::to_string(plan.algorithm), "400 x 20", sizeof(T) == 4 ? "float" : "double", "tree", "64", "workspace"})
      EXPECT_NE(plan.explain().find(word), std::string::npos) << word;

    const auto a = random_normal<T>(s.rows, s.cols, 1);
    auto f = qr<T>(this->context(), a.view(), options);
    EXPECT_EQ(f.plan().algorithm, plan.algorithm);
    EXPECT_EQ(f.plan().expert.panel_cols, plan.expert.panel_cols);
    EXPECT_EQ(f.plan().expert.block_rows, plan.expert.block_rows);
    EXPECT_EQ(f.plan().expert.arity, plan.expert.arity);
    EXPECT_GT(f.plan().workspace_bytes, 0);
    EXPECT_EQ(f.plan().workspace_bytes, plan.workspace_bytes);
  }
}

/// The plan's own way for narrow matrices, in one pass where the backend has it, against the stepwise tree: R to the
/// signs of its rows, on heights around those of heads, chunks and chains; and NaN where the input has one.
TYPED_TEST(Qr, NarrowMatricesAgreeWithTheStepwiseTree) {
  using T = typename TypeParam::Scalar;
  for (const QForm form : {QForm::none, QForm::thin})
    for (const Shape s : in_turn({Shape{8, 8}, Shape{9, 5}, Shape{40, 8}, Shape{200, 3}, Shape{393, 8}, Shape{1569, 7},
                                  Shape{4321, 1}, Shape{273, 9}, Shape{2177, 16}, Shape{161, 17}, Shape{1283, 32}},
                                 6)) {
      const Combo combo{Algorithm::tsqr, form};
      SCOPED_TRACE(label("random normal", s, combo, {}));
      auto a = random_normal<T>(s.rows, s.cols, 21);
      this->check(a, options_for(combo));
      const auto r = this->host(qr<T>(this->context(), a.view(), options_for(combo)).r());
      const auto steps = this->host(qr<T>(this->context(), a.view(), options_for(combo, {64, 2, 0})).r());
      const T accuracy = 300 * std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<T>(s.rows));
      for (Index j = 0; j < s.cols; ++j)
        for (Index i = 0; i <= j && s.rows > 2 * s.cols; ++i)
          EXPECT_NEAR(std::abs(r(i, j)), std::abs(steps(i, j)), accuracy) << i << ", " << j;
      a(s.rows - 1, s.cols - 1) = std::numeric_limits<T>::quiet_NaN();
      const auto poisoned = this->host(qr<T>(this->context(), a.view(), options_for(combo)).r());
      EXPECT_FALSE(std::isfinite(poisoned(s.cols - 1, s.cols - 1)));
    }
}

/// Nothing hangs, R shows NaN where the input had one or an Inf, and columns left of it are as good as ever.
TYPED_TEST(Qr, NotANumberSpreadsToTheRightOnly) {
  using T = typename TypeParam::Scalar;
  const Index m = 131, n = 10, bad = 6;
  for (const T poison : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()})
    for (const Index row : in_turn({Index{0}, Index{15}, Index{16}, m - 1}))
      for (const Combo combo : all_combos()) {
        SCOPED_TRACE(label("NaN", {m, n}, combo, {16, 2, 4}) + ", row " + std::to_string(row));
        auto a = random_normal<T>(m, n, 9);
        a(row, bad) = poison;
        const auto r = this->host(qr<T>(this->context(), a.view(), options_for(combo, {16, 2, 4})).r());
        bool marked = false;
        for (Index i = 0; i < n; ++i) marked = marked || !std::isfinite(r(i, bad));
        EXPECT_TRUE(marked) << "column " << bad << " of R is finite";
        for (Index i = 1; i < n; ++i)
          for (Index j = 0; j < i; ++j) EXPECT_EQ(r(i, j), T(0));
        // reflections of the tree are made column after column: those left of the bad one know nothing of it
        const bool column_by_column = combo.algorithm == Algorithm::caqr || combo.algorithm == Algorithm::tsqr;
        EXPECT_TRUE(!column_by_column || all_finite(columns(r, 0, 4)));
      }
}

}  // namespace
}  // namespace qrane::test
