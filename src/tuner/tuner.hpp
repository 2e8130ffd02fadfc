// SPDX-License-Identifier: Apache-2.0
// Measures a device and finds the parameters that plans on it are made from.
//
// Two kinds of stages, for each scalar:
//   block shapes   one parameter after the other, from the values in use: each candidate that leads to another plan is
//                  timed on a few matrices. The best one is taken if it wins by more than noise when both are timed
//                  again in turn, and if its result is right by decision 9 (trials.hpp).
//   crossovers     every algorithm is timed by name over a grid of shapes for a form of Q. Then the thresholds are
//   moved
//                  so that the algorithms that plans choose take the least time; differences within noise count for
//                  nothing.
//   updates        the rates and latencies that updates are priced from (updates.cpp).
// A stage that runs out of its share of the time keeps what it has found.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <qrane/context.hpp>

#include "tuning/table.hpp"

namespace qrane::tuning {

/// Milliseconds of what was compared on one case.
struct Evidence {
  std::string subject;  ///< a case, or what was decided
  std::vector<std::pair<std::string, double>> ms;
  std::string verdict;  ///< empty for plain times
};

/// What was found for an entry's keys; no parameters: what is there stays.
struct Finding {
  Entry entry;
  std::vector<Evidence> evidence;
};

struct TunerOptions {
  double seconds = 120;                                   ///< about so long in all
  std::vector<int> scalars{4, 8};                         ///< bytes
  std::function<void(const std::string&)> say;            ///< a line of progress; may be empty
  std::function<bool()> interrupted;                      ///< asked often; may be empty
  std::function<void(const std::vector<Finding>&)> keep;  ///< called with all findings after each stage; may be empty
};

/// Starts from the tables that the context's engine has, and leaves those in place.
std::vector<Finding> tune(const Context& context, const TunerOptions& options);

}  // namespace qrane::tuning
