// SPDX-License-Identifier: Apache-2.0
#include "sparse/analysis/column_tree.hpp"

namespace qrane::sparse {

template <class I>
std::vector<I> column_etree(const Compact<I>& a, const std::vector<I>& order, std::vector<I>& leftmost) {
  std::vector<I> parent(a.cols, -1);
  std::vector<I> ancestor(a.cols, -1);   // shortcuts to the root of what has been joined so far
  std::vector<I> last_seen(a.rows, -1);  // the latest column in which a row has an entry
  leftmost.assign(a.rows, -1);
  for (I k = 0; k < a.cols; ++k) {
    for (I p = a.col_begin[order[k]]; p < a.col_begin[order[k] + 1]; ++p) {
      const I row = a.row_index[p], seen = last_seen[row];
      if (seen < 0) leftmost[row] = k;
      // R(seen, k) is not zero, nor is R(j, k) for all ancestors j below k: the last of them becomes k's child.
      for (I j = seen; j >= 0 && j < k;) {
        const I next = ancestor[j];
        ancestor[j] = k;
        if (next < 0) parent[j] = k;
        j = next;
      }
      last_seen[row] = k;
    }
  }
  return parent;
}

namespace {

/// Nodes of a forest, children before parents, every subtree contiguous; siblings keep their order.
template <class I>
std::vector<I> postorder(const std::vector<I>& parent) {
  const auto n = static_cast<I>(parent.size());
  std::vector<I> first_child(n, -1), sibling(n, -1), result, path;
  result.reserve(n);
  for (I k = n - 1; k >= 0; --k) {
    if (parent[k] < 0) continue;
    sibling[k] = first_child[parent[k]];
    first_child[parent[k]] = k;
  }
  for (I root = 0; root < n; ++root) {
    if (parent[root] >= 0) continue;
    path.push_back(root);
    while (!path.empty()) {
      const I k = path.back();
      if (const I child = first_child[k]; child >= 0) {
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

/// Counts by the leaves of row subtrees. R has the pattern of the factor of any matrix in which row i of A stands as a
/// star: its leftmost column joined to its others. Column k of R is the union of paths, from such leftmost columns up
/// to k; each path that adds to the union (whose start is a leaf of the subtree) adds one to all its nodes that no
/// earlier leaf's path has, so one at the leaf and minus one at its lowest common ancestor with the leaf before.
template <class I>
class Counter {
 public:
  Counter(const Compact<I>& a, ColumnTree<I>& tree, const std::vector<I>& label)
      : a_(a),
        tree_(tree),
        label_(label),
        first_descendant_(a.cols, -1),
        last_leaf_first_(a.cols, -1),
        last_leaf_(a.cols, -1),
        set_(a.cols) {}

  void run() {
    find_first_descendants();
    const std::vector<I> rows = rows_by_leftmost();
    I next = 0;
    std::vector<I>& counts = tree_.r_counts;
    for (I k = 0; k < a_.cols; ++k) {
      if (tree_.parent[k] >= 0) --counts[tree_.parent[k]];  // k's diagonal entry is not in its parent's row
      for (const I end = next + tree_.own_rows[k]; next < end; ++next) {
        const I row = rows[next];
        for (I p = a_.row_begin[row]; p < a_.row_begin[row + 1]; ++p) join(k, label_[a_.col_index[p]]);
      }
      if (tree_.parent[k] >= 0) set_[k] = tree_.parent[k];
    }
    for (I k = 0; k < a_.cols; ++k) {
      if (tree_.parent[k] >= 0) counts[tree_.parent[k]] += counts[k];
    }
  }

 private:
  void find_first_descendants() {
    tree_.r_counts.assign(a_.cols, 0);
    for (I k = 0; k < a_.cols; ++k) {
      set_[k] = k;
      if (first_descendant_[k] < 0) {
        tree_.r_counts[k] = 1;
        for (I j = k; j >= 0 && first_descendant_[j] < 0; j = tree_.parent[j]) first_descendant_[j] = k;
      }
    }
  }

  std::vector<I> rows_by_leftmost() const {
    std::vector<I> begin(a_.cols + 1, 0);
    for (I k = 0; k < a_.cols; ++k) begin[k + 1] = begin[k] + tree_.own_rows[k];
    std::vector<I> rows(begin[a_.cols]);
    for (I i = 0; i < a_.rows; ++i) {
      if (tree_.leftmost[i] >= 0) rows[begin[tree_.leftmost[i]]++] = i;
    }
    return rows;
  }

  /// R(k, j) is not zero because of a row whose leftmost column is k.
  void join(I k, I j) {
    if (j <= k || first_descendant_[k] <= last_leaf_first_[j]) return;  // k is no leaf of j's subtree
    last_leaf_first_[j] = first_descendant_[k];
    ++tree_.r_counts[k];
    if (last_leaf_[j] >= 0) --tree_.r_counts[common_ancestor(last_leaf_[j])];
    last_leaf_[j] = k;
  }

  /// Lowest common ancestor of an earlier leaf and the current column: the root of the leaf's set.
  I common_ancestor(I leaf) {
    I root = leaf;
    while (set_[root] != root) root = set_[root];
    while (leaf != root) {
      const I next = set_[leaf];
      set_[leaf] = root;
      leaf = next;
    }
    return root;
  }

  const Compact<I>& a_;
  ColumnTree<I>& tree_;
  const std::vector<I>& label_;  // column of A -> column of the tree
  std::vector<I> first_descendant_;
  std::vector<I> last_leaf_first_;  // first descendant of the last leaf of each column's subtree
  std::vector<I> last_leaf_;
  std::vector<I> set_;  // disjoint sets
};

}  // namespace

template <class I>
ColumnTree<I> column_tree(const Compact<I>& a, const std::vector<I>& order) {
  ColumnTree<I> tree;
  const std::vector<I> parent = column_etree(a, order, tree.leftmost), post = postorder(parent);
  std::vector<I> position(a.cols), label(a.cols);
  tree.order.resize(a.cols);
  for (I k = 0; k < a.cols; ++k) {
    position[post[k]] = k;
    tree.order[k] = order[post[k]];
    label[tree.order[k]] = k;
  }
  tree.parent.resize(a.cols);
  for (I k = 0; k < a.cols; ++k) tree.parent[k] = parent[post[k]] < 0 ? -1 : position[parent[post[k]]];
  // A row's columns are on one path up the tree, so that the lowest stays the leftmost in any postorder.
  tree.own_rows.assign(a.cols, 0);
  for (I& leftmost : tree.leftmost) {
    if (leftmost < 0) continue;
    leftmost = position[leftmost];
    ++tree.own_rows[leftmost];
  }
  Counter<I>(a, tree, label).run();
  return tree;
}

#define QRANE_INSTANTIATE(I)                                                                       \
  template std::vector<I> column_etree(const Compact<I>&, const std::vector<I>&, std::vector<I>&); \
  template ColumnTree<I> column_tree(const Compact<I>&, const std::vector<I>&);
QRANE_INSTANTIATE(std::int32_t)
QRANE_INSTANTIATE(Index)

}  // namespace qrane::sparse
