// SPDX-License-Identifier: Apache-2.0
// Updates of batches: every matrix is the factorization of its own changed matrix, whatever its neighbours are.
#include "support/every_nth.hpp"
#include "support/measures.hpp"
#include "support/updates.hpp"

namespace qrane::test {
namespace {

template <class Where>
class UpdateBatch : public BackendTest<Where> {
 public:
  using T = typename Where::Scalar;
  using Matrices = std::vector<Dense<T>>;

 protected:
  using BackendTest<Where>::context;

  static Dense<T> side_by_side(const Matrices& list, Index rows) {
    Dense<T> all(rows, 0);
    for (const Dense<T>& a : list) {
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
      all.cols += a.cols;
    }
    return all;
  }
  static BatchView<const T> batch(const Dense<T>& all, Index cols) {
    const Index count = cols > 0 ? all.cols / cols : 0;
    return {MatrixView<const T>(all.values.data(), all.rows, cols, std::max<Index>(all.rows, 1)), all.rows * cols,
            count};
  }
  static Matrices normal(Index count, Index rows, Index cols, std::uint64_t seed) {
    Matrices list;
    for (Index b = 0; b < count; ++b)
      list.push_back(random_normal<T>(rows, cols, seed + static_cast<std::uint64_t>(b)));
    return list;
  }
  static BatchQR<T> factored(const Matrices& list, QForm form) {
    Options options;
    options.q = form;
    return qr<T>(context(), batch(side_by_side(list, list.front().rows), list.front().cols), options);
  }
  static Matrices split(const Dense<T>& all, std::size_t count) {
    Matrices list;
    const Index cols = all.cols / static_cast<Index>(count);
    for (std::size_t b = 0; b < count; ++b) list.push_back(columns(all, static_cast<Index>(b) * cols, cols));
    return list;
  }

  static ::testing::AssertionResult good(const Matrices& list, const BatchQR<T>& f, QForm form,
                                         const Matrices& gone = {}) {
    const Matrices r = split(BackendTest<Where>::host(f.r()), list.size());
    if (f.plan().rows != list.front().rows || f.plan().cols != list.front().cols)
      return ::testing::AssertionFailure() << "the plan says " << f.plan().rows << " x " << f.plan().cols;
    for (std::size_t b = 0; b < list.size(); ++b) {
      const Dense<T>& a = list[b];
      if (form == QForm::none) {
        if (auto fine = is_r_of(a, r[b]); !fine) return fine << ", matrix " << b;
        continue;
      }
      const Dense<T> q = split(BackendTest<Where>::host(f.q()), list.size())[b];
      if (gone.empty()) {
        if (auto fine = is_qr_of(a, q, r[b]); !fine) return fine << ", matrix " << b;
        continue;
      }
      // rounding of the columns as they were before the rows went
      const Dense<T> before = with_rows(a, 0, gone[b]);
      const std::vector<int> e = column_exponents(before);
      if (auto unit = at_most_one(orthogonality(q, a.rows, a.cols), "the departure of Q from orthonormal"); !unit)
        return unit << ", matrix " << b;
      const auto rest = subtract(scaled(a, e), multiply(widen(q), scaled(r[b], e)));
      if (auto fine = at_most_one(worst_column<T>(rest, scaled(before, e), e), "the largest column residual"); !fine)
        return fine << ", matrix " << b;
    }
    return ::testing::AssertionSuccess();
  }

  /// One change of all; returns what has gone.
  static Matrices change(Matrices& list, BatchQR<T>& f, QForm form, Change change, Index k, Index p,
                         const Matrices& u) {
    Matrices gone;
    for (std::size_t b = 0; b < list.size(); ++b) {
      switch (change) {
        case Change::insert_rows: list[b] = with_rows(list[b], k, u[b]); break;
        case Change::delete_rows:
          gone.push_back(rows_of(list[b], k, p, list[b].cols));
          list[b] = without_rows(list[b], k, p);
          break;
        default: list[b] = without_columns(list[b], k, p);
      }
    }
    BatchUpdateReport report;
    if (change == Change::insert_rows) {
      report = f.insert_rows(k, batch(side_by_side(u, p), list.front().cols));
    } else if (change == Change::delete_rows) {
      const Dense<T> removed = side_by_side(gone, p);
      report = f.delete_rows(k, p, form == QForm::none ? batch(removed, list.front().cols) : BatchView<const T>{});
    } else {
      report = f.delete_columns(k, p);
    }
    EXPECT_FALSE(report.refused);
    EXPECT_EQ(report.change, change);
    EXPECT_EQ(report.p, p);
    return gone;
  }
};
TYPED_TEST_SUITE(UpdateBatch, Everywhere, Names);

constexpr Change batch_changes[] = {Change::insert_rows, Change::delete_rows, Change::delete_columns};

TYPED_TEST(UpdateBatch, EveryChangeOfEveryShape) {
  using T = typename TypeParam::Scalar;
  EveryNth cases(14);
  for (const Shape& s : {Shape{40, 12}, Shape{90, 33}, Shape{140, 64}, Shape{12, 12}, Shape{7, 12}})
    for (QForm form : {QForm::thin, QForm::none})
      for (Change change : batch_changes)
        for (Index p : {Index(1), Index(3), Index(7), Index(12)}) {
          if (form == QForm::none && change == Change::delete_rows && s.rows - p < s.cols) continue;
          const Dense<T> first(s.rows, s.cols);
          for (Index k : places(first, change, p)) {
            if (cases.skip()) continue;
            auto list = this->normal(5, s.rows, s.cols, 3);
            auto f = this->factored(list, form);
            const auto gone = this->change(list, f, form, change, k, p, this->normal(5, p, s.cols, 70));
            if (list.front().rows == 0 || list.front().cols == 0) continue;
            EXPECT_TRUE(this->good(list, f, form, gone)) << to_string(s) << ", " << to_string(form) << ", "
                                                         << to_string(change) << ", k = " << k << ", p = " << p;
          }
        }
}

TYPED_TEST(UpdateBatch, AThousandAtOnceThroughASlidingWindow) {
  const Index count = this->thorough && !small_run() ? 1000 : 100;
  for (QForm form : {QForm::thin, QForm::none}) {
    auto list = this->normal(count, 24, 6, 3);
    auto f = this->factored(list, form);
    typename TestFixture::Matrices gone;
    for (int i = 0; i < 6; ++i) {
      this->change(list, f, form, Change::insert_rows, 24, 1, this->normal(count, 1, 6, 5000 + 1000 * i));
      gone = this->change(list, f, form, Change::delete_rows, 0, 1, {});
    }
    EXPECT_TRUE(this->good(list, f, form, gone)) << to_string(form);
  }
}

TYPED_TEST(UpdateBatch, HostileNeighboursChangeNothing) {
  using T = typename TypeParam::Scalar;
  using Matrices = typename TestFixture::Matrices;
  for (QForm form : {QForm::thin, QForm::none})
    for (Change change : batch_changes) {
      if (form == QForm::none && change == Change::delete_rows) continue;  // refuses those that lose rank
      Matrices list, calm, u;
      for (const auto& input : hostile::inputs<T>()) {
        const Dense<T> all = input.make(33, 8, 11);
        list.push_back(change == Change::insert_rows ? top_left(all, 30, 8) : all);
        u.push_back(rows_of(all, 30, 3, 8));
        calm.push_back(random_normal<T>(list.back().rows, 8, 12 + list.size()));
      }
      for (const std::size_t mine : {std::size_t{0}, list.size() / 2}) calm[mine] = list[mine];
      auto f = this->factored(list, form), g = this->factored(calm, form);
      const auto gone = this->change(list, f, form, change, 4, 3, u);
      this->change(calm, g, form, change, 4, 3, u);
      EXPECT_TRUE(this->good(list, f, form, gone)) << to_string(form) << ", " << to_string(change);
      const auto r = this->split(this->host(f.r()), list.size()), r_calm = this->split(this->host(g.r()), list.size());
      for (const std::size_t mine : {std::size_t{0}, list.size() / 2}) EXPECT_EQ(r[mine], r_calm[mine]) << mine;
    }
}

/// R alone: a matrix whose removed rows carry the rank keeps them, and the others lose theirs.
TYPED_TEST(UpdateBatch, EachIsRefusedOnItsOwn) {
  using T = typename TypeParam::Scalar;
  for (Index p : {Index(1), Index(2), Index(11)}) {
    auto list = this->normal(6, 40, 5, 3);
    for (Index i = 0; i < 40; ++i) list[2](i, 3) = T(i == 7);
    for (Index i = 0; i < 40; ++i) list[4](i, 1) = T(i == 7);
    auto f = this->factored(list, QForm::none);
    const auto before = this->split(this->host(f.r()), 6);
    typename TestFixture::Matrices gone;
    for (auto& a : list) {
      gone.push_back(rows_of(a, 7, p, 5));
      a = without_rows(a, 7, p);
    }
    const Dense<T> removed = this->side_by_side(gone, p);
    const BatchUpdateReport report = f.delete_rows(7, p, this->batch(removed, 5));
    EXPECT_TRUE(report.refused);
    EXPECT_EQ(report.refused_matrices, (std::vector<Index>{2, 4})) << p;
    const auto after = this->split(this->host(f.r()), 6);
    for (std::size_t b = 0; b < 6; ++b) {
      if (b == 2 || b == 4)
        EXPECT_EQ(after[b], before[b]) << b;
      else
        EXPECT_TRUE(is_r_of(list[b], after[b])) << b << ", p = " << p;
    }
  }
}

TYPED_TEST(UpdateBatch, RankLostLeavesQOrthonormal) {
  using T = typename TypeParam::Scalar;
  for (const Index p : {Index(3), Index(7)}) {
    auto list = this->normal(5, 30, 6, 3);
    const auto carry = [&](Dense<T>& a, Index row, Index col, T rest) {
      for (Index i = 0; i < 30; ++i) a(i, col) = i == row ? T(1) : rest * a(i, col);
    };
    carry(list[1], 7, 3, 0);
    carry(list[2], 8, 0, 0);
    carry(list[2], 6, 5, 0);
    carry(list[3], 7, 2, std::sqrt(std::numeric_limits<T>::epsilon()));  // and one that nearly does
    auto f = this->factored(list, QForm::thin);
    const auto gone = this->change(list, f, QForm::thin, Change::delete_rows, 6, p, {});
    EXPECT_TRUE(this->good(list, f, QForm::thin, gone)) << p;
    const Dense<T> b = random_normal<T>(30 - p, 5, 9);  // and what consumes it works
    const auto x = f.solve(this->batch(b, 1));
    EXPECT_EQ(x.rank, (std::vector<Index>{6, 5, 4, 6, 6})) << p;
  }
}

TYPED_TEST(UpdateBatch, BlocksInDeviceMemoryAndRefactoring) {
  using T = typename TypeParam::Scalar;
  auto list = this->normal(5, 20, 4, 3);
  auto f = this->factored(list, QForm::thin);
  const auto u = this->normal(5, 2, 4, 9);
  const Dense<T> host_u = this->side_by_side(u, 2);
  Matrix<T> blocks = this->context().template allocate<T>(2, 20);
  this->context().template copy<T>(host_u.view(), blocks.view());
  MatrixView<const T> first = std::as_const(blocks).view();
  first.cols = 4;
  f.insert_rows(20, {first, first.ld * 4, 5, nullptr});
  for (std::size_t b = 0; b < 5; ++b) list[b] = with_rows(list[b], 20, u[b]);
  EXPECT_TRUE(this->good(list, f, QForm::thin));
  list = this->normal(5, 22, 4, 30);
  const Dense<T> fresh = this->side_by_side(list, 22);
  f.refactor(this->batch(fresh, 4));
  EXPECT_TRUE(this->good(list, f, QForm::thin));
}

TYPED_TEST(UpdateBatch, BadInputChangesNothing) {
  using T = typename TypeParam::Scalar;
  constexpr auto bad = ErrorCode::invalid_argument;
  const auto list = this->normal(3, 20, 4, 3);
  const Dense<T> u = this->side_by_side(this->normal(3, 2, 4, 9), 2),
                 narrow = this->side_by_side(this->normal(4, 2, 3, 9), 2);
  for (QForm form : {QForm::thin, QForm::none}) {
    auto f = this->factored(list, form);
    const Dense<T> r = this->host(f.r());
    EXPECT_TRUE(refuses([&] { f.insert_rows(21, this->batch(u, 4)); }, bad, {"k = 21", "20 rows"}));
    EXPECT_TRUE(
        refuses([&] { f.insert_rows(0, this->batch(narrow, 3)); }, bad, {"u is a batch of 4 of 2 x 3", "3 of 2 x 4"}));
    EXPECT_TRUE(refuses([&] { f.delete_rows(19, 2, this->batch(u, 4)); }, bad, {"k = 19, p = 2"}));
    EXPECT_TRUE(refuses([&] { f.delete_columns(0, 5); }, bad, {"p = 5", "4 columns"}));
    if (form == QForm::none) {
      EXPECT_TRUE(refuses([&] { f.delete_rows(0, 2); }, bad, {"removed", "3 of 2 x 4"}));
    }
    UpdateOptions options;
    options.check_finite = true;
    Dense<T> worse = u;
    worse(1, 9) = std::numeric_limits<T>::infinity();
    EXPECT_TRUE(refuses([&] { f.insert_rows(0, this->batch(worse, 4), options); }, ErrorCode::not_finite,
                        {"block 2", "row 1, column 1"}));
    options = {};
    options.method = UpdateMethod::trailing;
    EXPECT_TRUE(refuses([&] { f.delete_columns(0, 1, options); }, ErrorCode::unavailable, {"trailing"}));
    EXPECT_EQ(this->host(f.r()), r);
  }
  auto reflectors = this->factored(list, QForm::implicit);
  EXPECT_TRUE(refuses([&] { reflectors.delete_columns(0, 1); }, ErrorCode::unavailable, {"implicit"}));
}

}  // namespace
}  // namespace qrane::test
