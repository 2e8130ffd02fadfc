// SPDX-License-Identifier: Apache-2.0
// The device's schedule of fronts: order of panels and updates, memory, launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include <qrane/error.hpp>

#include "sparse/block_planner.hpp"
#include "sparse/device/plan/front_lanes.hpp"
#include "sparse/processor.hpp"
#include "support/front_simulation.hpp"

namespace qrane::sparse {
namespace {

using test::analyzed;
using test::expect_r_in_order;
using test::NamedTriplets;
using test::Simulation;
using test::Triplets;

std::vector<FrontRoundsOptions> option_sets() {
  std::vector<FrontRoundsOptions> all;
  for (const Index whole : {Index{0}, Index{40}, Index{1} << 20})
    for (const Index rhs : {Index{0}, Index{5}})
      for (const bool keep_q : {false, true})
        for (const bool late : {false, true})
          all.push_back({.rhs_cols = rhs,
                         .panel = 4,
                         .whole_elements = whole,
                         .whole_rows = late ? Index{6} : Index{1} << 20,
                         .update_cols = rhs > 0 ? Index{3} : Index{8},
                         .update_blocks = late ? 1 : backend::front_update_blocks,
                         .pair_cols = whole == 0 ? (rhs > 0 ? Index{12} : Index{16}) : Index{0},
                         .pair_rows = 10,
                         .share_elements = 30,
                         .keep_q = keep_q,
                         .detect_rank = !late || keep_q,
                         .late = late});
  return all;
}

/// Fronts whose memory overlaps are never held at once.
void expect_apart(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) {
  struct Held {
    Index begin, end;   // elements
    Index first, last;  // rounds
  };
  std::vector<Held> held;
  for (Index f = 0; f < s.front_count(); ++f) {
    const backend::FrontShape& shape = plan.shapes[static_cast<std::size_t>(f)];
    const Index parent = s.fronts[static_cast<std::size_t>(f)].parent;
    const Index last = o.keep_q      ? plan.rounds()
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

/// By lanes, whatever works on a front, on its children or on memory that was another front's comes after what it
/// needs.
void expect_lanes_in_order(const Symbolic& s, const FrontRoundsOptions& o, const FrontRounds& plan) {
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const FrontLanes lanes = plan_lanes(s, plan, o.panel, o.keep_q);
  const std::size_t count = plan.launches.size();
  ASSERT_EQ(lanes.lane.size(), count);
  std::vector<std::vector<bool>> after(count,
                                       std::vector<bool>(count, false));  // after[b][a]: b begins when a has ended
  std::vector<std::vector<Index>> of_front(s.fronts.size());              // launches
  std::vector<Index> round(count);
  std::map<std::int32_t, std::size_t> last;
  for (std::size_t b = 0; b < count; ++b) {
    const auto follow = [&](std::size_t a) {
      ASSERT_LT(a, b);
      after[b][a] = true;
      for (std::size_t k = 0; k < a; ++k) after[b][k] = after[b][k] || after[a][k];
    };
    if (last.contains(lanes.lane[b])) follow(last[lanes.lane[b]]);
    last[lanes.lane[b]] = b;
    for (Index w = lanes.wait_begin[b]; w < lanes.wait_begin[b + 1]; ++w) {
      const auto a = static_cast<std::size_t>(lanes.waits[at(w)]);
      EXPECT_TRUE(lanes.awaited[a]);
      follow(a);
    }
    while (static_cast<Index>(b) >= plan.round_begin[at(round[b] + 1)]) ++round[b];
    const FrontLaunch& launch = plan.launches[b];
    for (Index t = launch.first; t < launch.first + launch.count; ++t) {
      Index front = -1;
      switch (launch.step) {
        case FrontStep::lay_out:
        case FrontStep::whole: front = plan.lists[at(t)]; break;
        case FrontStep::assemble:
        case FrontStep::finish: front = plan.shares[at(t)].front; break;
        case FrontStep::panel:
        case FrontStep::tail: front = plan.panels[at(t)].front; break;
        default: front = plan.updates[at(t)].front;
      }
      std::vector<Index>& launches = of_front[at(front)];
      if (launches.empty() || launches.back() != static_cast<Index>(b)) launches.push_back(static_cast<Index>(b));
    }
  }
  const auto ordered = [&](Index a, Index b) { return after[at(b)][at(a)]; };
  const auto step = [&](Index l) { return plan.launches[at(l)].step; };
  const auto opening = [&](Index f) {  // the launch that reads the children and writes to the front's memory first
    const auto found = std::find_if(of_front[at(f)].begin(), of_front[at(f)].end(), [&](Index l) {
      return step(l) == FrontStep::assemble || step(l) == FrontStep::whole;
    });
    return *found;
  };
  const auto end = [&](Index f) { return plan.shapes[at(f)].t + o.panel * plan.shapes[at(f)].cols; };
  for (Index f = 0; f < s.front_count(); ++f) {
    const std::vector<Index>& launches = of_front[at(f)];
    for (std::size_t b = 1; b < launches.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        const bool beside = round[at(launches[a])] == round[at(launches[b])] &&
                            is_urgent(step(launches[a])) != is_urgent(step(launches[b]));
        ASSERT_TRUE(beside || ordered(launches[a], launches[b])) << "front " << f;
      }
    const Index parent = s.fronts[at(f)].parent;
    if (parent >= 0) {
      for (const Index l : launches) ASSERT_TRUE(ordered(l, of_front[at(parent)].front())) << "child " << f;
    }
    for (Index g = 0; g < s.front_count(); ++g) {
      if (g == f || plan.begin[at(g)] <= plan.begin[at(f)] || plan.shapes[at(f)].matrix >= end(g) ||
          plan.shapes[at(g)].matrix >= end(f))
        continue;
      for (const Index l : launches) ASSERT_TRUE(ordered(l, opening(g))) << "memory of " << f << " for " << g;
      if (parent >= 0) {
        ASSERT_TRUE(ordered(opening(parent), opening(g))) << "memory of " << f << " for " << g;
      }
    }
  }
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
      Simulation(s, options, plan).run();
      expect_apart(s, options, plan);
      expect_lanes_in_order(s, options, plan);
      expect_r_in_order(plan);
      EXPECT_TRUE(same(plan, plan_rounds(s, options)));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

/// Panels of 8 columns on the longest path, fronts of at most `whole` elements counted as one; and one for each of the
/// others' assembly.
Index rounds_on_longest_path(const Symbolic& s, Index whole, Index assembly) {
  std::vector<Index> path(s.fronts.size(), 0);
  Index longest = 0;
  for (std::size_t f = 0; f < path.size(); ++f) {
    const Front& front = s.fronts[f];
    const Index reached = std::min(front.cols, front.rows_bound + front.pivots);
    path[f] += front.rows_bound * front.cols <= whole ? 1 : assembly + std::max<Index>((reached + 7) / 8, 1);
    longest = std::max(longest, path[f]);
    if (front.parent >= 0) {
      Index& parent = path[static_cast<std::size_t>(front.parent)];
      parent = std::max(parent, path[f]);
    }
  }
  return longest;
}

TEST(FrontRounds, AsManyAsTheLongestPathHasFrontsAndPanels) {
  const Symbolic s = analyzed(test::random_sparse(500, 200, 0.02, 5));
  for (const bool late : {false, true})
    for (const Index whole : {Index{0}, Index{100}}) {
      const FrontRoundsOptions options{.panel = 8, .whole_elements = whole, .update_cols = 1000, .late = late};
      EXPECT_EQ(plan_rounds(s, options).rounds(), rounds_on_longest_path(s, whole, 1));
    }
}

TEST(FrontRounds, ProcessorsArePredictedByRoundsAndFlops) {
  const Symbolic s = analyzed(test::random_sparse(500, 200, 0.02, 5));
  EXPECT_EQ(longest_path(s, 8, 100), rounds_on_longest_path(s, 100, 0));
  tuning::SparseTuning tuning = tuning::sparse_defaults(Backend::cuda);
  const auto with_flops = [&](double flops) {  // as deep, with so much to do
    Symbolic changed = s;
    changed.facts.flops = flops;
    for (Front& front : changed.fronts) front.flops *= flops / s.facts.flops;
    return changed;
  };
  tuning::SparseTuning seconds;  // a second for each round, nothing for all else
  seconds.round_seconds = seconds.idle_seconds = 1;
  seconds.device_flops = 1e300;
  const double rounds = predict_seconds(s, seconds, 16, 8).device;
  EXPECT_EQ(rounds, static_cast<double>(longest_path(s, 32, 0)));
  seconds.idle_seconds = 0;  // of panels that rows reach with full rank
  EXPECT_LE(predict_seconds(s, seconds, 16, 8).device, rounds);
  EXPECT_GE(predict_seconds(s, seconds, 16, 8).device, 1);
  const Symbolic small = with_flops(1e5), large = with_flops(1e11);
  EXPECT_LT(predict_seconds(small, tuning, 16, 8).cpu, predict_seconds(small, tuning, 16, 8).device);
  EXPECT_LT(predict_seconds(large, tuning, 16, 8).device, predict_seconds(large, tuning, 16, 8).cpu);
  EXPECT_LE(predict_seconds(large, tuning, 16, 8).cpu, predict_seconds(large, tuning, 2, 8).cpu);
}

TEST(FrontRounds, MatricesOfNextToNothingStayOnTheCpu) {
  for (const test::NamedTriplets& odd : test::odd_matrices()) {
    const Symbolic s = analyzed(odd.a);
    for (const int threads : {1, 2, 16})
      for (const int scalar_bytes : {4, 8}) {
        SCOPED_TRACE(testing::Message() << odd.name << ", " << threads << " threads, " << scalar_bytes << " bytes");
        const ProcessorSeconds seconds =
            predict_seconds(s, tuning::sparse_defaults(Backend::cuda), threads, scalar_bytes);
        EXPECT_LT(seconds.cpu, seconds.device);
      }
  }
}

TEST(FrontRounds, LateFrontsHoldNoMoreMemory) {
  const Symbolic s = analyzed(test::random_sparse(800, 300, 0.01, 6));
  FrontRoundsOptions options{.keep_q = false};
  const Index early = plan_rounds(s, options).storage_size;
  options.late = true;
  EXPECT_LE(plan_rounds(s, options).storage_size, early);
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
  options.expert.amalgamation = Amalgamation{0, 0, 0, {1, 1, 1}, {0, 0, 0}, 0};
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
