// SPDX-License-Identifier: Apache-2.0
// The same input gives the same bits: from run to run, from one context to another, and from refactor.
#include <qrane/qrane.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/every_nth.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrRepeat : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  /// Every number that a factorization of this form gives, one after the other.
  static std::vector<T> numbers(const Context& context, const QR<T>& f) {
    const auto r = BackendTest<Where>::host_of(context, f.r());
    std::vector<T> all = r.values;
    const auto append = [&](const Dense<T>& a) { all.insert(all.end(), a.values.begin(), a.values.end()); };
    if (f.plan().q != QForm::none) append(BackendTest<Where>::host_of(context, f.q()));
    if (f.plan().q == QForm::lapack) append(BackendTest<Where>::host_of(context, reflectors(f).tau));
    if (keeps_reflectors(f.plan().q)) {
      auto c = random_normal<T>(f.rows(), 3, 99);
      f.apply_qt(c.view());
      append(c);
      f.apply_q(c.view());
      append(c);
    }
    return all;
  }
};

TYPED_TEST_SUITE(QrRepeat, Everywhere, Names);

constexpr Shape shapes[] = {{1200, 32}, {90, 90}, {30, 75}};
// with rows for a sketch; with too few
constexpr Shape repeated_shapes[] = {{1200, 32}, {400, 24}, {300, 96}, {90, 90}, {30, 75}};

TYPED_TEST(QrRepeat, FromRunToRunAndContextToContext) {
  using T = typename TypeParam::Scalar;
  const Context other = fresh_context(this->backend);
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s)) continue;
      SCOPED_TRACE(label("random normal", s, combo, {}));
      const auto a = random_normal<T>(s.rows, s.cols, 14);
      const Options options = options_for(combo);
      const auto first = this->numbers(this->context(), qr<T>(this->context(), a.view(), options));
      EXPECT_EQ(first, this->numbers(this->context(), qr<T>(this->context(), a.view(), options)));
      EXPECT_EQ(first, this->numbers(other, qr<T>(other, a.view(), options)));
    }
}

TYPED_TEST(QrRepeat, RefactorEqualsAFreshFactorization) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  EveryNth cases(6);
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s) || cases.skip()) continue;
      SCOPED_TRACE(label("random normal", s, combo, {}));
      const auto a = random_normal<T>(s.rows, s.cols, 15), b = random_normal<T>(s.rows, s.cols, 16);
      const Options options = options_for(combo);
      auto f = qr<T>(context, a.view(), options);
      const auto of_a = this->numbers(context, f);
      const auto rank_a = f.rank();
      f.refactor(hostile::duplicate_columns<T>(s.rows, s.cols, 17).view());
      EXPECT_EQ(f.rank().rank, std::min(s.rows, (s.cols + 1) / 2)) << "what was computed of A must be forgotten";
      f.refactor(b.view());
      EXPECT_EQ(this->numbers(context, f), this->numbers(context, qr<T>(context, b.view(), options)));
      f.refactor(a.view());
      EXPECT_EQ(this->numbers(context, f), of_a);
      EXPECT_EQ(f.rank().condition, rank_a.condition);
      Stored<T> on_device(context, b, Storage::device);
      f.refactor(on_device.view());
      EXPECT_EQ(this->numbers(context, f), this->numbers(context, qr<T>(context, b.view(), options)));
      EXPECT_TRUE(on_device.untouched(context));
      EXPECT_TRUE(refuses([&] { f.refactor(random_normal<T>(s.rows + 1, s.cols, 1).view()); },
                          ErrorCode::invalid_argument, {std::to_string(s.rows + 1)}));
    }
}

/// With all memory taken by somebody else, a matrix on the device can still be factored again.
TYPED_TEST(QrRepeat, RefactorAllocatesNothing) {
  using T = typename TypeParam::Scalar;
  const Context context = fresh_context(this->backend, std::int64_t{16} << 20);
  EveryNth cases(2);
  for (const Combo combo : all_combos()) {
    if (cases.skip()) continue;
    SCOPED_TRACE(to_string(combo));
    const auto a = random_normal<T>(1200, 32, 21), b = random_normal<T>(1200, 32, 22);
    const Matrix<T> device_a = context.template to_device<T>(a.view()),
                    device_b = context.template to_device<T>(b.view());
    auto f = qr<T>(context, device_a, options_for(combo));
    std::vector<Matrix<T>> hoard;
    const auto take = [&](Index rows) {
      return !thrown_by([&] { hoard.push_back(context.template allocate<T>(rows, 1)); }).happened;
    };
    for (Index rows = 1 << 16; rows >= 1; rows /= 16)
      while (take(rows)) {
      }
    EXPECT_FALSE(take(1)) << "memory was to be used up";
    for (int run = 0; run < 4; ++run) EXPECT_FALSE(thrown_by([&] { f.refactor(device_b.view()); }).happened) << run;
    hoard.clear();
    EXPECT_EQ(this->numbers(context, f), this->numbers(context, qr<T>(context, device_b, options_for(combo))));
  }
}

/// The same matrix in device memory again and again, with other numbers in it from time to time: whatever is kept of
/// earlier calls, and whoever answers, the bits are those of a fresh factorization.
TYPED_TEST(QrRepeat, RefactorFollowsTheDataInPlace) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const double eps = std::numeric_limits<T>::epsilon();
  EveryNth cases(8);
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(repeated_shapes)) {
      if (!legal(combo, s) || cases.skip()) continue;
      SCOPED_TRACE(label("in place", s, combo, {}));
      const Options options = options_for(combo);
      const Dense<T> inputs[] = {random_normal<T>(s.rows, s.cols, 31),
                                 geometric_spectrum<T>(s.rows, s.cols, 0.003 / eps, 32),
                                 hostile::duplicate_columns<T>(s.rows, s.cols, 33),
                                 geometric_spectrum<T>(s.rows, s.cols, sizeof(T) == 8 ? 1e4 : 100, 34)};
      Matrix<T> a = context.template to_device<T>(inputs[0].view());
      const Matrix<T> elsewhere = context.template to_device<T>(inputs[1].view());
      auto f = qr<T>(context, std::as_const(a).view(), options);
      for (int run = 0; run < 3; ++run) f.refactor(std::as_const(a).view());
      for (const int which : {1, 0, 2, 3, 0}) {
        const Dense<T>& input = inputs[which];
        context.template copy<T>(input.view(), a.view());
        f.refactor(std::as_const(a).view());
        const auto fresh = qr<T>(context, input.view(), options);
        EXPECT_EQ(this->numbers(context, f), this->numbers(context, fresh)) << "input " << which;
        EXPECT_EQ(guard_report(f).stage, guard_report(fresh).stage);
        EXPECT_EQ(guard_report(f).fell_back, guard_report(fresh).fell_back);
        EXPECT_EQ(f.rank().rank, fresh.rank().rank);
      }
      const auto of_a = this->numbers(context, f);
      for (int run = 0; run < 4; ++run) f.refactor(elsewhere.view());
      EXPECT_EQ(this->numbers(context, f), this->numbers(context, qr<T>(context, inputs[1].view(), options)));
      f.refactor(std::as_const(a).view());
      EXPECT_EQ(this->numbers(context, f), of_a);
    }
}

/// Many at once in one context, queued without looking at any of them.
TYPED_TEST(QrRepeat, RepeatedFactorizationsDoNotDisturbEachOther) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const Combo combo{Algorithm::automatic, QForm::thin};
  const auto a = random_normal<T>(1200, 32, 41), b = hostile::duplicate_columns<T>(400, 24, 42);
  const Matrix<T> device_a = context.template to_device<T>(a.view());
  const Matrix<T> device_b = context.template to_device<T>(b.view());
  auto f = qr<T>(context, device_a, options_for(combo)), g = qr<T>(context, device_b, options_for(combo));
  for (int run = 0; run < 8; ++run) {
    f.refactor(device_a.view());
    g.refactor(device_b.view());
  }
  auto moved = std::move(f);
  moved.refactor(device_a.view());
  f = qr<T>(context, device_b, options_for(combo));  // while that one is under way
  EXPECT_EQ(this->numbers(context, moved), this->numbers(context, qr<T>(context, a.view(), options_for(combo))));
  EXPECT_EQ(this->numbers(context, g), this->numbers(context, f));
}

/// A factorization does not change by being looked at.
TYPED_TEST(QrRepeat, ReadingChangesNothing) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : all_combos()) {
    if (!keeps_reflectors(combo.q)) continue;
    SCOPED_TRACE(to_string(combo));
    const auto a = random_normal<T>(80, 20, 18);
    auto f = qr<T>(this->context(), a.view(), options_for(combo, {32, 2, 8}));
    const auto before = this->numbers(this->context(), f);
    f.q(Columns::full);
    f.solve(random_normal<T>(80, 2, 19).view());
    range_basis(f);
    null_space_basis(f);
    f.condition();
    EXPECT_EQ(this->numbers(this->context(), f), before);
  }
}

/// Handles survive being moved, and the temporary context they were made with.
TYPED_TEST(QrRepeat, HandlesOutliveTheirContext) {
  using T = typename TypeParam::Scalar;
  const auto a = random_normal<T>(60, 7, 20);
  auto make = [&] {
    const Context temporary = fresh_context(this->backend);
    return qr<T>(temporary, a.view());
  };
  auto f = make();
  auto g = std::move(f);
  auto c = a;
  g.apply_qt(c.view());
  const Matrix<T> r = g.r();
  ASSERT_EQ(r.memory(), Memory::host);
  for (Index j = 0; j < 7; ++j)
    for (Index i = 0; i < 60; ++i) EXPECT_NEAR(c(i, j), i < 7 ? r(i, j) : T(0), 10 * limit<T>(60, 7));
}

}  // namespace
}  // namespace qrane::test
