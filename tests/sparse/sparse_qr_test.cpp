// SPDX-License-Identifier: Apache-2.0
// Numeric sparse QR: A P = Q R of every odd kind of matrix against dense arithmetic, ranks, refactorization, threads,
// limits and bad input.
#include <gtest/gtest.h>

#include "support/sparse_qr.hpp"

namespace qrane::test {
namespace {

/// Of 1000 columns there is enough work for several threads and several panels: columns in groups that meet in the last
/// ones.
Triplets large_matrix(unsigned seed, bool deficient, Index cols = 1000) {
  const auto at = [cols](Index j) { return j * cols / 1000; };
  Triplets a{at(2600), cols, {}, {}, {}};
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  std::uniform_int_distribution<Index> local(0, at(150) - 1), far(at(600), cols - 1);
  for (Index i = 0; i < a.rows; ++i) {
    const Index group = i % 4 * at(150);
    for (int k = 0; k < 4; ++k) a.add(i, group + local(generator), value(generator));
    for (int k = 0; k < 2; ++k) a.add(i, far(generator), value(generator));
  }
  if (!deficient) return a;
  Triplets b = a;  // columns 5, 305 and 905 copied over 40, 320 and 700
  const std::pair<Index, Index> copies[] = {{at(5), at(40)}, {at(305), at(320)}, {at(905), at(700)}};
  b.row.clear(), b.col.clear(), b.value.clear();
  for (std::size_t k = 0; k < a.value.size(); ++k) {
    bool replaced = false;
    for (const auto& [from, to] : copies) replaced = replaced || a.col[k] == to;
    if (!replaced) b.add(a.row[k], a.col[k], a.value[k]);
    for (const auto& [from, to] : copies)
      if (a.col[k] == from) b.add(a.row[k], to, -2 * a.value[k]);
  }
  return b;
}

TYPED_TEST_SUITE(SparseQr, Ways, WayNames);

TYPED_TEST(SparseQr, OddMatrices) {
  using T = typename TypeParam::Scalar;
  std::vector<Ordering> orderings{Ordering::colamd};
  if (TypeParam::backend == Backend::cpu) orderings = {Ordering::colamd, Ordering::natural, Ordering::amd};
  for (const NamedTriplets& odd : odd_matrices()) {
    const Values<T> a(odd.a);
    for (const Ordering ordering : orderings) {
      SCOPED_TRACE(odd.name + ", " + to_string(ordering));
      const Factor<T> f = TestFixture::factor(a, TestFixture::options(), ordering);
      EXPECT_EQ(f.rank(), clear_rank<T>(odd.a).value_or(f.rank()));
      EXPECT_EQ(f.facts().backend, TypeParam::processor == device ? TypeParam::backend : Backend::cpu);
      EXPECT_EQ(f.facts().on_device, TypeParam::processor == device);
      TestFixture::expect_factorization(a, f);
    }
  }
}

TYPED_TEST(SparseQr, NothingIsDroppedWhenNotAsked) {
  using T = typename TypeParam::Scalar;
  for (const NamedTriplets& odd : odd_matrices()) {
    SCOPED_TRACE(odd.name);
    const Values<T> a(odd.a);
    FactorOptions options = TestFixture::options();
    options.detect_rank = false;
    const Factor<T> f = TestFixture::factor(a, options);
    EXPECT_LT(f.facts().absolute_tolerance, 0);
    EXPECT_GE(f.rank(), clear_rank<T>(odd.a).value_or(0));
    TestFixture::expect_factorization(a, f);
  }
}

TYPED_TEST(SparseQr, LargeWithManyFrontsAtOnce) {
  using T = typename TypeParam::Scalar;
  using W = Wide<T>;
  const bool on_device = TypeParam::processor == device;
  if (TypeParam::backend != Backend::cpu && !on_device) GTEST_SKIP() << "the same code as on a CPU context";
  const Index n = on_device && small_run() ? 100 : 1000;
  for (const bool deficient : {false, true}) {
    const Values<T> a(large_matrix(4, deficient, n));
    const Dense<T> b = random_normal<T>(a.triplets.rows, 2, 5);
    for (const int threads : on_device ? std::vector<int>{1} : std::vector<int>{1, 2, 4}) {
      SCOPED_TRACE(::testing::Message() << threads << " threads, " << (deficient ? "deficient" : "full rank"));
      FactorOptions options = TestFixture::options();
      options.threads = threads;
      const Factor<T> f = TestFixture::factor(a, options), again = TestFixture::factor(a, options);
      EXPECT_EQ(f.facts().threads, threads);
      EXPECT_EQ(f.rank(), deficient ? n - 3 : n);
      const SparseMatrix<T> r = f.r();
      EXPECT_EQ(r.values, again.r().values);
      TestFixture::expect_least_squares(a, b, TestFixture::host(f.solve(b.view()).x));
      // Rᵀ R x = (A P)ᵀ A P x for some x
      const std::vector<Index> p = f.permutation();
      const Dense<T> x = random_normal<T>(n, 1, 9);
      std::vector<W> permuted(static_cast<std::size_t>(n)), rx(static_cast<std::size_t>(r.rows), 0);
      for (Index j = 0; j < n; ++j) permuted[p[j]] = x(j, 0);
      const std::vector<W> gram = product(a, product(a, permuted, false), true);
      for (Index j = 0; j < r.cols; ++j)
        for (Index q = r.pointers[j]; q < r.pointers[j + 1]; ++q)
          rx[r.row_indices[q]] += static_cast<W>(r.values[q]) * x(j, 0);
      W gap = 0;
      for (Index j = 0; j < r.cols; ++j) {
        W sum = 0;
        for (Index q = r.pointers[j]; q < r.pointers[j + 1]; ++q)
          sum += static_cast<W>(r.values[q]) * rx[r.row_indices[q]];
        gap += (sum - gram[p[j]]) * (sum - gram[p[j]]);
      }
      EXPECT_LE(std::sqrt(gap), 1e3 * TestFixture::eps * norm_of(gram));
      Dense<T> c = b;  // Q Qᵀ b = b
      f.apply_qt(c.view());
      f.apply_q(c.view());
      EXPECT_LE(norm(subtract(c, b)), 1e3 * TestFixture::eps * norm(b));
    }
  }
}

TYPED_TEST(SparseQr, RefactorGivesTheSameBitsInTheSameMemory) {
  using T = typename TypeParam::Scalar;
  const bool small = TypeParam::backend != Backend::cpu;
  Values<T> a(small ? random_sparse(60, 30, 0.1, 8) : large_matrix(6, false));
  const Factor<T> fresh = TestFixture::factor(a);
  Factor<T> f = TestFixture::factor(a);
  std::vector<T> other = a.values;
  for (std::size_t k = 0; k < other.size(); ++k) other[k] = static_cast<T>(std::cos(static_cast<double>(k)));
  f.refactor(other.data());
  EXPECT_NE(f.r().values, fresh.r().values);
  f.refactor(a.values.data());
  EXPECT_EQ(f.r().values, fresh.r().values);
  EXPECT_EQ(f.permutation(), fresh.permutation());
  const Index bytes = f.facts().bytes;
  for (int k = 0; k < 3; ++k) f.refactor(a.values.data());
  EXPECT_EQ(f.facts().bytes, bytes);
  const Dense<T> b = random_normal<T>(a.triplets.rows, 1, 2);
  const Dense<T> x = TestFixture::host(f.solve(b.view()).x), y = TestFixture::host(fresh.solve(b.view()).x);
  EXPECT_EQ(x, y);
}

TYPED_TEST(SparseQr, ToleranceAndRefusal) {
  using T = typename TypeParam::Scalar;
  Triplets triplets = random_sparse(40, 10, 0.4, 21);
  for (Index i = 0; i < 40; ++i) triplets.add(i, i % 10, 2.0);
  const std::size_t count = triplets.value.size();
  triplets.cols = 11;  // the eleventh column is the third and a little
  for (std::size_t k = 0; k < count; ++k)
    if (triplets.col[k] == 2) triplets.add(triplets.row[k], 10, triplets.value[k]);
  triplets.add(7, 10, 1e-3);
  const Values<T> a(triplets);
  EXPECT_EQ(TestFixture::factor(a).rank(), 11);
  FactorOptions options = TestFixture::options();
  options.absolute_tolerance = 1e-2;
  const Factor<T> f = TestFixture::factor(a, options);
  EXPECT_EQ(f.rank(), 10);
  EXPECT_EQ(f.facts().absolute_tolerance, 1e-2);
  EXPECT_GT(f.facts().dropped_norm, 1e-4);
  EXPECT_LT(f.facts().dropped_norm, 1e-3);
  TestFixture::expect_factorization(a, f);
  options.refuse_deficient = true;
  EXPECT_TRUE(refuses([&] { TestFixture::factor(a, options); }, ErrorCode::rank_deficient, {"10", "11", "0.01"}));
}

TYPED_TEST(SparseQr, ShortColumnsAreNotDependentOnes) {
  using T = typename TypeParam::Scalar;
  Triplets triplets = random_sparse(60, 24, 0.2, 21);
  for (Index i = 0; i < 60; ++i) triplets.add(i, i % 24, 2.0);
  for (std::size_t k = 0; k < triplets.value.size(); ++k)
    triplets.value[k] *= std::exp2(static_cast<double>(triplets.col[k] % 11 * 3 - 15));
  triplets.cols = 26;
  const std::size_t count = triplets.value.size();
  for (std::size_t k = 0; k < count; ++k)  // a column that depends on two others, and one too short for any scalar
    if (triplets.col[k] == 3 || triplets.col[k] == 14)
      triplets.add(triplets.row[k], 24, static_cast<double>(static_cast<T>(triplets.value[k])));
  triplets.add(5, 25, 1e-14);
  const Values<T> a(triplets);
  const Factor<T> f = TestFixture::factor(a);
  EXPECT_EQ(f.rank(), 24);
  TestFixture::expect_factorization(a, f);
}

TYPED_TEST(SparseQr, SingletonsBelowTheToleranceAreNone) {
  using T = typename TypeParam::Scalar;
  Triplets triplets = random_sparse(30, 8, 0.5, 5);
  triplets.rows = 31;
  triplets.cols = 9;
  triplets.add(30, 8, 1e-30);  // a singleton column whose row goes on into others
  for (Index j = 0; j < 8; ++j) triplets.add(30, j, 1.0 + static_cast<double>(j));
  const Values<T> a(triplets);
  const Factor<T> f = TestFixture::factor(a);
  EXPECT_TRUE(f.facts().analyzed_again);
  EXPECT_EQ(f.rank(), 8);
  TestFixture::expect_factorization(a, f);
  Values<T> better = a;
  better.values[std::find(triplets.value.begin(), triplets.value.end(), 1e-30) - triplets.value.begin()] = 4;
  Factor<T> g = TestFixture::factor(a);
  g.refactor(better.values.data());
  EXPECT_FALSE(g.facts().analyzed_again);
  EXPECT_EQ(g.rank(), 9);
  TestFixture::expect_factorization(better, g);
}

TYPED_TEST(SparseQr, ExtremeAndGradedColumns) {
  using T = typename TypeParam::Scalar;
  const double top = sizeof(T) == 4 ? 1e35 : 1e300;
  Triplets triplets = random_sparse(50, 20, 0.2, 33);
  for (Index j = 0; j < 20; ++j) triplets.add(j, j, 2.0);
  for (const double scale : {top, 1 / top}) {
    SCOPED_TRACE(scale);
    Values<T> a(triplets);
    for (T& v : a.values) v = static_cast<T>(v * scale);
    TestFixture::expect_factorization(a, TestFixture::factor(a));
    const Dense<T> b = random_normal<T>(50, 1, 3);
    const Dense<T> x = TestFixture::host(TestFixture::factor(a).solve(b.view()).x);
    const Values<T> plain(triplets);
    const Dense<T> y = TestFixture::host(TestFixture::factor(plain).solve(b.view()).x);
    for (Index k = 0; k < 20; ++k) EXPECT_NEAR(x(k, 0) * scale, y(k, 0), 1e4 * TestFixture::eps * norm(y));
  }
  Values<T> graded(triplets);
  for (std::size_t k = 0; k < graded.values.size(); ++k)
    graded.values[k] =
        static_cast<T>(graded.values[k] * std::pow(top, static_cast<double>(triplets.col[k] % 5 - 2) / 2));
  FactorOptions options = TestFixture::options();
  options.detect_rank = false;
  TestFixture::expect_factorization(graded, TestFixture::factor(graded, options));
}

TYPED_TEST(SparseQr, NotFinite) {
  using T = typename TypeParam::Scalar;
  const Triplets triplets = random_sparse(40, 25, 0.15, 4);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const std::size_t where : {std::size_t{0}, triplets.value.size() / 2, triplets.value.size() - 1}) {
      Values<T> a(triplets);
      a.values[where] = static_cast<T>(bad);
      FactorOptions options = TestFixture::options();
      options.check_finite = true;
      EXPECT_TRUE(refuses([&] { TestFixture::factor(a, options); }, ErrorCode::not_finite, {std::to_string(where)}));
      const Factor<T> f = TestFixture::factor(a);  // ends, and shows it
      const SparseMatrix<T> r = f.r();
      EXPECT_TRUE(std::any_of(r.values.begin(), r.values.end(), [](T x) { return !std::isfinite(x); }));
    }
}

TYPED_TEST(SparseQr, BadInputLeavesTheAnalysisUsable) {
  using T = typename TypeParam::Scalar;
  const Values<T> a(random_sparse(60, 30, 0.15, 12));
  const sparse::Analysis analysis = sparse::analyze(this->context(), a.view());
  const auto bad = ErrorCode::invalid_argument;
  FactorOptions options = TestFixture::options();
  options.threads = -2;
  EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options); }, bad, {"threads", "-2"}));
  options = TestFixture::options();
  options.memory_limit_bytes = -1;
  EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options); }, bad, {"memory_limit_bytes", "-1"}));
  options.memory_limit_bytes = 4000;
  EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options); }, ErrorCode::out_of_memory, {"4000"}));
  options = TestFixture::options();
  options.absolute_tolerance = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options); }, bad, {"tolerance"}));
  EXPECT_TRUE(refuses([&] { analysis.factor(static_cast<const T*>(nullptr), TestFixture::options()); }, bad, {"null"}));
  const Values<T> other(random_sparse(60, 31, 0.15, 12));
  EXPECT_TRUE(refuses([&] { analysis.factor(other.view()); }, bad, {"60 x 31", "60 x 30"}));
  Factor<T> f = analysis.factor(a.view(), TestFixture::options());
  Dense<T> short_b(59, 1, T(1));
  EXPECT_TRUE(refuses([&] { f.solve(short_b.view()); }, bad, {"59", "60"}));
  EXPECT_TRUE(refuses([&] { f.apply_qt(short_b.view()); }, bad, {"59", "60"}));
  EXPECT_TRUE(refuses([&] { f.solve_transposed(short_b.view()); }, bad, {"59", "30"}));
  options = TestFixture::options();
  EXPECT_TRUE(refuses([&] { analysis.factor(a.view(), options, short_b.view()); }, bad, {"59", "60"}));
  TestFixture::expect_factorization(a, f);
}

}  // namespace
}  // namespace qrane::test
