// SPDX-License-Identifier: Apache-2.0
// What all random sequences share: they are drawn by seed, played, and one that fails is shrunk and printed.
// QRANE_TEST_SEED=N begins with that seed, QRANE_TEST_COUNT=N plays so many. A sequence has `calls` and text().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <gtest/gtest.h>

namespace qrane::test {

/// value := simpler; false where it is that already. For the steps of shrunk().
template <class T, class U>
bool set_simpler(T& value, const U& simpler) {
  const T next = static_cast<T>(simpler);
  if (value == next) return false;
  value = next;
  return true;
}

/// The simplest sequence that still fails, by steps that each keep the failure: calls go, then steps(s, simplify) hands
/// simplify changes of a sequence, each of which returns whether it changed anything.
template <class S, class Fails, class Steps>
S shrunk(S s, const Fails& fails, const Steps& steps) {
  bool again = true;
  const auto keep_if_fails = [&](S simpler) {
    if (!fails(simpler)) return;
    s = std::move(simpler);
    again = true;
  };
  const auto simplify = [&](const auto& change) {
    S t = s;
    if (change(t)) keep_if_fails(std::move(t));
  };
  while (std::exchange(again, false)) {
    for (std::size_t i = s.calls.size(); i-- > 0;) {
      S t = s;
      t.calls.erase(t.calls.begin() + static_cast<std::ptrdiff_t>(i));
      keep_if_fails(std::move(t));
    }
    steps(s, simplify);
  }
  return s;
}

/// Plays `count` sequences; outcome(s) is what went wrong, or empty. draw(seed) and steps as above.
template <class Draw, class Outcome, class Steps>
void play_random(std::uint32_t count, const Draw& draw, const Outcome& outcome, const Steps& steps) {
  const auto number = [](const char* name, std::uint32_t otherwise) {
    const char* const text = std::getenv(name);
    return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : otherwise;
  };
  const std::uint32_t first = number("QRANE_TEST_SEED", 1);
  count = number("QRANE_TEST_COUNT", count);
  int failures = 0;
  for (std::uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
    const auto drawn = draw(seed);
    if (outcome(drawn).empty()) continue;
    ++failures;
    const auto simple = shrunk(
        drawn, [&](const auto& s) { return !outcome(s).empty(); }, steps);
    ADD_FAILURE() << outcome(simple) << "\nin " << simple.text() << "drawn as " << drawn.text();
  }
}

}  // namespace qrane::test
