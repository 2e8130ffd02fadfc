// SPDX-License-Identifier: Apache-2.0
// The two kinds of searches that the tuner (tuner.hpp) is made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/trials.hpp"
#include "tuner/tuner.hpp"

namespace qrane::tuning {

/// What a search works with: the device, the tables so far, and when to stop.
struct Bench {
  Trials& trials;
  std::shared_ptr<const Tables> tables;
  std::function<bool()> stop;  ///< out of time, or interrupted
  std::function<void(const std::string&)> say;
};

struct Knob {
  const char* name;
  std::vector<std::int64_t> values;
};

/// The values of a block shape's parameters for an algorithm, tried on `cases`; `shapes` says where they then hold.
struct BlockSearch {
  std::vector<Case> cases;
  std::vector<Shape> shapes;
  std::vector<Knob> knobs;
};

/// One finding a shape, without parameters where nothing beat what was there; none where nothing was compared. The
/// bench's tables then hold them.
std::vector<Finding> search_blocks(Bench& bench, const BlockSearch& search);

/// One finding for the form of Q, or none where too little of the grid was measured in time.
std::vector<Finding> search_crossovers(Bench& bench, QForm q, double operations);

/// The constants that updates are priced from.
std::vector<Finding> measure_updates(Bench& bench, const Context& context);

/// The same tables with one more entry, the strongest of all.
std::shared_ptr<const Tables> with_entry(const Tables& tables, const Entry& entry);

}  // namespace qrane::tuning
