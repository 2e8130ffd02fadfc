// SPDX-License-Identifier: Apache-2.0
// A plan of fronts' rounds carried out on counters instead of numbers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sparse/device/plan/front_rounds.hpp"
#include "support/sparse.hpp"

namespace qrane::test {

using namespace qrane::sparse;

inline Symbolic analyzed(const Triplets& a, Ordering ordering = Ordering::colamd) {
  AnalyzeOptions options;
  options.ordering = ordering;
  options.expert.amalgamation = Amalgamation{.front_flops = 0, .entry_flops = 0};  // many fronts
  return analyze_pattern(a.view(), options, {}, true);
}

/// Carries a plan out on counters: for every front which panels have been factored, and which have updated each column.
class Simulation {
 public:
  Simulation(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) : s_(s), o_(o), plan_(plan) {
    for (const auto& f : plan.shapes) fronts_.push_back({{}, std::vector<Index>(at(f.cols + o.rhs_cols), 0), {}, {}});
  }

  void run() {
    for (Index r = 0; r < plan_.rounds(); ++r) {
      const std::vector<State> before = fronts_;
      std::map<std::pair<Index, Index>, FrontStep> touched;  // columns, by what changed them in this round
      for (Index l = plan_.round_begin[at(r)]; l < plan_.round_begin[at(r + 1)]; ++l) {
        const FrontLaunch& launch = plan_.launches[at(l)];
        ASSERT_GT(launch.count, 0);
        for (Index t = launch.first; t < launch.first + launch.count; ++t) {
          step(r, launch, t, before, touched);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      ASSERT_TRUE(finished(static_cast<Index>(f), fronts_)) << "front " << f;
      EXPECT_EQ(fronts_[f].laid_out, 1);
    }
  }

 private:
  struct State {
    std::map<std::int32_t, Index> round_of_panel;
    std::vector<Index> updates;                   // of each column, by panels in order
    std::vector<std::int32_t> assembled, packed;  // parts
    int laid_out = 0;
    bool whole = false;
  };
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Index panels(Index f) const { return (plan_.shapes[at(f)].cols + o_.panel - 1) / o_.panel; }
  Index live(Index f) const {
    const auto& shape = plan_.shapes[at(f)];
    const Index reached = std::min<Index>(shape.cols, shape.rows_bound + (o_.detect_rank ? shape.pivots : 0));
    return std::max<Index>(1, (reached + o_.panel - 1) / o_.panel);
  }
  static bool all_parts(const std::vector<std::int32_t>& done) {
    return !done.empty() && static_cast<Index>(done.size()) == done[0] &&
           std::all_of(done.begin(), done.end(), [&](std::int32_t n) { return n == done[0]; });
  }
  bool finished(Index f, const std::vector<State>& states) const {
    return states[at(f)].whole || all_parts(states[at(f)].packed);
  }

  void step(Index r, const FrontLaunch& launch, Index t, const std::vector<State>& before,
            std::map<std::pair<Index, Index>, FrontStep>& touched) {
    switch (launch.step) {
      case FrontStep::lay_out:
      case FrontStep::whole: {
        const Index f = plan_.lists[at(t)];
        bounds(f, r, launch);
        const Front& front = s_.fronts[at(f)];
        for (Index c = 0; c < front.child_count; ++c)
          ASSERT_TRUE(finished(s_.children[at(front.child_begin + c)], before)) << "child of front " << f;
        ++fronts_[at(f)].laid_out;
        if (launch.step != FrontStep::whole) return;
        fronts_[at(f)].whole = true;
        const auto& shape = plan_.shapes[at(f)];
        ASSERT_LE(shape.rows_bound * (shape.cols + o_.rhs_cols), o_.whole_elements);
        ASSERT_LE(shape.rows_bound, o_.whole_rows);
        ASSERT_EQ(plan_.begin[at(f)], plan_.end[at(f)]);
        return;
      }
      case FrontStep::assemble:
      case FrontStep::finish: {
        const backend::FrontShare& share = plan_.shares[at(t)];
        bounds(share.front, r, launch);
        State& state = fronts_[at(share.front)];
        ASSERT_EQ(state.laid_out, 1);
        auto& done = launch.step == FrontStep::assemble ? state.assembled : state.packed;
        ASSERT_EQ(share.part, static_cast<std::int32_t>(done.size()));
        done.push_back(share.parts);
        if (launch.step == FrontStep::assemble) return;
        ASSERT_EQ(static_cast<Index>(state.round_of_panel.size()), panels(share.front));
        for (std::size_t j = 0; j < state.updates.size(); ++j)  // of a panel's own columns: by all before
          ASSERT_EQ(state.updates[j], std::min(static_cast<Index>(j) < plan_.shapes[at(share.front)].cols
                                                   ? static_cast<Index>(j) / o_.panel
                                                   : live(share.front),
                                               live(share.front)))
              << "column " << j;
        return;
      }
      case FrontStep::pack:
      case FrontStep::unpack: return;  // sparse_staging_test.cpp follows what they move
      case FrontStep::panel:
      case FrontStep::tail: {
        const auto [f, panel] = plan_.panels[at(t)];
        bounds(f, r, launch);
        State& state = fronts_[at(f)];
        ASSERT_TRUE(all_parts(state.assembled));
        if (launch.step == FrontStep::panel) {
          ASSERT_EQ(panel, static_cast<Index>(state.round_of_panel.size()));
          ASSERT_EQ(r, plan_.start[at(f)] + panel);
          if (panel > 0) {
            ASSERT_TRUE(before[at(f)].round_of_panel.contains(panel - 1));
          }
        } else {
          ASSERT_GE(panel, live(f));
          ASSERT_GE(static_cast<Index>(state.round_of_panel.size()), live(f));
        }
        ASSERT_TRUE(state.round_of_panel.emplace(panel, r).second) << "panel " << panel << " twice";
        for (Index j = panel * o_.panel; j < std::min<Index>((panel + 1) * o_.panel, plan_.shapes[at(f)].cols); ++j) {
          ASSERT_EQ(state.updates[at(j)], std::min<Index>(panel, live(f)));
          const auto found = touched.find({f, j});
          ASSERT_TRUE(found == touched.end() || is_urgent(found->second)) << "column " << j << " beside its panel";
        }
        return;
      }
      case FrontStep::narrow:
      case FrontStep::closing:
      case FrontStep::pair:
      case FrontStep::trailing: {
        const bool pair = launch.step == FrontStep::pair;
        const std::int32_t span = pair ? 2 : 1;
        const backend::FrontUpdateTask& task = plan_.updates[at(t)];
        bounds(task.front, r, launch);
        State& state = fronts_[at(task.front)];
        ASSERT_GE(task.cols, 1);
        ASSERT_LE(task.cols, pair ? o_.pair_cols : o_.update_cols);
        ASSERT_GE(launch.blocks, 1);
        ASSERT_LE(launch.blocks, o_.update_blocks);
        ASSERT_LE(task.first + task.cols, static_cast<Index>(state.updates.size()));
        // beside: the panel must have been there before the round
        const State& known = is_urgent(launch.step) ? state : before[at(task.front)];
        ASSERT_TRUE(known.round_of_panel.contains(task.panel + span - 1));
        for (Index j = task.first; j < task.first + task.cols; ++j) {
          ASSERT_EQ(state.updates[at(j)], task.panel) << "column " << j;
          ASSERT_GE(j, std::min<Index>((task.panel + span) * o_.panel, plan_.shapes[at(task.front)].cols));
          state.updates[at(j)] = task.panel + span;
          const auto [found, fresh] = touched.emplace(std::pair<Index, Index>{task.front, j}, launch.step);
          ASSERT_TRUE(fresh || (is_urgent(found->second) && is_urgent(launch.step))) << "column " << j << " by both";
        }
        return;
      }
    }
  }

  void bounds(Index f, Index r, const FrontLaunch& launch) const {
    ASSERT_GE(r, plan_.begin[at(f)]);
    ASSERT_LE(r, plan_.end[at(f)]);
    ASSERT_GE(launch.max_rows, plan_.shapes[at(f)].rows_bound);
    ASSERT_GE(launch.max_cols, plan_.shapes[at(f)].cols + o_.rhs_cols);
  }

  const Symbolic& s_;
  const FrontRoundsOptions& o_;
  const FrontRounds& plan_;
  std::vector<State> fronts_;
};

/// R's pieces cover 0 .. r_size - 1, each of a round in one piece.
inline void expect_r_in_order(const FrontRounds& plan) {
  std::vector<std::tuple<Index, Index, Index>> pieces;  // begin, end, round
  for (std::size_t f = 0; f < plan.shapes.size(); ++f) {
    const backend::FrontShape& shape = plan.shapes[f];
    Index size = static_cast<Index>(shape.r_bound) * (shape.cols - shape.pivots);
    for (Index j = 0; j < shape.pivots; ++j) size += std::min<Index>(j + 1, shape.r_bound);
    pieces.emplace_back(shape.r, shape.r + size, plan.end[f]);
  }
  std::sort(pieces.begin(), pieces.end());
  Index position = 0;
  for (const auto& [begin, end, round] : pieces) {
    ASSERT_EQ(begin, position);
    position = end;
    ASSERT_LE(end, plan.r_final[static_cast<std::size_t>(round)]);
    if (round > 0 && end > begin) {
      ASSERT_GE(begin, plan.r_final[static_cast<std::size_t>(round - 1)]);
    }
  }
  EXPECT_EQ(position, plan.r_size);
}

}  // namespace qrane::test
