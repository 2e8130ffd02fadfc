// SPDX-License-Identifier: Apache-2.0
// Updates of the forms that have all of Q (full, implicit, lapack), A + U Vᵀ in every form, and drift.
#include "support/every_nth.hpp"
#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {
namespace {

template <class Where>
class UpdateForms : public BackendTest<Where> {
 public:
  using T = typename Where::Scalar;

 protected:
  static Tracked<T> track(const Dense<T>& a, QForm form) { return Tracked<T>(UpdateForms::context(), a, form); }

  /// Thin and full Q, R, and what applying Q does.
  static ::testing::AssertionResult good(const Tracked<T>& f) {
    if (auto thin = f.good(); !thin) return thin;
    const Index m = f.a.rows;
    if (m == 0) return ::testing::AssertionSuccess();
    const Dense<T> full = f.host(f.f.q(Columns::full));
    if (auto shape = has_shape(full, m, m); !shape) return shape << " for full Q";
    if (auto unit = at_most_one(orthogonality(full, m, f.a.cols), "the departure of full Q from orthonormal"); !unit)
      return unit;
    if (auto agree = columns_agree(columns(full, 0, std::min(m, f.a.cols)), f.q(), m, f.a.cols); !agree)
      return agree << " for the thin Q in it";
    Dense<T> c = random_normal<T>(m, 3, 5), right = transposed(c);
    const Dense<T> want = convert<T>(multiply(transposed(widen(full)), widen(c)));
    f.f.apply_qt(c.view());
    if (auto applied = columns_agree(c, want, m, f.a.cols); !applied) return applied << " for Qᵀ C";
    const Dense<T> back = convert<T>(multiply(widen(full), widen(c)));
    f.f.apply_q(c.view());
    if (auto applied = columns_agree(c, back, m, f.a.cols); !applied) return applied << " for Q C";
    f.f.apply_q(right.view(), Side::right);
    return columns_agree(transposed(right), want, m, f.a.cols);
  }

  static void expect_good(const Tracked<T>& f, const std::string& what) {
    EXPECT_TRUE(good(f)) << what << ", " << to_string(f.form) << ", " << f.a.rows << " x " << f.a.cols << " now";
  }
};
TYPED_TEST_SUITE(UpdateForms, Everywhere, Names);

constexpr QForm whole_forms[] = {QForm::full, QForm::implicit, QForm::lapack};

TYPED_TEST(UpdateForms, EveryChangeOfEveryShape) {
  using T = typename TypeParam::Scalar;
  const std::vector<Shape> shapes = this->thorough
                                        ? std::vector<Shape>{{40, 12}, {13, 12}, {12, 12}, {7, 12}, {1, 1}, {90, 37}}
                                        : std::vector<Shape>{{40, 12}, {7, 12}};
  EveryNth cases(53);
  for (const Shape& s : shapes)
    for (QForm form : whole_forms) {
      const Dense<T> a = random_normal<T>(s.rows, s.cols, 3);
      for (Change change : all_changes)
        for (Index p : this->thorough ? std::vector<Index>{0, 1, 4, 35, 60} : std::vector<Index>{1, 35})
          for (Index k : places(a, change, p)) {
            if (cases.skip()) continue;
            Tracked<T> f = this->track(a, form);
            f.change(change, k, p, 7);
            this->expect_good(f, detail::concat(to_string(s), ", ", to_string(change), ", k = ", k, ", p = ", p));
          }
    }
}

TYPED_TEST(UpdateForms, WindowsOfAnyWidthAndMethods) {
  using T = typename TypeParam::Scalar;
  const Dense<T> a = small_run() ? random_normal<T>(27, 9, 5) : random_normal<T>(60, 20, 5);
  EveryNth cases(5);
  for (QForm form : {QForm::full, QForm::implicit})
    for (Change change : all_changes)
      for (Index k : places(a, change, 5)) {
        for (int block : {1, 3, 8}) {
          if (cases.skip()) continue;
          Tracked<T> f = this->track(a, form);
          f.change(change, k, 5, 9, UpdateMethod::orthogonal, block);
          this->expect_good(f, detail::concat(to_string(change), ", k = ", k, ", windows of ", block));
        }
        if (change == Change::insert_rows || change == Change::delete_rows || cases.skip()) continue;
        Tracked<T> f = this->track(a, form);
        EXPECT_EQ(f.change(change, k, 5, 9, UpdateMethod::trailing).method, UpdateMethod::trailing);
        this->expect_good(f, detail::concat(to_string(change), ", k = ", k, ", trailing"));
      }
}

TYPED_TEST(UpdateForms, HostileInputs) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(13);
  for (const auto& input : hostile::inputs<T>())
    for (QForm form : {QForm::full, QForm::implicit}) {
      const Dense<T> all = input.make(45, 25, 11);
      for (Change change : all_changes) {
        if (cases.skip()) continue;
        const bool is_rows = change == Change::insert_rows || change == Change::delete_rows;
        const Dense<T> a =
            top_left(all, change == Change::insert_rows ? 40 : 45, change == Change::insert_columns ? 20 : 25);
        const Dense<T> u = is_rows ? rows_of(all, 40, 5, 25) : columns(all, 20, 5);
        Tracked<T> f = this->track(a, form);
        f.change_by(change, 7, 5, u, {}, {});
        EXPECT_TRUE(f.good()) << input.name << ", " << to_string(change) << ", " << to_string(form);
      }
    }
}

TYPED_TEST(UpdateForms, ManyChangesOneAfterAnother) {
  using T = typename TypeParam::Scalar;
  const int changes = small_run() ? 12 : this->thorough ? 200 : 30, checked_every = small_run() ? 12 : 20;
  for (QForm form : whole_forms) {
    Tracked<T> f = this->track(random_normal<T>(45, 15, 21), form);
    f.attach(random_normal<T>(45, 2, 22));
    Random random(23);
    for (int i = 0; i < changes; ++i) {
      const bool rows = random.uniform() < 0.6;
      const Index size = rows ? f.a.rows : f.a.cols, least = rows ? 30 : 4, most = rows ? 60 : 25;
      const bool in = size <= least || (size < most && random.uniform() < 0.5);
      const Index p = std::min<Index>(1 + random.below(5), in ? most : size - 1);
      const Change change = rows ? (in ? Change::insert_rows : Change::delete_rows)
                                 : (in ? Change::insert_columns : Change::delete_columns);
      f.change(change, random.below(in ? size + 1 : size - p + 1), p, 1000 + i);
      if ((i + 1) % checked_every != 0) continue;
      ASSERT_TRUE(this->good(f)) << "after " << i + 1 << " changes, " << to_string(form);
      ASSERT_TRUE(f.solves()) << "after " << i + 1 << " changes, " << to_string(form);
    }
  }
}

TYPED_TEST(UpdateForms, DownToNothingAndUpAgain) {
  using T = typename TypeParam::Scalar;
  for (QForm form : whole_forms) {
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
      this->expect_good(f, detail::concat(to_string(change), ", p = ", p));
    }
  }
}

TYPED_TEST(UpdateForms, RankLostOrNotGained) {
  using T = typename TypeParam::Scalar;
  Dense<T> a = random_normal<T>(40, 10, 51);
  for (Index i = 0; i < 40; ++i) a(i, 3) = T(i == 7);
  for (QForm form : {QForm::full, QForm::implicit}) {
    Tracked<T> f = this->track(a, form);
    f.change(Change::delete_rows, 7, 2, 0);
    this->expect_good(f, "rank lost");
    EXPECT_EQ(f.f.rank().rank, 9);
    f.change(Change::insert_rows, 0, 3, 52);
    Dense<T> u(41, 2);  // zero, and a column of A
    std::copy(f.a.column(1), f.a.column(1) + 41, u.column(1));
    f.change_by(Change::insert_columns, 4, 2, u, {}, {});
    this->expect_good(f, "rank not gained");
    EXPECT_EQ(f.f.rank().rank, 10);
  }
}

TYPED_TEST(UpdateForms, LapackReflectorsEndWithTheFirstUpdate) {
  using T = typename TypeParam::Scalar;
  const Dense<T> a = random_normal<T>(9, 9, 3);
  Tracked<T> f = this->track(a, QForm::lapack);
  const auto before = f.host(reflectors(f.f).packed);
  const double sign = determinant(f.f).sign;
  f.f.time_updates(true);  // no update yet
  EXPECT_EQ(f.host(reflectors(f.f).packed), before);
  EXPECT_EQ(determinant(f.f).sign, sign);
  EXPECT_GE(f.change(Change::insert_rows, 2, 1, 4).measured_ms, 0);
  EXPECT_TRUE(refuses([&] { reflectors(f.f); }, ErrorCode::unavailable, {"updated"}));
  f.change(Change::delete_rows, 0, 1, 4);
  EXPECT_TRUE(refuses([&] { determinant(f.f); }, ErrorCode::unavailable, {"reflectors"}));
}

/// A + U Vᵀ, judged as a fresh factorization would be of a sum that does not cancel.
TYPED_TEST(UpdateForms, RankKUpdates) {
  using T = typename TypeParam::Scalar;
  const std::vector<Shape> shapes = this->thorough
                                        ? std::vector<Shape>{{40, 12}, {13, 12}, {12, 12}, {7, 12}, {1, 1}, {90, 37}}
                                        : std::vector<Shape>{{40, 12}, {7, 12}};
  EveryNth cases(23);
  for (const Shape& s : shapes)
    for (QForm form : {QForm::thin, QForm::full, QForm::implicit, QForm::none})
      for (Index p : {0, 1, 4, 20, 50})
        for (const char* kind : {"random", "in range", "zero"}) {
          if (cases.skip()) continue;
          const Dense<T> a = random_normal<T>(s.rows, s.cols, 3), v = random_normal<T>(s.cols, p, 6);
          Dense<T> u = random_normal<T>(s.rows, p, 5);
          if (kind[0] == 'i') u = multiply(a, random_normal<T>(s.cols, p, 8));
          if (kind[0] == 'z') u = Dense<T>(s.rows, p);
          Tracked<T> f = this->track(a, form);
          f.attach(random_normal<T>(s.rows, 2, 9));
          Dense<T> next = a;
          const Dense<T> product = multiply(u, transposed(v));
          for (std::size_t i = 0; i < next.values.size(); ++i) next.values[i] += product.values[i];
          MatrixView<const T> updated;
          if (form == QForm::none) {
            f.f.attach({});
            f.b = Dense<T>(s.rows, 0);
            updated = std::as_const(next).view();
          }
          f.f.rank_k_update(u.view(), v.view(), {}, updated);
          f.a = next;
          const std::string what = detail::concat(to_string(s), ", p = ", p, ", ", kind);
          if (form == QForm::thin || form == QForm::none) {
            EXPECT_TRUE(f.good()) << what << ", " << to_string(form);
          } else {
            this->expect_good(f, what);
          }
          if (form != QForm::none) {
            EXPECT_TRUE(f.solves()) << what << ", " << to_string(form);
          }
        }
}

TYPED_TEST(UpdateForms, RankKUpdatesAmongOtherChanges) {
  using T = typename TypeParam::Scalar;
  for (QForm form : {QForm::thin, QForm::full, QForm::implicit}) {
    Tracked<T> f = this->track(random_normal<T>(50, 14, 3), form);
    for (int i = 0; i < 6; ++i) {
      f.change(Change::delete_rows, 3, 4, 0);
      f.change(Change::insert_rows, 30, 3, 70 + i);
      const Dense<T> u = random_normal<T>(f.a.rows, 3, 80 + i), v = random_normal<T>(f.a.cols, 3, 90 + i);
      f.f.rank_k_update(u.view(), v.view());
      const Dense<T> product = multiply(u, transposed(v));
      for (std::size_t j = 0; j < product.values.size(); ++j) f.a.values[j] += product.values[j];
      f.gone = {};
      EXPECT_TRUE(f.good()) << i << ", " << to_string(form);
    }
  }
}

TYPED_TEST(UpdateForms, RefactoringWhatIsLent) {
  using T = typename TypeParam::Scalar;
  const Dense<T> a = random_normal<T>(30, 9, 3), u = random_normal<T>(4, 9, 4), next = with_rows(a, 2, u);
  for (QForm form : whole_forms) {
    Tracked<T> f = this->track(a, form);
    f.change(Change::delete_rows, 29, 1, 0);
    f.change(Change::insert_rows, 29, 1, 5);
    UpdateOptions options;
    options.method = UpdateMethod::refactor;
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(2, u.view(), {}, options); }, ErrorCode::unavailable, {"updated"}));
    EXPECT_EQ(f.f.insert_rows(2, u.view(), options, next.view()).method, UpdateMethod::refactor);
    f.a = next;
    this->expect_good(f, "refactored");
  }
}

TYPED_TEST(UpdateForms, DriftIsMeasuredAndMended) {
  using T = typename TypeParam::Scalar;
  for (QForm form : {QForm::thin, QForm::full, QForm::implicit, QForm::none}) {
    SCOPED_TRACE(to_string(form));
    const Dense<T> a = random_normal<T>(60, 10, 3), u = random_normal<T>(1, 10, 4);
    Tracked<T> f = this->track(a, form);
    f.change(Change::insert_rows, 60, 1, 5);
    EXPECT_LT(f.f.drift(f.a.view()), 15);
    if (form != QForm::none) {
      EXPECT_LT(f.f.drift(), 15);
    }
    Dense<T> other = with_rows(f.a, 0, u);  // not what the factorization is of: by 1000 units in one column
    const double unit = 20 * unit_roundoff<T>;
    for (Index i = 0; i < other.rows; ++i) other(i, 4) *= static_cast<T>(1 + 1000 * unit);
    UpdateOptions options;
    options.method = UpdateMethod::orthogonal;
    options.drift_every = 1;
    options.refresh = false;
    UpdateReport report = f.f.insert_rows(0, u.view(), options, other.view());
    f.a = with_rows(f.a, 0, u);
    EXPECT_EQ(report.drift, -1);
    EXPECT_TRUE(f.good());
    const double drift = f.f.drift(std::as_const(other).view());
    EXPECT_GT(drift, form == QForm::none ? 100 : 300);
    EXPECT_LT(drift, 3000);
    other = with_rows(other, 0, u);
    options.refresh = true;
    report = f.f.insert_rows(0, u.view(), options, other.view());
    EXPECT_TRUE(report.refreshed);
    EXPECT_GT(report.drift, 50);
    EXPECT_NE(report.explain().find("factored anew"), std::string::npos);
    f.a = other;
    EXPECT_TRUE(f.good());
    other = with_rows(other, 0, u);
    options.drift_every = 2;
    EXPECT_EQ(f.f.insert_rows(0, u.view(), options, other.view()).drift, -1);  // the first of two
    other = with_rows(other, 0, u);
    report = f.f.insert_rows(0, u.view(), options, other.view());
    EXPECT_GE(report.drift, 0);
    EXPECT_FALSE(report.refreshed);
  }
}

TYPED_TEST(UpdateForms, BadInputChangesNothing) {
  using T = typename TypeParam::Scalar;
  constexpr auto bad = ErrorCode::invalid_argument;
  for (QForm form : {QForm::thin, QForm::full, QForm::implicit}) {
    Tracked<T> f = this->track(random_normal<T>(20, 8, 81), form);
    f.change(Change::insert_rows, 3, 2, 83);
    const Dense<T> r = f.r(), q = f.q();
    const Dense<T> u = random_normal<T>(22, 2, 84), v = random_normal<T>(8, 2, 85), w = random_normal<T>(8, 3, 86);
    EXPECT_TRUE(refuses([&] { f.f.rank_k_update(v.view(), v.view()); }, bad, {"u is 8 x 2", "22 x p"}));
    EXPECT_TRUE(refuses([&] { f.f.rank_k_update(u.view(), u.view()); }, bad, {"v is 22 x 2", "8 x p"}));
    EXPECT_TRUE(refuses([&] { f.f.rank_k_update(u.view(), w.view()); }, bad, {"v is 8 x 3"}));
    EXPECT_TRUE(refuses([&] { f.f.delete_rows(20, 3); }, bad, {"k = 20, p = 3", "22 rows"}));
    EXPECT_TRUE(refuses([&] { f.f.plan_update(Change::delete_rows, 20, 3); }, bad, {"k = 20, p = 3"}));
    EXPECT_TRUE(refuses([&] { f.f.attach(v.view()); }, bad, {"b has 8 rows"}));
    EXPECT_TRUE(refuses([&] { f.f.drift(v.view()); }, bad, {"a is 8 x 2", "22 x 8"}));
    EXPECT_TRUE(refuses([&] { f.f.refactor(v.view()); }, bad, {"8 x 2"}));
    UpdateOptions options;
    options.drift_every = 0;
    EXPECT_TRUE(refuses([&] { f.f.delete_rows(0, 1, options); }, bad, {"drift_every", "0"}));
    options = {};
    options.check_finite = true;
    Dense<T> worse = v;
    worse(7, 1) = std::numeric_limits<T>::quiet_NaN();
    EXPECT_TRUE(
        refuses([&] { f.f.rank_k_update(u.view(), worse.view(), options); }, ErrorCode::not_finite, {"v", "row 7"}));
    options = {};
    options.method = UpdateMethod::cholesky;
    EXPECT_TRUE(
        refuses([&] { f.f.insert_rows(0, transposed(v).view(), {}, options); }, ErrorCode::unavailable, {"cholesky"}));
    EXPECT_EQ(f.r(), r);
    EXPECT_EQ(f.q(), q);
    EXPECT_TRUE(f.good());
  }
}

TYPED_TEST(UpdateForms, OutOfMemoryChangesNothing) {
  using T = typename TypeParam::Scalar;
  const Context small = fresh_context(this->backend, std::int64_t{12} << 20);
  for (QForm form : {QForm::full, QForm::implicit}) {
    Tracked<T> f(small, random_normal<T>(60, 20, 91), form);
    f.change(Change::delete_rows, 4, 2, 0);
    const Dense<T> r = f.r(), q = f.q();
    const Dense<T> rows = random_normal<T>(200000, 20, 93), cols = random_normal<T>(58, 30000, 94);
    EXPECT_TRUE(refuses([&] { f.f.insert_rows(1, rows.view()); }, ErrorCode::out_of_memory, {"needed"}));
    EXPECT_TRUE(refuses([&] { f.f.insert_columns(1, cols.view()); }, ErrorCode::out_of_memory, {"needed"}));
    EXPECT_EQ(f.r(), r);
    EXPECT_EQ(f.q(), q);
    f.change(Change::insert_rows, 1, 3, 95);
    f.change(Change::insert_columns, 1, 2, 96);
    EXPECT_TRUE(f.good()) << to_string(form);
  }
}

/// What passes through an implicit Q takes longer with every update, and the plan knows it.
TYPED_TEST(UpdateForms, PlansSeeHowLongAnImplicitQIs) {
  using T = typename TypeParam::Scalar;
  Tracked<T> f = this->track(random_normal<T>(90, 40, 71), QForm::implicit);
  const auto predicted = [&] {
    for (const UpdateCandidate& c : f.f.plan_update(Change::delete_rows, 0, 1).candidates)
      if (c.method == UpdateMethod::orthogonal) return c.predicted_ms;
    return -1.0;
  };
  const double fresh = predicted();
  f.change(Change::delete_rows, 3, 1, 0);
  f.change(Change::insert_rows, 0, 1, 72);
  EXPECT_GT(predicted(), fresh);
  this->expect_good(f, "a row out, a row in");
}

TYPED_TEST(UpdateForms, PlansSayWhatWouldBeDone) {
  using T = typename TypeParam::Scalar;
  for (QForm form : {QForm::thin, QForm::full, QForm::implicit, QForm::none}) {
    Tracked<T> f = this->track(random_normal<T>(50, 10, 3), form);
    for (int updated = 0; updated < 2; ++updated) {  // before and after the first update
      const UpdateReport plan = f.f.plan_update(Change::insert_rows, 3, 2);
      EXPECT_EQ(plan.rows, f.a.rows);
      EXPECT_EQ(plan.p, 2);
      EXPECT_NE(plan.method, UpdateMethod::automatic);
      EXPECT_EQ(plan.candidates.size(), 4u);
      EXPECT_NE(plan.explain().find("predicted"), std::string::npos);
      EXPECT_EQ(f.change(Change::insert_rows, 3, 2, 5).method, plan.method);
    }
  }
}

}  // namespace
}  // namespace qrane::test
