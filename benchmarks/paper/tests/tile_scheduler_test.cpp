// SPDX-License-Identifier: Apache-2.0
// The bucket scheduler: the paper's example, and random fronts factored by carrying out their schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include <qrane/error.hpp>

#include "paper/tiles/scheduler.hpp"
#include "support/dense.hpp"

namespace qrane::sparse {
namespace {

using test::Dense;
using Heights = std::vector<Index>;

int rounds_of(Index rows, Index cols, const Heights& staircase, const ScheduleOptions& options) {
  BucketScheduler scheduler(0, rows, cols, staircase, options);
  SlotPool slots;
  Round round;
  int count = 0;
  while (scheduler.next(round, slots)) ++count;
  return count;
}

TEST(BucketScheduler, ExampleOfThePaper) {
  Heights staircase(160, 256);  // row tiles 7 and 8 of eight begin with a zero tile
  std::fill_n(staircase.begin(), 32, 6 * 32);
  EXPECT_EQ(rounds_of(256, 160, staircase, {.pipelined = false}), 12);
  EXPECT_EQ(rounds_of(256, 160, staircase, {}), 7);
}

TEST(BucketScheduler, FirstRoundsOfTheExample) {
  Heights staircase(160, 256);
  std::fill_n(staircase.begin(), 32, 6 * 32);
  BucketScheduler scheduler(0, 256, 160, staircase, {});
  SlotPool slots;
  const auto rows = [](const Round& round, std::int32_t bundle) {
    const auto r = round.rows_of(round.bundles[static_cast<std::size_t>(bundle)]);
    return Heights(r.begin(), r.end());
  };
  Round first, second;
  slots.begin_round();
  ASSERT_TRUE(scheduler.next(first, slots));
  ASSERT_EQ(first.factorize.size(), 3u);  // red, magenta, green
  EXPECT_EQ(rows(first, first.factorize[0].bundle), (Heights{0, 1, 2}));
  EXPECT_EQ(rows(first, first.factorize[1].bundle), (Heights{3, 4, 5}));
  EXPECT_EQ(rows(first, first.factorize[2].bundle), (Heights{6, 7}));
  EXPECT_TRUE(first.apply.empty());
  slots.begin_round();
  ASSERT_TRUE(scheduler.next(second, slots));
  ASSERT_FALSE(second.apply_factorize.empty());  // an idle row tile joins one of the rests, the other goes on as it is
  std::size_t grown = 0;
  for (const ApplyFactorizeTask& task : second.apply_factorize) {
    const Heights rest = rows(second, task.applied), all = rows(second, task.factored);
    grown += all.size() == rest.size();
    EXPECT_TRUE(std::includes(all.begin(), all.end(), rest.begin() + 1, rest.end()));
  }
  EXPECT_EQ(grown, 1u);
  ASSERT_EQ(second.factorize.size(), 1u);  // the two triangles of the first bucket
  EXPECT_EQ(rows(second, second.factorize[0].bundle), (Heights{0, 3}));
}

/// Carries out rounds on a front in double, one task after the other in a shuffled order, and checks what a device
/// needs: no task touches what another one of its round writes, and nobody's VT tile is taken while it is read.
class Machine {
 public:
  Machine(Dense<double> a, int tile) : a_(std::move(a)), tile_(tile) {}

  void run(const Round& round, std::mt19937& random) {
    written_.clear();
    read_.clear();
    written_vt_.clear();
    read_vt_.clear();
    applied_.clear();
    std::vector<std::pair<int, std::size_t>> tasks;
    for (std::size_t i = 0; i < round.factorize.size(); ++i) tasks.emplace_back(0, i);
    for (std::size_t i = 0; i < round.apply.size(); ++i) tasks.emplace_back(1, i);
    for (std::size_t i = 0; i < round.apply_factorize.size(); ++i) tasks.emplace_back(2, i);
    std::shuffle(tasks.begin(), tasks.end(), random);
    for (const auto& [kind, i] : tasks) {
      if (kind == 0) {
        const Bundle& bundle = bundle_of(round, round.factorize[i].bundle);
        write(round, bundle, bundle.column, 0);
        factor(round, bundle);
      } else if (kind == 1) {
        const ApplyTask& task = round.apply[i];
        const Bundle& bundle = bundle_of(round, task.bundle);
        read_v(round, bundle);
        for (std::int32_t j = task.first_column; j < task.first_column + task.columns; ++j) {
          write(round, bundle, j, 0);
          apply(round, bundle, j);
        }
      } else {
        const ApplyFactorizeTask& task = round.apply_factorize[i];
        const Bundle &applied = bundle_of(round, task.applied), &factored = bundle_of(round, task.factored);
        read_v(round, applied);
        write(round, factored, factored.column, 0);
        const auto rows = round.rows_of(applied);
        write_tile(rows[0], factored.column);
        apply(round, applied, factored.column);
        factor(round, factored);
      }
    }
    for (const auto& tile : read_) EXPECT_FALSE(written_.count(tile)) << "tile " << tile.first << ", " << tile.second;
    for (const auto slot : read_vt_) EXPECT_FALSE(written_vt_.count(slot)) << "VT slot " << slot;
  }

  const Dense<double>& a() const { return a_; }

 private:
  static const Bundle& bundle_of(const Round& round, std::int32_t i) {
    return round.bundles[static_cast<std::size_t>(i)];
  }

  void write_tile(std::int32_t row, std::int32_t column) {
    EXPECT_TRUE(written_.emplace(row, column).second)
        << "tile " << row << ", " << column << " written twice in a round";
  }
  void write(const Round& round, const Bundle& bundle, std::int32_t column, std::size_t from) {
    const auto rows = round.rows_of(bundle);
    for (std::size_t k = from; k < rows.size(); ++k) write_tile(rows[k], column);
  }
  void read_v(const Round& round, const Bundle& bundle) {
    const auto rows = round.rows_of(bundle);
    for (std::size_t k = 1; k < rows.size(); ++k) read_.emplace(rows[k], bundle.column);
    read_vt_.insert(bundle.vt);
  }

  std::vector<Index> element_rows(const Round& round, const Bundle& bundle) const {
    std::vector<Index> rows;
    for (const std::int32_t tile : round.rows_of(bundle))
      for (Index i = Index{tile} * tile_; i < std::min<Index>((Index{tile} + 1) * tile_, a_.rows); ++i)
        rows.push_back(i);
    return rows;
  }

  /// Reflectors go to the slot whole: what lies in the front's tiles is R here, and zeros.
  void factor(const Round& round, const Bundle& bundle) {
    EXPECT_TRUE(written_vt_.insert(bundle.vt).second) << "VT slot " << bundle.vt << " written twice in a round";
    const auto rows = element_rows(round, bundle);
    const Index first = Index{bundle.column} * tile_, last = std::min<Index>(first + tile_, a_.cols);
    std::vector<std::vector<double>> reflectors;
    for (Index j = first; j < last && j - first < static_cast<Index>(rows.size()); ++j) {
      std::vector<double> v(rows.size(), 0.0);
      double norm = 0;
      for (auto k = static_cast<std::size_t>(j - first); k < rows.size(); ++k) {
        v[k] = a_(rows[k], j);
        norm = std::hypot(norm, v[k]);
      }
      const auto pivot = static_cast<std::size_t>(j - first);
      v[pivot] += std::copysign(norm, v[pivot]);
      for (Index c = first; c < last; ++c) reflect(v, rows, c);
      for (std::size_t k = pivot + 1; k < rows.size(); ++k) a_(rows[k], j) = 0;
      reflectors.push_back(std::move(v));
    }
    vt_[bundle.vt] = {bundle.column, std::move(reflectors)};
  }

  void apply(const Round& round, const Bundle& bundle, std::int32_t column) {
    const auto& [from, reflectors] = vt_.at(bundle.vt);
    EXPECT_EQ(from, bundle.column);
    EXPECT_GT(column, bundle.column);
    EXPECT_TRUE(applied_.emplace(bundle.vt, column).second);
    const auto rows = element_rows(round, bundle);
    for (const auto& v : reflectors)
      for (Index c = Index{column} * tile_; c < std::min<Index>((Index{column} + 1) * tile_, a_.cols); ++c)
        reflect(v, rows, c);
  }

  void reflect(const std::vector<double>& v, const std::vector<Index>& rows, Index c) {
    double vv = 0, va = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      vv += v[k] * v[k];
      va += v[k] * a_(rows[k], c);
    }
    if (vv == 0) return;
    for (std::size_t k = 0; k < rows.size(); ++k) a_(rows[k], c) -= 2 * va / vv * v[k];
  }

  Dense<double> a_;
  int tile_;
  std::set<std::pair<std::int32_t, std::int32_t>> written_, read_;
  std::set<std::int32_t> written_vt_, read_vt_;
  std::set<std::pair<std::int32_t, std::int32_t>> applied_;
  std::map<std::int32_t, std::pair<std::int32_t, std::vector<std::vector<double>>>> vt_;
};

Heights random_staircase(Index rows, Index cols, std::mt19937& random) {
  Heights heights(static_cast<std::size_t>(cols));
  std::uniform_int_distribution<Index> height(0, rows);
  for (auto& h : heights) h = height(random);
  std::sort(heights.begin(), heights.end());
  return heights;
}

Dense<double> random_front(Index rows, const Heights& staircase, std::mt19937& random) {
  Dense<double> a(rows, static_cast<Index>(staircase.size()));
  std::normal_distribution<double> normal;
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < staircase[static_cast<std::size_t>(j)]; ++i) a(i, j) = normal(random);
  return a;
}

double gram_gap(const Dense<double>& a, const Dense<double>& r) {
  double gap = 0, scale = 1;
  for (Index j = 0; j < a.cols; ++j)
    for (Index k = 0; k <= j; ++k) {
      double x = 0, y = 0;
      for (Index i = 0; i < a.rows; ++i) x += a(i, j) * a(i, k), y += r(i, j) * r(i, k);
      gap = std::max(gap, std::abs(x - y));
      scale = std::max(scale, std::abs(x));
    }
  return gap / scale;
}

TEST(BucketScheduler, SchedulesFactorTheirFronts) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const int tile = std::uniform_int_distribution<int>(1, 4)(random);
    const Index rows = std::uniform_int_distribution<int>(0, 40)(random);
    const Index cols = std::uniform_int_distribution<int>(0, 24)(random);
    const Heights staircase = random_staircase(rows, cols, random);
    ScheduleOptions options;
    options.tile = tile;
    options.bundle = std::uniform_int_distribution<int>(2, 5)(random);
    options.pipelined = trial % 2;
    options.apply_columns = std::uniform_int_distribution<int>(1, 3)(random);
    SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", tile " << tile << ", bundle " << options.bundle
                                      << ", trial " << trial);
    const Dense<double> a = random_front(rows, staircase, random);
    BucketScheduler scheduler(0, rows, cols, staircase, options);
    Machine machine(a, tile);
    SlotPool slots;
    Round round;
    Index final = 0;
    for (int count = 0;; ++count) {
      ASSERT_LT(count, 1000);
      round.clear();
      slots.begin_round();
      if (!scheduler.next(round, slots)) break;
      ASSERT_FALSE(round.empty());
      const Dense<double> before = machine.a();
      machine.run(round, random);
      for (Index j = 0; j < final; ++j) {  // rows said to be final stay
        const std::int32_t row = scheduler.row_tile_of(static_cast<std::int32_t>(j / tile));
        for (Index c = 0; row >= 0 && c < cols; ++c)
          EXPECT_EQ(machine.a()(Index{row} * tile, c), before(Index{row} * tile, c));
      }
      while (final < cols && scheduler.final_columns(final + 1)) ++final;
    }
    EXPECT_TRUE(scheduler.final_columns(cols));
    EXPECT_LT(gram_gap(a, machine.a()), 1e-13);
    std::set<std::int32_t> ends;  // one row tile a bucket, a triangle there, and nothing else is left
    for (Index column = 0; column * tile < cols; ++column) {
      const std::int32_t row = scheduler.row_tile_of(static_cast<std::int32_t>(column));
      if (row < 0) continue;
      EXPECT_TRUE(ends.insert(row).second);
      for (Index i = 0; i < tile && Index{row} * tile + i < rows; ++i)
        for (Index j = 0; j < std::min(column * tile + i, cols); ++j)
          EXPECT_EQ(machine.a()(Index{row} * tile + i, j), 0);
    }
    for (Index i = 0; i < rows; ++i) {
      if (ends.count(static_cast<std::int32_t>(i / tile))) continue;
      for (Index j = 0; j < cols; ++j) EXPECT_EQ(machine.a()(i, j), 0);
    }
  }
}

TEST(BucketScheduler, TheSameTasksEveryTime) {
  std::mt19937 random(3);
  const Heights staircase = random_staircase(900, 400, random);
  const auto print = [&] {
    BucketScheduler scheduler(0, 900, 400, staircase, {});
    SlotPool slots;
    std::vector<std::int32_t> all;
    Round round;
    for (;; round.clear()) {
      slots.begin_round();
      if (!scheduler.next(round, slots)) return all;
      all.insert(all.end(), round.row_tiles.begin(), round.row_tiles.end());
      for (const Bundle& b : round.bundles) all.insert(all.end(), {b.column, b.vt});
    }
  };
  EXPECT_EQ(print(), print());
}

TEST(BucketScheduler, RefusesSizesThatMakeNoSense) {
  EXPECT_THROW(BucketScheduler(0, 4, 4, {}, {.tile = 0}), Error);
  EXPECT_THROW(BucketScheduler(0, 4, 4, {}, {.bundle = 1}), Error);
}

/// A random forest; every front's life is checked against its children's.
TEST(TreeScheduler, FrontsGoAtTheirOwnPace) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const int count = std::uniform_int_distribution<int>(1, 30)(random);
    std::vector<ScheduledFront> fronts(static_cast<std::size_t>(count));
    std::vector<Heights> staircases;
    for (int f = 0; f < count; ++f) {
      auto& front = fronts[static_cast<std::size_t>(f)];
      front.rows = std::uniform_int_distribution<int>(0, 300)(random);
      front.cols = std::uniform_int_distribution<int>(0, 200)(random);
      front.pivots = std::uniform_int_distribution<Index>(0, front.cols)(random);
      front.parent = f + 1 < count && trial % 3 ? std::uniform_int_distribution<int>(f + 1, count - 1)(random) : -1;
      front.s_entries = std::uniform_int_distribution<int>(0, 10000)(random);
      front.contribution_rows = std::min(front.rows, front.cols - front.pivots);
      staircases.push_back(random_staircase(front.rows, front.cols, random));
    }
    for (std::size_t f = 0; f < fronts.size(); ++f) fronts[f].staircase = staircases[f];
    TreeScheduler scheduler(fronts);
    struct Life {
      int assembled = -1, first = -1, last = -1, final = -1;
      Index entries = 0;
      double packed = 0;
      int packed_at = -1;
    };
    std::vector<Life> lives(fronts.size());
    Round round;
    for (int t = 0; scheduler.next(round); ++t) {
      ASSERT_LT(t, 5000);
      for (const SAssemblyTask& task : round.s_assembly) {
        Life& life = lives[static_cast<std::size_t>(task.front)];
        EXPECT_EQ(life.entries, task.first);
        EXPECT_LE(task.count, 4096);
        life.entries += task.count;
        life.assembled = t;
      }
      std::set<std::int32_t> slots;
      for (const Bundle& bundle : round.bundles) {
        EXPECT_TRUE(slots.insert(bundle.vt).second);
        Life& life = lives[static_cast<std::size_t>(bundle.front)];
        if (life.first < 0) life.first = t;
        life.last = t;
        EXPECT_LT(bundle.vt, scheduler.vt_slots());
      }
      for (const PackAssemblyTask& task : round.pack_assembly) {
        Life& life = lives[static_cast<std::size_t>(task.front)];
        for (int i = 0; i < task.rows; ++i)
          life.packed +=
              std::max(0, task.first_column + task.columns - std::max(task.first_column, task.first_row + i));
        life.packed_at = t;
      }
      for (const std::int32_t front : round.r_final) {
        Life& life = lives[static_cast<std::size_t>(front)];
        EXPECT_EQ(life.final, -1);
        life.final = t;
      }
    }
    for (std::size_t f = 0; f < fronts.size(); ++f) {
      const ScheduledFront& front = fronts[f];
      const Life& life = lives[f];
      EXPECT_EQ(scheduler.state(static_cast<std::int32_t>(f)), FrontState::done);
      EXPECT_EQ(life.entries, front.s_entries);
      EXPECT_GE(life.final, 0);
      if (life.first >= 0) {
        EXPECT_LT(life.assembled, life.first);
      }
      if (front.parent < 0) {
        EXPECT_EQ(life.packed_at, -1);
        continue;
      }
      const double c = static_cast<double>(front.contribution_rows), w = static_cast<double>(front.cols - front.pivots);
      EXPECT_EQ(life.packed, c * w - c * (c - 1) / 2);
      if (life.packed_at < 0) continue;
      EXPECT_LT(life.last, life.packed_at);
      const Life& parent = lives[static_cast<std::size_t>(front.parent)];
      if (parent.first >= 0) {
        EXPECT_LT(life.packed_at, parent.first);
      }
    }
  }
}

TEST(TreeScheduler, RefusesATreeOutOfOrder) {
  std::vector<ScheduledFront> fronts(2);
  fronts[1].parent = 0;
  EXPECT_THROW(TreeScheduler{fronts}, Error);
}

}  // namespace
}  // namespace qrane::sparse
