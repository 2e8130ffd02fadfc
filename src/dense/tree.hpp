// SPDX-License-Identifier: Apache-2.0
// The reduction trees of TSQR and CAQR as data: lists of tasks, the same for every backend.
//
// One panel of 7 blocks, 3 triangles a node ("h" rows a block, "o" the head that survives):
//
//     level 0  factor        [ h ][ h ][ h ][ h ][ h ][ h ][ h ]     7 tasks, contiguous rows
//     level 1  factor_tree     o----+----'    o----+----'    |       2 tasks of 3 heads, h rows apart
//     level 2  factor_tree     o--------------+--------------'       1 task of 3 heads, 3 h rows apart
//
// CAQR draws the grid anew for each panel, from the diagonal down (Anderson et al. 2011, figure 5).
#pragma once

#include <vector>

#include "vocabulary/vocabulary.hpp"

namespace qrane::dense {

/// One launch: all blocks of one level of one panel, over the whole batch.
struct Level {
  Index first_task = 0;  // in Schedule::tasks
  Index task_count = 0;
  std::int32_t max_rows = 0;  // of the tallest block (heads * cols on a tree level)
  bool tree = false;
};

/// Levels of one panel, leaves first.
struct PanelTree {
  Index row = 0;  // first row and column of the panel in the matrix
  Index col = 0;
  Index cols = 0;
  std::vector<Level> levels;
};

/// All panels of one factorization.
struct Schedule {
  std::vector<PanelTree> panels;
  std::vector<backend::BlockTask> tasks;
  Index t_elements = 0;  // size of the T buffer
  std::int32_t max_cols = 0;
  std::int32_t inner = 0;
};

struct TreeShape {
  Index block_rows = 0;
  int arity = 2;
  int inner = 0;
};

/// Rows of a leaf near `wanted` that leave no last block with fewer rows than columns.
Index leaf_rows(Index rows, Index cols, Index wanted);

/// Appends the tree of one panel: columns [col, col + cols), rows [row, rows), rows - row >= cols.
void append_panel(Schedule& schedule, Index rows, Index row, Index col, Index cols, Index batch,
                  const TreeShape& shape);

/// The schedule of CAQR (of TSQR when panel_cols >= min(rows, cols)) on `batch` matrices.
Schedule make_schedule(Index rows, Index cols, Index batch, int panel_cols, const TreeShape& shape);

}  // namespace qrane::dense
