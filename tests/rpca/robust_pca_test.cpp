// SPDX-License-Identifier: Apache-2.0
// Robust PCA: a synthetic low-rank plus sparse matrix is taken apart again, by both methods, to the asked
// residual; stopping, repeating, layouts, and agreement with the CPU backend.
#include <qrane/robust_pca.hpp>

#include "support/backends.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

/// A size, in a small run half of it.
inline Index size(Index full) { return small_run() ? full / 2 : full; }

/// M = L + S: L of the given rank with entries near 1, S with `share` of its entries near +-5.
template <class T>
struct Problem {
  Dense<T> m, low_rank, sparse;
  Problem(Index rows, Index cols, Index rank, double share, std::uint64_t seed)
      : m(rows, cols), low_rank(rows, cols), sparse(rows, cols) {
    Random random(seed);
    const auto left = random_normal<double>(rows, rank, seed + 1), right = random_normal<double>(rank, cols, seed + 2);
    const auto product = multiply(left, right);
    for (std::size_t i = 0; i < m.values.size(); ++i) {
      low_rank.values[i] = static_cast<T>(product.values[i]);
      if (random.uniform() < share)
        sparse.values[i] = static_cast<T>((random.uniform() < 0.5 ? -1 : 1) * random.uniform(4, 6));
      m.values[i] = low_rank.values[i] + sparse.values[i];
    }
  }
};

template <class T>
double relative_difference(const Dense<T>& a, const Dense<T>& b) {
  return static_cast<double>(norm(subtract(widen(a), widen(b))) / norm(widen(b)));
}

/// The two methods word for word, in double: what every iteration's residual, rank and mu must be.
std::vector<RobustPcaProgress> reference(const Dense<double>& m, const RobustPcaOptions& options, int iterations) {
  const bool growing = options.method == RobustPcaMethod::inexact_alm;
  const double lambda = options.lambda_multiplier / std::sqrt(static_cast<double>(std::max(m.rows, m.cols)));
  double largest = 0, sum = 0;
  for (double x : m.values) largest = std::max(largest, std::abs(x)), sum += std::abs(x);
  const double norm2 = singular_values(m)[0];
  double mu = growing ? 1.25 / norm2 : static_cast<double>(m.rows * m.cols) / (4 * sum);
  const double most = mu * 1e7;
  Dense<double> l(m.rows, m.cols), s = l, y = l;
  if (growing)
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = m.values[i] / std::max(norm2, largest / lambda);
  std::vector<RobustPcaProgress> steps;
  for (int k = 1; k <= iterations; ++k) {
    Dense<double> x = m;
    for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i] / mu - s.values[i];
    auto turned = jacobi(x);  // x = b Vᵀ with orthogonal columns of norm sigma in b
    Index rank = 0;
    for (Index j = 0; j < x.cols; ++j) {
      const double sigma = column_norm(turned.b, j), keep = std::max(0.0, 1 - 1 / (mu * sigma));
      rank += keep > 0;
      for (Index i = 0; i < x.rows; ++i) turned.b(i, j) *= keep;
    }
    l = multiply(turned.b, transposed(turned.v));
    double squares = 0;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      const double v = m.values[i] - l.values[i] + y.values[i] / mu;
      s.values[i] = std::copysign(std::max(0.0, std::abs(v) - lambda / mu), v);
      const double z = m.values[i] - l.values[i] - s.values[i];
      y.values[i] += mu * z;
      squares += z * z;
    }
    steps.push_back({k, std::sqrt(squares) / norm(m), rank, mu, 0});
    if (growing) mu = std::min(mu * options.rho, most);
  }
  return steps;
}

template <class Where>
class RobustPcaTest : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;
  static RobustPca<T> separate(const Dense<T>& m, const RobustPcaOptions& options = {}) {
    return robust_pca<T>(BackendTest<Where>::context(), m.view(), options);
  }
  /// Where all iterations are compared, a small run takes few.
  static RobustPcaOptions of_few_iterations() {
    RobustPcaOptions options;
    if (small_run()) options.max_iterations = 6;
    return options;
  }
  /// What the result says of itself is true.
  static void expect_consistent(const Dense<T>& m, const RobustPca<T>& result) {
    const auto l = BackendTest<Where>::host(result.low_rank), s = BackendTest<Where>::host(result.sparse);
    ASSERT_TRUE(has_shape(l, m.rows, m.cols));
    ASSERT_TRUE(has_shape(s, m.rows, m.cols));
    const auto left_over = subtract(subtract(widen(m), widen(l)), widen(s));
    EXPECT_NEAR(static_cast<double>(norm(left_over) / norm(widen(m))), result.residual,
                0.01 * result.residual + 4 * unit_roundoff<T>);
    const auto spectrum = singular_values(widen(l));
    Index rank = 0;
    while (rank < static_cast<Index>(spectrum.size()) && spectrum[static_cast<std::size_t>(rank)] > 1e-5 * spectrum[0])
      ++rank;
    EXPECT_LE(rank, result.rank);
  }
};

TYPED_TEST_SUITE(RobustPcaTest, Everywhere, Names);

TYPED_TEST(RobustPcaTest, SeparatesASyntheticMatrix) {
  using T = typename TypeParam::Scalar;
  const Index rank = size(3);
  const Problem<T> p(size(400), 40, rank, 0.05, 1);
  RobustPcaOptions options;
  options.relative_tolerance = 1e-6;  // reached in float too
  const auto result = this->separate(p.m, options);
  EXPECT_TRUE(result.converged);
  EXPECT_LE(result.residual, 1e-6);
  EXPECT_LT(result.iterations, 60);
  EXPECT_EQ(result.rank, rank);
  this->expect_consistent(p.m, result);
  EXPECT_LE(relative_difference(this->host(result.low_rank), p.low_rank), 1e-4);
  EXPECT_LE(relative_difference(this->host(result.sparse), p.sparse), 1e-4);
}

TYPED_TEST(RobustPcaTest, AlternatingDirectionsSeparateItToo) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(size(this->thorough ? 400 : 200), size(40), size(2), 0.05, 2);
  RobustPcaOptions options;
  options.method = RobustPcaMethod::alternating;
  options.relative_tolerance = 1e-5;
  options.max_iterations = 2000;
  const auto result = this->separate(p.m, options);
  EXPECT_TRUE(result.converged) << result.residual << " after " << result.iterations;
  this->expect_consistent(p.m, result);
  EXPECT_LE(relative_difference(this->host(result.low_rank), p.low_rank), 1e-2);
  EXPECT_LE(relative_difference(this->host(result.sparse), p.sparse), 1e-2);
  options.relative_tolerance = 1e-4;
  options.method = RobustPcaMethod::inexact_alm;
  EXPECT_LT(this->separate(p.m, options).iterations, result.iterations) << "a growing mu needs fewer";
}

TYPED_TEST(RobustPcaTest, WideAndSquareMatrices) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{30, size(200)}, Shape{size(60), size(60)}}) {
    SCOPED_TRACE(to_string(s));
    const Problem<T> p(s.rows, s.cols, size(2), 0.05, 3);
    RobustPcaOptions options;
    options.relative_tolerance = 1e-5;
    const auto result = this->separate(p.m, options);
    EXPECT_TRUE(result.converged);
    this->expect_consistent(p.m, result);
    EXPECT_LE(relative_difference(this->host(result.low_rank), p.low_rank), 5e-2);
  }
}

TYPED_TEST(RobustPcaTest, EveryIterationIsTheMethods) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(90, 14, 2, 0.05, 10);
  for (const RobustPcaMethod method : {RobustPcaMethod::inexact_alm, RobustPcaMethod::alternating})
    for (const double multiplier : in_turn({1.0, 2.0})) {
      SCOPED_TRACE(method == RobustPcaMethod::inexact_alm ? "inexact_alm" : "alternating");
      std::vector<RobustPcaProgress> seen;
      RobustPcaOptions options;
      options.method = method;
      options.lambda_multiplier = multiplier;
      options.relative_tolerance = 0;
      options.max_iterations = small_run() ? 10 : 15;
      options.on_iteration = [&](const RobustPcaProgress& progress) {
        seen.push_back(progress);
        return true;
      };
      this->separate(p.m, options);
      const auto want = reference(convert<double>(p.m), options, options.max_iterations);
      ASSERT_EQ(seen.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(seen[i].rank, want[i].rank) << "iteration " << i + 1;
        EXPECT_NEAR(seen[i].mu, want[i].mu, 1e-5 * want[i].mu) << "iteration " << i + 1;
        EXPECT_NEAR(seen[i].residual, want[i].residual, 1e-3 * want[i].residual + 1e-6) << "iteration " << i + 1;
      }
    }
}

TYPED_TEST(RobustPcaTest, ProgressIsTrueAndCanStop) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(200, size(20), 2, 0.05, 4);
  std::vector<RobustPcaProgress> seen;
  RobustPcaOptions options;
  options.relative_tolerance = small_run() ? 1e-3 : 1e-6;
  options.on_iteration = [&](const RobustPcaProgress& progress) {
    seen.push_back(progress);
    return true;
  };
  const auto whole = this->separate(p.m, options);
  ASSERT_EQ(static_cast<int>(seen.size()), whole.iterations);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].iteration, static_cast<int>(i) + 1);
    if (i > 0) {
      EXPECT_NEAR(seen[i].mu, seen[i - 1].mu * options.rho, 1e-9 * seen[i].mu);
      EXPECT_GE(seen[i].seconds, seen[i - 1].seconds);
    }
  }
  EXPECT_EQ(seen.back().residual, whole.residual);
  EXPECT_EQ(seen.back().rank, whole.rank);

  options.on_iteration = [&](const RobustPcaProgress& progress) { return progress.iteration < 5; };
  const auto stopped = this->separate(p.m, options);
  EXPECT_EQ(stopped.iterations, 5);
  EXPECT_FALSE(stopped.converged);
  EXPECT_EQ(stopped.residual, seen[4].residual) << "what there is after five iterations";
  this->expect_consistent(p.m, stopped);

  options.on_iteration = nullptr;
  options.max_iterations = 3;
  const auto limited = this->separate(p.m, options);
  EXPECT_EQ(limited.iterations, 3);
  EXPECT_FALSE(limited.converged);

  options.on_iteration = [](const RobustPcaProgress&) -> bool { throw std::runtime_error("from the callback"); };
  EXPECT_THROW(this->separate(p.m, options), std::runtime_error);
}

TYPED_TEST(RobustPcaTest, RepeatsBitByBitInEveryLayout) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(151, 17, 2, 0.05, 5);
  const RobustPcaOptions options = this->of_few_iterations();
  const auto first = this->separate(p.m, options);
  const auto l = this->host(first.low_rank), s = this->host(first.sparse);
  const Context other = fresh_context(this->backend);
  EXPECT_EQ(this->host_of(other, robust_pca<T>(other, p.m.view(), options).low_rank), l);
  for (const Storage storage : in_turn(all_storages, 3)) {
    SCOPED_TRACE(to_string(storage));
    Stored<T> stored(this->context(), p.m, storage);
    const auto again = robust_pca<T>(this->context(), stored.view(), options);
    EXPECT_EQ(again.iterations, first.iterations);
    EXPECT_EQ(this->host(again.low_rank), l);
    EXPECT_EQ(this->host(again.sparse), s);
    EXPECT_EQ(again.low_rank.memory(), stored.view().memory);
    EXPECT_TRUE(stored.untouched(this->context()));
  }
}

/// Every backend walks the same way as the CPU: same ranks, same number of iterations.
TYPED_TEST(RobustPcaTest, FollowsTheCpu) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(200, size(24), 3, 0.08, 6);
  RobustPcaOptions options = this->of_few_iterations();
  options.relative_tolerance = 1e-5;
  std::vector<Index> ranks[2];
  int which = 0;
  options.on_iteration = [&](const RobustPcaProgress& progress) {
    ranks[which].push_back(progress.rank);
    return true;
  };
  const auto here = this->separate(p.m, options);
  which = 1;
  const Context& cpu = shared_context(Backend::cpu);
  const auto there = robust_pca<T>(cpu, p.m.view(), options);
  EXPECT_EQ(ranks[0], ranks[1]);
  EXPECT_EQ(here.iterations, there.iterations);
  EXPECT_LE(relative_difference(this->host(here.low_rank), this->host_of(cpu, there.low_rank)), 1e-4);
}

TYPED_TEST(RobustPcaTest, LambdaMovesWhatCountsAsSparse) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(200, size(20), 2, 0.05, 7);
  const auto count = [&](double multiplier) {
    RobustPcaOptions options = this->of_few_iterations();
    options.lambda_multiplier = multiplier;
    Index nonzeros = 0;
    for (T x : this->host(this->separate(p.m, options).sparse).values) nonzeros += x != T(0);
    return nonzeros;
  };
  const Index few = count(3), some = count(1), many = count(0.3);
  EXPECT_LT(few, some);
  EXPECT_LT(some, many);
}

/// However rarely the host looks at the iterations, they are the same.
TYPED_TEST(RobustPcaTest, WatchingChangesNothing) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(160, 18, 2, 0.05, 12);
  for (const int most : some_of({8, 1, 7, 9, 1000}, 5))
    for (const RobustPcaMethod method : {RobustPcaMethod::inexact_alm, RobustPcaMethod::alternating}) {
      RobustPcaOptions options;
      options.method = method;
      options.max_iterations = most;
      const auto alone = this->separate(p.m, options);
      int seen = 0;
      options.on_iteration = [&](const RobustPcaProgress& progress) { return progress.iteration == ++seen; };
      const auto watched = this->separate(p.m, options);
      EXPECT_EQ(alone.iterations, watched.iterations) << most;
      EXPECT_EQ(seen, watched.iterations);
      EXPECT_EQ(alone.converged, watched.converged);
      EXPECT_EQ(alone.residual, watched.residual);
      EXPECT_EQ(alone.rank, watched.rank);
      EXPECT_EQ(this->host(alone.low_rank), this->host(watched.low_rank));
      EXPECT_EQ(this->host(alone.sparse), this->host(watched.sparse));
    }
}

TYPED_TEST(RobustPcaTest, SizesWhoseSquaresOverflowOrVanish) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(200, size(20), 2, 0.05, 13);
  RobustPcaOptions options;
  options.relative_tolerance = small_run() ? 1e-2 : 1e-5;
  const auto plain = this->separate(p.m, options);
  const auto l = this->host(plain.low_rank), s = this->host(plain.sparse);
  const int high = std::numeric_limits<T>::max_exponent - 6, low = std::numeric_limits<T>::min_exponent + 30;
  for (const RobustPcaMethod method : {RobustPcaMethod::inexact_alm, RobustPcaMethod::alternating})
    for (const int exponent : {high, low}) {
      SCOPED_TRACE(exponent);
      options.method = method;
      auto scaled = p.m;
      for (T& x : scaled.values) x = std::ldexp(x, exponent);
      const auto result = this->separate(scaled, options);
      EXPECT_TRUE(result.converged);
      if (method == RobustPcaMethod::alternating) continue;
      EXPECT_EQ(result.iterations, plain.iterations);
      auto l1 = this->host(result.low_rank), s1 = this->host(result.sparse);
      for (auto* a : {&l1, &s1})
        for (T& x : a->values) x = std::ldexp(x, -exponent);
      EXPECT_LE(relative_difference(l1, l), 1e-5);
      EXPECT_LE(relative_difference(s1, s), 1e-4);
    }
}

/// Results lie here or there by whether the number of iterations is odd.
TYPED_TEST(RobustPcaTest, AfterAnyNumberOfIterationsOfAnySize) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(90, 10, 2, 0.05, 17);
  const int exponent = std::numeric_limits<T>::max_exponent - 6;
  auto scaled = p.m;
  for (T& x : scaled.values) x = std::ldexp(x, exponent);
  for (const int iterations : {1, 2, 3, 4}) {
    SCOPED_TRACE(iterations);
    RobustPcaOptions options;
    options.relative_tolerance = 0;
    options.max_iterations = iterations;
    const auto plain = this->separate(p.m, options), result = this->separate(scaled, options);
    auto l = this->host(result.low_rank), s = this->host(result.sparse);
    for (auto* a : {&l, &s})
      for (T& x : a->values) x = std::ldexp(x, -exponent);
    EXPECT_LE(relative_difference(l, this->host(plain.low_rank)), 1e-5);
    EXPECT_LE(relative_difference(s, this->host(plain.sparse)), 1e-4);
  }
}

TYPED_TEST(RobustPcaTest, EveryAlgorithmSeparates) {
  using T = typename TypeParam::Scalar;
  const Problem<T> p(200, size(20), 2, 0.05, 14);
  RobustPcaOptions options = this->of_few_iterations();
  const auto want = this->separate(p.m, options);
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked, Algorithm::cholesky_qr}) {
    SCOPED_TRACE(qrane::to_string(algorithm));
    options.algorithm = algorithm;
    const auto result = this->separate(p.m, options);
    EXPECT_EQ(result.iterations, want.iterations);
    EXPECT_EQ(result.rank, want.rank);
    EXPECT_LE(relative_difference(this->host(result.low_rank), this->host(want.low_rank)), 1e-4);
  }
}

TYPED_TEST(RobustPcaTest, MatricesWithNothingToSeparate) {
  using T = typename TypeParam::Scalar;
  const auto zero = this->separate(Dense<T>(30, 5));
  EXPECT_TRUE(zero.converged);
  EXPECT_EQ(this->host(zero.low_rank), Dense<T>(30, 5));
  EXPECT_EQ(this->host(zero.sparse), Dense<T>(30, 5));
  EXPECT_EQ(zero.rank, 0);
  const auto empty = this->separate(Dense<T>(30, 0));
  EXPECT_TRUE(has_shape(this->host(empty.low_rank), 30, 0));
  const auto column = this->separate(random_normal<T>(30, 1, 8));
  EXPECT_TRUE(column.converged);

  auto poisoned = random_normal<T>(30, 5, 9);
  poisoned(29, 4) = std::numeric_limits<T>::quiet_NaN();
  const auto result = this->separate(poisoned);  // ends, and does not claim to have converged
  EXPECT_FALSE(result.converged);
}

TYPED_TEST(RobustPcaTest, RefusesOptionsThatMakeNoSense) {
  using T = typename TypeParam::Scalar;
  const auto m = random_normal<T>(10, 4, 1);
  constexpr auto bad = ErrorCode::invalid_argument;
  const auto with = [&](auto set) {
    RobustPcaOptions options;
    set(options);
    return [this, &m, options] { this->separate(m, options); };
  };
  EXPECT_TRUE(refuses(with([](auto& o) { o.relative_tolerance = -1; }), bad, {"tolerance", "-1"}));
  EXPECT_TRUE(refuses(with([](auto& o) { o.max_iterations = 0; }), bad, {"max_iterations", "0"}));
  EXPECT_TRUE(refuses(with([](auto& o) { o.lambda_multiplier = 0; }), bad, {"lambda_multiplier", "0"}));
  EXPECT_TRUE(refuses(with([](auto& o) { o.mu = -2; }), bad, {"mu", "-2"}));
  EXPECT_TRUE(refuses(with([](auto& o) { o.rho = 0.5; }), bad, {"rho", "0.5"}));
  EXPECT_TRUE(refuses([&] { robust_pca<T>(this->context(), MatrixView<const T>(nullptr, 10, 4, 10)); }, bad, {"null"}));
}

}  // namespace
}  // namespace qrane::test
