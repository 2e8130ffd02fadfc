// SPDX-License-Identifier: Apache-2.0
// The column elimination tree: the elimination tree of A^T A, found without forming it, and how many entries each row
// of R has (each column of the Cholesky factor of A^T A). (Liu, SIAM J. Matrix Anal. Appl. 11(1), 1990; Gilbert, Ng,
// Peyton, ibid. 15(4), 1994; Davis's book, chapters 4, 5.)
#pragma once

#include <vector>

#include "sparse/analysis/compact.hpp"

namespace qrane::sparse {

/// Columns in an elimination order that is a postorder of their tree; everything else uses that numbering.
template <class I>
struct ColumnTree {
  std::vector<I> order;     ///< column k of the tree is column order[k] of A
  std::vector<I> parent;    ///< -1: a root; else > k
  std::vector<I> r_counts;  ///< entries of R's row k, including the diagonal
  std::vector<I> own_rows;  ///< rows of A whose leftmost entry is in column k
  std::vector<I> leftmost;  ///< for each row of A its leftmost column; -1: an empty row
};

/// The tree of A's columns eliminated in that order (cols numbers, a permutation), rearranged into a postorder: the
/// same R but for the order of its rows and columns. Time: entries times the inverse of Ackermann's function.
template <class I>
ColumnTree<I> column_tree(const Compact<I>& a, const std::vector<I>& order);

/// parent[k] of columns eliminated as they are numbered by order; -1: a root. leftmost[i] becomes the first of them in
/// which row i has an entry, or -1.
template <class I>
std::vector<I> column_etree(const Compact<I>& a, const std::vector<I>& order, std::vector<I>& leftmost);

}  // namespace qrane::sparse
