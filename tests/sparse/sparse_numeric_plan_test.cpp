// SPDX-License-Identifier: Apache-2.0
// How the CPU's threads divide a tree, and where contribution blocks are (src/sparse/host/numeric_plan.hpp): no two
// things lie in one place that can be there at the same time, whoever is faster.
#include <gtest/gtest.h>

#include <numeric>

#include "sparse/host/numeric_plan.hpp"
#include "sparse/host/simulation.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::Front;
using sparse::NumericPlan;
using sparse::Symbolic;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Differences of neighbours on a grid of side x side nodes; every node alone, too.
Triplets grid(Index side) {
  Triplets a;
  a.cols = side * side;
  Index row = 0;
  for (Index i = 0; i < side; ++i)
    for (Index j = 0; j < side; ++j) {
      const Index node = i * side + j;
      a.add(row++, node, 1);
      for (const Index next : {j + 1 < side ? node + 1 : -1, i + 1 < side ? node + side : -1}) {
        if (next < 0) continue;
        a.add(row, node, 1);
        a.add(row++, next, -1);
      }
    }
  a.rows = row;
  return a;
}

/// What a range or front above the ranges leaves in shared memory.
struct Left {
  Index front, task, begin, end;
};

TEST(SparseNumericPlan, NothingLiesWhereSomethingElseIsStillWanted) {
  bool in_order = false;
  for (const Triplets& a : {grid(20), grid(60), random_sparse(900, 400, 0.01, 3)})
    for (const int threads : {2, 3, 8}) {
      sparse::AnalyzeOptions options;
      options.ordering = sparse::Ordering::amd;
      const Symbolic s = sparse::analyze_pattern(a.view(), options, {}, false);
      const NumericPlan plan = sparse::plan_numeric(s, threads);
      const std::size_t tasks = plan.ranges.size() + plan.upper.size();
      ASSERT_EQ(plan.after.size(), tasks);
      std::vector<Left> left;
      const auto leave = [&](Index f, Index task) {
        if (f == plan.stays) return;  // leaves nothing
        const Front& front = s.fronts[at(f)];
        const bool root = front.parent < 0;
        const Index cols = root ? front.cols : front.nonpivots();
        const Index rows = root ? std::min(front.rows_bound, front.pivots) : front.cb_rows_bound;
        ASSERT_GE(plan.place[at(f)], 0);
        left.push_back({f, task, plan.place[at(f)], plan.place[at(f)] + rows * cols - rows * (rows - 1) / 2});
        ASSERT_LE(left.back().end, plan.shared_elements);
      };
      std::vector<Index> task_of(s.fronts.size(), -1);
      for (std::size_t r = 0; r < plan.ranges.size(); ++r) {
        for (Index f = plan.ranges[r].first; f <= plan.ranges[r].last; ++f) task_of[at(f)] = plan.order_of_range[r];
        for (const Index f : plan.ranges[r].roots) leave(f, plan.order_of_range[r]);
      }
      for (std::size_t u = 0; u < plan.upper.size(); ++u) {
        task_of[at(plan.upper[u])] = plan.order_of_upper[u];
        leave(plan.upper[u], plan.order_of_upper[u]);
      }
      if (plan.stays >= 0) {
        EXPECT_LT(s.fronts[at(plan.stays)].parent, 0);
      }
      for (Index task = 0; task < static_cast<Index>(tasks); ++task) {
        EXPECT_LE(plan.after[at(task)], task) << "the first that has not ended can always begin";
        in_order = in_order || plan.after[at(task)] > 0;
      }
      for (const Front& front : s.fronts)
        for (Index c = 0; c < front.child_count; ++c) {
          const Index child = s.children[at(front.child_begin + c)], task = task_of[at(&front - s.fronts.data())];
          EXPECT_LE(task_of[at(child)], task);
        }
      const auto above = [&](Index f, Index ancestor) {
        for (f = s.fronts[at(f)].parent; f >= 0; f = s.fronts[at(f)].parent)
          if (f == ancestor) return true;
        return false;
      };
      for (const Left& x : left)
        for (const Left& y : left) {  // is x still there when y is written?
          if (&x == &y || x.end <= y.begin || y.end <= x.begin || above(x.front, y.front)) continue;
          if (above(y.front, x.front)) continue;  // y has gone before x is written
          const Index parent = s.fronts[at(x.front)].parent, other = s.fronts[at(y.front)].parent;
          const bool x_has_gone = parent >= 0 && task_of[at(parent)] < plan.after[at(y.task)];
          const bool y_has_gone = other >= 0 && task_of[at(other)] < plan.after[at(x.task)];
          EXPECT_TRUE(x_has_gone || y_has_gone) << "fronts " << x.front << " and " << y.front;
        }
    }
  EXPECT_TRUE(in_order) << "places used again";
}

TEST(SparseNumericPlan, SimulationsTakeTheWorkThereIs) {
  sparse::AnalyzeOptions options;
  options.ordering = sparse::Ordering::amd;
  const Symbolic s = sparse::analyze_pattern(grid(60).view(), options, {}, false);
  for (const int threads : {2, 3, 8}) {
    const NumericPlan plan = sparse::plan_numeric(s, threads);
    const std::size_t tasks = plan.ranges.size() + plan.upper.size();
    std::vector<double> work(tasks);
    for (std::size_t k = 0; k < tasks; ++k) work[k] = 1 + static_cast<double>(k % 5);
    const double total = std::accumulate(work.begin(), work.end(), 0.0);
    const sparse::Simulation simulation(s, plan, work, threads);
    std::vector<Index> after(tasks, 0);
    const auto any_order = simulation.run(after);
    EXPECT_GE(any_order.duration, total / threads * (1 - 1e-9));
    EXPECT_LT(any_order.duration, total);
    std::iota(after.begin(), after.end(), 0);  // one after the other; no front of these can be shared
    const auto alone = simulation.run(after);
    EXPECT_NEAR(alone.duration, total, 1e-9 * total);
    EXPECT_LT(alone.elements, any_order.elements);
  }
}

}  // namespace
}  // namespace qrane::test
