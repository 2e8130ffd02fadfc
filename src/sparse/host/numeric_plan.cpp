// SPDX-License-Identifier: Apache-2.0
#include "sparse/host/numeric_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sparse/host/simulation.hpp"

namespace qrane::sparse {

namespace {

/// Largest size of the contribution block, or of a root's R, for any rank; 0 for a root that stays in place.
Index most_left(const Symbolic& s, const NumericPlan& plan, Index f) {
  if (f == plan.stays) return 0;
  const Front& front = s.fronts[f];
  const bool root = front.parent < 0;
  const Index cols = root ? front.cols : front.nonpivots();
  const Index rows = root ? std::min(front.rows_bound, front.pivots) : front.cb_rows_bound;
  return left_elements(rows * cols - rows * (rows - 1) / 2);
}

/// Divides the tree into ranges and upper fronts.
void divide(const Symbolic& s, int threads, NumericPlan& plan) {
  const Index count = s.front_count();
  std::vector<double> subtree(count);
  std::vector<char> with_large(count, 0);  // the subtree has a front that threads should share
  double total = 0;
  for (Index f = 0; f < count; ++f) {
    const double own = front_work(s.fronts[f]);
    total += own;
    subtree[f] += own;
    with_large[f] |= s.fronts[f].flops >= 2 * large_front;
    if (const Index parent = s.fronts[f].parent; parent >= 0) {
      subtree[parent] += subtree[f];
      with_large[parent] |= with_large[f];
    }
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
  const auto above = [&](Index f) { return subtree[f] > most || with_large[f]; };
  for (Index f = 0; f < count; ++f) {
    if (above(f)) {
      close(f - 1);
      open.first = f + 1;
      plan.upper_of[f] = static_cast<Index>(plan.upper.size());
      plan.upper.push_back(f);
      continue;
    }
    const Index parent = s.fronts[f].parent;
    if (parent >= 0 && !above(parent)) continue;
    open.roots.push_back(f);
    gathered += subtree[f];
    if (gathered < enough) continue;
    close(f);
    open.first = f + 1;
  }
  close(count - 1);
}

/// Numbers ranges and upper fronts as tasks, children first; returns their work.
std::vector<double> number_tasks(const Symbolic& s, NumericPlan& plan) {
  std::vector<double> work;
  const auto add_range = [&](const NumericPlan::Range& range) {
    plan.order_of_range.push_back(static_cast<Index>(work.size()));
    double sum = 0;
    for (Index f = range.first; f <= range.last; ++f) sum += front_work(s.fronts[f]);
    work.push_back(sum);
  };
  auto range = plan.ranges.begin();
  for (const Index f : plan.upper) {
    for (; range != plan.ranges.end() && range->last < f; ++range) add_range(*range);
    plan.order_of_upper.push_back(static_cast<Index>(work.size()));
    work.push_back(front_work(s.fronts[f]));
  }
  for (; range != plan.ranges.end(); ++range) add_range(*range);
  return work;
}

/// `after` for a look-ahead of this many tasks and this share of all work.
std::vector<Index> far_before(const std::vector<double>& work, Index tasks, double share) {
  const double ahead = share * std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<Index> after;
  double before = 0, ended = 0;  // work of all tasks before this one, and of those it waits for
  Index count = 0;
  for (const double own : work) {
    while (count + tasks <= static_cast<Index>(after.size()) && ended + work[count] <= before - ahead)
      ended += work[count++];
    after.push_back(count);
    before += own;
  }
  return after;
}

/// Fronts that all threads can share run alone.
void set_apart(const Simulation& simulation, std::vector<Index>& after) {
  Index least = 0;
  for (std::size_t k = 0; k < after.size(); ++k) {
    const bool alone = simulation.shared_by_all(static_cast<Index>(k));
    after[k] = std::max(alone ? static_cast<Index>(k) : after[k], least);
    if (alone) least = static_cast<Index>(k) + 1;
  }
}

/// First-fit allocation; a block is free once `after` guarantees that its parent has been assembled.
class Places {
 public:
  explicit Places(const std::vector<Index>& after) : after_(after) {}

  /// A block that `task` writes for front `parent`, which task `last` factors. The task reads the blocks for `front`
  /// (-1: none) before it writes.
  Index take(Index size, Index task, Index front, Index parent, Index last) {
    std::erase_if(blocks_, [&](const Block& b) { return b.last < after_[task]; });
    Index begin = 0;
    for (const Block& b : blocks_) {
      if (b.begin >= begin + size) break;
      if (b.parent != front) begin = std::max(begin, b.begin + b.size);
    }
    const auto at = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.begin > begin; });
    blocks_.insert(at, {parent, begin, size, last});
    most_ = std::max(most_, begin + size);
    return begin;
  }
  Index most() const { return most_; }

 private:
  struct Block {
    Index parent, begin, size, last;
  };
  const std::vector<Index>& after_;
  Index most_ = 0;
  std::vector<Block> blocks_;  // by begin
};

/// Nested places: children's side by side, their parent's in the same memory. Valid for any order of tasks.
void place_nested(const Symbolic& s, NumericPlan& plan) {
  const Index count = s.front_count();
  std::vector<char> placed(count, 0);
  for (const Index f : plan.upper) placed[f] = 1;
  for (const NumericPlan::Range& range : plan.ranges)
    for (const Index f : range.roots) placed[f] = 1;
  std::vector<Index> area(count, 0), next(count, 0);  // next: begin of the free part of a front's area
  for (Index f = 0; f < count; ++f) {
    if (!placed[f]) continue;
    area[f] = std::max(area[f], most_left(s, plan, f));
    if (const Index parent = s.fronts[f].parent; parent >= 0) area[parent] += area[f];
  }
  plan.shared_elements = 0;
  for (Index f = count - 1; f >= 0; --f) {  // parents come first
    if (!placed[f]) continue;
    const Index parent = s.fronts[f].parent;
    Index& free = parent >= 0 ? next[parent] : plan.shared_elements;
    plan.place[f] = next[f] = free;
    free += area[f];
  }
}

/// Places reused in the order of tasks. Roots' R are never freed; those of ranges' roots follow all other places.
void place_in_order(const Symbolic& s, NumericPlan& plan) {
  constexpr Index none = -2, never = std::numeric_limits<Index>::max();
  Places places(plan.after);
  const auto last_of = [&](Index parent) { return parent < 0 ? never : plan.order_of_upper[plan.upper_of[parent]]; };
  const auto leave_range = [&](const NumericPlan::Range& range, Index task) {
    for (auto first = range.roots.begin(), end = range.roots.end();
         first != end;) {  // those with the same parent together
      const Index parent = s.fronts[*first].parent;
      const auto last = std::find_if(first, end, [&](Index f) { return s.fronts[f].parent != parent; });
      Index size = 0;
      for (auto f = first; f != last; ++f) size += most_left(s, plan, *f);
      Index next = parent < 0 ? 0 : places.take(size, task, none, parent, last_of(parent));
      for (; first != last; ++first) {
        if (parent < 0) continue;
        plan.place[*first] = next;
        next += most_left(s, plan, *first);
      }
    }
  };
  std::size_t r = 0;
  for (std::size_t u = 0; u < plan.upper.size(); ++u) {
    const Index f = plan.upper[u], task = plan.order_of_upper[u], parent = s.fronts[f].parent;
    for (; r < plan.ranges.size() && plan.order_of_range[r] < task; ++r)
      leave_range(plan.ranges[r], plan.order_of_range[r]);
    plan.place[f] = places.take(most_left(s, plan, f), task, f, parent, last_of(parent));
  }
  plan.shared_elements = places.most();
  for (const NumericPlan::Range& range : plan.ranges)
    for (const Index f : range.roots) {
      if (s.fronts[f].parent >= 0) continue;
      plan.place[f] = plan.shared_elements;
      plan.shared_elements += most_left(s, plan, f);
    }
}

/// Peak size of a range's stack; it keeps the R of roots that have no other place.
Index highest_stack(const Symbolic& s, const NumericPlan& plan, const NumericPlan::Range& range) {
  Index used = 0, highest = 0;
  for (Index f = range.first; f <= range.last; ++f) {
    const Front& front = s.fronts[f];
    for (Index c = 0; c < front.child_count; ++c) {
      const Index child = s.children[front.child_begin + c];
      if (plan.place[child] < 0) used -= most_left(s, plan, child);
    }
    if (plan.place[f] < 0) used += most_left(s, plan, f);
    highest = std::max(highest, used);
  }
  return highest;
}

}  // namespace

Index left_elements(Index elements) { return (elements + 7) / 8 * 8; }

int useful_threads(const Symbolic& s, int threads) {
  // Measured on 40 matrices and 16 cores: a second thread pays from about 4e6, and eight are as fast as sixteen on all
  // but the largest.
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
  plan.upper_of.assign(count, -1);
  plan.place.assign(count, -1);
  if (threads > 1) {
    divide(s, threads, plan);
    const auto is_root = [&](Index f) { return s.fronts[f].parent < 0; };
    if (!plan.upper.empty() && plan.upper.back() == count - 1 &&
        std::count_if(plan.upper.begin(), plan.upper.end(), is_root) == 1)
      plan.stays = count - 1;
    const std::vector<double> work = number_tasks(s, plan);
    plan.after.assign(work.size(), 0);
    place_nested(s, plan);
    // Less look-ahead takes less memory and makes threads wait longer. A tenth less memory is worth a twentieth more
    // time.
    const Simulation simulation(s, plan, work, threads);
    const auto price = [&](const NumericPlan& p) {
      const Simulation::Outcome outcome = simulation.run(p.after);
      const Index elements = s.facts.r_entries + p.shared_elements + outcome.elements;
      return outcome.duration * std::sqrt(static_cast<double>(elements));
    };
    constexpr std::size_t most_in_order =
        2048;  // tasks; the placement is quadratic, and a path-like tree has a task per front
    const NumericPlan nested = plan;
    double lowest = price(plan);
    struct Ahead {
      int tasks;
      double share;
      bool alone;
    };
    for (const Ahead ahead : {Ahead{4, 1.0 / 16, false}, {2, 1.0 / 64, false}, {1, 0, false}, {2, 1.0 / 64, true}}) {
      NumericPlan other = nested;
      other.after = far_before(work, ahead.tasks * threads, ahead.share * threads);
      if (ahead.alone) set_apart(simulation, other.after);
      if (!other.after.empty() && other.after.back() > 0 && work.size() <= most_in_order) {
        NumericPlan in_order = other;
        place_in_order(s, in_order);
        if (in_order.shared_elements < other.shared_elements) other = std::move(in_order);
      }
      const double paid = price(other);
      if (paid > lowest) continue;
      lowest = paid;
      plan = std::move(other);
    }
  } else if (count > 0) {
    plan.ranges.push_back({0, count - 1, {}});
    const Front& last = s.fronts.back();
    if (last.parent < 0 && last.rows * last.cols > large_front_entries) plan.stays = count - 1;
  }
  for (const NumericPlan::Range& range : plan.ranges)
    plan.stack_elements = std::max(plan.stack_elements, highest_stack(s, plan, range));
  return plan;
}

}  // namespace qrane::sparse
