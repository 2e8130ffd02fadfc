// SPDX-License-Identifier: Apache-2.0
// Index lists, staircases and maps of fronts, and S itself. Time and memory: entries + rows + cols + the lists'
// lengths.
#pragma once

#include <vector>

#include "sparse/front_tree.hpp"

namespace qrane::sparse {

/// Fills what belongs to fronts in `symbolic` (fronts, children, front_cols, stair, parent_col, cb_slot, own_slot,
/// front_of_col, leftmost_begin, r_rows) from the tree of `a`, the matrix without singletons; indices in front_cols
/// count from symbolic.singletons. Throws Error{invalid_argument} for a front whose sides are beyond Local.
void lay_out_fronts(const Compact& a, const FrontTree& tree, Symbolic& symbolic);

/// Fills S (row_perm, row_begin, col_index, gather, entry_col) for the fronts laid out and col_perm.
void lay_out_matrix(const CompactedPattern& pattern, const Singletons& singletons, Symbolic& symbolic);

/// Entries of Householder vectors within a staircase.
Index staircase_entries(Index rows, Index cols, const Index* stair);

}  // namespace qrane::sparse
