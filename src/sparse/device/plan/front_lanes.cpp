// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/front_lanes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sparse/device/plan/front_tasks.hpp"

namespace qrane::sparse {
namespace {

/// Per lane, the last launch that a later launch must wait for; -1: none.
struct Clock {
  std::array<std::int32_t, front_lanes> last;
  Clock() { last.fill(-1); }
  void join(const Clock& other) {
    for (std::size_t k = 0; k < last.size(); ++k) last[k] = std::max(last[k], other.last[k]);
  }
};

std::int32_t lane_of(const FrontLaunch& launch) {
  switch (launch.step) {
    case FrontStep::lay_out:
    case FrontStep::assemble: return 0;
    case FrontStep::pair:
    case FrontStep::trailing: return launch.blocks > 8 ? 7 : launch.blocks > 4 ? 8 : launch.blocks > 2 ? 9 : 6;
    case FrontStep::narrow:
    case FrontStep::closing: return launch.tall ? 1 : launch.blocks > 8 ? 3 : launch.blocks > 2 ? 4 : 5;
    case FrontStep::whole: return launch.max_elements > 8192 ? 8 : launch.max_elements > 3072 ? 7 : 6;
    default: return std::max(1, urgent_lanes - 1 - height_class(launch.max_rows));
  }
}

class LanePlanner {
 public:
  LanePlanner(const Symbolic& s, const FrontRounds& plan, Index panel)
      : s_(s),
        plan_(plan),
        panel_(panel),
        touched_(s.fronts.size()),
        before_(s.fronts.size()),
        opened_(s.fronts.size()),
        round_(s.fronts.size(), -1) {}

  FrontLanes plan(bool keep_q) {
    if (!keep_q) find_earlier();
    std::array<Clock, front_lanes> known;
    std::vector<Clock> of_launch(plan_.launches.size());
    FrontLanes out;
    out.awaited.assign(plan_.launches.size(), false);
    out.wait_begin.push_back(0);
    for (Index r = 0; r < plan_.rounds(); ++r)
      for (Index l = plan_.round_begin[r]; l < plan_.round_begin[r + 1]; ++l) {
        const FrontLaunch& launch = plan_.launches[l];
        const std::int32_t lane = lane_of(launch);
        const Clock need = needed_by(launch, static_cast<std::int32_t>(r));
        Clock& mine = known[lane];
        for (int k = 0; k < front_lanes; ++k) {
          const std::int32_t other = need.last[k];
          if (k == lane || other <= mine.last[k]) continue;
          out.waits.push_back(other);
          out.awaited[other] = true;
          mine.join(of_launch[other]);
        }
        mine.last[lane] = static_cast<std::int32_t>(l);
        of_launch[l] = mine;
        out.lane.push_back(lane);
        out.wait_begin.push_back(static_cast<Index>(out.waits.size()));
        for_fronts(launch, [&](Index f) {
          touched_[f].last[lane] = static_cast<std::int32_t>(l);
          if (opens(launch.step)) opened_[f].last[lane] = static_cast<std::int32_t>(l);
        });
      }
    return out;
  }

 private:
  /// Writes to a front's memory first, and reads its children's.
  static bool opens(FrontStep step) { return step == FrontStep::assemble || step == FrontStep::whole; }

  /// visit(front) for each front of a launch.
  template <class Visit>
  void for_fronts(const FrontLaunch& launch, Visit visit) const {
    const auto over = [&](const auto& tasks, auto front_of) {
      Index last = -1;  // a front's tasks are consecutive
      for (Index t = launch.first; t < launch.first + launch.count; ++t) {
        const Index front = front_of(tasks[t]);
        if (front != last) visit(front);
        last = front;
      }
    };
    const auto member = [](const auto& task) { return Index{task.front}; };
    switch (launch.step) {
      case FrontStep::lay_out:
      case FrontStep::whole: return over(plan_.lists, [](std::int32_t front) { return Index{front}; });
      case FrontStep::assemble:
      case FrontStep::finish: return over(plan_.shares, member);
      case FrontStep::panel:
      case FrontStep::tail: return over(plan_.panels, member);
      case FrontStep::narrow:
      case FrontStep::closing:
      case FrontStep::pair:
      case FrontStep::trailing: return over(plan_.updates, member);
      case FrontStep::unpack:
      case FrontStep::pack: return over(plan_.pieces, member);
    }
  }

  Clock needed_by(const FrontLaunch& launch, std::int32_t round) {
    Clock need;
    for_fronts(launch, [&](Index f) {
      if (round_[f] != round) before_[f] = touched_[f];
      round_[f] = round;
      // urgent steps of a round run in order, trailing updates concurrently
      Clock own = before_[f];
      if (is_urgent(launch.step)) std::copy_n(touched_[f].last.begin(), urgent_lanes, own.last.begin());
      need.join(own);
      if (launch.step == FrontStep::lay_out || opens(launch.step)) {
        const Front& front = s_.fronts[f];
        for (Index c = 0; c < front.child_count; ++c) need.join(touched_[s_.children[front.child_begin + c]]);
      }
      if (opens(launch.step) && !earlier_begin_.empty())
        for (Index e = earlier_begin_[f]; e < earlier_begin_[f + 1]; ++e) {
          const Index gone = earlier_[e], parent = s_.fronts[gone].parent;
          need.join(touched_[gone]);
          if (parent >= 0) need.join(opened_[parent]);
        }
    });
    return need;
  }

  /// Fronts that had each front's memory before it.
  void find_earlier() {
    struct Piece {
      Index end, front;
    };
    std::map<Index, Piece> memory;  // by begin
    std::vector<Index> order(s_.fronts.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return plan_.begin[a] < plan_.begin[b]; });
    std::vector<std::vector<Index>> earlier(s_.fronts.size());
    for (const Index f : order) {
      const backend::FrontShape& shape = plan_.shapes[f];
      const Index begin = shape.matrix, end = shape.t + panel_ * shape.cols;
      auto piece = memory.upper_bound(begin);
      if (piece != memory.begin() && std::prev(piece)->second.end > begin) --piece;
      while (piece != memory.end() && piece->first < end) {
        const Index its_begin = piece->first;
        const Piece its = piece->second;
        earlier[f].push_back(its.front);
        piece = memory.erase(piece);
        if (its_begin < begin) memory.emplace(its_begin, Piece{begin, its.front});
        if (its.end > end) memory.emplace(end, its);
      }
      memory.emplace(begin, Piece{end, f});
    }
    earlier_begin_.assign(1, 0);
    for (const std::vector<Index>& fronts : earlier) {
      earlier_.insert(earlier_.end(), fronts.begin(), fronts.end());
      earlier_begin_.push_back(static_cast<Index>(earlier_.size()));
    }
  }

  const Symbolic& s_;
  const FrontRounds& plan_;
  const Index panel_;
  std::vector<Clock> touched_;  // launches that worked on each front
  std::vector<Clock> before_;   // those before round_
  std::vector<Clock> opened_;   // launches that read its children
  std::vector<std::int32_t> round_;
  std::vector<Index> earlier_begin_, earlier_;
};

}  // namespace

FrontLanes plan_lanes(const Symbolic& symbolic, const FrontRounds& plan, Index panel, bool keep_q) {
  return LanePlanner(symbolic, plan, panel).plan(keep_q);
}

}  // namespace qrane::sparse
