// SPDX-License-Identifier: Apache-2.0
// Long sequences of updates: windows that slide over a stream of rows, thousands of steps, with right-hand sides
// carried along. What is left at the end is as good as a fresh factorization; drift is measured, and mended where A is
// lent.
#include "support/backends.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

/// A stream of rows and their right-hand sides, and the window of it that is in the factorization.
template <class T>
struct Stream {
  Dense<T> rows, b;
  Index first = 0, size = 0;

  Stream(Index length, Index n, Index nrhs, Index window) : rows(length, n), b(length, nrhs), size(window) {
    std::uint64_t state = 11;
    const auto uniform = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<double>(state >> 11) / 9007199254740992.0 * 2 - 1;
    };
    for (T& value : rows.values) value = static_cast<T>(uniform());
    for (T& value : b.values) value = static_cast<T>(uniform());
  }
  static Dense<T> part(const Dense<T>& a, Index first, Index count) {
    Dense<T> out(count, a.cols);
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < count; ++i) out(i, j) = a(first + i, j);
    return out;
  }
  Dense<T> a() const { return part(rows, first, size); }
  Dense<T> right() const { return part(b, first, size); }
};

template <class Where>
class UpdateWindow : public BackendTest<Where> {
 protected:
  using Base = BackendTest<Where>;
  using T = typename Where::Scalar;
  using W = Wide<T>;

  static UpdatableQR<T> factor(const Dense<T>& a, QForm form) {
    Options options;
    options.q = form;
    return updatable_qr(Base::context(), a.view(), options);
  }

  /// The window moves on by p rows: p in at the end, p out at the beginning.
  static void slide(UpdatableQR<T>& f, Stream<T>& stream, Index p, QForm form, const UpdateOptions& how = {}) {
    const Index in = stream.first + stream.size;
    const Dense<T> u = stream.part(stream.rows, in, p), e = stream.part(stream.b, in, p);
    const Dense<T> out = stream.part(stream.rows, stream.first, p), out_b = stream.part(stream.b, stream.first, p);
    f.insert_rows(f.rows(), u.view(), e.view(), how);
    if (form == QForm::none)
      f.delete_rows(0, p, out.view(), out_b.view(), how);
    else
      f.delete_rows(0, p, how);
    stream.first += p;
  }

  /// x is the least-squares solution for every right-hand side: the gradient is rounding.
  static void expect_solves(const UpdatableQR<T>& f, const Dense<T>& a, const Dense<T>& b, double slack) {
    const auto x = Base::host(f.solve().x);
    ASSERT_EQ(x.rows, a.cols);
    ASSERT_EQ(x.cols, b.cols);
    const auto residual = subtract(widen(b), multiply(widen(a), widen(x)));
    const auto gradient = multiply_transposed(widen(a), residual);
    const auto norms = f.residual_norms();
    ASSERT_EQ(static_cast<Index>(norms.size()), b.cols);
    for (Index c = 0; c < b.cols; ++c) {
      const double size =
          static_cast<double>(norm(widen(a)) * (norm(widen(a)) * column_norm(widen(x), c) + column_norm(widen(b), c)));
      EXPECT_LE(static_cast<double>(column_norm(gradient, c)), slack * limit<T>(a.rows, a.cols) * size);
      EXPECT_NEAR(norms[static_cast<std::size_t>(c)], static_cast<double>(column_norm(residual, c)),
                  slack * limit<T>(a.rows, a.cols) * static_cast<double>(column_norm(widen(b), c)));
    }
  }
};

TYPED_TEST_SUITE(UpdateWindow, Everywhere, Names);

TYPED_TEST(UpdateWindow, ROfAWindowAfterThousandsOfRowsIsAsGoodAsAFreshOne) {
  using T = typename TypeParam::Scalar;
  const Index steps = small_run() ? 30 : TestFixture::thorough ? 3000 : 100;
  for (const Index p : {Index{1}, Index{9}}) {  // one launch does a few rows, a chain does more
    Stream<T> stream(steps * p + 80, 12, 2, 80);
    auto f = TestFixture::factor(stream.a(), QForm::none);
    const Dense<T> a = stream.a(), b = stream.right();
    f.attach(b.view(), a.view());
    for (Index step = 0; step < steps; ++step) TestFixture::slide(f, stream, p, QForm::none);
    EXPECT_EQ(f.rows(), 80);
    EXPECT_TRUE(is_r_of(stream.a(), TestFixture::host(f.r()))) << p << " rows at a time";
    TestFixture::expect_solves(f, stream.a(), stream.right(), 1);
  }
}

TYPED_TEST(UpdateWindow, QueuedStepsGiveTheSame) {
  using T = typename TypeParam::Scalar;
  const Index steps = small_run() ? 60 : TestFixture::thorough ? 500 : 60;
  Stream<T> stream(steps + 100, 16, 1, 100);
  const Dense<T> a = stream.a(), b = stream.right();
  auto f = TestFixture::factor(a, QForm::none);
  f.attach(b.view(), a.view());
  UpdateOptions how;
  how.queued = true;
  for (Index step = 0; step < steps; ++step) TestFixture::slide(f, stream, 1, QForm::none, how);
  EXPECT_EQ(f.refused_updates(), 0);
  EXPECT_TRUE(is_r_of(stream.a(), TestFixture::host(f.r())));
  TestFixture::expect_solves(f, stream.a(), stream.right(), 1);
}

TYPED_TEST(UpdateWindow, ThinQOfAWindowStaysOrthonormal) {
  using T = typename TypeParam::Scalar;
  const Index steps = small_run() ? 12 : TestFixture::thorough ? 400 : 40;
  for (const Index p : {Index{1}, Index{7}}) {
    Stream<T> stream(steps * p + 90, 14, 3, 90);
    const Dense<T> b = stream.right();
    auto f = TestFixture::factor(stream.a(), QForm::thin);
    f.attach(b.view());
    for (Index step = 0; step < steps; ++step) TestFixture::slide(f, stream, p, QForm::thin);
    EXPECT_TRUE(is_qr_of(stream.a(), TestFixture::host(f.q()), TestFixture::host(f.r())));
    TestFixture::expect_solves(f, stream.a(), stream.right(), 1);
    const double drift = f.drift(stream.a().view());
    EXPECT_GE(drift, 0);
    EXPECT_LT(drift, 30);
  }
}

TYPED_TEST(UpdateWindow, AWideWindowOfFewColumnsAsTheBenchmarkHasIt) {
  using T = typename TypeParam::Scalar;
  if (!TestFixture::thorough) GTEST_SKIP() << "one size is enough for a slow device";
  Stream<T> stream(4096 + 60, 64, 1, 4096);
  const Dense<T> a = stream.a(), b = stream.right();
  auto f = TestFixture::factor(a, QForm::none);
  f.attach(b.view(), a.view());
  for (Index step = 0; step < 60; ++step) TestFixture::slide(f, stream, 1, QForm::none);
  TestFixture::expect_solves(f, stream.a(), stream.right(), 1);
}

TYPED_TEST(UpdateWindow, MixedChangesKeepTheRightHandSides) {
  using T = typename TypeParam::Scalar;
  Stream<T> stream(120, 10, 4, 60);
  Dense<T> a = stream.a(), b = stream.right();
  auto f = TestFixture::factor(a, QForm::thin);
  f.attach(b.view());
  const auto column = stream.part(stream.b, 0, 60);  // four columns, as tall as A
  f.insert_columns(5, column.view());
  f.delete_columns(0, 3);
  Dense<T> now(60, 11);
  for (Index j = 0; j < 11; ++j)
    for (Index i = 0; i < 60; ++i) now(i, j) = j < 2 ? a(i, j + 3) : j < 6 ? column(i, j - 2) : a(i, j - 1);
  EXPECT_TRUE(is_qr_of(now, TestFixture::host(f.q()), TestFixture::host(f.r())));
  f.delete_rows(20, 15);
  Dense<T> rest(45, 11), rest_b(45, 4);
  for (Index i = 0; i < 45; ++i) {
    for (Index j = 0; j < 11; ++j) rest(i, j) = now(i < 20 ? i : i + 15, j);
    for (Index j = 0; j < 4; ++j) rest_b(i, j) = b(i < 20 ? i : i + 15, j);
  }
  EXPECT_TRUE(is_qr_of(rest, TestFixture::host(f.q()), TestFixture::host(f.r())));
  // the columns that came in are b itself: nothing is left over
  const auto norms = f.residual_norms();
  for (Index c = 0; c < 4; ++c)
    EXPECT_LT(norms[static_cast<std::size_t>(c)],
              30 * limit<T>(60, 11) * static_cast<double>(column_norm(widen(rest_b), c)));
}

TYPED_TEST(UpdateWindow, DriftIsSeenAndMendedWhereAIsLent) {
  using T = typename TypeParam::Scalar;
  Stream<T> stream(140, 9, 1, 100);
  auto f = TestFixture::factor(stream.a(), QForm::thin);
  UpdateOptions how;
  how.method = UpdateMethod::orthogonal;
  how.drift_every = 5;
  how.drift_limit = 0;  // any rounding at all is too much
  Index refreshed = 0, measured = 0;
  for (Index step = 0; step < 20; ++step) {
    const Dense<T> u = stream.part(stream.rows, 100 + step, 1);
    stream.size = 101 + step;
    const Dense<T> updated = stream.a();
    const UpdateReport report = f.insert_rows(f.rows(), u.view(), how, updated.view());
    measured += report.drift >= 0;
    refreshed += report.refreshed;
  }
  EXPECT_EQ(measured, 4);
  EXPECT_EQ(refreshed, 4);
  EXPECT_TRUE(is_qr_of(stream.a(), TestFixture::host(f.q()), TestFixture::host(f.r())));

  how.refresh = false;
  for (Index step = 20; step < 40; ++step) {
    const Dense<T> u = stream.part(stream.rows, 100 + step, 1);
    stream.size = 101 + step;
    const Dense<T> updated = stream.a();
    EXPECT_FALSE(f.insert_rows(f.rows(), u.view(), how, updated.view()).refreshed);
  }
  EXPECT_TRUE(is_qr_of(stream.a(), TestFixture::host(f.q()), TestFixture::host(f.r())));
}

TYPED_TEST(UpdateWindow, ARefusedDeletionChangesNothing) {
  using T = typename TypeParam::Scalar;
  Dense<T> a(6, 4), b(6, 1);
  for (Index j = 0; j < 4; ++j) a(j, j) = T(j + 1);  // every row carries a column on its own
  for (Index i = 0; i < 6; ++i) b(i, 0) = T(i);
  auto f = TestFixture::factor(a, QForm::none);
  f.attach(b.view(), a.view());
  const auto r = TestFixture::host(f.r());
  const Dense<T> row = Stream<T>::part(a, 1, 1), row_b = Stream<T>::part(b, 1, 1);
  EXPECT_TRUE(f.delete_rows(1, 1, row.view(), row_b.view()).refused);
  EXPECT_EQ(f.rows(), 6);
  EXPECT_EQ(TestFixture::host(f.r()).values, r.values);
  TestFixture::expect_solves(f, a, b, 1);
}

}  // namespace
}  // namespace qrane::test
