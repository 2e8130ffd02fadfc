// SPDX-License-Identifier: Apache-2.0
#include "sparse/processor.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sparse/host/numeric_plan.hpp"

namespace qrane::sparse {

namespace {

/// The largest sum of cost(front) from a leaf to a root.
template <class Cost>
auto heaviest_path(const Symbolic& symbolic, Cost cost) {
  using Sum = decltype(cost(Front{}));
  std::vector<Sum> path(symbolic.fronts.size(), Sum{});
  Sum heaviest{};
  for (std::size_t f = 0; f < path.size(); ++f) {  // children come before
    const Front& front = symbolic.fronts[f];
    path[f] += cost(front);
    heaviest = std::max(heaviest, path[f]);
    if (front.parent < 0) continue;
    Sum& parent = path[front.parent];
    parent = std::max(parent, path[f]);
  }
  return heaviest;
}

Index elements_of(const Front& front) { return front.rows_bound * front.cols; }
/// Panels that so many rows reach.
Index panels_of(const Front& front, Index rows, Index panel) {
  return std::max<Index>((std::min(front.cols, rows) + panel - 1) / panel, 1);
}
/// Any pivotal column may be dropped and leave its row to another.
Index planned_panels(const Front& front, Index panel) {
  return panels_of(front, front.rows_bound + front.pivots, panel);
}

double device_seconds(const Symbolic& symbolic, const tuning::SparseTuning& tuning, int scalar_bytes) {
  constexpr Index panel = 32;
  const Index whole_elements = static_cast<Index>(tuning.whole_bytes) / scalar_bytes;
  const double path = heaviest_path(symbolic, [&](const Front& front) {
    if (elements_of(front) <= whole_elements)
      return tuning.round_seconds + static_cast<double>(elements_of(front)) * tuning.whole_element_seconds;
    const Index planned = planned_panels(front, panel), busy = std::min(planned, panels_of(front, front.rows, panel));
    return static_cast<double>(busy) * tuning.round_seconds + static_cast<double>(planned - busy) * tuning.idle_seconds;
  });
  const AnalysisFacts& facts = symbolic.facts;
  const double all = tuning.start_seconds + path + facts.flops / tuning.device_flops +
                     static_cast<double>(facts.entries) * tuning.entry_seconds +
                     static_cast<double>(facts.front_entries) * tuning.element_seconds +
                     static_cast<double>(facts.fronts) * tuning.front_seconds;
  return std::max(all, tuning.least_seconds);
}

double cpu_seconds(const Symbolic& symbolic, const tuning::SparseTuning& tuning, int threads, int scalar_bytes) {
  double work = 0;
  for (const Front& front : symbolic.fronts) work += front_work(front);
  const double path = heaviest_path(symbolic, front_work);
  const int useful = useful_threads(symbolic, threads);
  const double together = std::pow(useful, tuning.threads_power);
  const double numbers = static_cast<double>(symbolic.facts.front_entries) * tuning.core_element_seconds +
                         work / (tuning.core_flops * together) + path / tuning.chain_flops;
  return tuning.cpu_start_seconds + (useful - 1) * tuning.thread_seconds +
         static_cast<double>(symbolic.facts.entries) * tuning.core_entry_seconds +
         static_cast<double>(symbolic.facts.fronts) * tuning.core_front_seconds / together +
         numbers / (scalar_bytes == 4 ? tuning.narrow_speed_up : 1);
}

}  // namespace

Index longest_path(const Symbolic& symbolic, Index panel, Index whole_elements) {
  return heaviest_path(symbolic, [&](const Front& front) {
    return elements_of(front) <= whole_elements ? Index{1} : planned_panels(front, panel);
  });
}

ProcessorSeconds predict_seconds(const Symbolic& symbolic, const tuning::SparseTuning& tuning, int threads,
                                 int scalar_bytes) {
  return {device_seconds(symbolic, tuning, scalar_bytes), cpu_seconds(symbolic, tuning, threads, scalar_bytes)};
}

}  // namespace qrane::sparse
