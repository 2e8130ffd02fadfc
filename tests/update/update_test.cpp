// SPDX-License-Identifier: Apache-2.0
// Updates of a factorization: after any change the factors are those of the changed matrix, by the measures for a fresh
// factorization; what cannot be done is refused, and then nothing has changed.
#include "support/every_nth.hpp"
#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {
namespace {

template <class Where>
class UpdateTest : public BackendTest<Where> {
 public:
  using T = typename Where::Scalar;

 protected:
  static Tracked<T> track(const Dense<T>& a, QForm form) { return Tracked<T>(UpdateTest::context(), a, form); }

  /// Every change at every place, by one method.
  static void change_everywhere(const Dense<T>& a, QForm form, const std::vector<Index>& sizes, UpdateMethod method,
                                int block_cols, EveryNth& cases) {
    for (Change change : all_changes)
      for (Index p : sizes)
        for (Index k : places(a, change, p)) {
          if (form == QForm::none && (method == UpdateMethod::trailing) && change == Change::insert_columns) continue;
          if (method == UpdateMethod::cholesky && (change != Change::delete_rows || a.rows - p < a.cols)) continue;
          if (method == UpdateMethod::trailing && (change == Change::insert_rows || change == Change::delete_rows))
            continue;
          if (cases.skip()) continue;
          Tracked<T> f = track(a, form);
          const UpdateReport report = f.change(change, k, p, 7 * static_cast<std::uint64_t>(p + k), method, block_cols);
          EXPECT_TRUE(f.good()) << a.rows << " x " << a.cols << ", " << to_string(form) << ", " << to_string(change)
                                << ", k = " << k << ", p = " << p << ", " << to_string(method) << ", windows of "
                                << block_cols;
          EXPECT_EQ(report.change, change);
          EXPECT_EQ(report.rows, a.rows);
          EXPECT_EQ(report.cols, a.cols);
          if (method != UpdateMethod::automatic) {
            EXPECT_EQ(report.method, method);
          }
        }
  }
};
TYPED_TEST_SUITE(UpdateTest, Everywhere, Names);

TYPED_TEST(UpdateTest, EveryChangeOfEveryShape) {
  using T = typename TypeParam::Scalar;
  const std::vector<Shape> shapes =
      this->thorough ? std::vector<Shape>{{40, 12}, {13, 12}, {12, 12}, {7, 12}, {12, 40}, {1, 1}, {70, 37}, {120, 9}}
                     : std::vector<Shape>{{40, 12}, {12, 12}, {7, 12}};
  EveryNth cases(13);
  for (const Shape& s : shapes)
    for (QForm form : {QForm::thin, QForm::none})
      this->change_everywhere(random_normal<T>(s.rows, s.cols, 3), form,
                              this->thorough ? std::vector<Index>{0, 1, 4, 45} : std::vector<Index>{1, 45},
                              UpdateMethod::automatic, 0, cases);
}

TYPED_TEST(UpdateTest, WindowsOfAnyWidth) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(7);
  for (int block : {1, 3, 8})
    this->change_everywhere(random_normal<T>(60, 20, 5), QForm::thin, {1, 5, 11}, UpdateMethod::automatic, block,
                            cases);
}

TYPED_TEST(UpdateTest, EveryMethod) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(11);
  for (UpdateMethod method :
       {UpdateMethod::orthogonal, UpdateMethod::cholesky, UpdateMethod::trailing, UpdateMethod::refactor})
    for (const Shape& s : {Shape{50, 20}, Shape{150, 35}, Shape{20, 20}, Shape{15, 20}})
      this->change_everywhere(random_normal<T>(s.rows, s.cols, 9), QForm::thin, {1, 6}, method, 0, cases);
}

/// Rows of rising leverage: by products alone, with a second pass, and the orthogonal way where the guard refuses.
TYPED_TEST(UpdateTest, CholeskyIsGuarded) {
  using T = typename TypeParam::Scalar;
  const double u = unit_roundoff<T>;
  for (double size : {1.0, 30.0, 0.2 / std::sqrt(std::sqrt(u)), 10 / std::sqrt(u), 100 / u}) {
    Dense<T> a = random_normal<T>(120, 15, 15);
    for (Index i : {Index(40), Index(42)})
      for (Index j = 0; j < 15; ++j) a(i, j) *= static_cast<T>(size);
    Tracked<T> f = this->track(a, QForm::thin);
    f.attach(random_normal<T>(120, 2, 16));
    const UpdateReport report = f.change(Change::delete_rows, 40, 3, 0, UpdateMethod::cholesky);
    EXPECT_TRUE(f.good()) << size;
    EXPECT_EQ(report.fell_back, size > 1 / std::sqrt(u)) << size;
  }
}

/// Without Q, what cannot be updated well is factored anew where the matrix is lent.
TYPED_TEST(UpdateTest, LentMatricesAreFactoredWhereNothingElseHelps) {
  using T = typename TypeParam::Scalar;
  Dense<T> a = random_normal<T>(40, 6, 18);
  for (Index i = 0; i < 40; ++i) a(i, 2) = T(i == 5);
  Tracked<T> f = this->track(a, QForm::none);
  const Dense<T> gone = rows_of(a, 5, 1, 6), left = without_rows(a, 5, 1);
  UpdateOptions options;
  options.method = UpdateMethod::orthogonal;  // `automatic` may see it coming
  UpdateReport report = f.f.delete_rows(5, 1, gone.view(), {}, options, left.view());
  EXPECT_FALSE(report.refused);
  EXPECT_TRUE(report.fell_back);
  EXPECT_EQ(report.method, UpdateMethod::refactor);
  f.a = left;
  EXPECT_TRUE(f.good());
  for (const bool singular : {false, true}) {
    Tracked<T> g =
        this->track(singular ? hostile::duplicate_columns<T>(50, 8, 19) : random_normal<T>(50, 8, 19), QForm::none);
    report = g.change(Change::insert_columns, 3, 4, 20, UpdateMethod::orthogonal);
    EXPECT_EQ(report.fell_back, singular);
    EXPECT_EQ(report.method, singular ? UpdateMethod::refactor : UpdateMethod::orthogonal);
    EXPECT_TRUE(g.good()) << singular;
  }
}

/// Semi-normal equations lose with the condition: what they gave up would show here.
TYPED_TEST(UpdateTest, ColumnsIntoRAlone) {
  using T = typename TypeParam::Scalar;
  for (double condition : {1e1, 1e2, 1e3, 1e4, 1e6, 1e8}) {
    Tracked<T> f = this->track(geometric_spectrum<T>(60, 20, condition, 31), QForm::none);
    const UpdateReport report = f.change(Change::insert_columns, 10, 3, 33, UpdateMethod::orthogonal);
    EXPECT_TRUE(f.good()) << condition;
    EXPECT_EQ(report.fell_back, condition < 20 ? false : condition > 1e7 ? true : report.fell_back) << condition;
  }
}

/// So many rows that what is left of them is factored on the device, in one block or two; refused where they carry the
/// rank.
TYPED_TEST(UpdateTest, ManyRowsOutOfRAlone) {
  using T = typename TypeParam::Scalar;
  const auto rows_out = [&](Dense<T> a, Index p) {
    Tracked<T> f = this->track(a, QForm::none);
    f.attach(random_normal<T>(a.rows, 2, 42));
    EXPECT_FALSE(f.change(Change::delete_rows, 20, p, 43, UpdateMethod::orthogonal).refused);
    EXPECT_TRUE(f.good()) << p;
    for (Index i = 0; i < a.rows; ++i) a(i, a.cols - 5) = T(i == 20 + p / 2);
    Tracked<T> g = this->track(a, QForm::none);
    EXPECT_TRUE(g.change(Change::delete_rows, 20, p, 43, UpdateMethod::orthogonal).refused);
    EXPECT_EQ(g.f.rows(), a.rows);
    EXPECT_TRUE(g.good()) << p;
  };
  rows_out(random_normal<T>(180, 60, 41), 49);
  rows_out(random_normal<T>(300, 135, 44), 140);
}

/// Where R alone is kept a queued deletion does not wait; what was refused is known later.
TYPED_TEST(UpdateTest, QueuedDeletions) {
  using T = typename TypeParam::Scalar;
  Dense<T> a = random_normal<T>(40, 6, 17);
  for (Index i = 0; i < 40; ++i) a(i, 2) = T(i == 5);
  Tracked<T> f = this->track(a, QForm::none);
  const Dense<T> rank = rows_of(a, 5, 1, 6), first = rows_of(a, 0, 1, 6);
  UpdateOptions options;
  options.queued = true;
  f.f.delete_rows(5, 1, rank.view(), {}, options);
  f.f.delete_rows(0, 1, first.view(), {}, options);
  EXPECT_LE(f.f.refused_updates(), 1);
  EXPECT_EQ(f.f.rows(), 39);
  EXPECT_EQ(f.f.refused_updates(), 0);
  f.a = without_rows(a, 0, 1);
  EXPECT_TRUE(f.good());
}

TYPED_TEST(UpdateTest, HostileInputs) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(11);
  for (const auto& input : hostile::inputs<T>())
    for (const Shape& s : {Shape{48, 20}, Shape{16, 20}}) {
      const Dense<T> all = input.make(s.rows + 5, s.cols + 5, 11);
      for (Change change : all_changes) {
        const Index rows = s.rows + (change == Change::insert_rows ? 0 : 5);
        const Index cols = s.cols + (change == Change::insert_columns ? 0 : 5);
        const bool is_rows = change == Change::insert_rows || change == Change::delete_rows;
        for (Index k : {Index(0), (is_rows ? s.rows : s.cols) / 2}) {
          if (cases.skip()) continue;
          const Dense<T> a = top_left(all, rows, cols);
          const Dense<T> u =
              is_rows ? rows_of(all, s.rows, 5, cols) : columns(top_left(all, rows, s.cols + 5), s.cols, 5);
          Tracked<T> f = this->track(a, QForm::thin);
          f.change_by(change, k, 5, u, {}, {});
          EXPECT_TRUE(f.good()) << input.name << ", " << to_string(s) << ", " << to_string(change) << ", k = " << k;
        }
      }
    }
}

TYPED_TEST(UpdateTest, ManyChangesOneAfterAnother) {
  using T = typename TypeParam::Scalar;
  const int changes = small_run() ? 20 : this->thorough ? 400 : 40;
  for (QForm form : {QForm::thin, QForm::none}) {
    Tracked<T> f = this->track(random_normal<T>(45, 15, 21), form);
    f.attach(random_normal<T>(45, 2, 22));
    Random random(23);
    for (int i = 0; i < changes; ++i) {
      // mostly tall; what changes keeps the size within bounds
      const bool rows = random.uniform() < 0.6;
      const Index size = rows ? f.a.rows : f.a.cols, least = rows ? 30 : 4, most = rows ? 60 : 25;
      const bool in = size <= least || (size < most && random.uniform() < 0.5);
      if (form == QForm::none && !rows && in) continue;  // needs its right-hand sides attached anew
      const Index p = std::min<Index>(1 + random.below(5), in ? most : size - 1);
      const Change change = rows ? (in ? Change::insert_rows : Change::delete_rows)
                                 : (in ? Change::insert_columns : Change::delete_columns);
      if (form == QForm::none && change == Change::delete_columns && f.a.cols <= 8) continue;
      const UpdateReport report = f.change(change, random.below(in ? size + 1 : size - p + 1), p, 1000 + i);
      ASSERT_FALSE(report.refused) << i;
      if (i % 20 == 19) {
        ASSERT_TRUE(f.good()) << "after " << i + 1 << " changes, " << to_string(form);
        ASSERT_TRUE(f.solves()) << "after " << i + 1 << " changes, " << to_string(form);
      }
    }
  }
}

TYPED_TEST(UpdateTest, SlidingWindow) {
  using T = typename TypeParam::Scalar;
  const int steps = small_run() ? 12 : this->thorough ? 600 : 40;
  for (QForm form : {QForm::thin, QForm::none}) {
    Tracked<T> f = this->track(random_normal<T>(50, 10, 31), form);
    f.attach(random_normal<T>(50, 1, 32));
    for (int i = 0; i < steps; ++i) {
      f.change(Change::insert_rows, f.a.rows, 1, 33 + 2 * static_cast<std::uint64_t>(i));
      f.change(Change::delete_rows, 0, 1, 0);
    }
    EXPECT_TRUE(f.good()) << to_string(form);
    EXPECT_TRUE(f.solves()) << to_string(form);
  }
}

TYPED_TEST(UpdateTest, RightHandSidesFollowEveryChange) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(7);
  for (const Shape& s : {Shape{60, 20}, Shape{20, 20}, Shape{12, 20}})
    for (QForm form : {QForm::thin, QForm::none})
      for (Change change : all_changes)
        for (Index p : {Index(1), Index(4), Index(70)}) {
          if (form == QForm::none && change == Change::insert_columns) continue;
          const Dense<T> a = random_normal<T>(s.rows, s.cols, 41);
          for (Index k : places(a, change, p)) {
            if (cases.skip()) continue;
            Tracked<T> f = this->track(a, form);
            f.attach(random_normal<T>(s.rows, 3, 42));
            f.change(change, k, p, 43);
            EXPECT_TRUE(f.solves()) << to_string(s) << ", " << to_string(form) << ", " << to_string(change)
                                    << ", k = " << k << ", p = " << p;
          }
        }
}

/// Rows out that carry the rank, columns in that bring none: Q stays orthonormal, and R shows it.
TYPED_TEST(UpdateTest, RankLostOrNotGained) {
  using T = typename TypeParam::Scalar;
  Dense<T> a = random_normal<T>(40, 10, 51);
  for (Index i = 0; i < 40; ++i) a(i, 3) = T(i == 7);            // column 3 lives in row 7,
  for (Index i = 0; i < 40; ++i) a(i, 8) = T(i == 7 || i == 8);  // column 8 in rows 7 and 8
  for (Index p : {Index(1), Index(2), Index(5)}) {
    Tracked<T> f = this->track(a, QForm::thin);
    f.change(Change::delete_rows, 7, p, 0);
    EXPECT_TRUE(f.good()) << p;
    EXPECT_EQ(f.f.rank().rank, p == 1 ? 9 : 8) << p;
    f.change(Change::insert_rows, 0, 3, 52);
    EXPECT_TRUE(f.good()) << p;
  }
  // after deletions leave holes among Q's rows
  Tracked<T> f = this->track(a, QForm::thin);
  f.change(Change::delete_rows, 0, 3, 0);
  f.change(Change::delete_rows, 20, 2, 0);
  f.change(Change::delete_rows, 9, 1, 0);
  EXPECT_TRUE(f.good());
  for (Index k : {Index(0), Index(5), f.a.cols}) {
    Dense<T> u(f.a.rows, 4);  // zero, a column of A, one twice
    std::copy(f.a.column(1), f.a.column(1) + f.a.rows, u.column(1));
    const Dense<T> fresh = random_normal<T>(f.a.rows, 1, 53 + static_cast<std::uint64_t>(k));
    std::copy(fresh.column(0), fresh.column(0) + f.a.rows, u.column(2));
    std::copy(fresh.column(0), fresh.column(0) + f.a.rows, u.column(3));
    const Index rank = f.f.rank().rank;
    f.change_by(Change::insert_columns, k, 4, u, {}, {});
    EXPECT_TRUE(f.good()) << k;
    EXPECT_EQ(f.f.rank().rank, rank + 1) << k;
  }
  // without Q it is refused
  for (Index p : {Index(1), Index(2)}) {
    Tracked<T> g = this->track(a, QForm::none);
    const Dense<T> r = g.r();
    EXPECT_TRUE(g.change(Change::delete_rows, 7, p, 0).refused);
    EXPECT_EQ(g.f.rows(), 40);
    EXPECT_EQ(g.r(), r);
  }
}

TYPED_TEST(UpdateTest, DownToNothingAndUpAgain) {
  using T = typename TypeParam::Scalar;
  for (QForm form : {QForm::thin, QForm::none}) {
    Tracked<T> f = this->track(random_normal<T>(12, 5, 61), form);
    for (const auto& [change, p] : std::vector<std::pair<Change, Index>>{{Change::delete_rows, 12},
                                                                         {Change::insert_rows, 3},
                                                                         {Change::insert_rows, 9},
                                                                         {Change::delete_columns, 5},
                                                                         {Change::insert_columns, 2},
                                                                         {Change::insert_columns, 14},
                                                                         {Change::insert_rows, 40},
                                                                         {Change::delete_columns, 16},
                                                                         {Change::delete_rows, 52},
                                                                         {Change::insert_columns, 3},
                                                                         {Change::insert_rows, 4}}) {
      f.change(change, 0, p, 62);
      EXPECT_TRUE(f.good()) << to_string(form) << ", " << to_string(change) << ", p = " << p;
    }
  }
}

TYPED_TEST(UpdateTest, BlocksOfAnyLayoutAndMemory) {
  using T = typename TypeParam::Scalar;
  const Dense<T> a = random_normal<T>(30, 9, 71), u = random_normal<T>(4, 9, 72), v = random_normal<T>(34, 3, 73);
  for (Storage storage : all_storages) {
    Tracked<T> f = this->track(a, QForm::thin);
    const Stored<T> rows(this->context(), u, storage), cols(this->context(), v, storage);
    f.f.insert_rows(11, rows.view());
    f.f.insert_columns(2, cols.view());
    f.a = with_columns(with_rows(a, 11, u), 2, v);
    EXPECT_TRUE(f.good()) << to_string(storage);
    EXPECT_TRUE(rows.untouched(this->context()) && cols.untouched(this->context())) << to_string(storage);
  }
}

TYPED_TEST(UpdateTest, BadInputChangesNothing) {
  using T = typename TypeParam::Scalar;
  constexpr auto bad = ErrorCode::invalid_argument;
  for (QForm form : {QForm::thin, QForm::none}) {
    Tracked<T> f = this->track(random_normal<T>(20, 8, 81), form);
    f.attach(random_normal<T>(20, 2, 82));
    f.change(Change::insert_rows, 3, 2, 83);
    const Dense<T> r = f.r(), q = form == QForm::thin ? f.q() : Dense<T>();
    const Dense<T> u = random_normal<T>(2, 8, 84), e = random_normal<T>(2, 2, 85), v = random_normal<T>(22, 2, 86);
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(-1, u.view(), e.view()); }, bad, {"k = -1", "22 rows"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(23, u.view(), e.view()); }, bad, {"k = 23"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(0, v.view(), e.view()); }, bad, {"u is 22 x 2", "8 columns"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(0, u.view()); }, bad, {"e is 0 x 0", "2 x 2"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_columns(9, v.view()); }, bad, {"k = 9", "8 columns"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_columns(0, u.view()); }, bad, {"u is 2 x 8", "22 rows"}));
    EXPECT_TRUE(refuses([&] { f.f.delete_rows(20, 3); }, bad, {"k = 20, p = 3", "22 rows"}));
    EXPECT_TRUE(refuses([&] { f.f.delete_rows(0, -1); }, bad, {"p must not be negative", "-1"}));
    EXPECT_TRUE(
        refuses([&] { f.f.delete_columns(std::numeric_limits<Index>::max(), 1); }, bad, {"k = 9223372036854775807"}));
    EXPECT_TRUE(refuses([&] { f.f.delete_columns(1, 8); }, bad, {"k = 1, p = 8"}));
    UpdateOptions options;
    options.block_cols = -4;
    EXPECT_TRUE(refuses([&] { f.f.delete_columns(1, 1, options); }, bad, {"block_cols", "-4"}));
    options = {};
    EXPECT_TRUE(refuses([&] { f.f.delete_columns(1, 1, options, v.view()); }, bad, {"updated is 22 x 2", "22 x 7"}));
    options.method = UpdateMethod::trailing;
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(0, u.view(), e.view(), options); }, ErrorCode::unavailable,
                        {"trailing", "columns"}));
    options = {};
    options.check_finite = true;
    for (T hostile : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
      Dense<T> worse = u, worse_e = e, worse_v = v;
      worse(1, 5) = worse_e(0, 1) = worse_v(13, 1) = hostile;
      EXPECT_TRUE(refuses([&] { f.f.insert_rows(0, worse.view(), e.view(), options); }, ErrorCode::not_finite,
                          {"u", "row 1, column 5"}));
      EXPECT_TRUE(refuses([&] { f.f.insert_rows(0, u.view(), worse_e.view(), options); }, ErrorCode::not_finite,
                          {"e", "row 0, column 1"}));
      UpdateOptions lent = options;
      const Dense<T> with = with_columns(f.a, 0, worse_v);
      EXPECT_TRUE(refuses([&] { f.f.insert_columns(0, worse_v.view(), lent); },
                          form == QForm::thin ? ErrorCode::not_finite : ErrorCode::unavailable, {}));
    }
    if (form == QForm::none) {
      EXPECT_TRUE(refuses([&] { f.f.delete_rows(0, 2); }, bad, {"removed is 0 x 0", "2 x 8"}));
      EXPECT_TRUE(refuses([&] { f.f.delete_rows(0, 2, u.view()); }, bad, {"removed_b is 0 x 0", "2 x 2"}));
      EXPECT_TRUE(refuses([&] { f.f.insert_columns(0, v.view()); }, ErrorCode::unavailable, {"the updated matrix"}));
    }
    EXPECT_EQ(f.r(), r);
    if (form == QForm::thin) {
      EXPECT_EQ(f.q(), q);
    }
    EXPECT_TRUE(f.good() && f.solves());
  }
}

TYPED_TEST(UpdateTest, OutOfMemoryChangesNothing) {
  using T = typename TypeParam::Scalar;
  const Context small = fresh_context(this->backend, std::int64_t{12} << 20);
  Tracked<T> f(small, random_normal<T>(60, 20, 91), QForm::thin);
  f.attach(random_normal<T>(60, 1, 92));
  f.change(Change::delete_rows, 4, 2, 0);
  const Dense<T> r = f.r(), q = f.q();
  const Dense<T> rows = random_normal<T>(200000, 20, 93), e(200000, 1), cols = random_normal<T>(58, 30000, 94);
  EXPECT_TRUE(refuses([&] { f.f.insert_rows(1, rows.view(), e.view()); }, ErrorCode::out_of_memory, {"needed"}));
  EXPECT_TRUE(refuses([&] { f.f.insert_columns(1, cols.view()); }, ErrorCode::out_of_memory, {"needed"}));
  EXPECT_EQ(f.r(), r);
  EXPECT_EQ(f.q(), q);
  f.change(Change::insert_rows, 1, 3, 95);
  f.change(Change::insert_columns, 1, 2, 96);
  EXPECT_TRUE(f.good() && f.solves());
}

TYPED_TEST(UpdateTest, WhatConsumesAnUpdatedFactorization) {
  using T = typename TypeParam::Scalar;
  Tracked<T> f = this->track(random_normal<T>(40, 12, 101), QForm::thin);
  f.change(Change::delete_rows, 5, 3, 0);
  f.change(Change::insert_rows, 30, 4, 102);
  f.change(Change::delete_columns, 2, 1, 0);
  const Dense<T> b = random_normal<T>(41, 2, 103);
  const QR<T> fresh = qr<T>(this->context(), f.a.view());
  const Dense<T> want = this->host(fresh.solve(b.view()).x);
  EXPECT_TRUE(columns_agree(this->host(f.f.solve(b.view()).x), want, 41, 11, 20));
  EXPECT_EQ(f.f.rank().rank, 11);
  EXPECT_NEAR(f.f.condition() / fresh.condition(), 1, 0.5);
  EXPECT_EQ(range_basis(f.f).cols(), 11);
  EXPECT_EQ(null_space_basis(f.f).cols(), 0);
  EXPECT_EQ(f.f.plan().rows, 41);
  EXPECT_EQ(f.f.plan().cols, 11);
  Matrix<T> q = this->context().template allocate<T>(41, 11), r = this->context().template allocate<T>(11, 11);
  f.f.q_into(q.view());
  f.f.r_into(r.view());
  EXPECT_EQ(this->host(q), f.q());
  EXPECT_EQ(this->host(r), f.r());
  Dense<T> c = b;
  EXPECT_TRUE(refuses([&] { f.f.apply_qt(c.view()); }, ErrorCode::unavailable, {"reflectors"}));
  EXPECT_TRUE(refuses([&] { f.f.projected(); }, ErrorCode::unavailable, {"attach"}));
  const Dense<T> other = random_normal<T>(41, 11, 104);
  f.f.refactor(other.view());
  f.a = other;
  EXPECT_TRUE(f.good());
}

}  // namespace
}  // namespace qrane::test
