// SPDX-License-Identifier: Apache-2.0
// Random sequences of factorizations, updates and solves, compared with fresh factorizations. A failing sequence is
// shrunk and printed. QRANE_TEST_SEED=N begins with that seed, QRANE_TEST_COUNT=N plays so
// many.
#include <cstdlib>

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
  const auto number = [](const char* name, std::uint32_t otherwise) {
    const char* const text = std::getenv(name);
    return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
  };
  const std::uint32_t first = number("QRANE_TEST_SEED", 1);
  const std::uint32_t count = number("QRANE_TEST_COUNT", small_run() ? (this->thorough ? 300 : 20) : 20000);
  int failures = 0;
  for (std::uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Sequence drawn = draw(seed);
    if (outcome(drawn).empty()) continue;
    ++failures;
    const Sequence simple = shrunk(drawn, [&](const Sequence& s) { return !outcome(s).empty(); });
    ADD_FAILURE() << outcome(simple) << "\nin " << simple.text() << "drawn as " << drawn.text();
  }
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
