// SPDX-License-Identifier: Apache-2.0
// What comes of an order of tasks before it is taken: how long threads take when tasks wait for others as
// NumericPlan::after says, and how much of fronts is there at a time. Goes about tasks as NumericTasks does; large
// fronts are shared by threads that have no task of their own, the others take one thread each.
#pragma once

#include <vector>

#include "sparse/host/numeric_plan.hpp"

namespace qrane::sparse {

class Rehearsal {
 public:
  struct Outcome {
    double duration = 0;  ///< in units of work
    Index elements = 0;   ///< of fronts, the most at a time
  };

  /// Of the plan its ranges, the fronts above them and their numbers; work by those numbers.
  Rehearsal(const Symbolic& symbolic, const NumericPlan& plan, const std::vector<double>& work, int threads);

  Outcome run(const std::vector<Index>& after) const;
  /// Whether there is enough of this task for all threads.
  bool shared_by_all(Index task) const;

 private:
  struct Task {
    double work = 0, most_threads = 0;  // 0: it is one thread's
    bool upper = false;
    Index children = 0, elements = 0;
    std::vector<Index> parents;
  };
  int threads_;
  std::vector<Task> tasks_;
};

}  // namespace qrane::sparse
