// SPDX-License-Identifier: Apache-2.0
// Tests use small inputs and fewer repetitions, unless QRANE_TEST_FULL=1 is in the environment. In a small run every
// test still runs, checks the same properties and reaches every kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

namespace qrane::test {

inline bool small_run() {
  static const bool small = [] {
    const char* value = std::getenv("QRANE_TEST_FULL");
    return value == nullptr || *value == '\0' || *value == '0';
  }();
  return small;
}

/// Where lists that are taken in turn begin: by the test's name and scalar, whatever the backend, so that tests that
/// run alone in their processes do not all meet the first values.
inline std::size_t first_turn() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  std::size_t sum = 0;
  for (const char c : std::string(test->name()) + std::string(test->test_suite_name()).back())
    sum = 31 * sum + static_cast<unsigned char>(c);
  return sum;
}

/// The list; in a small run every `step`-th of it.
template <class U>
std::vector<U> some_of(std::initializer_list<U> list, std::size_t step) {
  std::vector<U> some;
  for (std::size_t i = 0; i < list.size(); i += small_run() ? step : 1) some.push_back(list.begin()[i]);
  return some;
}

/// The list; in a small run `few` of it, the next ones at each call: for the innermost of nested loops.
template <class List>
auto in_turn(const List& list, std::size_t few = 1) {
  const std::vector all(std::begin(list), std::end(list));
  static std::size_t next = first_turn();
  if (!small_run()) return all;
  auto some = all;
  some.clear();
  for (; few > 0; --few) some.push_back(all[next++ % all.size()]);
  return some;
}
template <class U>
auto in_turn(std::initializer_list<U> list, std::size_t few = 1) {
  return in_turn<std::initializer_list<U>>(list, few);
}

/// 0, 1, ... count - 1.
inline std::vector<int> numbers(int count) {
  std::vector<int> list;
  for (int k = 0; k < count; ++k) list.push_back(k);
  return list;
}

/// The list; in a small run every third of it, the next third at each call: of a list ordered by two things, some
/// of each.
template <class U>
std::vector<U> thirds_in_turn(const std::vector<U>& list) {
  static std::size_t next = first_turn();
  if (!small_run()) return list;
  std::vector<U> some;
  for (std::size_t i = next++ % 3; i < list.size(); i += 3) some.push_back(list[i]);
  return some;
}

}  // namespace qrane::test
