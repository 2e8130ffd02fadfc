// SPDX-License-Identifier: Apache-2.0
// Runs the tests of one executable. When every test that was asked for skipped, the exit status is 77, so that
// ctest reports the run as skipped, not passed. The CPU backend's memory is poisoned.
#include <gtest/gtest.h>

#include "cpu/queue/queue.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  qrane::backend::cpu::Queue::poison = true;
  const int result = RUN_ALL_TESTS();
  const auto& unit = *::testing::UnitTest::GetInstance();
  const bool nothing_ran = unit.test_to_run_count() > 0 && unit.skipped_test_count() == unit.test_to_run_count();
  return result == 0 && nothing_ran ? 77 : result;
}
