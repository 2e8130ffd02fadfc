// SPDX-License-Identifier: Apache-2.0
// A front above the ranges, which several threads factor by panels if it is large:
//
//     panel 0 | panel 1 | panel 2 | panel 3 | ...      panel tasks: update panel k by panel k - 1, factor it
//             |         | block 0      | block 1 ...   block tasks: columns right of panel k, updated by panels
//                                                      0 .. k - 1 in order
//
// Each column is updated by the panels in order, whichever thread does it, and the widths of products do not depend on
// which threads are free: results repeat.
#pragma once

#include <algorithm>
#include <vector>

#include "sparse/host/numeric.hpp"

namespace qrane::sparse {

template <class T>
struct UpperFront {
  FrontLayout layout;
  FrontMatrix<T> matrix;
  FrontResult<T> result;  // lent while the front is in memory
  DropRule rule;
  std::vector<Index> stair;
  std::vector<Local> own_slot, child_slot;
  std::vector<int> exponents;
  Index waiting = 0;         // children
  Index row = 0;             // first of the next panel
  std::size_t factored = 0;  // panels
  bool panel_busy = false;
  std::vector<std::size_t> updated;  // per block of columns: panels
  std::vector<char> busy;

  /// Its columns are divided into blocks, none of them updated.
  void share() {
    updated.assign((matrix.cols + large_front_block - 1) / large_front_block, 0);
    busy.assign(updated.size(), 0);
  }

  bool all_factored() const { return factored == result.panels.size(); }

  /// Returns the panel's share of the front's flops, estimated.
  double factor_next_panel(Scratch<T>& scratch) {
    const std::size_t k = factored;
    if (k > 0) update_columns(matrix, result, k - 1, result.panels[k].col, end_of(k), scratch);
    row = factor_panel(matrix, result, k, row, rule, scratch);
    return panel_share(matrix, result, k);
  }

  /// A block's updates by panels up to `until`; panel tasks update each panel's first columns.
  void update_block(Index block, std::size_t until, Scratch<T>& scratch) const {
    const Index first = block * large_front_block, last = std::min(first + large_front_block, matrix.cols);
    for (std::size_t k = updated[block]; k < until; ++k)
      update_columns(matrix, result, k, std::max(first, columns_begin(k)), last, scratch);
  }

  /// Whether the next panel's columns are updated by all panels but the last.
  bool panel_may_begin() const {
    if (factored < 2 || all_factored()) return true;
    const Index first = result.panels[factored].col / large_front_block;
    const Index last = (end_of(factored) - 1) / large_front_block;
    return std::all_of(updated.begin() + first, updated.begin() + last + 1,
                       [&](std::size_t panels) { return panels + 1 >= factored; });
  }

  /// Whether a block has updates that can begin; it is then busy.
  bool begin_block(std::size_t b) {
    if (busy[b] || updated[b] >= factored) return false;
    const Index end = std::min(static_cast<Index>(b + 1) * large_front_block, matrix.cols);
    if (end <= columns_begin(updated[b])) {
      updated[b] = factored;  // panel tasks have updated its columns
      return false;
    }
    busy[b] = 1;
    return true;
  }

 private:
  Index end_of(std::size_t panel) const { return result.panels[panel].col + result.panels[panel].cols; }

  /// First column that blocks update by panel k: right of panel k + 1.
  Index columns_begin(std::size_t k) const { return k + 1 < result.panels.size() ? end_of(k + 1) : matrix.cols; }
};

}  // namespace qrane::sparse
