// SPDX-License-Identifier: Apache-2.0
// Simulates a schedule of NumericTasks: its duration with a given look-ahead (NumericPlan::after), and the peak memory
// of fronts. Tasks are taken in the order of NumericTasks. Large fronts are shared by idle threads; every other task
// takes one thread.
#pragma once

#include <vector>

#include "sparse/host/numeric_plan.hpp"

namespace qrane::sparse {

class Simulation {
 public:
  struct Outcome {
    double duration = 0;  ///< in units of work
    Index elements = 0;   ///< peak, of fronts
  };

  /// Of the plan it reads ranges, upper fronts and their task numbers; `work` is by task number.
  Simulation(const Symbolic& symbolic, const NumericPlan& plan, const std::vector<double>& work, int threads);

  Outcome run(const std::vector<Index>& after) const;
  /// Whether all threads can share this task.
  bool shared_by_all(Index task) const;

 private:
  struct Task {
    double work = 0, most_threads = 0;  // 0: not shared
    bool upper = false;
    Index children = 0, elements = 0;
    std::vector<Index> parents;
  };
  int threads_;
  std::vector<Task> tasks_;
};

}  // namespace qrane::sparse
