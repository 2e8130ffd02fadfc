// SPDX-License-Identifier: Apache-2.0
#include "sparse/analysis/front_tree.hpp"

#include <algorithm>
#include <numeric>

namespace qrane::sparse {
namespace {

/// Entries of a trapezoid: rows rows of an upper triangle whose first is cols long.
Index trapezoid(Index rows, Index cols) { return rows * cols - rows * (rows - 1) / 2; }

/// Columns that will be pivotal in one front. Children have smaller numbers than their parents.
struct Group {
  Index pivots = 0;
  Index cols = 0;
  Index own_rows = 0;
  Index rows = 0;     // own_rows and the children's contribution rows; amalgamate() fills it in
  Index entries = 0;  // of R's rows here, without zeros from merging
  Index parent = -1;

  Index r_rows() const { return std::min(rows, pivots); }
  Index cb_rows() const { return std::min(rows - r_rows(), cols - pivots); }
};

template <class I>
struct Grouping {
  std::vector<Group> groups;
  std::vector<I> group_of;  // of each column of the tree
};

/// Chains of columns with one child each whose rows of R have the same pattern.
template <class I>
Grouping<I> fundamental_supernodes(const ColumnTree<I>& tree) {
  const auto n = static_cast<I>(tree.parent.size());
  std::vector<I> child_count(n, 0);
  for (const I p : tree.parent) {
    if (p >= 0) ++child_count[p];
  }
  Grouping<I> result;
  result.group_of.resize(n);
  for (I k = 0; k < n; ++k) {
    const bool joins =
        k > 0 && tree.parent[k - 1] == k && child_count[k] == 1 && tree.r_counts[k - 1] == tree.r_counts[k] + 1;
    if (!joins) result.groups.push_back({0, tree.r_counts[k], 0, 0, 0, -1});
    Group& group = result.groups.back();
    result.group_of[k] = static_cast<I>(result.groups.size()) - 1;
    ++group.pivots;
    group.own_rows += tree.own_rows[k];
    group.entries += tree.r_counts[k];
  }
  for (I k = 0; k < n; ++k) {
    if (tree.parent[k] < 0) continue;
    const I above = result.group_of[tree.parent[k]];
    if (above != result.group_of[k]) result.groups[result.group_of[k]].parent = above;
  }
  return result;
}

/// Children of every node of a forest, ascending.
struct Children {
  explicit Children(const std::vector<Group>& groups) : begin(groups.size() + 1, 0) {
    for (const Group& g : groups) {
      if (g.parent >= 0) ++begin[g.parent + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    list.resize(begin.back());
    std::vector<Index> next(begin.begin(), begin.end() - 1);
    for (std::size_t c = 0; c < groups.size(); ++c) {
      if (groups[c].parent >= 0) list[next[groups[c].parent]++] = static_cast<Index>(c);
    }
  }
  std::vector<Index> begin, list;
};

/// Householder QR of a dense rows x cols matrix.
double dense_flops(Index rows, Index cols) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols);
  return m >= n ? 2 * n * n * (m - n / 3) : 2 * m * m * (n - m / 3);
}

/// Flops that the merging of a child adds. The child's columns come first: only its rows reach them, but now across all
/// of the parent's columns; the rows that are left then stand in the parent whole, and not as a trapezoid whose row i
/// begins in the child's column i, here taken to be spread evenly over the parent's n. A row that begins in column s
/// takes part in reflectors s .. k - 1 of the k = min(rows, n): 2 (n - s)^2 - 2 (n - k)^2 flops.
double added_flops(const Group& child, const Group& parent, const Group& merged) {
  const Index left = child.rows - child.r_rows();
  const double child_part = dense_flops(child.rows, merged.cols) - dense_flops(left, merged.cols - child.r_rows()) -
                            dense_flops(child.rows, child.cols);
  const auto n = static_cast<double>(parent.cols);
  const double k = std::min(static_cast<double>(merged.rows - child.r_rows()), n);
  const double whole_rows = static_cast<double>(left) * 2 * (n * n - (n - k) * (n - k));
  if (child.cb_rows() == 0) return child_part + whole_rows;
  const double step = n / static_cast<double>(child.cols - child.pivots);
  const double rows = std::min(static_cast<double>(child.cb_rows()), k / step);
  const double end = n - step * rows;
  const double trapezoid = 2 * ((n * n * n - end * end * end) / (3 * step) - rows * (n - k) * (n - k));
  return child_part + whole_rows - trapezoid;
}

bool worth_merging(const Group& child, const Group& parent, const Group& merged, const Amalgamation& relax) {
  const auto carried = static_cast<double>(trapezoid(child.cb_rows(), child.cols - child.pivots));
  const double saved =
      relax.front_flops + relax.entry_flops * carried + relax.flops_share * dense_flops(child.rows, child.cols);
  if (added_flops(child, parent, merged) > saved) return false;
  const Index total = trapezoid(merged.pivots, merged.cols);
  const double share = static_cast<double>(total - merged.entries) / static_cast<double>(std::max<Index>(total, 1));
  for (int k = 0; k < 3; ++k) {
    if (merged.pivots <= relax.columns[k]) return share <= relax.zeros[k];
  }
  return share <= relax.zeros_beyond;
}

/// Merges children into parents, the widest first, where zeros are few. A child's columns but for its pivots are among
/// its parent's, so the merged front has child.pivots + parent.cols columns, whichever children went before.
template <class I>
Grouping<I> amalgamate(Grouping<I> fine, const Amalgamation& relax) {
  std::vector<Group>& groups = fine.groups;
  const auto count = static_cast<Index>(groups.size());
  Children children(groups);
  std::vector<Index> into(count, -1);
  for (Index p = 0; p < count; ++p) {
    groups[p].rows = groups[p].own_rows;
    const auto begin = children.list.begin() + children.begin[p];
    const auto end = children.list.begin() + children.begin[p + 1];
    for (auto c = begin; c != end; ++c) groups[p].rows += groups[*c].cb_rows();
    std::stable_sort(begin, end, [&](Index c, Index d) { return groups[c].cols > groups[d].cols; });
    for (auto c = begin; c != end; ++c) {
      const Group& child = groups[*c];
      Group merged = groups[p];
      merged.pivots += child.pivots;
      merged.cols += child.pivots;
      merged.own_rows += child.own_rows;
      merged.rows += child.rows - child.cb_rows();
      merged.entries += child.entries;
      if (!worth_merging(child, groups[p], merged, relax)) continue;
      groups[p] = merged;
      into[*c] = p;
    }
  }
  // Renumber what is left; a merged group is part of the one its parent ended in, which has a larger number.
  Grouping<I> result;
  std::vector<Index> number(count);
  for (Index g = 0; g < count; ++g) {
    if (into[g] >= 0) continue;
    number[g] = static_cast<Index>(result.groups.size());
    result.groups.push_back(groups[g]);
  }
  for (Index g = count - 1; g >= 0; --g) {
    if (into[g] >= 0) number[g] = number[into[g]];
  }
  for (Group& group : result.groups) {
    if (group.parent >= 0) group.parent = number[group.parent];
  }
  for (I& g : fine.group_of) g = static_cast<I>(number[g]);
  result.group_of = std::move(fine.group_of);
  return result;
}

Front sized_front(const Group& group, Index child_rows, Index child_rows_bound) {
  Front f;
  f.pivots = group.pivots;
  f.cols = group.cols;
  f.own_rows = group.own_rows;
  f.rows = group.own_rows + child_rows;
  f.r_rows = std::min(f.rows, f.pivots);
  f.cb_rows = std::min(f.rows - f.r_rows, f.nonpivots());
  f.rows_bound = group.own_rows + child_rows_bound;
  f.cb_rows_bound = std::min(f.rows_bound, f.nonpivots());
  return f;
}

/// Orders siblings for low memory: first those whose peak exceeds their contribution block most.
std::vector<Index> frugal_postorder(const std::vector<Group>& groups, const std::vector<Front>& fronts) {
  const auto count = static_cast<Index>(groups.size());
  Children children(groups);
  std::vector<Index> peak(count, 0);
  std::vector<Index> rank(count);  // position among siblings
  std::vector<Index> roots;
  const auto before = [&](Index c, Index d) {
    return peak[c] - fronts[c].cb_entries() > peak[d] - fronts[d].cb_entries();
  };
  for (Index g = 0; g < count; ++g) {
    if (groups[g].parent < 0) roots.push_back(g);
    const auto begin = children.list.begin() + children.begin[g];
    const auto end = children.list.begin() + children.begin[g + 1];
    std::stable_sort(begin, end, before);
    Index waiting = 0;
    for (auto c = begin; c != end; ++c) {
      peak[g] = std::max(peak[g], waiting + peak[*c]);
      waiting += fronts[*c].cb_entries();
    }
    peak[g] = std::max(peak[g], waiting + fronts[g].entries());
  }
  std::vector<Index> result, path, next(children.begin.begin(), children.begin.end() - 1);
  result.reserve(count);
  for (const Index root : roots) {
    path.push_back(root);
    while (!path.empty()) {
      const Index g = path.back();
      if (next[g] < children.begin[g + 1]) {
        path.push_back(children.list[next[g]++]);
      } else {
        result.push_back(g);
        path.pop_back();
      }
    }
  }
  return result;
}

}  // namespace

template <class I>
FrontTree<I> front_tree(const ColumnTree<I>& tree, const Amalgamation& relax) {
  FrontTree<I> result;
  Grouping<I> grouping = fundamental_supernodes(tree);
  result.supernodes = static_cast<Index>(grouping.groups.size());
  result.r_entries_exact = std::accumulate(tree.r_counts.begin(), tree.r_counts.end(), Index{0});
  grouping = amalgamate(std::move(grouping), relax);
  const std::vector<Group>& groups = grouping.groups;

  const auto count = static_cast<Index>(groups.size());
  std::vector<Front> sized(count);
  std::vector<Index> child_rows(count, 0), child_rows_bound(count, 0);
  for (Index g = 0; g < count; ++g) {
    sized[g] = sized_front(groups[g], child_rows[g], child_rows_bound[g]);
    if (groups[g].parent < 0) continue;
    child_rows[groups[g].parent] += sized[g].cb_rows;
    child_rows_bound[groups[g].parent] += sized[g].cb_rows_bound;
  }

  const std::vector<Index> post = frugal_postorder(groups, sized);
  std::vector<Index> number(count);
  for (Index f = 0; f < count; ++f) number[post[f]] = f;
  result.fronts.reserve(count);
  std::vector<Index> begin(count);  // first pivotal column of a front
  Index first_col = 0;
  for (Index f = 0; f < count; ++f) {
    Front front = sized[post[f]];
    const Index parent = groups[post[f]].parent;
    front.parent = parent < 0 ? -1 : number[parent];
    front.first_col = begin[f] = first_col;
    first_col += front.pivots;
    result.fronts.push_back(front);
  }
  const auto n = static_cast<I>(tree.order.size());
  result.order.resize(n);
  result.own_rows.resize(n);
  std::vector<I> position(n);
  for (I k = 0; k < n; ++k) {
    const auto at = static_cast<I>(begin[number[grouping.group_of[k]]]++);
    position[k] = at;
    result.order[at] = tree.order[k];
    result.own_rows[at] = tree.own_rows[k];
  }
  result.leftmost.resize(tree.leftmost.size());
  for (std::size_t i = 0; i < tree.leftmost.size(); ++i)
    result.leftmost[i] = tree.leftmost[i] < 0 ? -1 : position[tree.leftmost[i]];
  return result;
}

template FrontTree<std::int32_t> front_tree(const ColumnTree<std::int32_t>&, const Amalgamation&);
template FrontTree<Index> front_tree(const ColumnTree<Index>&, const Amalgamation&);

}  // namespace qrane::sparse
