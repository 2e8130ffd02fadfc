// SPDX-License-Identifier: Apache-2.0
// Index lists, staircases and maps of fronts, and S itself. Time and memory: entries + rows + cols + the lists'
// lengths.
#pragma once

#include <vector>

#include "sparse/analysis/front_tree.hpp"

namespace qrane::sparse {

/// Fills what belongs to fronts in `symbolic` (fronts, children, front_cols, stair, parent_col, cb_slot, own_slot,
/// front_of_col, leftmost_begin, r_rows) from the tree of `a`, the matrix without singletons; indices in front_cols
/// count from symbolic.singletons. Throws Error{invalid_argument} for a front whose sides are beyond Local.
template <class I>
void lay_out_fronts(const Compact<I>& a, const FrontTree<I>& tree, Symbolic& symbolic);

/// Fills S (row_perm, row_begin, singleton_cols, gather, entry_col) for the fronts laid out and col_perm. leftmost: of
/// the rows of the matrix without singletons, as FrontTree has it; row_of: which rows of the pattern they are, or null:
/// all.
template <class I>
void lay_out_matrix(const CompactedPattern<I>& pattern, const Singletons<I>& singletons, const std::vector<I>& leftmost,
                    const I* row_of, Symbolic& symbolic);

/// Entries of Householder vectors within a staircase.
Index staircase_entries(Index rows, Index cols, const Index* stair);

}  // namespace qrane::sparse
