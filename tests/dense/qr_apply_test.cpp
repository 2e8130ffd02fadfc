// SPDX-License-Identifier: Apache-2.0
// Applying Q and Qᵀ from the left and the right, against the explicit full Q of the same factorization.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrApply : public BackendTest<Where> {};
TYPED_TEST_SUITE(QrApply, Everywhere, Names);

constexpr Shape shapes[] = {{67, 9}, {20, 20}, {11, 26}, {40, 1}, {1, 5}};

TYPED_TEST(QrApply, EqualsTheExplicitQ) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : combos_of_full_q()) {
    for (const Shape s : in_turn(shapes, 2))
      for (const auto& input : hostile::sweep<T>()) {
        SCOPED_TRACE(label(input.name, s, combo, {16, 2, 4}));
        auto f = qr<T>(this->context(), input.make(s.rows, s.cols, 2).view(), options_for(combo, {16, 2, 4}));
        const auto q = widen(this->host(f.q(Columns::full)));
        const auto qt = transposed(q);
        const auto c = random_normal<T>(s.rows, 5, 6);
        for (const bool transpose : {false, true}) {
          auto left = c, right = transposed(c);
          if (transpose) {
            f.apply_qt(left.view());
            f.apply_qt(right.view(), Side::right);
          } else {
            f.apply_q(left.view());
            f.apply_q(right.view(), Side::right);
          }
          const auto& op = transpose ? qt : q;
          EXPECT_TRUE(columns_agree(left, convert<T>(multiply(op, widen(c))), s.rows, s.cols)) << "left, " << transpose;
          // row by row: C Q = (Qᵀ Cᵀ)ᵀ
          EXPECT_TRUE(columns_agree(transposed(right), convert<T>(multiply(transposed(op), widen(c))), s.rows, s.cols))
              << "right, " << transpose;
        }
        if (!this->thorough && std::string(input.name) == "graded rows") break;
      }
  }
}

/// More columns than any tile, and QᵀA = R.
TYPED_TEST(QrApply, GivesRFromA) {
  using T = typename TypeParam::Scalar;
  for (const Combo combo : combos_of_full_q()) {
    const Shape s{60, 300};
    if (!legal({Algorithm::caqr, combo.q}, s) || combo.algorithm == Algorithm::tsqr) continue;
    SCOPED_TRACE(to_string(combo));
    auto a = random_normal<T>(s.rows, s.cols, 6);
    auto f = qr<T>(this->context(), a.view(), options_for(combo));
    const auto r = this->host(f.r());
    f.apply_qt(a.view());
    EXPECT_TRUE(columns_agree(a, r, s.rows, s.cols));
  }
}

TYPED_TEST(QrApply, RoundTripReturnsTheMatrix) {
  using T = typename TypeParam::Scalar;
  for (const Shape s : {Shape{257, 40}, Shape{90, 90}}) {
    const auto a = random_normal<T>(s.rows, s.cols, 1), c = random_normal<T>(s.rows, 33, 2);
    for (const Algorithm algorithm : {Algorithm::caqr, Algorithm::blocked}) {
      SCOPED_TRACE(label("random normal", s, {algorithm, QForm::implicit}, {}));
      auto f = qr<T>(this->context(), a.view(), options_for({algorithm, QForm::implicit}));
      auto d = c;
      f.apply_qt(d.view());
      EXPECT_FALSE(columns_agree(d, c, s.rows, s.cols));
      f.apply_q(d.view());
      EXPECT_TRUE(columns_agree(d, c, s.rows, s.cols));
    }
  }
}

TYPED_TEST(QrApply, NoColumnsAreFine) {
  using T = typename TypeParam::Scalar;
  auto f = qr<T>(this->context(), random_normal<T>(9, 4, 1).view());
  Dense<T> none(9, 0);
  f.apply_qt(none.view());
  f.apply_q(none.view());
  auto still = Dense<T>(9, 1, T(1));
  f.apply_qt(still.view());  // and the object is still good
  EXPECT_NEAR(static_cast<double>(norm(widen(still))), 3.0, 1e-5);
}

TYPED_TEST(QrApply, RefusesWrongSizesAndAbsentQ) {
  using T = typename TypeParam::Scalar;
  const auto a = random_normal<T>(9, 4, 1);
  auto f = qr<T>(this->context(), a.view());
  Dense<T> c(8, 3);
  EXPECT_TRUE(refuses([&] { f.apply_qt(c.view()); }, ErrorCode::invalid_argument, {"8", "9"}));
  EXPECT_TRUE(refuses([&] { f.apply_q(c.view(), Side::right); }, ErrorCode::invalid_argument, {"3", "9"}));
  EXPECT_EQ(c, Dense<T>(8, 3));
  for (const QForm form : {QForm::none, QForm::thin}) {
    Options options;
    options.q = form;
    auto g = qr<T>(this->context(), a.view(), options);
    Dense<T> d(9, 2);
    EXPECT_TRUE(refuses([&] { g.apply_qt(d.view()); }, ErrorCode::unavailable, {qrane::to_string(form)}));
    EXPECT_TRUE(
        refuses([&] { g.q(Columns::full); }, ErrorCode::unavailable, {form == QForm::none ? "none" : "reflectors"}));
  }
  Options options;
  options.q = QForm::none;
  EXPECT_TRUE(refuses([&] { qr<T>(this->context(), a.view(), options).q(); }, ErrorCode::unavailable, {"none"}));
}

}  // namespace
}  // namespace qrane::test
