// SPDX-License-Identifier: Apache-2.0
// Nested loops in a small run (small_run.hpp): one case of many.
#pragma once

#include "support/small_run.hpp"

namespace qrane::test {

/// In a small run one case of `step`, beginning with the first; asked in the innermost of nested loops, once a case:
///   if (cases.skip()) continue;
/// The step is chosen so that every value of each loop comes, and the pairs of values that meet code of their own.
class EveryNth {
 public:
  explicit EveryNth(int step) : step_(step) {}
  bool skip() { return small_run() && count_++ % step_ != 0; }

 private:
  int step_, count_ = 0;
};

}  // namespace qrane::test
