// SPDX-License-Identifier: Apache-2.0
#include "sparse/processor.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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
  const double flops = symbolic.facts.flops;
  const Index rounds = longest_path(symbolic, panel, static_cast<Index>(tuning.whole_bytes) / scalar_bytes);
  ProcessorSeconds seconds;
  seconds.device = static_cast<double>(rounds) * tuning.round_seconds + flops / tuning.device_flops;
  const double rate = std::min(tuning.cores_flops * std::pow(flops / tuning.cores_at, tuning.cores_power),
                               tuning.thread_flops * std::max(threads, 1));
  seconds.cpu = flops > 0 ? flops / rate : 0;
  return seconds;
}

}  // namespace qrane::sparse
