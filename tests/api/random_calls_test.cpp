// SPDX-License-Identifier: Apache-2.0
// Random sequences of factorizations, updates and solves, compared with fresh factorizations.
#include "random_calls/play.hpp"
#include "support/small_run.hpp"

namespace qrane::test {
namespace {

template <class Where>
class RandomCalls : public BackendTest<Where> {};
TYPED_TEST_SUITE(RandomCalls, Everywhere, Names);

TYPED_TEST(RandomCalls, AgreeWithFreshFactorizations) {
  using T = typename TypeParam::Scalar;
  const Context& context = this->context();
  const auto outcome = [&](const Sequence& s) { return Player<T>(context, s).play(); };
  play_random(small_run() ? (this->thorough ? 300 : 20) : 20000, draw, outcome, simpler_steps);
}

/// Found by the test above.
TYPED_TEST(RandomCalls, ThatOnceFailed) {
  using T = typename TypeParam::Scalar;
  constexpr auto automatic = UpdateMethod::automatic, orthogonal = UpdateMethod::orthogonal;
  // many rows go, and with them nearly all of the columns' norms: Q lost its orthogonality
  const Sequence sequences[] = {{4792,
                                 QForm::thin,
                                 1,
                                 1,
                                 Fill::tiny,
                                 false,
                                 {{Kind::insert_rows, 0, 4, Fill::normal, automatic, false},
                                  {Kind::delete_rows, 0, 4, Fill::normal, orthogonal, false}}},
                                {13454,
                                 QForm::thin,
                                 13,
                                 4,
                                 Fill::normal,
                                 true,
                                 {{Kind::insert_rows, 0, 22, Fill::normal, automatic, false},
                                  {Kind::insert_rows, 0, 2, Fill::huge, automatic, false},
                                  {Kind::delete_rows, 9, 34, Fill::normal, orthogonal, false},
                                  {Kind::solve, 0, 0, Fill::normal, automatic, false}}}};
  for (const Sequence& s : sequences) EXPECT_EQ(Player<T>(this->context(), s).play(), "") << s.text();
}

}  // namespace
}  // namespace qrane::test
