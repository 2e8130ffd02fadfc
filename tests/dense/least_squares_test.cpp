// SPDX-License-Identifier: Apache-2.0
// Least squares: optimal residuals for many right-hand sides, least norm for wide A, and rank deficiency that is
// reported and solved as asked. References are computed in wide arithmetic.
#include <qrane/least_squares.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

/// x of least norm among the minimizers, cutting singular values at `rank`.
template <class W>
Dense<W> pseudo_inverse_times(const Dense<W>& a, const Dense<W>& b, Index rank) {
  const bool tall = a.rows >= a.cols;
  const auto j = jacobi(tall ? a : transposed(a));  // A V = U S, or Aᵀ V = U S
  Dense<W> u = j.b, v = j.v;
  Dense<W> x(a.cols, b.cols);
  for (Index c = 0; c < rank; ++c) {
    const W s = column_norm(u, c);
    for (Index r = 0; r < b.cols; ++r) {
      const W weight = (tall ? dot(a.rows, u.column(c), b.column(r)) : dot(a.rows, v.column(c), b.column(r))) / (s * s);
      for (Index i = 0; i < a.cols; ++i) x(i, r) += weight * (tall ? v(i, c) : u(i, c));
    }
  }
  return x;
}

template <class Where>
class LeastSquares : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  using W = Wide<T>;

  static Solution<T> solve(const Dense<T>& a, const Dense<T>& b, const LeastSquaresOptions& options = {}) {
    return least_squares<T>(BackendTest<Where>::context(), a.view(), b.view(), options);
  }
  /// b - A x in wide arithmetic.
  static Dense<W> residual(const Dense<T>& a, const Dense<T>& x, const Dense<T>& b) {
    return subtract(widen(b), multiply(widen(a), widen(x)));
  }
  /// ‖A‖_F ‖x_c‖ + ‖b_c‖: what rounding is relative to.
  static double size(const Dense<T>& a, const Dense<W>& x, const Dense<T>& b, Index c) {
    return static_cast<double>(norm(widen(a)) * column_norm(x, c) + column_norm(widen(b), c));
  }
  static void expect_reported_residuals(const Dense<T>& a, const Dense<T>& b, const Solution<T>& result) {
    const auto x = BackendTest<Where>::host(result.x);
    const auto r = residual(a, x, b);
    ASSERT_EQ(result.residual_norms.size(), b.cols);
    for (Index c = 0; c < b.cols; ++c)
      EXPECT_NEAR(result.residual_norms[static_cast<std::size_t>(c)], static_cast<double>(column_norm(r, c)),
                  limit<T>(a.rows, a.cols) * size(a, widen(x), b, c));
  }
  static void expect_optimal(const Dense<T>& a, const Dense<T>& b, const Solution<T>& result, Index rank,
                             double condition) {
    const auto x = BackendTest<Where>::host(result.x);
    ASSERT_TRUE(has_shape(x, a.cols, b.cols));
    const auto best = pseudo_inverse_times(widen(a), widen(b), rank);
    const auto best_residual = subtract(widen(b), multiply(widen(a), best));
    const auto got = residual(a, x, b);
    for (Index c = 0; c < b.cols; ++c) {
      const double unit =
          limit<T>(a.rows, a.cols) * (size(a, best, b, c) + condition * double(column_norm(best_residual, c)));
      EXPECT_LE(static_cast<double>(norm(subtract(columns(got, c, 1), columns(best_residual, c, 1)))), unit) << c;
      EXPECT_LE(static_cast<double>(norm(subtract(columns(widen(x), c, 1), columns(best, c, 1)))),
                condition * unit / std::max(1e-300, static_cast<double>(norm(widen(a)))))
          << c;
    }
    expect_reported_residuals(a, b, result);
  }
};

TYPED_TEST_SUITE(LeastSquares, Everywhere, Names);

TYPED_TEST(LeastSquares, ManyRightHandSides) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{120, 9}, Shape{30, 30}, Shape{31, 30}, Shape{50, 1}})
    for (const Index nrhs : in_turn({1, 3, 70}))
      for (const double condition : in_turn({3.0, 1e3})) {
        SCOPED_TRACE(to_string(s) + ", " + std::to_string(nrhs) + " right-hand sides, condition " +
                     std::to_string(condition));
        const auto a = geometric_spectrum<T>(s.rows, s.cols, condition, 1);
        const auto b = random_normal<T>(s.rows, nrhs, 2);
        const auto result = this->solve(a, b);
        EXPECT_EQ(result.rank, s.cols);
        EXPECT_FALSE(result.deficient());
        this->expect_optimal(a, b, result, s.cols, condition * double(s.cols));
      }
}

TYPED_TEST(LeastSquares, EveryAlgorithm) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(140, 12, 50, 1), b = random_normal<T>(140, 4, 2);
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
    SCOPED_TRACE(qrane::to_string(algorithm));
    LeastSquaresOptions options;
    options.algorithm = algorithm;
    this->expect_optimal(a, b, this->solve(a, b, options), 12, 600);
    for (const QForm form : in_turn({QForm::implicit, QForm::thin, QForm::full})) {
      auto f = qr<T>(this->context(), a.view(), options_for({algorithm, form}, {16, 2, 4}));
      Solution<T> result = this->solve(a, b, options);
      std::vector<double> norms = std::move(result.residual_norms);
      result = f.solve(b.view());
      result.residual_norms = std::move(norms);
      this->expect_optimal(a, b, result, 12, 600);
    }
  }
  Options none;
  none.q = QForm::none;
  auto f = qr<T>(this->context(), a.view(), none);
  EXPECT_TRUE(refuses([&] { f.solve(b.view()); }, ErrorCode::unavailable, {"none"}));
}

TYPED_TEST(LeastSquares, ConsistentSystemsAreSolvedExactly) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(60, 8, 10, 5);
  Dense<T> x(8, 2);
  for (Index j = 0; j < 16; ++j) x.values[static_cast<std::size_t>(j)] = static_cast<T>(j % 5 - 2);
  const auto b = convert<T>(multiply(widen(a), widen(x)));
  const auto result = this->solve(a, b);
  EXPECT_TRUE(columns_agree(this->host(result.x), x, 60, 8, 100));
  for (Index c = 0; c < 2; ++c) EXPECT_LE(result.residual_norms[static_cast<std::size_t>(c)], 100 * limit<T>(60, 8));
}

TYPED_TEST(LeastSquares, WideGivesTheLeastNorm) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{9, 40}, Shape{30, 31}, Shape{1, 20}, Shape{32, 257}}) {
    SCOPED_TRACE(to_string(s));
    const auto a = geometric_spectrum<T>(s.rows, s.cols, 20, 3);
    const auto b = random_normal<T>(s.rows, 5, 4);
    const auto result = this->solve(a, b);
    EXPECT_EQ(result.rank, s.rows);
    EXPECT_EQ(result.full, s.rows);
    this->expect_optimal(a, b, result, s.rows, 20 * double(s.rows));
    // and from a factorization of A itself
    Solution<T> through_qr = this->solve(a, b);
    std::vector<double> norms = std::move(through_qr.residual_norms);
    through_qr = qr<T>(this->context(), a.view()).solve(b.view());
    through_qr.residual_norms = std::move(norms);
    this->expect_optimal(a, b, through_qr, s.rows, 20 * double(s.rows));
  }
}

TYPED_TEST(LeastSquares, RankDeficiencyIsReportedAndSolvedAsAsked) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{60, 12}, Shape{15, 15}, Shape{12, 40}})
    for (const char* name : in_turn({"duplicate columns", "product of low rank", "ones"}))
      for (const auto& input : hostile::inputs<T>()) {
        if (std::string(input.name) != name) continue;
        SCOPED_TRACE(std::string(name) + ", " + to_string(s));
        const auto a = input.make(s.rows, s.cols, 6);
        const Index k = std::min(s.rows, s.cols);
        const Index rank = std::string(name) == "ones"                  ? 1
                           : std::string(name) == "product of low rank" ? hostile::product_rank(s.rows, s.cols)
                                                                        : std::min(s.rows, (s.cols + 1) / 2);
        const auto b = random_normal<T>(s.rows, 3, 7);
        LeastSquaresOptions options;
        const auto least = this->solve(a, b, options);
        EXPECT_EQ(least.rank, rank);
        EXPECT_EQ(least.full, k);
        EXPECT_EQ(least.deficient(), rank < k);
        const auto spectrum = singular_values(widen(a));
        const double condition = static_cast<double>(spectrum[0] / spectrum[static_cast<std::size_t>(rank - 1)]);
        this->expect_optimal(a, b, least, rank, condition * double(s.cols));
        if (rank == k) continue;

        options.solve.least_norm = false;
        const auto basic = this->solve(a, b, options);
        EXPECT_EQ(basic.rank, rank);
        this->expect_reported_residuals(a, b, basic);
        const auto x = this->host(basic.x), least_x = this->host(least.x);
        for (Index c = 0; c < b.cols; ++c) {
          const double unit = 1000 * condition * limit<T>(s.rows, s.cols) * this->size(a, widen(x), b, c);
          EXPECT_NEAR(basic.residual_norms[static_cast<std::size_t>(c)],
                      least.residual_norms[static_cast<std::size_t>(c)], unit)
              << "both are minimal";
          if (s.rows >= s.cols) {
            Index nonzeros = 0;
            for (Index i = 0; i < s.cols; ++i) nonzeros += x(i, c) != T(0);
            EXPECT_LE(nonzeros, rank) << "a basic solution uses rank columns";
          }
          EXPECT_LE(static_cast<double>(column_norm(widen(least_x), c)),
                    static_cast<double>(column_norm(widen(x), c)) * (1 + 1000 * condition * limit<T>(s.rows, s.cols)));
        }

        options.solve.refuse_deficient = true;
        EXPECT_TRUE(refuses([&] { this->solve(a, b, options); }, ErrorCode::rank_deficient,
                            {"rank " + std::to_string(rank), std::to_string(k)}));
        auto f = qr<T>(this->context(), a.view());
        EXPECT_EQ(f.solve(b.view()).rank, rank);
        EXPECT_TRUE(
            refuses([&] { f.solve(b.view(), options.solve); }, ErrorCode::rank_deficient, {std::to_string(rank)}));
      }
}

/// The tolerance moves the decision; what is cut is solved as a smaller problem.
TYPED_TEST(LeastSquares, ToleranceDecidesTheRank) {
  using T = typename TypeParam::Scalar;
  const auto a = with_singular_values<T>(
      50, 6, [](Index j, Index) { return j < 4 ? 1.0 : 1e-4; }, 8);
  const auto b = random_normal<T>(50, 2, 9);
  EXPECT_EQ(this->solve(a, b).rank, 6);
  LeastSquaresOptions options;
  options.solve.relative_tolerance = 1e-2;
  const auto cut = this->solve(a, b, options);
  EXPECT_EQ(cut.rank, 4);
  EXPECT_TRUE(cut.deficient());
  for (Index c = 0; c < 2; ++c)  // no component of size 1e4 times b
    EXPECT_LE(static_cast<double>(column_norm(widen(this->host(cut.x)), c)),
              3 * static_cast<double>(column_norm(widen(b), c)));
  options.solve.relative_tolerance = 0;
  EXPECT_EQ(this->solve(a, b, options).rank, 6);
}

TYPED_TEST(LeastSquares, ZeroMatricesAndEmptyOnes) {
  using T = typename TypeParam::Scalar;
  const auto b = random_normal<T>(12, 2, 10);
  const auto zero = this->solve(Dense<T>(12, 4), b);
  EXPECT_EQ(zero.rank, 0);
  EXPECT_EQ(this->host(zero.x), Dense<T>(4, 2));
  EXPECT_NEAR(zero.residual_norms[1], static_cast<double>(column_norm(widen(b), 1)), 1e-5);

  const auto no_columns = this->solve(Dense<T>(12, 0), b);
  EXPECT_TRUE(has_shape(this->host(no_columns.x), 0, 2));
  EXPECT_NEAR(no_columns.residual_norms[0], static_cast<double>(column_norm(widen(b), 0)), 1e-5);

  const auto no_rows = this->solve(Dense<T>(0, 4), Dense<T>(0, 2));
  EXPECT_EQ(this->host(no_rows.x), Dense<T>(4, 2));

  const auto a = random_normal<T>(12, 4, 11);
  const auto no_right_hand_sides = this->solve(a, Dense<T>(12, 0));
  EXPECT_TRUE(has_shape(this->host(no_right_hand_sides.x), 4, 0));
  EXPECT_EQ(no_right_hand_sides.residual_norms.size(), 0);
  EXPECT_EQ(this->host(this->solve(a, Dense<T>(12, 3)).x), Dense<T>(4, 3)) << "b = 0 gives x = 0";
}

TYPED_TEST(LeastSquares, NotANumberStaysInItsColumn) {
  using T = typename TypeParam::Scalar;
  const auto a = random_normal<T>(40, 5, 12);
  auto b = random_normal<T>(40, 3, 13);
  const auto want = this->host(this->solve(a, b).x);
  b(39, 1) = std::numeric_limits<T>::quiet_NaN();
  const auto got = this->host(this->solve(a, b).x);
  EXPECT_EQ(columns(got, 0, 1), columns(want, 0, 1));
  EXPECT_EQ(columns(got, 2, 1), columns(want, 2, 1));
  EXPECT_FALSE(all_finite(columns(got, 1, 1)));
}

TYPED_TEST(LeastSquares, ScaleDoesNotMatter) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(40, 6, 10, 14), b = random_normal<T>(40, 2, 15);
  const auto x = this->host(this->solve(a, b).x);
  for (const int e : {sizeof(T) == 4 ? 60 : 500, sizeof(T) == 4 ? -60 : -500}) {
    SCOPED_TRACE(e);
    const auto both = this->solve(hostile::times(a, std::ldexp(T(1), e)), hostile::times(b, std::ldexp(T(1), e)));
    EXPECT_EQ(both.rank, 6);
    EXPECT_TRUE(columns_agree(this->host(both.x), x, 40, 6, 20));
  }
}

TYPED_TEST(LeastSquares, WorksOnDeviceMemoryAndEveryLayout) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{40, 6}, Shape{6, 40}}) {
    const auto a = random_normal<T>(s.rows, s.cols, 16), b = random_normal<T>(s.rows, 3, 17);
    const auto want = this->host(this->solve(a, b).x);
    for (const Storage storage : in_turn(all_storages, 3)) {
      SCOPED_TRACE(to_string(s) + ", " + to_string(storage));
      Stored<T> sa(this->context(), a, storage), sb(this->context(), b, storage);
      const auto result = least_squares<T>(this->context(), sa.view(), sb.view());
      EXPECT_EQ(this->host(result.x), want);
      EXPECT_EQ(result.x.memory(), sb.view().memory);
      EXPECT_TRUE(sa.untouched(this->context()));
      EXPECT_TRUE(sb.untouched(this->context()));
    }
  }
}

TYPED_TEST(LeastSquares, RefusesSizesThatDoNotMatch) {
  using T = typename TypeParam::Scalar;
  constexpr auto bad = ErrorCode::invalid_argument;
  const auto a = random_normal<T>(12, 4, 1);
  EXPECT_TRUE(refuses([&] { this->solve(a, Dense<T>(11, 2)); }, bad, {"b", "11", "12"}));
  EXPECT_TRUE(refuses([&] { qr<T>(this->context(), a.view()).solve(Dense<T>(13, 1).view()); }, bad, {"b", "13", "12"}));
  EXPECT_TRUE(refuses([&] { least_squares<T>(this->context(), a.view(), MatrixView<const T>(nullptr, 12, 1, 12)); },
                      bad, {"b", "null"}));
  EXPECT_TRUE(
      refuses([&] { least_squares<T>(this->context(), a.view(), MatrixView<const T>(a.values.data(), 12, 1, 3)); }, bad,
              {"b", "ld", "3"}));
}

}  // namespace
}  // namespace qrane::test
