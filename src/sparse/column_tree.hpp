// SPDX-License-Identifier: Apache-2.0
// The column elimination tree: the elimination tree of A^T A, found without forming it, and how many entries each row
// of R has (each column of the Cholesky factor of A^T A). (Liu, SIAM J. Matrix Anal. Appl. 11(1), 1990; Gilbert, Ng,
// Peyton, ibid. 15(4), 1994; Davis's book, chapters 4, 5.)
#pragma once

#include <vector>

#include "sparse/compact.hpp"

namespace qrane::sparse {

/// Columns in an elimination order that is a postorder of their tree: all below is in that numbering.
struct ColumnTree {
  std::vector<Index> order;     ///< column k of the tree is column order[k] of A
  std::vector<Index> parent;    ///< -1: a root; else > k
  std::vector<Index> r_counts;  ///< entries of R's row k, the diagonal's among them
  std::vector<Index> own_rows;  ///< rows of A whose leftmost entry is in column k
  std::vector<Index> leftmost;  ///< for each row of A its leftmost column; -1: an empty row
};

/// The tree of A's columns eliminated in that order (cols numbers, a permutation), rearranged into a postorder: the
/// same R but for the order of its rows and columns. Time: entries times the inverse of Ackermann's function.
ColumnTree column_tree(const Compact& a, std::vector<Index> order);

/// parent[k] of columns eliminated as they are numbered by order; -1: a root.
std::vector<Index> column_etree(const Compact& a, const std::vector<Index>& order);

/// Nodes of a forest, children before parents, every subtree contiguous; siblings keep their order.
std::vector<Index> postorder(const std::vector<Index>& parent);

}  // namespace qrane::sparse
