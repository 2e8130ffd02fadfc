// SPDX-License-Identifier: Apache-2.0
// SvdPlan and LeastSquaresPlan: repeated execution gives what svd() and least_squares() give, in memory that is taken
// once and known beforehand; and what a context keeps for those calls can be seen, limited and freed.
#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class PlansTest : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using Test = BackendTest<Where>;

  /// Results of a plan in device memory.
  struct SvdResults {
    Matrix<T> s, u, vt;
    SvdResults(const Context& context, Index m, Index n)
        : s(context.allocate<T>(std::min(m, n), 1)),
          u(context.allocate<T>(m, std::min(m, n))),
          vt(context.allocate<T>(std::min(m, n), n)) {}
  };

  static void expect_svd(const Dense<T>& a, const Dense<T>& u, const Dense<T>& s, const Dense<T>& vt) {
    EXPECT_LE(orthogonality(u, a.rows, a.cols), 1);
    EXPECT_LE(orthogonality(transposed(vt), a.rows, a.cols), 1);
    auto us = widen(u);
    for (Index j = 0; j < us.cols; ++j)
      for (Index i = 0; i < us.rows; ++i) us(i, j) *= static_cast<Wide<T>>(s(j, 0));
    EXPECT_LE(static_cast<double>(norm(subtract(widen(a), multiply(us, widen(vt))))),
              limit<T>(a.rows, a.cols) * static_cast<double>(norm(widen(a))));
  }

  /// All the memory that the context still gives, taken.
  static std::vector<Matrix<T>> take_the_rest(const Context& context) {
    std::vector<Matrix<T>> all;
    for (Index bytes = Index{1} << 22; bytes >= 256; bytes /= 2)
      (void)thrown_by([&] {
        while (true) all.push_back(context.allocate<T>(bytes / Index(sizeof(T)), 1));
      });
    return all;
  }
};

TYPED_TEST_SUITE(PlansTest, Everywhere, Names);

constexpr Shape shapes[] = {{300, 12}, {12, 300}, {40, 40}, {700, 3}, {1, 5}, {6, 1}};

/// From full rank to none, with what the Gram matrix cannot do in between.
template <class T>
std::vector<Dense<T>> inputs(Shape s) {
  return {random_normal<T>(s.rows, s.cols, 1), geometric_spectrum<T>(s.rows, s.cols, 1e6, 2),
          hostile::product<T>(s.rows, s.cols, 3), Dense<T>(s.rows, s.cols), random_normal<T>(s.rows, s.cols, 4)};
}

TYPED_TEST(PlansTest, SvdOfOneMatrixAfterTheOther) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Shape s : in_turn(shapes)) {
    SCOPED_TRACE(to_string(s));
    SvdPlan<T> plan(context, s.rows, s.cols);
    EXPECT_EQ(plan.rows(), s.rows);
    EXPECT_EQ(plan.cols(), s.cols);
    EXPECT_EQ(plan.qr_plan().rows, std::max(s.rows, s.cols));
    typename TestFixture::SvdResults out(context, s.rows, s.cols);
    int call = 0;
    for (const Dense<T>& input : inputs<T>(s)) {
      SCOPED_TRACE("call " + std::to_string(call++));
      const Matrix<T> a = context.to_device<T>(input.view());
      plan.execute(a, out.s, out.u, out.vt);
      plan.finish();
      this->expect_svd(input, this->host(out.u), this->host(out.s), this->host(out.vt));
      if (call == 1) {  // nothing in doubt: the same operations as a call's
        const Svd<T> expected = svd<T>(context, a.view());
        EXPECT_EQ(this->host(out.s), this->host(expected.s));
        EXPECT_EQ(this->host(out.u), this->host(expected.u));
        EXPECT_EQ(this->host(out.vt), this->host(expected.vt));
      }
    }
  }
}

TYPED_TEST(PlansTest, SvdIntoOtherMemory) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Shape s : {Shape{60, 7}, Shape{7, 60}}) {
    const Index k = 7;
    for (const Dense<T>& input : {random_normal<T>(s.rows, s.cols, 5), hostile::product<T>(s.rows, s.cols, 3)}) {
      SvdPlan<T> plan(context, s.rows, s.cols, {.check_finite = true});
      std::vector<T> rows(static_cast<std::size_t>(s.rows * k));
      Dense<T> values(k, 1), vt(k, s.cols);
      const auto u = MatrixView<T>::row_major(rows.data(), s.rows, k);
      plan.execute(input.view(), values.view(), u, vt.view());
      plan.finish();
      Dense<T> columns(s.rows, k);
      for (Index i = 0; i < s.rows; ++i)
        for (Index j = 0; j < k; ++j) columns(i, j) = rows[static_cast<std::size_t>(i * k + j)];
      this->expect_svd(input, columns, values, vt);
    }
    SvdPlan<T> alone(context, s.rows, s.cols, {.vectors = false});
    const auto input = random_normal<T>(s.rows, s.cols, 6);
    Dense<T> values(k, 1);
    alone.execute(input.view(), values.view());
    EXPECT_FALSE(alone.finish());
    EXPECT_EQ(values, this->host(svd<T>(context, input.view(), {.vectors = false}).s));
  }
}

TYPED_TEST(PlansTest, LeastSquaresOfOneSystemAfterTheOther) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Shape s : in_turn(shapes)) {
    SCOPED_TRACE(to_string(s));
    LeastSquaresPlan<T> plan(context, s.rows, s.cols, 2);
    EXPECT_EQ(plan.rhs_cols(), 2);
    Matrix<T> x = context.allocate<T>(s.cols, 2);
    int call = 0;
    for (const Dense<T>& input : inputs<T>(s)) {
      SCOPED_TRACE("call " + std::to_string(call++));
      const Dense<T> right = random_normal<T>(s.rows, 2, 9);
      const Matrix<T> a = context.to_device<T>(input.view()), b = context.to_device<T>(right.view());
      plan.execute(a, b, x);
      const Solution<T> facts = plan.finish();
      const Solution<T> expected = least_squares<T>(context, a.view(), b.view());
      EXPECT_EQ(facts.rank, expected.rank);
      EXPECT_EQ(facts.full, expected.full);
      if (call == 2) continue;  // ill-conditioned: two ways, two roundings
      EXPECT_EQ(facts.condition, expected.condition);
      EXPECT_EQ(this->host(x), this->host(expected.x));
    }
  }
}

TYPED_TEST(PlansTest, LeastSquaresOptionsAndOtherMemory) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto deficient = hostile::product<T>(90, 12, 3), right = random_normal<T>(90, 1, 2);
  LeastSquaresOptions options;
  options.solve.least_norm = false;
  LeastSquaresPlan<T> basic(context, 90, 12, 1, options);
  Dense<T> x(12, 1);
  basic.execute(deficient.view(), right.view(), x.view());
  EXPECT_EQ(basic.finish().rank, hostile::product_rank(90, 12));
  EXPECT_GE(std::count(x.values.begin(), x.values.end(), T(0)), 12 - hostile::product_rank(90, 12));
  options.solve.refuse_deficient = true;
  LeastSquaresPlan<T> strict(context, 90, 12, 1, options);
  strict.execute(deficient.view(), right.view(), x.view());
  EXPECT_TRUE(refuses([&] { strict.finish(); }, ErrorCode::rank_deficient, {"rank"}));
}

TYPED_TEST(PlansTest, RepeatedExecutionAllocatesNothing) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{400, 12}, Shape{12, 400}}) {
    SCOPED_TRACE(to_string(s));
    const Context context = fresh_context(this->backend, Index{64} << 20);
    const auto input = random_normal<T>(s.rows, s.cols, 1), right = random_normal<T>(s.rows, 1, 2);
    const Matrix<T> a = context.to_device<T>(input.view()), b = context.to_device<T>(right.view());
    Matrix<T> x = context.allocate<T>(s.cols, 1);
    typename TestFixture::SvdResults out(context, s.rows, s.cols);
    SvdPlan<T> svd_plan(context, s.rows, s.cols);
    LeastSquaresPlan<T> solve_plan(context, s.rows, s.cols);
    const auto run = [&] {
      if (svd_plan.on_device()) svd_plan.execute(a, out.s, out.u, out.vt);
      solve_plan.execute(a, b, x);
    };
    run();
    const auto first_u = this->host_of(context, out.u).values, first_x = this->host_of(context, x).values;
    {
      const auto rest = this->take_the_rest(context);
      for (int call = 0; call < 2; ++call) EXPECT_EQ(thrown_by(run).message, "");
      context.synchronize();
    }
    if (svd_plan.on_device()) {
      EXPECT_EQ(this->host_of(context, out.u).values, first_u);
    }
    EXPECT_EQ(this->host_of(context, x).values, first_x);
  }
}

TYPED_TEST(PlansTest, WorkspaceIsWhatIsTaken) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{9000, 12}, Shape{12, 9000}}) {
    SCOPED_TRACE(to_string(s));
    constexpr Index limit = Index{256} << 20, slack = Index{1} << 20;  // schedules, rounding up
    const Context context = fresh_context(this->backend, limit);
    const auto input = random_normal<T>(s.rows, s.cols, 1), right = random_normal<T>(s.rows, 1, 2);
    const Matrix<T> a = context.to_device<T>(input.view()), b = context.to_device<T>(right.view());
    Matrix<T> x = context.allocate<T>(s.cols, 1);
    typename TestFixture::SvdResults out(context, s.rows, s.cols);
    /// Bytes that `action` takes: what is left of the limit before, and after.
    const auto taken = [&](auto action) {
      const auto left = [&] {
        Index bytes = 0;
        for (const auto& piece : this->take_the_rest(context)) bytes += piece.rows() * Index(sizeof(T));
        return bytes;
      };
      const Index before = left();
      action();
      return before - left();
    };
    SvdPlan<T> svd_plan(context, s.rows, s.cols);
    EXPECT_NEAR(double(taken([&] { svd_plan.execute(a, out.s, out.u, out.vt); })), double(svd_plan.workspace_bytes()),
                double(slack));
    LeastSquaresPlan<T> solve_plan(context, s.rows, s.cols);
    EXPECT_NEAR(double(taken([&] { solve_plan.execute(a, b, x); })), double(solve_plan.workspace_bytes()),
                double(slack));
    EXPECT_EQ(context.cached_bytes(), 0);
  }
}

TYPED_TEST(PlansTest, ArgumentsThatDoNotFitAreNamed) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  constexpr auto bad = ErrorCode::invalid_argument;
  EXPECT_TRUE(refuses([&] { SvdPlan<T>(context, -1, 4); }, bad, {"-1"}));
  EXPECT_TRUE(refuses([&] { LeastSquaresPlan<T>(context, 9, 4, -2); }, bad, {"-2"}));
  SvdPlan<T> plan(context, 9, 4);
  EXPECT_TRUE(refuses([&] { plan.finish(); }, bad, {"execute"}));
  Dense<T> a(9, 4), u(9, 4), s(4, 1), vt(4, 4), x(4, 1), b(9, 1);
  EXPECT_TRUE(refuses([&] { plan.execute(vt.view(), s.view(), u.view(), vt.view()); }, bad, {"A is 4 x 4", "9 x 4"}));
  EXPECT_TRUE(refuses([&] { plan.execute(a.view(), s.view()); }, bad, {"u is 0 x 0", "9 x 4"}));
  EXPECT_TRUE(refuses([&] { plan.execute(a.view(), s.view(), u.view(), u.view()); }, bad, {"vt is 9 x 4"}));
  LeastSquaresPlan<T> solve(context, 9, 4);
  EXPECT_TRUE(refuses([&] { solve.finish(); }, bad, {"execute"}));
  EXPECT_TRUE(refuses([&] { solve.execute(a.view(), x.view(), x.view()); }, bad, {"b is 4 x 1", "9 x 1"}));
  EXPECT_TRUE(refuses([&] { solve.execute(a.view(), b.view(), b.view()); }, bad, {"x is 9 x 1", "4 x 1"}));
  a(5, 2) = std::numeric_limits<T>::quiet_NaN();
  SvdPlan<T> finite(context, 9, 4, {.check_finite = true});
  EXPECT_TRUE(refuses([&] { finite.execute(a.view(), s.view(), u.view(), vt.view()); }, ErrorCode::not_finite,
                      {"row 5", "column 2"}));
}

TYPED_TEST(PlansTest, TheCacheIsSeenLimitedAndFreed) {
  using T = typename TypeParam::Scalar;
  const Context context = fresh_context(this->backend, Index{256} << 20);
  EXPECT_EQ(context.cached_bytes(), 0);
  EXPECT_GT(context.cache_limit(), 0);
  const auto a = random_normal<T>(500, 16, 1), b = random_normal<T>(500, 1, 2);
  const auto call = [&] {
    const auto out = svd<T>(context, a.view());
    (void)least_squares<T>(context, a.view(), b.view());
    return this->host_of(context, out.u).values;
  };
  const auto first = call();
  const Index kept = context.cached_bytes();
  EXPECT_GT(kept, 0);
  EXPECT_EQ(call(), first);
  EXPECT_EQ(context.cached_bytes(), kept) << "the same call keeps no more";
  context.clear_cache();
  EXPECT_EQ(context.cached_bytes(), 0);
  EXPECT_EQ(call(), first);
  context.set_cache_limit(kept - 1);
  EXPECT_LT(context.cached_bytes(), kept);
  context.set_cache_limit(0);
  EXPECT_EQ(context.cache_limit(), 0);
  EXPECT_EQ(context.cached_bytes(), 0);
  EXPECT_EQ(call(), first);
  EXPECT_EQ(context.cached_bytes(), 0);
  EXPECT_TRUE(refuses([&] { context.set_cache_limit(-1); }, ErrorCode::invalid_argument, {"-1"}));
}

}  // namespace
}  // namespace qrane::test
