// SPDX-License-Identifier: Apache-2.0
// Which launches of a plan (front_rounds.hpp) a device may run at the same time: plain values.
//
// Launches of a lane run one after the other; those of different lanes at once, but for what a launch waits for. Rounds
// are no barriers: a launch waits for those before it that its fronts, their children, or what lay in their memory
// before depend on.
//
//   lane 0      layouts and assembly
//   lanes 1-5   narrow updates, panels, closing, finish: from tall to low fronts             these go first
//   lanes 6-9   wide updates, whole fronts                                                    these fill the device
//
// Time is linear in tasks, but for a sorted table of what lies where.
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
  std::vector<std::int32_t> waits;  ///< launches of other lanes that must have ended before
  std::vector<bool> awaited;        ///< launches that others wait for
};

/// keep_q: no memory is used twice.
FrontLanes plan_lanes(const Symbolic& symbolic, const FrontRounds& plan, Index panel, bool keep_q);

}  // namespace qrane::sparse
