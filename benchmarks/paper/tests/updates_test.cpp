// SPDX-License-Identifier: Apache-2.0
// Updates by the paper's methods: after any change that they make the factors are those of the changed matrix, by
// the measures for a fresh factorization, and the right-hand sides' solutions are right; what they do not do they
// refuse.
#include "paper/updates/updates.hpp"
#include "support/every_nth.hpp"
#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {
namespace {

using paper::Method;

/// A matrix and its factorization, changed by one method.
template <class T>
class ByPaper : public Tracked<T> {
 public:
  ByPaper(const Context& context, const Dense<T>& a, QForm form, Method method) : Tracked<T>(context, a, form) {
    paper::Updates<T> made = paper::make_updates<T>(context, a.view(), form);
    *made.method = method;
    this->f = std::move(made.f);
  }
};

template <class Where>
class UpdatePaperTest : public BackendTest<Where> {
 public:
  using T = typename Where::Scalar;

 protected:
  static bool takes(Method method, QForm form, Change change) {
    const bool in = change == Change::insert_rows || change == Change::insert_columns;
    if (method == Method::paper_dense && !in) return false;
    return form != QForm::none || change == Change::insert_rows ||
           (change == Change::delete_columns && method == Method::paper);
  }

  static void change_everywhere(const Dense<T>& a, const std::vector<Index>& sizes, int block_cols, EveryNth& cases) {
    for (Method method : {Method::paper, Method::paper_dense})
      for (QForm form : {QForm::thin, QForm::none})
        for (Change change : all_changes)
          for (Index p : sizes)
            for (Index k : places(a, change, p)) {
              if (!takes(method, form, change) || cases.skip()) continue;
              ByPaper<T> f(UpdatePaperTest::context(), a, form, method);
              f.attach(random_normal<T>(a.rows, 2, 5));
              f.change(change, k, p, 7 * static_cast<std::uint64_t>(p + k), UpdateMethod::automatic, block_cols);
              const std::string what = concat(a.rows, " x ", a.cols, ", ", to_string(form), ", ", to_string(change),
                                              ", k = ", k, ", p = ", p, ", ", to_string(method));
              EXPECT_TRUE(f.good()) << what;
              EXPECT_TRUE(f.solves()) << what;
            }
  }

  template <class... Parts>
  static std::string concat(const Parts&... parts) {
    return detail::concat(parts...);
  }
};
TYPED_TEST_SUITE(UpdatePaperTest, Everywhere, Names);

TYPED_TEST(UpdatePaperTest, EveryChangeOfEveryShape) {
  using T = typename TypeParam::Scalar;
  const std::vector<Shape> shapes = this->thorough ? std::vector<Shape>{{60, 20}, {21, 20}, {20, 20}, {12, 20}, {1, 1}}
                                                   : std::vector<Shape>{{60, 20}, {20, 20}};
  EveryNth cases(38);
  for (const Shape& s : shapes)
    this->change_everywhere(random_normal<T>(s.rows, s.cols, 3),
                            this->thorough ? std::vector<Index>{1, 2, 7, 19, 45} : std::vector<Index>{1, 7}, 0, cases);
}

/// More fronts than go together in one launch, and not a power of two of them.
TYPED_TEST(UpdatePaperTest, ManyFronts) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(4);
  this->change_everywhere(random_normal<T>(130, 60, 4), {37}, 9, cases);
}

TYPED_TEST(UpdatePaperTest, HostileInputs) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(11);
  for (const auto& input : hostile::inputs<T>()) {
    const Dense<T> all = input.make(53, 25, 11);
    for (Change change : all_changes) {
      const bool rows = change == Change::insert_rows || change == Change::delete_rows;
      const Dense<T> a =
          top_left(all, change == Change::insert_rows ? 48 : 53, change == Change::insert_columns ? 20 : 25);
      const Dense<T> u = rows ? rows_of(all, 48, 5, a.cols) : columns(top_left(all, a.rows, 25), 20, 5);
      for (Method method : {Method::paper, Method::paper_dense}) {
        if (!this->takes(method, QForm::thin, change) || cases.skip()) continue;
        ByPaper<T> f(this->context(), a, QForm::thin, method);
        f.change_by(change, 9, 5, u, {}, {});
        EXPECT_TRUE(f.good()) << input.name << ", " << to_string(change) << ", " << to_string(method);
      }
    }
  }
}

/// Rows out that carry the rank, columns in that bring none.
TYPED_TEST(UpdatePaperTest, RankLostOrNotGained) {
  using T = typename TypeParam::Scalar;
  Dense<T> a = random_normal<T>(40, 10, 51);
  for (Index i = 0; i < 40; ++i) a(i, 3) = T(i == 7);
  ByPaper<T> f(this->context(), a, QForm::thin, Method::paper);
  f.change_by(Change::delete_rows, 6, 3, {}, {}, {});
  EXPECT_TRUE(f.good());
  EXPECT_EQ(f.f.rank().rank, 9);
  ByPaper<T> g(this->context(), a, QForm::thin, Method::paper);
  Dense<T> u(40, 2);  // a column of A, and zero
  std::copy(a.column(1), a.column(1) + 40, u.column(0));
  g.change_by(Change::insert_columns, 4, 2, u, {}, {});
  EXPECT_TRUE(g.good());
  EXPECT_EQ(g.f.rank().rank, 10);
}

TYPED_TEST(UpdatePaperTest, ManyChangesOneAfterAnother) {
  using T = typename TypeParam::Scalar;
  const int changes = small_run() ? 20 : this->thorough ? 200 : 20;
  ByPaper<T> f(this->context(), random_normal<T>(45, 15, 21), QForm::thin, Method::paper);
  f.attach(random_normal<T>(45, 1, 22));
  Random random(23);
  for (int i = 0; i < changes; ++i) {
    const bool rows = random.uniform() < 0.5;
    const Index size = rows ? f.a.rows : f.a.cols, least = rows ? 30 : 6, most = rows ? 60 : 25;
    const bool in = size <= least || (size < most && random.uniform() < 0.5);
    const Index p = 1 + random.below(4);
    const Change change = rows ? (in ? Change::insert_rows : Change::delete_rows)
                               : (in ? Change::insert_columns : Change::delete_columns);
    f.change(change, random.below(in ? size + 1 : size - p + 1), p, 1000 + static_cast<std::uint64_t>(i));
  }
  EXPECT_TRUE(f.good());
  EXPECT_TRUE(f.solves());
}

TYPED_TEST(UpdatePaperTest, RefusesWhatItDoesNotDo) {
  using T = typename TypeParam::Scalar;
  for (Method method : {Method::paper, Method::paper_dense})
    for (QForm form : {QForm::thin, QForm::none})
      for (Change change : all_changes) {
        if (this->takes(method, form, change)) continue;
        ByPaper<T> f(this->context(), random_normal<T>(30, 8, 31), form, method);
        const Dense<T> r = f.r();
        try {
          f.change(change, 2, 3, 32);
          ADD_FAILURE() << to_string(change) << " by " << to_string(method);
        } catch (const Error& fault) {
          EXPECT_EQ(fault.code(), ErrorCode::unavailable);
          EXPECT_NE(std::string(fault.what()).find(to_string(method)), std::string::npos) << fault.what();
        }
        EXPECT_EQ(f.r(), r);
      }
}

}  // namespace
}  // namespace qrane::test
