// SPDX-License-Identifier: Apache-2.0
// What R tells: determinant against known ones, rank, condition, bases of the range and of the null space.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrRank : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  static QR<T> factored(const Dense<T>& a, Algorithm algorithm = Algorithm::automatic, QForm q = QForm::implicit) {
    return qr<T>(BackendTest<Where>::context(), a.view(), options_for({algorithm, q}, {16, 2, 4}));
  }
  static Dense<T> diagonal(const std::vector<double>& d) {
    Dense<T> a(static_cast<Index>(d.size()), static_cast<Index>(d.size()));
    for (Index j = 0; j < a.cols; ++j) a(j, j) = static_cast<T>(d[static_cast<std::size_t>(j)]);
    return a;
  }
  static void expect_determinant(const Dense<T>& a, double sign, double log_magnitude, const std::string& what) {
    for (const Combo c : {Combo{Algorithm::tsqr, QForm::implicit}, Combo{Algorithm::caqr, QForm::implicit},
                          Combo{Algorithm::blocked, QForm::implicit}, Combo{Algorithm::automatic, QForm::lapack}}) {
      SCOPED_TRACE(what + ", " + to_string(c));
      const Determinant d = determinant(factored(a, c.algorithm, c.q));
      EXPECT_EQ(d.sign, sign);
      if (std::isinf(log_magnitude)) {
        EXPECT_EQ(d.log_magnitude, log_magnitude);
      } else {
        const double terms =
            double(a.cols + 1) * limit<T>(a.rows, a.cols);  // of R's diagonal; then the sum's own rounding
        EXPECT_NEAR(d.log_magnitude, log_magnitude, terms + 40 * unit_roundoff<double> * std::abs(log_magnitude));
      }
    }
  }
};

TYPED_TEST_SUITE(QrRank, Everywhere, Names);

/// Sign and log|det| by elimination with partial pivoting in wide arithmetic.
template <class W>
std::pair<double, double> determinant_by_elimination(Dense<W> a) {
  double sign = 1, log_magnitude = 0;
  for (Index k = 0; k < a.cols; ++k) {
    Index pivot = k;
    for (Index i = k; i < a.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    if (pivot != k) sign = -sign;
    for (Index j = 0; j < a.cols; ++j) std::swap(a(k, j), a(pivot, j));
    if (a(k, k) < 0) sign = -sign;
    log_magnitude += static_cast<double>(std::log(std::abs(a(k, k))));
    for (Index i = k + 1; i < a.rows; ++i)
      for (Index j = a.cols - 1; j >= k; --j) a(i, j) -= a(i, k) / a(k, k) * a(k, j);
  }
  return {sign, log_magnitude};
}

TYPED_TEST(QrRank, DeterminantsThatAreKnown) {
  using T = typename TypeParam::Scalar;
  const double infinity = std::numeric_limits<double>::infinity();
  this->expect_determinant(identity<T>(7), 1, 0, "identity");
  this->expect_determinant(this->diagonal({-2}), -1, std::log(2.0), "1 x 1");
  this->expect_determinant(this->diagonal({2, -3, 0.5, -4, -1}), -1, std::log(12.0), "diagonal");
  const double big = hostile::widest_exponent<T>;  // the product would overflow many times
  this->expect_determinant(this->diagonal(std::vector<double>(20, std::pow(10.0, big))), 1, 20 * big * std::log(10.0),
                           "huge");
  this->expect_determinant(this->diagonal(std::vector<double>(21, -std::pow(10.0, -big))), -1,
                           -21 * big * std::log(10.0), "tiny");
  this->expect_determinant(Dense<T>(6, 6), 0, -infinity, "zero");
  this->expect_determinant(this->diagonal({1, 2, 0, 3}), 0, -infinity, "a zero on the diagonal");
  this->expect_determinant(Dense<T>(0, 0), 1, 0, "empty");
  for (const int n : in_turn({2, 3, 4, 5, 17, 18, 31}, 2)) {
    Dense<T> cycle(n, n);  // i -> i + 1: a cycle of n is odd when n is even
    for (Index j = 0; j < n; ++j) cycle((j + 1) % n, j) = 1;
    this->expect_determinant(cycle, n % 2 == 0 ? -1 : 1, 0, "cycle of " + std::to_string(n));
  }
}

TYPED_TEST(QrRank, DeterminantsOfRandomMatrices) {
  using T = typename TypeParam::Scalar;
  for (const Index n : some_of<Index>({1, 2, 5, 16, 29, 32}, 2))
    for (const std::uint64_t seed : in_turn({1, 2, 3, 4})) {
      auto a = geometric_spectrum<T>(n, n, 10, seed);
      if (seed % 2 == 0)
        for (Index i = 0; i < n; ++i) a(i, 0) = -a(i, 0);
      const auto [sign, log_magnitude] = determinant_by_elimination(widen(a));
      this->expect_determinant(a, sign, log_magnitude, "random, n = " + std::to_string(n));
    }
}

TYPED_TEST(QrRank, DeterminantsNeedASquareMatrixAndReflectors) {
  using T = typename TypeParam::Scalar;
  EXPECT_TRUE(refuses([&] { determinant(this->factored(random_normal<T>(9, 4, 1))); }, ErrorCode::invalid_argument,
                      {"square", "9", "4"}));
  EXPECT_TRUE(
      refuses([&] { determinant(this->factored(random_normal<T>(4, 4, 1), Algorithm::automatic, QForm::none)); },
              ErrorCode::unavailable, {"reflectors"}));
}

/// Inputs of known rank, the first that rounding cannot blur.
TYPED_TEST(QrRank, RanksThatAreKnown) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{60, 12}, Shape{14, 14}, Shape{9, 33}, Shape{20, 1}, Shape{1, 20}}) {
    const Index k = std::min(s.rows, s.cols);
    const std::vector<std::pair<const char*, Index>> known = {
        {"random normal", k},
        {"zero", 0},
        {"ones", 1},
        {"identity", k},
        {"duplicate columns", std::min(s.rows, (s.cols + 1) / 2)},
        {"product of low rank", hostile::product_rank(s.rows, s.cols)},
        {"geometric spectrum to 1e3", k},
        {"near overflow", k},
        {"clustered singular values", k}};
    for (const auto& [name, rank] : in_turn(known, 4))
      for (const auto& input : hostile::inputs<T>()) {
        if (std::string(input.name) != name) continue;
        SCOPED_TRACE(std::string(name) + ", " + to_string(s));
        const auto a = input.make(s.rows, s.cols, 31);
        auto f = this->factored(a);
        const RankReport report = f.rank();
        EXPECT_EQ(report.rank, rank);
        EXPECT_EQ(report.full, k);
        EXPECT_GE(report.absolute_tolerance, 0);
        if (rank < k) {
          EXPECT_GT(report.condition, 0.1 / limit<T>(s.rows, s.cols)) << "a singular R is badly conditioned";
        }

        const auto range = this->host(range_basis(f));
        ASSERT_TRUE(has_shape(range, s.rows, rank));
        EXPECT_LE(orthogonality(range, s.rows, s.cols), 1);
        const auto scaling = column_exponents(a);
        const auto as = scaled(a, scaling);
        const auto in_range = multiply(widen(range), multiply_transposed(widen(range), as));
        EXPECT_LE(static_cast<double>(norm(subtract(as, in_range))),
                  limit<T>(s.rows, s.cols) * std::max(1.0, static_cast<double>(norm(as))) * double(s.cols));

        const auto null = this->host(null_space_basis(f));
        ASSERT_TRUE(has_shape(null, s.cols, s.cols - rank));
        EXPECT_LE(orthogonality(null, s.rows, s.cols), 1);
        Dense<Wide<T>> one_scale = widen(a);
        int largest = -100000;
        for (int e : scaling) largest = std::max(largest, e);
        for (auto& x : one_scale.values) x = std::ldexp(x, -largest);
        EXPECT_LE(static_cast<double>(norm(multiply(one_scale, widen(null)))),
                  limit<T>(s.rows, s.cols) * static_cast<double>(norm(one_scale)) * double(s.cols));
      }
  }
}

/// The tolerance decides: singular values 1, 1e-1, ..., relative to the largest.
TYPED_TEST(QrRank, ToleranceCutsTheSpectrum) {
  using T = typename TypeParam::Scalar;
  const auto a = geometric_spectrum<T>(50, 6, 1e5, 3);  // 1 .. 1e-5
  auto f = this->factored(a);
  EXPECT_EQ(f.rank().rank, 6);
  Index before = 6;
  for (const double tolerance : some_of({3e-6, 3e-5, 3e-4, 3e-3, 3e-2, 0.5}, 2)) {
    const RankReport report = f.rank(tolerance);
    EXPECT_LE(report.rank, before);
    EXPECT_GE(report.rank, 1);
    before = report.rank;
    EXPECT_EQ(this->host(range_basis(f, tolerance)).cols, report.rank) << tolerance;
    EXPECT_EQ(this->host(null_space_basis(f, tolerance)).cols, 6 - report.rank) << tolerance;
  }
  EXPECT_LE(before, 2);
  EXPECT_EQ(f.rank(0).rank, 6);
}

/// The estimate is LAPACK's: at most the true 1-norm condition number, and not far below it.
TYPED_TEST(QrRank, ConditionIsEstimated) {
  using T = typename TypeParam::Scalar;
  for (const double condition : {1.0, 10.0, 1e3, 1e5})
    for (const Shape s : {Shape{40, 8}, Shape{15, 15}}) {
      SCOPED_TRACE(to_string(s) + ", " + std::to_string(condition));
      auto f = this->factored(geometric_spectrum<T>(s.rows, s.cols, condition, 4));
      const auto r = widen(this->host(f.r()));
      // columns of R^-1 by back substitution
      Dense<Wide<T>> inverse(s.cols, s.cols);
      for (Index c = 0; c < s.cols; ++c)
        for (Index i = c; i >= 0; --i) {
          Wide<T> sum = i == c ? 1 : 0;
          for (Index l = i + 1; l <= c; ++l) sum -= r(i, l) * inverse(l, c);
          inverse(i, c) = sum / r(i, i);
        }
      const auto one_norm = [](const Dense<Wide<T>>& x) {
        double largest = 0;
        for (Index j = 0; j < x.cols; ++j) {
          double sum = 0;
          for (Index i = 0; i < x.rows; ++i) sum += std::abs(static_cast<double>(x(i, j)));
          largest = std::max(largest, sum);
        }
        return largest;
      };
      const double truth = one_norm(r) * one_norm(inverse);
      EXPECT_LE(f.condition(), 1.001 * truth);
      EXPECT_GE(f.condition(), truth / 5);
      EXPECT_EQ(f.condition(), f.rank().condition);
    }
  EXPECT_TRUE(std::isinf(this->factored(Dense<T>(9, 4)).condition()));
  EXPECT_NEAR(this->factored(identity<T>(9)).condition(), 1, 1e-5);
}

/// Wide triangles are estimated on the device; columns of falling size make R's condition large.
TYPED_TEST(QrRank, ConditionOfAWideTriangle) {
  using T = typename TypeParam::Scalar;
  if (!this->thorough) GTEST_SKIP() << "the same code as elsewhere, and slow here";
  const Index n = 530;
  auto a = random_normal<T>(n + 40, n, 9);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < a.rows; ++i)
      a(i, j) *= static_cast<T>(std::pow(10.0, -3.0 * double((j * 7) % n) / double(n)));
  auto f = qr<T>(this->context(), a.view());
  const auto r = convert<double>(this->host(f.r()));
  double one_norm = 0, inverse_norm = 0;
  std::vector<double> x(static_cast<std::size_t>(n));
  for (Index c = 0; c < n; ++c) {
    double sum = 0, inverse_sum = 0;
    for (Index i = c; i >= 0; --i) {
      double value = i == c ? 1 : 0;
      for (Index l = i + 1; l <= c; ++l) value -= r(i, l) * x[static_cast<std::size_t>(l)];
      x[static_cast<std::size_t>(i)] = value / r(i, i);
      sum += std::abs(r(i, c));
      inverse_sum += std::abs(x[static_cast<std::size_t>(i)]);
    }
    one_norm = std::max(one_norm, sum);
    inverse_norm = std::max(inverse_norm, inverse_sum);
  }
  EXPECT_LE(f.condition(), 1.01 * one_norm * inverse_norm);
  EXPECT_GE(f.condition(), one_norm * inverse_norm / 5);
  EXPECT_EQ(f.rank().rank, n);
  if (small_run()) return;  // another of this size, for the same kernels, takes minutes
  for (Index i = 0; i < a.rows; ++i) a(i, 3) = 2 * a(i, 8);  // and one that has lost rank
  EXPECT_EQ(qr<T>(this->context(), a.view()).rank().rank, n - 1);
}

}  // namespace
}  // namespace qrane::test
