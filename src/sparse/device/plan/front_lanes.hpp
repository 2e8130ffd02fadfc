// SPDX-License-Identifier: Apache-2.0
// Which launches of a plan (front_rounds.hpp) a device may run concurrently: plain values.
//
// Launches of one lane run in order; launches of different lanes run concurrently unless one waits for the other.
// Rounds are no barriers. A launch waits for earlier launches on its fronts, on their children, and on fronts that had
// the same memory before.
//
//   lane 0      layouts and assembly
//   lanes 1-5   narrow updates, panels, closing, finish: from tall to short fronts            high priority
//   lanes 6-9   trailing updates, whole fronts                                                low priority
//
// Time is linear in tasks, except for a sorted table of memory in use.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sparse/device/plan/front_rounds.hpp"

namespace qrane::sparse {

inline constexpr int urgent_lanes = 6, front_lanes = 10;

struct FrontLanes {
  std::vector<std::int32_t> lane;   ///< of each launch
  std::vector<Index> wait_begin;    ///< launches + 1, into waits
  std::vector<std::int32_t> waits;  ///< launches of other lanes that must end first
  std::vector<bool> awaited;        ///< launches that others wait for
};

/// keep_q: no memory is reused.
FrontLanes plan_lanes(const Symbolic& symbolic, const FrontRounds& plan, Index panel, bool keep_q);

}  // namespace qrane::sparse
