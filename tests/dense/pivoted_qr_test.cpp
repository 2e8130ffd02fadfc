// SPDX-License-Identifier: Apache-2.0
// Pivoted QR: a valid permutation, A P = Q R by the measures of a factorization, a falling diagonal, ranks that are
// known, diagonals against LAPACK's geqp3, solutions, and the same bits every time.
#include <qrane/pivoted_qr.hpp>

#include <lapacke.h>

#include "support/backends.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class PivotedQr : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  static PivotedQR<T> factored(const Dense<T>& a, const PivotOptions& options = {}) {
    return pivoted_qr<T>(BackendTest<Where>::context(), a.view(), options);
  }
  static Dense<T> permuted(const Dense<T>& a, const std::vector<Index>& columns) {
    Dense<T> out(a.rows, a.cols);
    for (Index j = 0; j < a.cols; ++j)
      std::copy_n(a.column(columns[static_cast<std::size_t>(j)]), a.rows, out.column(j));
    return out;
  }
  static ::testing::AssertionResult is_permutation(std::vector<Index> columns, Index n) {
    if (static_cast<Index>(columns.size()) != n) return ::testing::AssertionFailure() << columns.size() << " columns";
    std::sort(columns.begin(), columns.end());
    for (Index j = 0; j < n; ++j)
      if (columns[static_cast<std::size_t>(j)] != j) return ::testing::AssertionFailure() << j << " is missing";
    return ::testing::AssertionSuccess();
  }
  /// No diagonal element exceeds `factor` times an earlier one, but for what rounding of the largest column leaves.
  static void expect_falling(const Dense<T>& a, const Dense<T>& r, double factor) {
    double largest = 0, least = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < a.rows; ++i) largest = std::max(largest, std::abs(static_cast<double>(a(i, j))));
    const double noise = largest * std::sqrt(static_cast<double>(a.rows)) * limit<T>(a.rows, a.cols);
    for (Index j = 0; j < std::min(r.rows, r.cols); ++j) {
      const double d = std::abs(static_cast<double>(r(j, j)));
      EXPECT_LE(d, factor * least + noise) << "element " << j;
      least = std::min(least, d);
    }
  }
  /// Everything that must hold of a whole factorization.
  static void expect_pivoted(const Dense<T>& a, const PivotOptions& options) {
    auto f = factored(a, options);
    const auto columns = f.permutation();
    ASSERT_TRUE(is_permutation(columns, a.cols));
    EXPECT_EQ(f.kept(), std::min(a.rows, a.cols));
    const auto r = BackendTest<Where>::host(f.r());
    if (options.q == QForm::none)
      EXPECT_TRUE(is_r_of(permuted(a, columns), r));
    else
      EXPECT_TRUE(is_qr_of(permuted(a, columns), BackendTest<Where>::host(f.q()), r));
    expect_falling(a, r, f.pivoting() == Pivoting::exact ? 1 + limit<T>(a.rows, a.cols) : 10);
  }
};

TYPED_TEST_SUITE(PivotedQr, Everywhere, Names);

std::vector<Shape> shapes() { return {{1, 1}, {7, 1}, {1, 7}, {33, 32}, {32, 33}, {40, 40}, {150, 12}, {12, 70}}; }

TYPED_TEST(PivotedQr, FactorsEveryHostileInput) {
  using T = typename TypeParam::Scalar;
  for (const auto& input : hostile::sweep<T>())
    for (const Shape s : shapes())
      for (const QForm q : in_turn({QForm::implicit, QForm::thin, QForm::none})) {
        if (!this->thorough && q != QForm::thin) continue;
        SCOPED_TRACE(std::string(input.name) + ", " + to_string(s) + ", " + qrane::to_string(q));
        PivotOptions options;
        options.q = q;
        this->expect_pivoted(input.make(s.rows, s.cols, 3), options);
      }
}

TYPED_TEST(PivotedQr, RandomizedPivotsAreGood) {
  using T = typename TypeParam::Scalar;
  PivotOptions options;
  options.pivoting = Pivoting::randomized;
  for (const auto& input : hostile::sweep<T>())
    for (const Shape s : in_turn({Shape{40, 30}, Shape{30, 150}, Shape{1, 5}})) {
      SCOPED_TRACE(std::string(input.name) + ", " + to_string(s));
      this->expect_pivoted(input.make(s.rows, s.cols, 5), options);
    }
  // several blocks, and a spectrum that falls through all of them
  const Index n = small_run() ? 132 : 290;
  const auto a = geometric_spectrum<T>(n + 10, n, sizeof(T) == 4 ? 1e4 : 1e10, 6);
  auto f = this->factored(a, options);
  const auto columns = f.permutation();
  ASSERT_TRUE(this->is_permutation(columns, n));
  const auto r = this->host(f.r()), q = this->host(f.q());
  EXPECT_TRUE(is_qr_of(this->permuted(a, columns), q, r));
  this->expect_falling(a, r, 10);
  PivotOptions exact;
  exact.pivoting = Pivoting::exact;
  if (small_run()) exact.max_rank = 40;
  const auto best = this->host(this->factored(a, exact).r());
  for (Index j = 0; j < best.rows; ++j) {
    EXPECT_LE(std::abs(r(j, j)), 10 * std::abs(best(j, j))) << j;
    EXPECT_GE(std::abs(r(j, j)), std::abs(best(j, j)) / 10) << j;
  }
}

/// Pivots of geqp3 where no two columns tie, and its diagonal everywhere.
TYPED_TEST(PivotedQr, AgreesWithGeqp3) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{60, 40}, Shape{40, 60}, Shape{50, 50}}) {
    SCOPED_TRACE(to_string(s));
    const auto a = convert<T>(geometric_spectrum<double>(s.rows, s.cols, 100, 8));
    Dense<double> packed = convert<double>(a);
    std::vector<lapack_int> pivots(static_cast<std::size_t>(s.cols), 0);
    std::vector<double> tau(static_cast<std::size_t>(s.cols));
    LAPACKE_dgeqp3(LAPACK_COL_MAJOR, static_cast<lapack_int>(s.rows), static_cast<lapack_int>(s.cols),
                   packed.values.data(), static_cast<lapack_int>(s.rows), pivots.data(), tau.data());
    auto f = this->factored(a);
    const auto columns = f.permutation();
    const auto r = this->host(f.r());
    for (Index j = 0; j < std::min(s.rows, s.cols); ++j) {
      EXPECT_EQ(columns[static_cast<std::size_t>(j)], pivots[static_cast<std::size_t>(j)] - 1) << j;
      EXPECT_NEAR(std::abs(r(j, j)) / std::abs(packed(j, j)), 1, 200 * limit<T>(s.rows, s.cols)) << j;
    }
  }
}

TYPED_TEST(PivotedQr, RanksThatAreKnown) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{60, 12}, Shape{14, 14}, Shape{9, 33}}) {
    const Index k = std::min(s.rows, s.cols);
    const std::vector<std::pair<const char*, Index>> known = {
        {"random normal", k},
        {"zero", 0},
        {"ones", 1},
        {"duplicate columns", std::min(s.rows, (s.cols + 1) / 2)},
        {"product of low rank", hostile::product_rank(s.rows, s.cols)},
        {"near overflow", k}};
    for (const auto& [name, rank] : in_turn(known, 2))
      for (const auto& input : hostile::inputs<T>()) {
        if (std::string(input.name) != name) continue;
        SCOPED_TRACE(std::string(name) + ", " + to_string(s));
        const auto a = input.make(s.rows, s.cols, 31);
        EXPECT_EQ(this->factored(a).rank(), rank);
        PivotOptions options;
        options.truncate = true;
        auto f = this->factored(a, options);
        EXPECT_EQ(f.kept(), rank);
        const auto r = this->host(f.r()), q = this->host(f.q());
        ASSERT_TRUE(has_shape(r, rank, s.cols));
        ASSERT_TRUE(has_shape(q, s.rows, rank));
        EXPECT_LE(orthogonality(q, s.rows, s.cols), 1);
        const auto left = subtract(multiply(widen(q), widen(r)), widen(this->permuted(a, f.permutation())));
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < left.values.size(); ++i) {
          worst = std::max(worst, std::abs(static_cast<double>(left.values[i])));
          largest = std::max(largest, std::abs(static_cast<double>(a.values[i])));
        }
        EXPECT_LE(worst, largest * 2 * std::sqrt(double(s.rows)) * limit<T>(s.rows, s.cols));
      }
  }
}

/// Singular values 1, 1e-1, ...: each tolerance cuts where it must, and so does max_rank.
TYPED_TEST(PivotedQr, ToleranceAndMaximalRankEndIt) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(50, 6, 1e5, 3);
  Index before = 6;
  for (const double tolerance : some_of({1e-7, 3e-5, 3e-4, 3e-3, 3e-2, 0.5}, 5)) {
    PivotOptions options;
    options.relative_tolerance = tolerance;
    options.truncate = true;
    auto f = this->factored(a, options);
    EXPECT_LE(f.rank(), before) << tolerance;
    EXPECT_EQ(f.rank(), f.kept());
    before = f.rank();
    const auto r = this->host(f.r());
    EXPECT_NEAR(f.absolute_tolerance(), tolerance * std::abs(static_cast<double>(r(0, 0))), 1e-6 * tolerance);
  }
  EXPECT_LE(before, 2);
  PivotOptions options;
  options.max_rank = 3;
  auto f = this->factored(a, options);
  EXPECT_EQ(f.kept(), 3);
  ASSERT_TRUE(has_shape(this->host(f.r()), 3, 6));
  ASSERT_TRUE(has_shape(this->host(f.q()), 50, 3));
  EXPECT_LE(orthogonality(this->host(f.q()), 50, 6), 1);
}

/// Kahan's matrix: no column of it should move, and its diagonal falls far slower than its smallest singular value.
TYPED_TEST(PivotedQr, KahansMatrix) {
  using T = typename TypeParam::Scalar;
  const Index n = 40;
  const double s = 0.9, c = std::sqrt(1 - s * s);
  Dense<T> a(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i)  // the diagonal a little larger, so that no two columns tie
      a(i, j) =
          static_cast<T>(i == j ? std::pow(s, double(i)) * (1 + 1e-3 * double(n - i)) : -c * std::pow(s, double(i)));
  this->expect_pivoted(a, {});
  auto f = this->factored(a);
  for (Index j = 0; j < n; ++j) EXPECT_EQ(f.permutation()[static_cast<std::size_t>(j)], j);
  EXPECT_EQ(f.rank(), n);
}

TYPED_TEST(PivotedQr, AppliesQ) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{40, 9}, Shape{9, 40}, Shape{12, 12}}) {
    SCOPED_TRACE(to_string(s));
    const auto a = random_normal<T>(s.rows, s.cols, 9);
    auto f = this->factored(a);
    auto c = this->permuted(a, f.permutation());
    f.apply_qt(c.view());  // Qᵀ A P = [R; 0]
    const auto r = this->host(f.r());
    Dense<T> want(s.rows, s.cols);
    for (Index j = 0; j < s.cols; ++j) std::copy_n(r.column(j), r.rows, want.column(j));
    for (Index j = 0; j < s.cols; ++j)
      for (Index i = 0; i < s.rows; ++i)
        EXPECT_NEAR(c(i, j), want(i, j), 20 * limit<T>(s.rows, s.cols) * std::sqrt(double(s.rows))) << i << ", " << j;
    f.apply_q(c.view());
    EXPECT_TRUE(columns_agree(c, this->permuted(a, f.permutation()), s.rows, s.cols, 2));
    auto row = transposed(c);
    f.apply_q(row.view(), Side::right);  // Cᵀ Q = (Qᵀ C)ᵀ
    f.apply_qt(c.view());
    EXPECT_TRUE(columns_agree(transposed(row), c, s.rows, s.cols, 2));
  }
  PivotOptions thin;
  thin.q = QForm::thin;
  auto b = random_normal<T>(20, 2, 1);
  EXPECT_TRUE(refuses([&] { this->factored(random_normal<T>(20, 4, 1), thin).apply_q(b.view()); },
                      ErrorCode::unavailable, {"reflectors"}));
}

TYPED_TEST(PivotedQr, SolvesLeastSquares) {
  using T = typename TypeParam::Scalar;
  using W = Wide<T>;
  for (const Shape s : {Shape{60, 12}, Shape{15, 15}, Shape{12, 40}})
    for (const char* name : in_turn({"random normal", "duplicate columns", "product of low rank"}))
      for (const auto& input : hostile::inputs<T>()) {
        if (std::string(input.name) != name) continue;
        SCOPED_TRACE(std::string(name) + ", " + to_string(s));
        const auto a = input.make(s.rows, s.cols, 6), b = random_normal<T>(s.rows, 3, 7);
        auto f = this->factored(a);
        const auto least = f.solve(b.view());
        SolveOptions basic;
        basic.least_norm = false;
        const auto some = f.solve(b.view(), basic);
        EXPECT_EQ(least.rank, f.rank());
        EXPECT_EQ(least.full, std::min(s.rows, s.cols));
        const auto wide_a = widen(a), wide_b = widen(b);
        const auto spectrum = singular_values(wide_a);
        const double condition = static_cast<double>(spectrum[0] / spectrum[static_cast<std::size_t>(f.rank() - 1)]);
        const auto x = this->host(least.x), y = this->host(some.x);
        for (const auto& solution : {x, y}) {  // the residual is orthogonal to A's columns
          const auto gradient = multiply_transposed(wide_a, subtract(wide_b, multiply(wide_a, widen(solution))));
          const W size = norm(wide_a) * (norm(wide_a) * norm(widen(solution)) + norm(wide_b));
          EXPECT_LE(static_cast<double>(norm(gradient) / size), 10 * condition * limit<T>(s.rows, s.cols));
        }
        for (Index c = 0; c < 3; ++c) {
          Index nonzeros = 0;
          for (Index i = 0; i < s.cols; ++i) nonzeros += y(i, c) != T(0);
          EXPECT_LE(nonzeros, f.rank());
          EXPECT_LE(static_cast<double>(column_norm(widen(x), c)),
                    static_cast<double>(column_norm(widen(y), c)) * (1 + 1000 * condition * limit<T>(s.rows, s.cols)));
        }
        if (!least.deficient()) continue;
        SolveOptions strict;
        strict.refuse_deficient = true;
        EXPECT_TRUE(refuses([&] { f.solve(b.view(), strict); }, ErrorCode::rank_deficient, {std::to_string(f.rank())}));
      }
}

TYPED_TEST(PivotedQr, BitsRepeatInEveryStorage) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{40, 6}, Shape{6, 40}}) {
    const auto a = random_normal<T>(s.rows, s.cols, 16);
    auto first = this->factored(a);
    const auto r = this->host(first.r()), q = this->host(first.q());
    for (const Storage storage : in_turn(all_storages, 3)) {
      SCOPED_TRACE(to_string(s) + ", " + to_string(storage));
      Stored<T> stored(this->context(), a, storage);
      auto f = pivoted_qr<T>(this->context(), stored.view());
      EXPECT_EQ(f.permutation(), first.permutation());
      EXPECT_EQ(this->host(f.r()), r);
      EXPECT_EQ(this->host(f.q()), q);
      EXPECT_EQ(f.r().memory(), stored.view().memory);
      EXPECT_TRUE(stored.untouched(this->context()));
    }
  }
}

TYPED_TEST(PivotedQr, NotANumberComesLast) {
  using T = typename TypeParam::Scalar;
  auto a = random_normal<T>(12, 20, 12);
  a(3, 4) = std::numeric_limits<T>::quiet_NaN();
  auto f = this->factored(a);
  ASSERT_TRUE(this->is_permutation(f.permutation(), 20));
  const auto columns = f.permutation();
  EXPECT_GE(std::find(columns.begin(), columns.end(), 4) - columns.begin(), 12);
  EXPECT_EQ(f.rank(), 12);
  PivotOptions options;
  options.check_finite = true;
  EXPECT_TRUE(refuses([&] { this->factored(a, options); }, ErrorCode::not_finite, {"row 3", "column 4"}));
}

TYPED_TEST(PivotedQr, EmptyMatricesAndRefusals) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{0, 0}, Shape{5, 0}, Shape{0, 5}}) {
    SCOPED_TRACE(to_string(s));
    auto f = this->factored(Dense<T>(s.rows, s.cols));
    EXPECT_EQ(f.rank(), 0);
    EXPECT_TRUE(this->is_permutation(f.permutation(), s.cols));
    EXPECT_TRUE(has_shape(this->host(f.r()), 0, s.cols));
    EXPECT_TRUE(has_shape(this->host(f.q()), s.rows, 0));
    EXPECT_EQ(this->host(f.solve(Dense<T>(s.rows, 2).view()).x), Dense<T>(s.cols, 2));
  }
  const auto a = random_normal<T>(12, 4, 1);
  PivotOptions options;
  options.q = QForm::lapack;
  EXPECT_TRUE(refuses([&] { this->factored(a, options); }, ErrorCode::invalid_argument, {"lapack"}));
  options.q = QForm::full;
  EXPECT_TRUE(refuses([&] { this->factored(a, options); }, ErrorCode::invalid_argument, {"full"}));
  options = {};
  options.relative_tolerance = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refuses([&] { this->factored(a, options); }, ErrorCode::invalid_argument, {"tolerance", "NaN"}));
  options = {};
  options.q = QForm::none;
  auto none = this->factored(a, options);
  EXPECT_TRUE(refuses([&] { none.q(); }, ErrorCode::unavailable, {"none"}));
  EXPECT_TRUE(refuses([&] { none.solve(Dense<T>(12, 1).view()); }, ErrorCode::unavailable, {"none"}));
  auto f = this->factored(a);
  EXPECT_TRUE(refuses([&] { f.solve(Dense<T>(11, 1).view()); }, ErrorCode::invalid_argument, {"b", "11", "12"}));
  auto c = Dense<T>(11, 1);
  EXPECT_TRUE(refuses([&] { f.apply_q(c.view()); }, ErrorCode::invalid_argument, {"c", "11", "12"}));
  EXPECT_TRUE(refuses([&] { pivoting_from_string("best"); }, ErrorCode::invalid_argument, {"best", "exact"}));
}

}  // namespace
}  // namespace qrane::test
