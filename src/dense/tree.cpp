// SPDX-License-Identifier: Apache-2.0
#include "dense/tree.hpp"

#include <algorithm>

namespace qrane::dense {

namespace {

/// Elements of the T factors of one task.
Index t_size(Index cols, Index inner) { return (cols + inner - 1) / inner * inner * inner; }

void append_level(Schedule& s, PanelTree& panel, Index batch, const TreeShape& shape, bool tree,
                  const std::vector<backend::BlockTask>& blocks) {
  Level level;
  level.first_task = static_cast<Index>(s.tasks.size());
  level.task_count = static_cast<Index>(blocks.size()) * batch;
  level.tree = tree;
  for (Index b = 0; b < batch; ++b) {
    for (backend::BlockTask task : blocks) {
      task.matrix = static_cast<std::int32_t>(b);
      task.t = s.t_elements;
      s.t_elements += t_size(panel.cols, shape.inner);
      level.max_rows = std::max(level.max_rows, tree ? task.rows * task.cols : task.rows);
      s.tasks.push_back(task);
    }
  }
  if (level.task_count > 0) panel.levels.push_back(level);
}

}  // namespace

Index leaf_rows(Index rows, Index cols, Index wanted) {
  if (rows <= wanted) return rows;
  Index h = std::max(wanted, cols);
  while (h > cols && rows % h != 0 && rows % h < cols) --h;
  return h;
}

void append_panel(Schedule& s, Index rows, Index row, Index col, Index cols, Index batch, const TreeShape& shape) {
  PanelTree panel{row, col, cols, {}};
  const Index height = rows - row;
  const Index h = leaf_rows(height, cols, shape.block_rows);
  backend::BlockTask task{};
  task.col = static_cast<std::int32_t>(col);
  task.cols = static_cast<std::int32_t>(cols);

  std::vector<backend::BlockTask> blocks;
  for (Index first = 0; first < height; first += h) {
    task.row = row + first;
    task.rows = static_cast<std::int32_t>(std::min(h, height - first));
    // cols == h and a short remainder: the last two blocks become one
    if (height - first - task.rows > 0 && height - first - task.rows < cols)
      task.rows = static_cast<std::int32_t>(height - first);
    blocks.push_back(task);
    if (first + task.rows >= height) break;
  }
  append_level(s, panel, batch, shape, false, blocks);

  Index heads = static_cast<Index>(blocks.size());
  for (Index stride = h; heads > 1; stride *= shape.arity) {
    blocks.clear();
    for (Index k = 0; k + 1 < heads; k += shape.arity) {  // a lone head at the end waits for the next level
      task.row = row + k * stride;
      task.rows = static_cast<std::int32_t>(std::min<Index>(shape.arity, heads - k));
      task.stride = static_cast<std::int32_t>(stride);
      blocks.push_back(task);
    }
    append_level(s, panel, batch, shape, true, blocks);
    heads = (heads + shape.arity - 1) / shape.arity;
  }
  s.max_cols = std::max(s.max_cols, task.cols);
  s.panels.push_back(std::move(panel));
}

Schedule make_schedule(Index rows, Index cols, Index batch, int panel_cols, const TreeShape& shape) {
  Schedule s;
  s.inner = shape.inner;
  const Index k = std::min(rows, cols);
  for (Index col = 0; col < k; col += panel_cols)
    append_panel(s, rows, col, col, std::min<Index>(panel_cols, k - col), batch, shape);
  return s;
}

}  // namespace qrane::dense
