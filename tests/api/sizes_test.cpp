// SPDX-License-Identifier: Apache-2.0
// Sizes whose products are no 64-bit numbers of bytes: refused before memory is asked for, and with a sentence that
// names the shape.
#include "support/backends.hpp"

namespace qrane::test {
namespace {

template <class Where>
class Sizes : public BackendTest<Where> {};
TYPED_TEST_SUITE(Sizes, Everywhere, Names);

constexpr Index huge = 1518500250;  // its square times 8 is a little more than 2^64

/// Either of the two codes, within the memory limit.
template <class Action>
::testing::AssertionResult ends_in_words(Action action, const std::string& word) {
  const Thrown thrown = thrown_by(action);
  if (!thrown.happened) return ::testing::AssertionFailure() << "nothing was thrown";
  const bool known = thrown.code == ErrorCode::invalid_argument || thrown.code == ErrorCode::out_of_memory;
  if (known && thrown.message.find(word) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "code " << static_cast<int>(thrown.code) << ": " << thrown.message;
}

TYPED_TEST(Sizes, ProductsThatOverflowAreRefused) {
  using T = typename TypeParam::Scalar;
  const Context context = fresh_context(TypeParam::backend, std::int64_t{1} << 28);
  const MatrixView<const T> tall(nullptr, huge, 0), wide(nullptr, 0, huge);
  const std::string shape = "1518500250";

  EXPECT_TRUE(ends_in_words([&] { (void)Matrix<T>::host(huge, huge); }, shape));
  EXPECT_TRUE(ends_in_words([&] { (void)context.allocate<T>(huge, huge); }, shape));
  EXPECT_TRUE(refuses([&] { (void)context.allocate<T>(-1, 3); }, ErrorCode::invalid_argument, {"-1 x 3"}));
  EXPECT_TRUE(refuses([&] { (void)Matrix<T>::host(3, -1); }, ErrorCode::invalid_argument, {"3 x -1"}));

  Options full;
  full.q = QForm::full;
  EXPECT_TRUE(ends_in_words([&] { (void)qr<T>(context, tall, full); }, ""));
  EXPECT_TRUE(ends_in_words([&] { (void)qr<T>(context, tall).q(Columns::full); }, shape));
  EXPECT_TRUE(ends_in_words([&] { (void)qr<T>(context, wide).solve(wide); }, ""));
  EXPECT_TRUE(ends_in_words([&] { (void)least_squares<T>(context, wide, wide); }, ""));

  Dense<T> a = random_normal<T>(5, 3, 1);
  const auto f = qr<T>(context, a.view());
  const MatrixView<const T> sides(a.values.data(), 5, huge, huge);  // its ld times its columns
  EXPECT_TRUE(refuses([&] { (void)f.solve(sides); }, ErrorCode::invalid_argument, {shape}));
  EXPECT_EQ(f.rank().rank, 3);
}

}  // namespace
}  // namespace qrane::test
