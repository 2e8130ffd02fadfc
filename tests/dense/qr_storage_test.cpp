// SPDX-License-Identifier: Apache-2.0
// Where matrices lie: leading dimensions with slack, row-major, misaligned, device memory. The bits of a result
// do not depend on it, an input is not written, results live where inputs lived, and qr_in_place works in place.
#include <qrane/qr.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

template <class Where>
class QrStorage : public BackendTest<Where> {};
TYPED_TEST_SUITE(QrStorage, Everywhere, Names);

constexpr Shape shapes[] = {{67, 9}, {12, 12}, {8, 19}};

TYPED_TEST(QrStorage, GivesTheSameBitsAndLeavesTheInputAlone) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s)) continue;
      const auto a = random_normal<T>(s.rows, s.cols, 3);
      const Options options = options_for(combo, {16, 2, 4});
      auto plain = qr<T>(context, a.view(), options);
      const auto r = this->host(plain.r());
      for (const Storage storage : in_turn(all_storages)) {
        SCOPED_TRACE(label(to_string(storage), s, combo, {16, 2, 4}));
        Stored<T> stored(context, a, storage);
        auto f = qr<T>(context, stored.view(), options);
        EXPECT_EQ(this->host(f.r()), r);
        if (combo.q != QForm::none) {
          EXPECT_EQ(this->host(f.q()), this->host(plain.q()));
        }
        EXPECT_TRUE(stored.untouched(context));
        EXPECT_EQ(f.r().memory(), stored.view().memory) << "results live where the input lives";
      }
    }
}

TYPED_TEST(QrStorage, WritesRAndQIntoTheCallersMatrices) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s)) continue;
      const Index k = std::min(s.rows, s.cols);
      const auto a = random_normal<T>(s.rows, s.cols, 3);
      auto f = qr<T>(context, a.view(), options_for(combo, {16, 2, 4}));
      for (const Storage storage : in_turn(all_storages)) {
        SCOPED_TRACE(label(to_string(storage), s, combo, {16, 2, 4}));
        Stored<T> r(context, Dense<T>(k, s.cols, T(7)), storage), q(context, Dense<T>(s.rows, k, T(7)), storage);
        Dense<T> got_r(k, s.cols), got_q(s.rows, k);
        f.r_into(r.mutable_view());
        context.copy<T>(std::as_const(r).view(), got_r.view());
        EXPECT_EQ(got_r, this->host(f.r()));
        if (combo.q == QForm::none) {
          EXPECT_TRUE(refuses([&] { f.q_into(q.mutable_view()); }, ErrorCode::unavailable, {"none"}));
          continue;
        }
        f.q_into(q.mutable_view());
        context.copy<T>(std::as_const(q).view(), got_q.view());
        EXPECT_TRUE(is_qr_of(a, got_q, got_r)) << "formed where it lies, by products that depend on its alignment";
      }
      Dense<T> wrong(k + 1, s.cols);
      EXPECT_TRUE(refuses([&] { f.r_into(wrong.view()); }, ErrorCode::invalid_argument, {std::to_string(k + 1)}));
    }
}

TYPED_TEST(QrStorage, ApplyWorksInPlaceInEveryLayout) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const Index m = 45, n = 7, p = 6;
  const auto a = random_normal<T>(m, n, 4), c = random_normal<T>(m, p, 5);
  for (const Algorithm algorithm : {Algorithm::tsqr, Algorithm::caqr, Algorithm::blocked}) {
    auto f = qr<T>(context, a.view(), options_for({algorithm, QForm::implicit}, {16, 2, 4}));
    auto want = c;
    f.apply_qt(want.view());
    EXPECT_NE(want, c);
    for (const Storage storage : in_turn(all_storages, 3)) {
      SCOPED_TRACE(std::string(qrane::to_string(algorithm)) + ", " + to_string(storage));
      Stored<T> stored(context, c, storage);
      f.apply_qt(stored.mutable_view());
      Dense<T> got(m, p);
      context.copy<T>(stored.view(), got.view());
      EXPECT_EQ(got, want);
    }
  }
}

TYPED_TEST(QrStorage, ApplyLeavesWhatIsBetweenTheColumnsAlone) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const Index m = 45, n = 7, p = 6, ld = 50;
  const auto a = random_normal<T>(m, n, 4);
  auto f = qr<T>(context, a.view(), options_for({Algorithm::caqr, QForm::implicit}, {16, 2, 4}));
  for (const bool on_device : {false, true}) {
    Dense<T> padded(ld, p, T(7));
    Matrix<T> device = context.to_device<T>(std::as_const(padded).view());
    f.apply_q(block(on_device ? device.view() : padded.view(), 2, 0, m, p));
    if (on_device) padded = this->host(device);
    for (Index j = 0; j < p; ++j)
      for (const Index i : {Index{0}, Index{1}, m + 2, ld - 1}) EXPECT_EQ(padded(i, j), T(7)) << i << ", " << j;
    EXPECT_NE(padded(2, 0), T(7));
  }
}

TYPED_TEST(QrStorage, CopiesBetweenAllMemoriesAndLayouts) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto a = random_normal<T>(13, 6, 6);
  for (const Storage from : all_storages)
    for (const Storage to : in_turn(all_storages)) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + to_string(to));
      Stored<T> source(context, a, from), target(context, Dense<T>(13, 6), to);
      context.copy<T>(source.view(), target.mutable_view());
      Dense<T> got(13, 6);
      context.copy<T>(std::as_const(target).view(), got.view());
      EXPECT_EQ(got, a);
      EXPECT_TRUE(source.untouched(context));
    }
  EXPECT_TRUE(
      refuses([&] { context.copy<T>(a.view(), Dense<T>(6, 13).view()); }, ErrorCode::invalid_argument, {"13", "6"}));
}

TYPED_TEST(QrStorage, InPlaceOverwritesTheMatrixWithItsFactors) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  for (const Combo combo : all_combos()) {
    if (!keeps_reflectors(combo.q)) continue;
    for (const Shape s : in_turn(shapes))
      for (const Storage storage : in_turn({Storage::device, Storage::device_slack, Storage::device_misaligned})) {
        SCOPED_TRACE(label(to_string(storage), s, combo, {16, 2, 4}));
        const auto a = random_normal<T>(s.rows, s.cols, 8);
        Stored<T> stored(context, a, storage);
        auto f = qr_in_place<T>(context, stored.mutable_view(), options_for(combo, {16, 2, 4}));
        const auto r = this->host(f.r());
        EXPECT_TRUE(is_qr_of(a, this->host(f.q()), r));
        Dense<T> now(s.rows, s.cols);
        context.copy<T>(std::as_const(stored).view(), now.view());
        EXPECT_NE(now, a);
        for (Index j = 0; j < s.cols; ++j)
          for (Index i = 0; i <= std::min(j, r.rows - 1); ++i) EXPECT_EQ(now(i, j), r(i, j)) << "R lies in place";
      }
  }
}

TYPED_TEST(QrStorage, InPlaceRefusesWhatItCannotOverwrite) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto a = random_normal<T>(20, 4, 9);
  Stored<T> row_major(context, a, Storage::row_major), device(context, a, Storage::device);
  EXPECT_TRUE(
      refuses([&] { qr_in_place<T>(context, row_major.mutable_view()); }, ErrorCode::invalid_argument, {"column"}));
  EXPECT_TRUE(row_major.untouched(context));
  for (const QForm form : {QForm::thin, QForm::none}) {
    Options options;
    options.q = form;
    EXPECT_TRUE(refuses([&] { qr_in_place<T>(context, device.mutable_view(), options); }, ErrorCode::invalid_argument,
                        {qrane::to_string(form)}));
  }
  EXPECT_TRUE(device.untouched(context));
}

}  // namespace
}  // namespace qrane::test
