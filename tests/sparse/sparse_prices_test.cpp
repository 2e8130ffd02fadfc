// SPDX-License-Identifier: Apache-2.0
// Each constant of a sparse price counts one quantity: with all other constants neutral, the price is that quantity.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sparse/device/plan/front_rounds.hpp"
#include "sparse/device/plan/solve_schedule.hpp"
#include "sparse/device/solve_cost.hpp"
#include "sparse/host/numeric_plan.hpp"
#include "sparse/processor.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using namespace sparse;
using tuning::SparseTuning;

constexpr double infinite = std::numeric_limits<double>::infinity();

Symbolic analyzed(const Triplets& a) { return analyze_pattern(a.view(), {}, {}, false); }

/// Nothing takes any time.
SparseTuning neutral() {
  SparseTuning t;
  t.device_flops = t.core_flops = t.chain_flops = infinite;
  t.cpu_start_seconds = t.thread_seconds = t.core_front_seconds = t.core_entry_seconds = t.core_element_seconds = 0;
  t.threads_power = t.narrow_speed_up = 1;
  return t;
}

double device(const Symbolic& s, const SparseTuning& t) { return predict_seconds(s, t, 1, 8).device; }
double cpu(const Symbolic& s, const SparseTuning& t, int threads = 1, int scalar_bytes = 8) {
  return predict_seconds(s, t, threads, scalar_bytes).cpu;
}

TEST(SparsePrices, EachDeviceConstantCountsItsQuantity) {
  const Symbolic s = analyzed(random_sparse(500, 200, 0.02, 5));
  const AnalysisFacts& facts = s.facts;
  EXPECT_EQ(device(s, neutral()), 0);
  const auto with = [&](double SparseTuning::*field, double value) {
    SparseTuning t = neutral();
    t.*field = value;
    return device(s, t);
  };
  EXPECT_EQ(with(&SparseTuning::start_seconds, 3), 3);
  EXPECT_EQ(with(&SparseTuning::least_seconds, 3), 3);
  EXPECT_EQ(with(&SparseTuning::entry_seconds, 1), static_cast<double>(facts.entries));
  EXPECT_EQ(with(&SparseTuning::element_seconds, 1), static_cast<double>(facts.front_entries));
  EXPECT_EQ(with(&SparseTuning::front_seconds, 1), static_cast<double>(facts.fronts));
  EXPECT_EQ(with(&SparseTuning::device_flops, 2), facts.flops / 2);
  SparseTuning whole = neutral();
  whole.whole_bytes = 1e15;
  whole.whole_element_seconds = 1;
  Index heaviest = 0;
  std::vector<Index> path(s.fronts.size(), 0);
  for (std::size_t f = 0; f < path.size(); ++f) {
    path[f] += s.fronts[f].rows_bound * s.fronts[f].cols;
    heaviest = std::max(heaviest, path[f]);
    if (const Index parent = s.fronts[f].parent; parent >= 0) path[parent] = std::max(path[parent], path[f]);
  }
  EXPECT_EQ(device(s, whole), static_cast<double>(heaviest));
  whole.least_seconds = 1;  // the larger of the two
  EXPECT_EQ(device(s, whole), static_cast<double>(heaviest));
}

TEST(SparsePrices, EachCpuConstantCountsItsQuantity) {
  const Symbolic s = analyzed(random_sparse(500, 200, 0.02, 5));
  const AnalysisFacts& facts = s.facts;
  EXPECT_EQ(cpu(s, neutral()), 0);
  const auto with = [&](double SparseTuning::*field, double value) {
    SparseTuning t = neutral();
    t.*field = value;
    return cpu(s, t);
  };
  double work = 0;
  for (const Front& front : s.fronts) work += front_work(front);
  EXPECT_EQ(with(&SparseTuning::cpu_start_seconds, 3), 3);
  EXPECT_EQ(with(&SparseTuning::thread_seconds, 3), 0);  // of threads beyond the first
  EXPECT_EQ(with(&SparseTuning::core_entry_seconds, 1), static_cast<double>(facts.entries));
  EXPECT_EQ(with(&SparseTuning::core_element_seconds, 1), static_cast<double>(facts.front_entries));
  EXPECT_EQ(with(&SparseTuning::core_front_seconds, 1), static_cast<double>(facts.fronts));
  EXPECT_DOUBLE_EQ(with(&SparseTuning::core_flops, 2), work / 2);
  EXPECT_LE(with(&SparseTuning::chain_flops, 2), work / 2);
  EXPECT_GT(with(&SparseTuning::chain_flops, 2), 0);
  SparseTuning narrow = neutral();
  narrow.core_element_seconds = 1;
  narrow.narrow_speed_up = 4;
  EXPECT_EQ(cpu(s, narrow, 1, 4), static_cast<double>(facts.front_entries) / 4);
  EXPECT_EQ(cpu(s, narrow, 1, 8), static_cast<double>(facts.front_entries));
}

TEST(SparsePrices, ThreadsShareWorkAndCostTheirStart) {
  Symbolic s = analyzed(random_sparse(500, 200, 0.02, 5));
  for (Front& front : s.fronts) front.flops += 1e10;
  const int threads = useful_threads(s, 6);
  ASSERT_GT(threads, 1);
  SparseTuning t = neutral();
  t.thread_seconds = 1;
  EXPECT_EQ(cpu(s, t, 6), threads - 1);
  t = neutral();
  t.core_front_seconds = 1;
  EXPECT_DOUBLE_EQ(cpu(s, t, 6), static_cast<double>(s.facts.fronts) / threads);
  t = neutral();
  t.core_flops = 1;
  EXPECT_DOUBLE_EQ(cpu(s, t, 6), cpu(s, t, 1) / threads);
}

class UsePrices : public ::testing::Test {
 protected:
  UseCost cost(Backend backend, bool with_q, int scalar_bytes = 8, Index storage = 1000, Index r = 500) const {
    return {backend, symbolic_, plan_.shapes, 32, storage, r, with_q, scalar_bytes};
  }
  Symbolic symbolic_ = analyzed(random_sparse(500, 200, 0.02, 5));
  FrontRounds plan_ = plan_rounds(symbolic_, {});
  tuning::SolveTuning t_ = tuning::solve_defaults(Backend::cuda);
  double lines_ = static_cast<double>(symbolic_.rows + symbolic_.cols);
};

TEST_F(UsePrices, FactorsOfACpuAreUsedThere) {
  const UseSeconds seconds = cost(Backend::cpu, true).seconds(FactorUse::solve, 3, true);
  EXPECT_EQ(seconds.device, infinite);
  EXPECT_EQ(seconds.host, 0);
}

TEST_F(UsePrices, RightHandSidesMoveToTheProcessorThatTakesThem) {
  const UseCost price = cost(Backend::cuda, true);
  const double moved = lines_ * 7 * 8 / t_.copied_bytes;
  for (const FactorUse use : {FactorUse::apply, FactorUse::solve, FactorUse::solve_transposed}) {
    const UseSeconds here = price.seconds(use, 7, true), there = price.seconds(use, 7, false);
    EXPECT_NEAR(there.device - here.device, moved, 1e-12);
    EXPECT_NEAR(here.host - there.host, moved, 1e-12);
  }
}

TEST_F(UsePrices, NumbersOfTheFactorsAreReadOncePerPass) {
  const Index more = 1000000;
  // seconds that so many more elements take: bytes read, and two flops for each right-hand side
  const auto of = [&](double passes, double bytes, double flops, double per_second, Index cols) {
    return passes * static_cast<double>(more) * (bytes / per_second + 2 * static_cast<double>(cols) / flops);
  };
  const auto grown = [&](bool with_q, FactorUse use, Index storage, Index r) {
    const UseSeconds small = cost(Backend::cuda, with_q).seconds(use, 5, true);
    const UseSeconds large = cost(Backend::cuda, with_q, 8, 1000 + storage, 500 + r).seconds(use, 5, true);
    return UseSeconds{large.device - small.device, large.host - small.host};
  };
  const auto expect_passes = [&](const UseSeconds& seconds, double passes, double copied) {
    const double device = of(passes, 8, t_.device_flops, t_.device_bytes, 5);
    const double host = of(passes, 8, t_.host_flops, t_.host_bytes, 5) + copied;
    EXPECT_NEAR(seconds.device, device, 1e-9 * std::max(device, 1e-3));
    EXPECT_NEAR(seconds.host, host, 1e-9 * std::max(host, 1e-3));
  };
  const double q_copied = static_cast<double>(more) * 8 / t_.copied_bytes / t_.uses;
  expect_passes(grown(true, FactorUse::solve, 0, more), 1, 0);
  expect_passes(grown(true, FactorUse::solve, more, 0), 2, q_copied);
  expect_passes(grown(false, FactorUse::solve, 0, more), 4, 0);  // semi-normal equations, corrected
  expect_passes(grown(false, FactorUse::solve, more, 0), 0, 0);
  expect_passes(grown(true, FactorUse::solve_riding, 0, more), 1, 0);
  expect_passes(grown(true, FactorUse::solve_riding, more, 0), 0, 0);
  expect_passes(grown(true, FactorUse::apply, 0, more), 0, 0);
  expect_passes(grown(true, FactorUse::apply, more, 0), 2, q_copied);
  expect_passes(grown(true, FactorUse::solve_transposed, more, more), 3, q_copied);
}

TEST_F(UsePrices, LaunchesAndListsAreCounted) {
  const double r_rounds = static_cast<double>(r_solve_rounds(symbolic_, plan_.shapes));
  const double q_rounds = static_cast<double>(q_product_rounds(symbolic_, plan_.shapes, {.panel = 32}));
  const double lists = static_cast<double>(symbolic_.entries + 3 * std::ssize(symbolic_.front_cols)) +
                       3 * static_cast<double>(symbolic_.rows);
  const auto device = [&](FactorUse use, bool with_q) {
    return cost(Backend::cuda, with_q, 8, 0, 0).seconds(use, 0, true).device;
  };
  const double listed = t_.list_seconds * lists / t_.uses, launch = 2 * t_.launch_seconds;
  EXPECT_DOUBLE_EQ(device(FactorUse::apply, true), listed + launch * q_rounds);
  EXPECT_DOUBLE_EQ(device(FactorUse::solve, true), listed + launch * (r_rounds + q_rounds));
  EXPECT_DOUBLE_EQ(device(FactorUse::solve, false), listed + launch * 4 * r_rounds);
  EXPECT_DOUBLE_EQ(device(FactorUse::solve_riding, true), listed + launch * r_rounds);
}

}  // namespace
}  // namespace qrane::test
