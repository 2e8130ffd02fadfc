// SPDX-License-Identifier: Apache-2.0
#include "sparse/column_tree.hpp"

#include <algorithm>

namespace qrane::sparse {

std::vector<Index> column_etree(const Compact& a, const std::vector<Index>& order) {
  std::vector<Index> parent(a.cols, -1);
  std::vector<Index> ancestor(a.cols, -1);   // shortcuts to the root of what has been joined so far
  std::vector<Index> last_seen(a.rows, -1);  // the latest column in which a row has an entry
  for (Index k = 0; k < a.cols; ++k) {
    for (Index p = a.col_begin[order[k]]; p < a.col_begin[order[k] + 1]; ++p) {
      const Index row = a.row_index[p];
      // R(last_seen, k) is not zero, nor is R(j, k) for all ancestors j below k: the last of them becomes k's child.
      for (Index j = last_seen[row]; j >= 0 && j < k;) {
        const Index next = ancestor[j];
        ancestor[j] = k;
        if (next < 0) parent[j] = k;
        j = next;
      }
      last_seen[row] = k;
    }
  }
  return parent;
}

std::vector<Index> postorder(const std::vector<Index>& parent) {
  const auto n = static_cast<Index>(parent.size());
  std::vector<Index> first_child(n, -1), sibling(n, -1), result, path;
  result.reserve(n);
  for (Index k = n - 1; k >= 0; --k) {
    if (parent[k] < 0) continue;
    sibling[k] = first_child[parent[k]];
    first_child[parent[k]] = k;
  }
  for (Index root = 0; root < n; ++root) {
    if (parent[root] >= 0) continue;
    path.push_back(root);
    while (!path.empty()) {
      const Index k = path.back();
      if (const Index child = first_child[k]; child >= 0) {
        first_child[k] = sibling[child];
        path.push_back(child);
      } else {
        result.push_back(k);
        path.pop_back();
      }
    }
  }
  return result;
}

namespace {

/// Counts by the leaves of row subtrees. R has the pattern of the factor of any matrix in which row i of A stands as a
/// star: its leftmost column joined to its others. Column k of R is the union of paths, from such leftmost columns up
/// to k; each path that adds to the union (whose start is a leaf of the subtree) adds one to all its nodes that no
/// earlier leaf's path has, so one at the leaf and minus one at its lowest common ancestor with the leaf before.
class Counter {
 public:
  Counter(const Compact& a, ColumnTree& tree, const std::vector<Index>& label)
      : a_(a),
        tree_(tree),
        label_(label),
        first_descendant_(a.cols, -1),
        last_leaf_first_(a.cols, -1),
        last_leaf_(a.cols, -1),
        set_(a.cols) {}

  void run() {
    find_first_descendants();
    const std::vector<Index> rows = rows_by_leftmost();
    Index next = 0;
    std::vector<Index>& counts = tree_.r_counts;
    for (Index k = 0; k < a_.cols; ++k) {
      if (tree_.parent[k] >= 0) --counts[tree_.parent[k]];  // k's own diagonal entry goes no higher
      for (; next < static_cast<Index>(rows.size()) && tree_.leftmost[rows[next]] == k; ++next) {
        const Index row = rows[next];
        for (Index p = a_.row_begin[row]; p < a_.row_begin[row + 1]; ++p) join(k, label_[a_.col_index[p]]);
      }
      if (tree_.parent[k] >= 0) set_[k] = tree_.parent[k];
    }
    for (Index k = 0; k < a_.cols; ++k) {
      if (tree_.parent[k] >= 0) counts[tree_.parent[k]] += counts[k];
    }
  }

 private:
  void find_first_descendants() {
    tree_.r_counts.assign(a_.cols, 0);
    for (Index k = 0; k < a_.cols; ++k) {
      set_[k] = k;
      if (first_descendant_[k] < 0) {
        tree_.r_counts[k] = 1;
        for (Index j = k; j >= 0 && first_descendant_[j] < 0; j = tree_.parent[j]) first_descendant_[j] = k;
      }
    }
  }

  std::vector<Index> rows_by_leftmost() const {
    std::vector<Index> begin(a_.cols + 1, 0);
    for (Index k = 0; k < a_.cols; ++k) begin[k + 1] = begin[k] + tree_.own_rows[k];
    std::vector<Index> rows(begin[a_.cols]);
    for (Index i = 0; i < a_.rows; ++i) {
      if (tree_.leftmost[i] >= 0) rows[begin[tree_.leftmost[i]]++] = i;
    }
    return rows;
  }

  /// R(k, j) is not zero because of a row whose leftmost column is k.
  void join(Index k, Index j) {
    if (j <= k || first_descendant_[k] <= last_leaf_first_[j]) return;  // k is no leaf of j's subtree
    last_leaf_first_[j] = first_descendant_[k];
    ++tree_.r_counts[k];
    if (last_leaf_[j] >= 0) --tree_.r_counts[common_ancestor(last_leaf_[j])];
    last_leaf_[j] = k;
  }

  /// Of an earlier leaf and the column at hand: the root of what has been passed around the leaf.
  Index common_ancestor(Index leaf) {
    Index root = leaf;
    while (set_[root] != root) root = set_[root];
    while (leaf != root) {
      const Index next = set_[leaf];
      set_[leaf] = root;
      leaf = next;
    }
    return root;
  }

  const Compact& a_;
  ColumnTree& tree_;
  const std::vector<Index>& label_;  // column of A -> column of the tree
  std::vector<Index> first_descendant_;
  std::vector<Index> last_leaf_first_;  // first descendant of the last leaf of each column's subtree
  std::vector<Index> last_leaf_;
  std::vector<Index> set_;  // disjoint sets
};

}  // namespace

ColumnTree column_tree(const Compact& a, std::vector<Index> order) {
  const std::vector<Index> parent = column_etree(a, order);
  const std::vector<Index> post = postorder(parent);
  ColumnTree tree;
  std::vector<Index> position(a.cols), label(a.cols);
  tree.order.resize(a.cols);
  for (Index k = 0; k < a.cols; ++k) {
    position[post[k]] = k;
    tree.order[k] = order[post[k]];
    label[tree.order[k]] = k;
  }
  tree.parent.resize(a.cols);
  for (Index k = 0; k < a.cols; ++k) tree.parent[k] = parent[post[k]] < 0 ? -1 : position[parent[post[k]]];

  tree.own_rows.assign(a.cols, 0);
  tree.leftmost.assign(a.rows, -1);
  for (Index i = 0; i < a.rows; ++i) {
    Index leftmost = a.cols;
    for (Index p = a.row_begin[i]; p < a.row_begin[i + 1]; ++p) leftmost = std::min(leftmost, label[a.col_index[p]]);
    if (leftmost == a.cols) continue;
    tree.leftmost[i] = leftmost;
    ++tree.own_rows[leftmost];
  }
  Counter(a, tree, label).run();
  return tree;
}

}  // namespace qrane::sparse
