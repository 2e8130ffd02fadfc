// SPDX-License-Identifier: Apache-2.0
#include "sparse/numeric_plan.hpp"

#include <algorithm>

namespace qrane::sparse {

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Most elements of the contribution block, or of a root's R, at any rank.
Index most_left(const Front& front) {
  const bool root = front.parent < 0;
  const Index cols = root ? front.cols : front.nonpivots();
  const Index rows = root ? std::min(front.rows_bound, front.pivots) : front.cb_rows_bound;
  return left_elements(rows * cols - rows * (rows - 1) / 2);
}

/// Ranges and the fronts above them.
void divide(const Symbolic& s, int threads, NumericPlan& plan) {
  const Index count = s.front_count();
  std::vector<double> subtree(at(count));
  double total = 0;
  for (Index f = 0; f < count; ++f) {
    const double own = front_work(s.fronts[at(f)]);
    total += own;
    subtree[at(f)] += own;
    if (const Index parent = s.fronts[at(f)].parent; parent >= 0) subtree[at(parent)] += subtree[at(f)];
  }
  constexpr double worth_a_task = 1e5;
  const double enough = std::max(total / (32.0 * threads), worth_a_task), most = 4 * enough;
  NumericPlan::Range open;
  double gathered = 0;
  const auto close = [&](Index last) {
    if (open.roots.empty()) return;
    open.last = last;
    plan.ranges.push_back(std::move(open));
    open = {};
    gathered = 0;
  };
  for (Index f = 0; f < count; ++f) {
    if (subtree[at(f)] > most) {
      close(f - 1);
      open.first = f + 1;
      plan.upper_of[at(f)] = static_cast<Index>(plan.upper.size());
      plan.upper.push_back(f);
      continue;
    }
    const Index parent = s.fronts[at(f)].parent;
    if (parent >= 0 && subtree[at(parent)] <= most) continue;
    open.roots.push_back(f);
    gathered += subtree[at(f)];
    if (gathered < enough) continue;
    close(f);
    open.first = f + 1;
  }
  close(count - 1);
}

/// Places of what ranges and fronts above them leave.
void place(const Symbolic& s, NumericPlan& plan) {
  const Index count = s.front_count();
  std::vector<char> placed(at(count), 0);
  for (const Index f : plan.upper) placed[at(f)] = 1;
  for (const NumericPlan::Range& range : plan.ranges)
    for (const Index f : range.roots) placed[at(f)] = 1;
  std::vector<Index> area(at(count), 0), next(at(count), 0);  // next: of a front's area, what its children have not
  for (Index f = 0; f < count; ++f) {
    if (!placed[at(f)]) continue;
    area[at(f)] = std::max(area[at(f)], most_left(s.fronts[at(f)]));
    if (const Index parent = s.fronts[at(f)].parent; parent >= 0) area[at(parent)] += area[at(f)];
  }
  for (Index f = count - 1; f >= 0; --f) {  // parents come first
    if (!placed[at(f)]) continue;
    const Index parent = s.fronts[at(f)].parent;
    Index& free = parent >= 0 ? next[at(parent)] : plan.shared_elements;
    plan.place[at(f)] = next[at(f)] = free;
    free += area[at(f)];
  }
}

/// The highest stack of a range; roots' R stays on it where nothing else has a place for it.
Index highest_stack(const Symbolic& s, const NumericPlan& plan, const NumericPlan::Range& range) {
  Index used = 0, highest = 0;
  for (Index f = range.first; f <= range.last; ++f) {
    const Front& front = s.fronts[at(f)];
    for (Index c = 0; c < front.child_count; ++c) {
      const Index child = s.children[at(front.child_begin + c)];
      if (plan.place[at(child)] < 0) used -= most_left(s.fronts[at(child)]);
    }
    if (plan.place[at(f)] < 0) used += most_left(front);
    highest = std::max(highest, used);
  }
  return highest;
}

}  // namespace

Index left_elements(Index elements) { return (elements + 7) / 8 * 8; }

int useful_threads(const Symbolic& s, int threads) {
  // 40 matrices on 16 cores: a second thread pays from about 4e6, and eight do as well as sixteen on all but the largest
  constexpr double worth_a_thread = 2e6, worth_another = 1e9;
  constexpr double many = 8;
  double work = 0;
  for (const Front& f : s.fronts) work += front_work(f);
  const double useful = std::min(work / worth_a_thread, many + work / worth_another);
  return static_cast<int>(std::clamp(useful, 1.0, static_cast<double>(std::max(threads, 1))));
}

NumericPlan plan_numeric(const Symbolic& s, int threads) {
  NumericPlan plan;
  const Index count = s.front_count();
  plan.upper_of.assign(at(count), -1);
  plan.place.assign(at(count), -1);
  if (threads > 1) {
    divide(s, threads, plan);
    place(s, plan);
  } else if (count > 0) {
    plan.ranges.push_back({0, count - 1, {}});
  }
  for (const NumericPlan::Range& range : plan.ranges)
    plan.stack_elements = std::max(plan.stack_elements, highest_stack(s, plan, range));
  return plan;
}

}  // namespace qrane::sparse
