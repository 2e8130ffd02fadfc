// SPDX-License-Identifier: Apache-2.0
// A device's queues, which carry out a plan's launches by lanes (front_lanes.hpp). Where the backend has one queue
// alone, launches are done in the plan's order.
#pragma once

#include <algorithm>
#include <vector>

#include "sparse/device/plan/front_lanes.hpp"

namespace qrane::sparse {

template <class B>
class DeviceLanes {
 public:
  using Queue = typename B::Queue;

  /// `planned`: where the plan is.
  DeviceLanes(const Queue& main, const DeviceLanes& planned) : DeviceLanes(main) {
    lanes_ = planned.lanes_;
    marks_.resize(planned.marks_.size());
  }
  explicit DeviceLanes(const Queue& main) : main_(main), outs_(main.lane(0, true)), ins_(main.lane(1, true)) {
    for (int k = 0; k < front_lanes; ++k) queues_.push_back(main.lane(2 + k, k < urgent_lanes));
  }

  void plan(const Symbolic& symbolic, const FrontRounds& rounds, Index panel, bool keep_q) {
    if (!B::has_side) return;
    lanes_ = plan_lanes(symbolic, rounds, panel, keep_q);
    marks_.resize(std::max(marks_.size(), lanes_.awaited.size()));
  }

  /// What is queued from now on comes after what the main queue has been given.
  void begin() {
    each([&](Queue& q) { q.follow(main_); });
  }
  /// start(queue) queues launch l of the plan, one after the other.
  template <class Start>
  void launch(Index l, Start start) {
    if (!B::has_side) return start(main_);
    const auto place = l;
    Queue& queue = queues_[lanes_.lane[place]];
    for (Index w = lanes_.wait_begin[place]; w < lanes_.wait_begin[place + 1]; ++w)
      queue.follow(marks_[lanes_.waits[w]]);
    start(queue);
    if (lanes_.awaited[place]) queue.mark(marks_[place]);
  }
  Queue& main() { return main_; }
  /// For copies to the host, and from there.
  Queue& outs() { return outs_; }
  Queue& ins() { return ins_; }
  /// The former, after all that has been queued.
  Queue& after_all() {
    for (Queue& q : queues_) outs_.follow(q);
    return outs_;
  }
  /// One whose work goes first.
  Queue& urgent() { return queues_.front(); }
  /// The main queue goes on after all of it.
  void end() {
    each([&](Queue& q) { main_.follow(q); });
  }

  /// action(queue) for each.
  template <class Action>
  void each(Action action) {
    for (Queue& q : queues_) action(q);
    action(outs_);
    action(ins_);
    action(main_);
  }

 private:
  Queue main_, outs_, ins_;
  std::vector<Queue> queues_;
  FrontLanes lanes_;
  std::vector<typename Queue::Mark> marks_;  // of launches that others wait for
};

}  // namespace qrane::sparse
