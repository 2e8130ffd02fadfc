// SPDX-License-Identifier: Apache-2.0
// The order in which a device uses the factors: carried out on counters, every block once, nothing before its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sparse/device/plan/front_rounds.hpp"
#include "sparse/device/plan/solve_schedule.hpp"
#include "support/sparse.hpp"

namespace qrane::sparse {
namespace {

using backend::FrontBlock;
using test::NamedTriplets;
using test::Triplets;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

std::vector<NamedTriplets> matrices() {
  std::vector<NamedTriplets> all = test::odd_matrices();
  all.push_back({"several blocks", test::random_sparse(700, 420, 0.02, 5)});
  Triplets staircase = test::random_sparse(500, 300, 0.012, 6);  // singletons above
  for (Index j = 0; j < 120; ++j) staircase.add(j % 500, j, 2.0);
  all.push_back({"with singletons", staircase});
  return all;
}

Symbolic analyzed(const Triplets& a) {
  AnalyzeOptions options;
  options.ordering = Ordering::colamd;
  options.expert.amalgamation = Amalgamation{.front_flops = 0, .entry_flops = 0};  // many fronts
  return analyze_pattern(a.view(), options, {}, true);
}

/// Columns of a front as a solve counts them: pivotal ones, then the others.
struct Columns {
  Index m, others;
  explicit Columns(const backend::FrontShape& f) : m(f.r_bound), others(f.cols - f.pivots) {}
  Index all() const { return m + others; }
};

TEST(SparseSolveSchedule, UpTheTreeEverythingOnceAndInOrder) {
  for (const auto& [name, a] : matrices())
    for (const Index fused : {Index{0}, Index{10}, Index{256}}) {
      SCOPED_TRACE(name);
      const Symbolic s = analyzed(a);
      const auto shapes = plan_rounds(s, {}).shapes;
      const RSchedule plan = plan_r_solves(s, shapes, fused);
      std::vector<std::vector<Index>> taken(shapes.size());  // rows of blocks taken in by each column, in order
      std::vector<char> gathered(s.front_cols.size(), 0);
      std::vector<Index> solved(shapes.size(), 0);
      for (std::size_t f = 0; f < shapes.size(); ++f) taken[f].assign(at(Columns(shapes[f]).all()), 0);
      const auto finished = [&](Index f) {
        const Columns c(shapes[at(f)]);
        return solved[at(f)] == c.m &&
               std::all_of(taken[at(f)].begin() + c.m, taken[at(f)].end(), [&](Index rows) { return rows == c.m; });
      };
      const auto take = [&](const FrontBlock& b) {
        for (Index q = b.first; q < b.first + b.cols; ++q) {
          ASSERT_EQ(taken[at(b.front)][at(q)], b.row) << "blocks in order";
          taken[at(b.front)][at(q)] += b.rows;
        }
      };
      for (const SolveLaunch& launch : plan.up) {
        ASSERT_GT(launch.count, 0);
        for (Index k = launch.first; k < launch.first + launch.count; ++k) {
          if (launch.step == SolveStep::gather) {
            const std::int32_t slot = plan.slots[at(k)];
            EXPECT_FALSE(gathered[at(slot)]++);
            const auto front = std::find_if(s.fronts.begin(), s.fronts.end(), [&](const Front& f) {
              return slot >= f.cols_begin && slot < f.cols_begin + f.cols;
            });
            for (Index c = 0; c < front->child_count; ++c)
              ASSERT_TRUE(finished(s.children[at(front->child_begin + c)]));
            continue;
          }
          const FrontBlock& b = plan.up_blocks[at(k)];
          if (launch.step == SolveStep::solve) {
            ASSERT_EQ(solved[at(b.front)], b.row);
            ASSERT_LE(b.rows, backend::front_block_rows);
            for (Index q = b.row; q < b.row + b.rows; ++q) ASSERT_EQ(taken[at(b.front)][at(q)], b.row);
            for (Index j = 0; j < shapes[at(b.front)].cols; ++j)
              ASSERT_TRUE(gathered[at(shapes[at(b.front)].columns + j)]);
            solved[at(b.front)] += b.rows;
          } else {
            ASSERT_LE(b.cols, backend::front_block_rows);
            ASSERT_EQ(solved[at(b.front)], b.row + b.rows);
          }
          take(b);
          if (HasFatalFailure()) return;
        }
      }
      for (std::size_t f = 0; f < shapes.size(); ++f) EXPECT_TRUE(finished(static_cast<Index>(f)));
      EXPECT_TRUE(std::all_of(gathered.begin(), gathered.end(), [](char g) { return g == 1; }));
    }
}

TEST(SparseSolveSchedule, DownTheTreeEverythingOnceAndInOrder) {
  for (const auto& [name, a] : matrices()) {
    SCOPED_TRACE(name);
    const Symbolic s = analyzed(a);
    const auto shapes = plan_rounds(s, {}).shapes;
    const RSchedule plan = plan_r_solves(s, shapes);
    std::vector<Index> left(shapes.size());            // rows not solved yet
    std::vector<std::vector<std::vector<char>>> seen;  // columns taken in by each block of rows
    for (std::size_t f = 0; f < shapes.size(); ++f) {
      const Columns c(shapes[f]);
      left[f] = c.m;
      seen.emplace_back(at((c.m + backend::front_block_rows - 1) / backend::front_block_rows),
                        std::vector<char>(at(c.all()), 0));
    }
    const auto take = [&](const FrontBlock& b) {
      const Columns c(shapes[at(b.front)]);
      for (Index q = b.first; q < b.first + b.cols; ++q) {
        if (q < c.m) {
          ASSERT_GE(q, left[at(b.front)]) << "a column that is not known yet";
        } else {
          const Index column = s.front_cols[at(shapes[at(b.front)].columns + shapes[at(b.front)].pivots + q - c.m)];
          const Index owner = s.front_of_col[at(column)];
          ASSERT_TRUE(owner < 0 || left[at(owner)] == 0);
        }
        ASSERT_FALSE(seen[at(b.front)][at(b.row / backend::front_block_rows)][at(q)]++);
      }
    };
    for (const SolveLaunch& launch : plan.down)
      for (Index k = launch.first; k < launch.first + launch.count; ++k) {
        const FrontBlock& b = plan.down_blocks[at(k)];
        ASSERT_LE(b.rows, backend::front_block_rows);
        take(b);
        if (HasFatalFailure()) return;
        if (launch.step != SolveStep::solve) continue;
        ASSERT_EQ(left[at(b.front)], b.row + b.rows);
        const auto& columns = seen[at(b.front)][at(b.row / backend::front_block_rows)];
        for (Index q = b.row + b.rows; q < Columns(shapes[at(b.front)]).all(); ++q) ASSERT_TRUE(columns[at(q)]);
        left[at(b.front)] = b.row;
      }
    EXPECT_TRUE(std::all_of(left.begin(), left.end(), [](Index rows) { return rows == 0; }));
  }
}

TEST(SparseSolveSchedule, ColumnsFetchWhatChildrenHandUp) {
  for (const auto& [name, a] : matrices()) {
    SCOPED_TRACE(name);
    const Symbolic s = analyzed(a);
    const RSchedule plan = plan_r_solves(s, plan_rounds(s, {}).shapes);
    std::map<Index, std::vector<Index>> expected;
    for (const Front& child : s.fronts) {
      if (child.parent < 0) continue;
      const Front& parent = s.fronts[at(child.parent)];
      for (Index j = child.pivots; j < child.cols; ++j) {
        const auto first = s.front_cols.begin() + parent.cols_begin, last = first + parent.cols;
        const auto found = std::find(first, last, s.front_cols[at(child.cols_begin + j)]);
        ASSERT_NE(found, last);
        expected[found - s.front_cols.begin()].push_back(child.cols_begin + j);
      }
    }
    for (Index slot = 0; slot < static_cast<Index>(s.front_cols.size()); ++slot) {
      const std::vector<Index> list(plan.sources.begin() + plan.sources_begin[at(slot)],
                                    plan.sources.begin() + plan.sources_begin[at(slot) + 1]);
      EXPECT_EQ(list, expected[slot]);
      const Index column = s.front_cols[at(slot)], owner = s.front_of_col[at(column)];
      const bool pivotal = owner >= 0 && slot >= s.fronts[at(owner)].cols_begin &&
                           slot < s.fronts[at(owner)].cols_begin + s.fronts[at(owner)].pivots;
      EXPECT_EQ(plan.own[at(slot)], pivotal ? column : -1);
    }
  }
}

TEST(SparseSolveSchedule, PanelsOfQOnceAndUpTheTree) {
  for (const auto& [name, a] : matrices())
    for (const Index whole : {Index{0}, Index{200}, Index{1} << 20}) {
      SCOPED_TRACE(name);
      const Symbolic s = analyzed(a);
      const auto shapes = plan_rounds(s, {}).shapes;
      const QScheduleOptions options{.panel = 8, .whole_elements = whole, .part_rows = 16};
      const QSchedule plan = plan_q_products(s, shapes, options);
      std::vector<Index> next(shapes.size(), 0);  // panel
      std::vector<char> done(shapes.size(), 0);
      const auto needed = [&](std::size_t f) {
        const Index reached = std::min<Index>(shapes[f].cols, shapes[f].rows_bound + shapes[f].pivots);
        return (reached + options.panel - 1) / options.panel;
      };
      const auto finished = [&](std::size_t f) { return done[f] || next[f] >= needed(f) || shapes[f].rows_bound == 0; };
      const auto children_finished = [&](Index f) {
        const Front& front = s.fronts[at(f)];
        for (Index c = 0; c < front.child_count; ++c) {
          const Index child = s.children[at(front.child_begin + c)];
          if (!finished(at(child))) return false;
        }
        return true;
      };
      for (const SolveLaunch& launch : plan.up) {
        std::set<Index> moved;
        for (Index k = launch.first; k < launch.first + launch.count;) {
          if (launch.step == SolveStep::whole) {
            const std::int32_t f = plan.whole[at(k++)];
            ASSERT_TRUE(children_finished(f));
            ASSERT_FALSE(done[at(f)]++);
            continue;
          }
          const backend::FrontPanelPart first = plan.parts[at(k)];
          ASSERT_TRUE(children_finished(first.front));
          ASSERT_EQ(first.panel, next[at(first.front)]);
          ASSERT_TRUE(moved.insert(first.front).second) << "one panel of a front in a launch";
          for (Index p = 0; p < first.parts; ++p, ++k) {
            ASSERT_EQ(plan.parts[at(k)].part, p);
            ASSERT_EQ(plan.parts[at(k)].panel, first.panel);
            ASSERT_EQ(plan.parts[at(k)].front, first.front);
          }
        }
        if (launch.step == SolveStep::panels) {
          EXPECT_LE(launch.count, plan.most_parts);
          for (const Index f : moved) ++next[at(f)];
        }
      }
      for (std::size_t f = 0; f < shapes.size(); ++f) EXPECT_TRUE(finished(f)) << "front " << f;
    }
}

TEST(SparseSolveSchedule, LevelsOfSingletonsAndColumns) {
  bool any = false;
  for (const auto& [name, a] : matrices()) {
    SCOPED_TRACE(name);
    const Symbolic s = analyzed(a);
    const SingletonSchedule plan = plan_singletons(s);
    any = any || s.singletons > 1;
    const auto level_of = [&](const std::vector<std::int32_t>& list, const std::vector<Index>& begin) {
      std::vector<Index> level(at(s.singletons), -1);
      for (std::size_t l = 0; l + 1 < begin.size(); ++l)
        for (Index p = begin[l]; p < begin[l + 1]; ++p) level[at(list[at(p)])] = static_cast<Index>(l);
      return level;
    };
    const std::vector<Index> down = level_of(plan.down, plan.down_begin), up = level_of(plan.up, plan.up_begin);
    for (Index k = 0; k < s.singletons; ++k) {
      EXPECT_GE(down[at(k)], 0);
      EXPECT_GE(up[at(k)], 0);
      EXPECT_EQ(plan.row[at(plan.column_begin[at(k)])], k) << "the pivot first";
      for (Index p = s.row_begin[at(k)] + 1; p < s.row_begin[at(k) + 1]; ++p) {
        const Index j = s.singleton_cols[at(p)];
        if (j >= s.singletons) continue;
        EXPECT_LT(down[at(j)], down[at(k)]);
        EXPECT_LT(up[at(k)], up[at(j)]);
      }
    }
    const ColumnsOfS columns = columns_of(s);
    const std::vector<Index> column = s.columns_of_entries();
    for (Index j = 0; j < s.cols; ++j)
      for (std::int64_t p = columns.begin[at(j)]; p < columns.begin[at(j) + 1]; ++p) {
        const Index entry = columns.entry[at(p)], row = columns.row[at(p)];
        EXPECT_EQ(column[at(entry)], j);
        EXPECT_TRUE(entry >= s.row_begin[at(row)] && entry < s.row_begin[at(row) + 1]);
        EXPECT_TRUE(p == columns.begin[at(j)] || columns.row[at(p) - 1] < row);
      }
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace qrane::sparse
