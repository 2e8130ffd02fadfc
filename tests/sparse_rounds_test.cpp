// SPDX-License-Identifier: Apache-2.0
// The device's schedule of fronts: order of panels and updates, memory, launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include <qrane/error.hpp>

#include "sparse/front_rounds.hpp"
#include "sparse/processor.hpp"
#include "support/sparse.hpp"

namespace qrane::sparse {
namespace {

using test::NamedTriplets;
using test::Triplets;

Symbolic analyzed(const Triplets& a, Ordering ordering = Ordering::colamd) {
  AnalyzeOptions options;
  options.ordering = ordering;
  options.amalgamation = Amalgamation{.front_flops = 0, .entry_flops = 0};  // many fronts
  return analyze_pattern(a.view(), options, {}, true);
}

std::vector<FrontRoundsOptions> option_sets() {
  std::vector<FrontRoundsOptions> all;
  for (const Index whole : {Index{0}, Index{40}, Index{1} << 20})
    for (const Index rhs : {Index{0}, Index{5}})
      for (const bool keep_q : {false, true})
        for (const bool late : {false, true})
          all.push_back({.rhs_cols = rhs,
                         .panel = 4,
                         .whole_elements = whole,
                         .update_cols = rhs > 0 ? Index{3} : Index{8},
                         .share_elements = 30,
                         .keep_q = keep_q,
                         .detect_rank = !late || keep_q,
                         .late = late});
  return all;
}

/// Carries a plan out on counters: for every front which panels have been factored, and which have updated each column.
class Rehearsal {
 public:
  Rehearsal(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) : s_(s), o_(o), plan_(plan) {
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
    std::vector<Index> updates;  // of each column, by panels in order
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
      case FrontStep::panel:
      case FrontStep::tail: {
        const auto [f, panel] = plan_.panels[at(t)];
        bounds(f, r, launch);
        State& state = fronts_[at(f)];
        ASSERT_TRUE(all_parts(state.assembled));
        if (launch.step == FrontStep::panel) {
          ASSERT_EQ(panel, static_cast<Index>(state.round_of_panel.size()));
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
      case FrontStep::wide: {
        const backend::FrontUpdateTask& task = plan_.updates[at(t)];
        bounds(task.front, r, launch);
        State& state = fronts_[at(task.front)];
        ASSERT_GE(task.cols, 1);
        ASSERT_LE(task.cols, o_.update_cols);
        ASSERT_LE(task.first + task.cols, static_cast<Index>(state.updates.size()));
        // beside: the panel must have been there before the round
        const State& known = launch.step == FrontStep::wide ? before[at(task.front)] : state;
        ASSERT_TRUE(known.round_of_panel.contains(task.panel));
        for (Index j = task.first; j < task.first + task.cols; ++j) {
          ASSERT_EQ(state.updates[at(j)], task.panel) << "column " << j;
          ASSERT_GE(j, std::min<Index>((task.panel + 1) * o_.panel, plan_.shapes[at(task.front)].cols));
          state.updates[at(j)] = task.panel + 1;
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

/// Fronts whose memory overlaps are never held at once.
void expect_apart(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) {
  struct Held {
    Index begin, end;  // elements
    Index first, last;  // rounds
  };
  std::vector<Held> held;
  for (Index f = 0; f < s.front_count(); ++f) {
    const backend::FrontShape& shape = plan.shapes[static_cast<std::size_t>(f)];
    const Index parent = s.fronts[static_cast<std::size_t>(f)].parent;
    const Index last = o.keep_q       ? plan.rounds()
                       : parent >= 0 ? plan.begin[static_cast<std::size_t>(parent)]
                                     : plan.end[static_cast<std::size_t>(f)];
    ASSERT_GE(shape.ld, shape.rows_bound);
    ASSERT_GE(shape.corner, shape.matrix + shape.ld * (shape.cols + o.rhs_cols));
    ASSERT_GE(shape.t, shape.corner + o.panel * shape.cols);
    const Index end = shape.t + o.panel * shape.cols;
    ASSERT_LE(end, plan.storage_size);
    held.push_back({shape.matrix, end, plan.begin[static_cast<std::size_t>(f)], last});
  }
  for (std::size_t a = 0; a < held.size(); ++a)
    for (std::size_t b = a + 1; b < held.size(); ++b) {
      const bool in_space = held[a].begin < held[b].end && held[b].begin < held[a].end;
      const bool in_time = held[a].first <= held[b].last && held[b].first <= held[a].last;
      ASSERT_FALSE(in_space && in_time) << "fronts " << a << " and " << b;
    }
}

/// R's pieces cover 0 .. r_size - 1, each of a round in one piece.
void expect_r_in_order(const FrontRounds& plan) {
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

bool same(const FrontRounds& a, const FrontRounds& b) {
  const auto bytes_equal = [](const auto& x, const auto& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0);
  };
  return bytes_equal(a.shapes, b.shapes) && bytes_equal(a.lists, b.lists) && bytes_equal(a.shares, b.shares) &&
         bytes_equal(a.panels, b.panels) && bytes_equal(a.updates, b.updates) && a.round_begin == b.round_begin &&
         a.storage_size == b.storage_size;
}

TEST(FrontRounds, EveryStepOnceAndInOrder) {
  std::vector<NamedTriplets> matrices = test::odd_matrices();
  matrices.push_back({"larger", test::random_sparse(400, 160, 0.02, 77)});
  for (const NamedTriplets& matrix : matrices) {
    const Symbolic s = analyzed(matrix.a);
    for (const FrontRoundsOptions& options : option_sets()) {
      SCOPED_TRACE(::testing::Message() << matrix.name << ", whole " << options.whole_elements << ", rhs "
                                        << options.rhs_cols << (options.keep_q ? ", Q" : "")
                                        << (options.late ? ", late" : ""));
      const FrontRounds plan = plan_rounds(s, options);
      Rehearsal(s, options, plan).run();
      expect_apart(s, options, plan);
      expect_r_in_order(plan);
      EXPECT_TRUE(same(plan, plan_rounds(s, options)));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST(FrontRounds, AsManyAsTheLongestPathHasPanels) {
  const Symbolic s = analyzed(test::random_sparse(500, 200, 0.02, 5));
  for (const bool late : {false, true}) {
    const FrontRoundsOptions options{.panel = 8, .update_cols = 1000, .late = late};
    const FrontRounds plan = plan_rounds(s, options);
    std::vector<Index> path(s.fronts.size(), 0);
    Index longest = 0;
    for (std::size_t f = 0; f < path.size(); ++f) {
      const Front& front = s.fronts[f];
      const Index reached = std::min(front.cols, front.rows_bound + front.pivots);
      path[f] += std::max<Index>((reached + 7) / 8, 1);
      longest = std::max(longest, path[f]);
      if (front.parent >= 0) {
        Index& parent = path[static_cast<std::size_t>(front.parent)];
        parent = std::max(parent, path[f]);
      }
    }
    EXPECT_EQ(plan.rounds(), longest);
  }
}

TEST(FrontRounds, ProcessorsArePredictedByRoundsAndFlops) {
  const Symbolic s = analyzed(test::random_sparse(500, 200, 0.02, 5));
  const FrontRoundsOptions options{.panel = 8, .whole_elements = 100, .update_cols = 1000};
  EXPECT_EQ(longest_path(s, 8, 100), plan_rounds(s, options).rounds());
  tuning::SparseTuning tuning = tuning::sparse_defaults(Backend::cuda);
  const auto with_flops = [&](double flops) {  // as deep, with so much to do
    Symbolic changed = s;
    changed.facts.flops = flops;
    for (Front& front : changed.fronts) front.flops *= flops / s.facts.flops;
    return changed;
  };
  const Symbolic small = with_flops(1e5), large = with_flops(1e11);
  EXPECT_LT(predict_seconds(small, tuning, 16, 8).cpu, predict_seconds(small, tuning, 16, 8).device);
  EXPECT_LT(predict_seconds(large, tuning, 16, 8).device, predict_seconds(large, tuning, 16, 8).cpu);
  EXPECT_LE(predict_seconds(large, tuning, 16, 8).cpu, predict_seconds(large, tuning, 2, 8).cpu);
}

TEST(FrontRounds, LateFrontsHoldNoMoreMemory) {
  const Symbolic s = analyzed(test::random_sparse(800, 300, 0.01, 6));
  FrontRoundsOptions options{.keep_q = false};
  const Index early = plan_rounds(s, options).storage_size;
  options.late = true;
  EXPECT_LE(plan_rounds(s, options).storage_size, early);
}

TEST(FrontRounds, LimitsAreKeptDownToOneFrontAfterTheOther) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Symbolic s = analyzed(test::random_sparse(600 + 50 * seed, 250, 0.012, 60 + seed));
    FrontRoundsOptions options{.panel = 8, .whole_elements = 40, .update_cols = 16, .keep_q = false};
    const FrontRounds all_at_once = plan_rounds(s, options);
    options.storage_limit = 0;
    const FrontRounds one_by_one = plan_rounds(s, options);
    Rehearsal(s, options, one_by_one).run();
    expect_apart(s, options, one_by_one);
    EXPECT_LT(one_by_one.storage_size, all_at_once.storage_size);
    for (Index k = 0; k <= 8; ++k) {
      options.storage_limit =
          one_by_one.storage_size + (all_at_once.storage_size - one_by_one.storage_size) * k * k / 64;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", limit " << options.storage_limit);
      const FrontRounds plan = plan_rounds(s, options);
      EXPECT_LE(plan.storage_size, options.storage_limit);
      EXPECT_LE(plan.rounds(), one_by_one.rounds());
      Rehearsal(s, options, plan).run();
      expect_apart(s, options, plan);
      expect_r_in_order(plan);
      for (std::size_t f = 0; f < plan.shapes.size(); ++f) {  // nothing that a kernel chooses by differs
        ASSERT_EQ(plan.shapes[f].ld, all_at_once.shapes[f].ld);
        ASSERT_EQ(plan.shapes[f].rows_bound, all_at_once.shapes[f].rows_bound);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(FrontRounds, HundredThousandFrontsInNoTime) {
  // blocks of a band, each sharing columns with the next two: a long, bushy tree
  Triplets a{240000, 120000, {}, {}, {}};
  std::mt19937 generator(3);
  for (Index i = 0; i < a.rows; ++i) {
    const Index j = i / 2;
    a.add(i, j, 1.0);
    a.add(i, std::min<Index>(a.cols - 1, j + 1 + static_cast<Index>(generator() % 3)), 1.0);
  }
  AnalyzeOptions options;
  options.ordering = Ordering::colamd;
  options.amalgamation = Amalgamation{0, 0, 0, {1, 1, 1}, {0, 0, 0}, 0};
  const Symbolic s = analyze_pattern(a.view(), options, {}, true);
  ASSERT_GT(s.front_count(), 80000);
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const FrontRounds plan = plan_rounds(s, {.whole_elements = 2000, .keep_q = false});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    ASSERT_EQ(plan.shapes.size(), s.fronts.size());
  }
  std::printf("%ld fronts: %.1f ms\n", static_cast<long>(s.front_count()), best * 1e3);
  EXPECT_LT(best, 0.5);  // 20 ms on a quiet machine
}

TEST(BlockPlanner, BlocksNeverOverlapAndHolesMerge) {
  std::mt19937 generator(11);
  BlockPlanner planner;
  struct Taken {
    Index handle, begin, end;
  };
  std::vector<Taken> taken;
  Index most = 0, held = 0;
  for (int k = 0; k < 20000; ++k) {
    if (taken.empty() || (generator() % 2 != 0 && taken.size() < 200)) {
      const Index size = 1 + static_cast<Index>(generator() % (Index{1} << generator() % 16));
      const Index handle = planner.take(size), begin = planner.address(handle);
      for (const Taken& other : taken) ASSERT_TRUE(begin + size <= other.begin || other.end <= begin);
      taken.push_back({handle, begin, begin + size});
      most = std::max(most, held += size);
      ASSERT_LE(begin + size, planner.extent());
    } else {
      const std::size_t which = generator() % taken.size();
      planner.give_back(taken[which].handle);
      held -= taken[which].end - taken[which].begin;
      taken[which] = taken.back();
      taken.pop_back();
    }
  }
  EXPECT_LT(planner.extent(), 2 * most);
  for (const Taken& t : taken) planner.give_back(t.handle);
  const Index all = planner.extent(), handle = planner.take(all);  // one hole is left
  EXPECT_EQ(planner.address(handle), 0);
  EXPECT_EQ(planner.extent(), all);
}

}  // namespace
}  // namespace qrane::sparse
