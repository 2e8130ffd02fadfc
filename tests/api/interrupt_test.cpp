// SPDX-License-Identifier: Apache-2.0
// PollScope: what a poll throws leaves the call, and everything stays usable.
#include <qrane/interrupt.hpp>

#include <stdexcept>
#include <thread>

#include "support/backends.hpp"

namespace qrane::test {
namespace {

struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

TEST(Interrupt, StopsAnywhereAndLeavesTheContextUsable) {
  const Context context({.backend = Backend::cpu});
  const Dense<double> a = random_normal<double>(600, 120, 1);
  int polls = 0;
  {
    const PollScope scope([&] { ++polls; });
    (void)svd<double>(context, a.view());
  }
  ASSERT_GE(polls, 5);
  const Matrix<double> expected = svd<double>(context, a.view()).s;
  for (int at = 1; at <= polls; at += 1 + polls / 20) {
    int left = at;
    const PollScope scope([&] {
      if (--left == 0) throw Stop();
    });
    EXPECT_THROW((void)svd<double>(context, a.view()), Stop) << "at poll " << at << " of " << polls;
    const Matrix<double> s = svd<double>(context, a.view()).s;
    for (Index i = 0; i < 120; ++i) EXPECT_EQ(s(i, 0), expected(i, 0));
  }
}

TEST(Interrupt, TheInnermostOfThisThreadCounts) {
  int outer = 0, inner = 0;
  const PollScope first([&] { ++outer; });
  {
    const PollScope second([&] { ++inner; });
    PollScope::poll();
    std::thread([] { PollScope::poll(); }).join();
  }
  PollScope::poll();
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 1);
}

}  // namespace
}  // namespace qrane::test
