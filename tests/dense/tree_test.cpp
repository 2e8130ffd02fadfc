// SPDX-License-Identifier: Apache-2.0
// The reduction trees as data: every row is in exactly one leaf, every head but one is eliminated exactly once,
// every T factor has room of its own, and levels agree with their tasks. No device, no numbers.
#include "dense/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace qrane::dense {
namespace {

using backend::BlockTask;

struct Problem {
  Index rows, cols, batch;
  int panel_cols;
  TreeShape shape;

  std::string text() const {
    return std::to_string(batch) + " of " + std::to_string(rows) + " x " + std::to_string(cols) + ", panels of " +
           std::to_string(panel_cols) + ", leaves of " + std::to_string(shape.block_rows) + ", arity " +
           std::to_string(shape.arity) + ", inner " + std::to_string(shape.inner);
  }
};

/// Odd sizes, exact ones, and those one off.
std::vector<Problem> problems() {
  std::vector<Problem> list;
  for (const Index rows : {1, 2, 7, 16, 17, 31, 64, 65, 127, 128, 129, 1000, 1021})
    for (const Index cols : {1, 3, 8, 16, 40})
      for (const int panel_cols : {1, 3, 8, 16})
        for (const Index block_rows : {2, 16, 17, 48})
          for (const int arity : {2, 3, 8})
            if (block_rows >= 2 * panel_cols)
              list.push_back(
                  {rows, cols, rows == 65 ? 3 : 1, panel_cols, {block_rows, arity, std::max(1, panel_cols / 2)}});
  return list;
}

std::vector<BlockTask> tasks_of(const Schedule& s, const Level& level, Index matrix) {
  std::vector<BlockTask> tasks;
  for (Index k = level.first_task; k < level.first_task + level.task_count; ++k)
    if (s.tasks[static_cast<std::size_t>(k)].matrix == matrix) tasks.push_back(s.tasks[static_cast<std::size_t>(k)]);
  return tasks;
}

TEST(Tree, PanelsCoverTheColumnsFromTheDiagonalDown) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Schedule s = make_schedule(p.rows, p.cols, p.batch, p.panel_cols, p.shape);
    Index next = 0;
    for (const PanelTree& panel : s.panels) {
      EXPECT_EQ(panel.col, next);
      EXPECT_EQ(panel.row, next);
      EXPECT_GE(panel.cols, 1);
      EXPECT_LE(panel.cols, p.panel_cols);
      next += panel.cols;
    }
    EXPECT_EQ(next, std::min(p.rows, p.cols));
  }
}

TEST(Tree, EveryRowIsInExactlyOneLeaf) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Schedule s = make_schedule(p.rows, p.cols, p.batch, p.panel_cols, p.shape);
    for (const PanelTree& panel : s.panels)
      for (Index matrix = 0; matrix < p.batch; ++matrix) {
        ASSERT_FALSE(panel.levels.empty());
        ASSERT_FALSE(panel.levels.front().tree);
        std::vector<int> seen(static_cast<std::size_t>(p.rows), 0);
        for (const BlockTask& leaf : tasks_of(s, panel.levels.front(), matrix)) {
          EXPECT_EQ(leaf.col, panel.col);
          EXPECT_EQ(leaf.cols, panel.cols);
          ASSERT_LE(leaf.row + leaf.rows, p.rows);
          EXPECT_GE(leaf.rows, std::min(panel.cols, p.rows - panel.row)) << "a head needs as many rows as columns";
          for (Index i = leaf.row; i < leaf.row + leaf.rows; ++i) ++seen[static_cast<std::size_t>(i)];
        }
        for (Index i = 0; i < p.rows; ++i)
          ASSERT_EQ(seen[static_cast<std::size_t>(i)], i >= panel.row ? 1 : 0) << "row " << i;
      }
  }
}

TEST(Tree, EveryHeadButOneIsEliminatedOnce) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Schedule s = make_schedule(p.rows, p.cols, p.batch, p.panel_cols, p.shape);
    for (const PanelTree& panel : s.panels)
      for (Index matrix = 0; matrix < p.batch; ++matrix) {
        std::set<Index> alive;
        for (const BlockTask& leaf : tasks_of(s, panel.levels.front(), matrix)) alive.insert(leaf.row);
        for (std::size_t l = 1; l < panel.levels.size(); ++l) {
          ASSERT_TRUE(panel.levels[l].tree);
          std::set<Index> used;
          for (const BlockTask& node : tasks_of(s, panel.levels[l], matrix)) {
            EXPECT_GE(node.rows, 2) << "a node of one head does nothing";
            EXPECT_LE(node.rows, p.shape.arity);
            EXPECT_GE(node.stride, panel.cols) << "heads must not overlap";
            for (Index head = 0; head < node.rows; ++head) {
              const Index row = node.row + head * node.stride;
              EXPECT_TRUE(used.insert(row).second) << "row " << row << " twice in a level";
              EXPECT_TRUE(alive.count(row)) << "row " << row << " is no head";
              if (head > 0) alive.erase(row);
            }
          }
        }
        EXPECT_EQ(alive, std::set<Index>{panel.row}) << "the head at the diagonal survives";
      }
  }
}

TEST(Tree, LevelsTellTheLargestOfTheirTasks) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Schedule s = make_schedule(p.rows, p.cols, p.batch, p.panel_cols, p.shape);
    EXPECT_EQ(s.inner, p.shape.inner);
    Index tasks = 0;
    std::int32_t widest = 0;
    for (const PanelTree& panel : s.panels) {
      widest = std::max(widest, static_cast<std::int32_t>(panel.cols));
      for (const Level& level : panel.levels) {
        EXPECT_EQ(level.first_task, tasks) << "levels lie one after the other";
        tasks += level.task_count;
        std::int32_t tallest = 0;
        for (Index k = level.first_task; k < tasks; ++k) {
          const BlockTask& task = s.tasks[static_cast<std::size_t>(k)];
          tallest = std::max(tallest, level.tree ? task.rows * task.cols : task.rows);
        }
        EXPECT_EQ(level.max_rows, tallest);
      }
    }
    EXPECT_EQ(tasks, static_cast<Index>(s.tasks.size()));
    EXPECT_EQ(s.max_cols, widest);
  }
}

TEST(Tree, EveryTHasRoomOfItsOwn) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Schedule s = make_schedule(p.rows, p.cols, p.batch, p.panel_cols, p.shape);
    std::vector<std::pair<Index, Index>> spans;
    for (const BlockTask& task : s.tasks) {
      const Index groups = (task.cols + s.inner - 1) / s.inner;
      spans.push_back({task.t, task.t + groups * s.inner * s.inner});
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t k = 1; k < spans.size(); ++k) ASSERT_LE(spans[k - 1].second, spans[k].first);
    if (!spans.empty()) {
      EXPECT_GE(spans.front().first, 0);
      EXPECT_LE(spans.back().second, s.t_elements);
    }
  }
}

/// By hand: 7 leaves, 3 heads a node, as drawn in tree.hpp.
TEST(Tree, TheDrawnExample) {
  const Schedule s = make_schedule(7 * 10, 4, 1, 4, {10, 3, 4});
  ASSERT_EQ(s.panels.size(), 1u);
  const auto& levels = s.panels[0].levels;
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[0].task_count, 7);
  EXPECT_EQ(levels[1].task_count, 2);
  EXPECT_EQ(levels[2].task_count, 1);
  const BlockTask& root = s.tasks.back();
  EXPECT_EQ(root.row, 0);
  EXPECT_EQ(root.rows, 3);
  EXPECT_EQ(root.stride, 30);
}

TEST(Tree, NothingToDoMakesNoTasks) {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{0, 0}, {5, 0}, {0, 5}}) {
    const Schedule s = make_schedule(rows, cols, 1, 4, {16, 2, 4});
    EXPECT_TRUE(s.panels.empty());
    EXPECT_TRUE(s.tasks.empty());
  }
  EXPECT_TRUE(make_schedule(5, 3, 0, 3, {16, 2, 3}).tasks.empty());
}

}  // namespace
}  // namespace qrane::dense
