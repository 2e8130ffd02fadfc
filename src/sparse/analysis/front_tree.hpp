// SPDX-License-Identifier: Apache-2.0
// From columns to fronts: fundamental supernodes, relaxed amalgamation, and the numbering of fronts.
// (Ashcraft, Grimes, ACM TOMS 15(4), 1989; Liu, ACM TOMS 12(3), 1986, for the order of children.)
#pragma once

#include <vector>

#include "sparse/analysis/column_tree.hpp"

namespace qrane::sparse {

/// Fronts in a postorder chosen for low memory, with pivots, cols, own_rows, rows, r_rows, cb_rows, their bounds and
/// parent filled in; first_col counts from 0.
template <class I>
struct FrontTree {
  std::vector<Front> fronts;
  std::vector<I> order;       ///< pivotal columns front by front: column k of it is column order[k] of A
  std::vector<I> own_rows;    ///< rows of A whose leftmost entry is in column k of it
  std::vector<I> leftmost;    ///< for each row of A that column; -1: an empty row
  Index supernodes = 0;       ///< fundamental ones
  Index r_entries_exact = 0;  ///< sum of tree.r_counts
};

template <class I>
FrontTree<I> front_tree(const ColumnTree<I>& tree, const Amalgamation& relax);

}  // namespace qrane::sparse
