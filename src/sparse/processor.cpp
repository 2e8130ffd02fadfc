// SPDX-License-Identifier: Apache-2.0
#include "sparse/processor.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sparse/numeric_plan.hpp"

namespace qrane::sparse {

Index longest_path(const Symbolic& symbolic, Index panel, Index whole_elements) {
  std::vector<Index> path(symbolic.fronts.size(), 0);
  Index longest = 0;
  for (std::size_t f = 0; f < path.size(); ++f) {  // children come before
    const Front& front = symbolic.fronts[f];
    const Index reached = std::min(front.cols, front.rows_bound + front.pivots);
    const bool whole = front.rows_bound * front.cols <= whole_elements;
    path[f] += whole ? 1 : std::max<Index>((reached + panel - 1) / panel, 1);
    longest = std::max(longest, path[f]);
    if (front.parent >= 0) {
      Index& parent = path[static_cast<std::size_t>(front.parent)];
      parent = std::max(parent, path[f]);
    }
  }
  return longest;
}

ProcessorSeconds predict_seconds(const Symbolic& symbolic, const tuning::SparseTuning& tuning, int threads,
                                 int scalar_bytes) {
  constexpr Index panel = 32;
  const auto rounds =
      static_cast<double>(longest_path(symbolic, panel, static_cast<Index>(tuning.whole_bytes) / scalar_bytes));
  const AnalysisFacts& facts = symbolic.facts;
  const auto fronts = static_cast<double>(facts.fronts);
  ProcessorSeconds seconds;
  seconds.device = tuning.start_seconds + rounds * tuning.round_seconds + facts.flops / tuning.device_flops +
                   static_cast<double>(facts.entries) * tuning.entry_seconds +
                   static_cast<double>(facts.front_entries) * tuning.element_seconds + fronts * tuning.front_seconds;
  double work = 0, chain = 0;  // of all fronts; of those on the heaviest path
  std::vector<double> path(symbolic.fronts.size(), 0);
  for (std::size_t f = 0; f < path.size(); ++f) {
    const Front& front = symbolic.fronts[f];
    const double own = front_work(front);
    work += own;
    path[f] += own;
    chain = std::max(chain, path[f]);
    if (front.parent < 0) continue;
    double& parent = path[static_cast<std::size_t>(front.parent)];
    parent = std::max(parent, path[f]);
  }
  const int useful = useful_threads(symbolic, threads);
  const double together = std::pow(useful, tuning.threads_power);
  seconds.cpu = tuning.cpu_start_seconds + (useful - 1) * tuning.thread_seconds +
                work / (tuning.core_flops * together) + chain / tuning.chain_flops +
                fronts * tuning.core_front_seconds / together;
  if (scalar_bytes == 4) seconds.cpu /= 1.03;  // a GPU that waits for rounds gains less by narrower numbers
  return seconds;
}

}  // namespace qrane::sparse
