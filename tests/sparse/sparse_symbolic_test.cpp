// SPDX-License-Identifier: Apache-2.0
// Sparse analysis against brute force: the Cholesky pattern of AᵀA, the tree read off it, fronts that hold it, maps
// that assemble; and a plain multifrontal QR over what the analysis left, whose R must be A's.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "sparse/analysis/column_tree.hpp"
#include "sparse/analysis/symbolic.hpp"
#include "support/plain_multifrontal.hpp"
#include "support/sparse.hpp"

namespace qrane::test {
namespace {

using sparse::AnalyzeOptions;
using sparse::Ordering;

const sparse::Amalgamation no_merging{.columns = {0, 0, 0}, .zeros = {0, 0, 0}, .zeros_beyond = 0};

std::vector<Ordering> orderings() {
  std::vector<Ordering> all{Ordering::natural, Ordering::colamd, Ordering::amd, Ordering::automatic};
  if (sparse::has_metis()) all.push_back(Ordering::metis);
  return all;
}

/// Rows of the pattern of R of a dense-stored pattern whose columns are taken in that order: row k's columns,
/// ascending.
std::vector<std::set<Index>> brute_force_r(const std::vector<std::set<Index>>& rows_of_a, Index cols) {
  std::vector<std::set<Index>> r(cols);
  for (const std::set<Index>& row : rows_of_a) {
    for (const Index j : row) {
      for (const Index k : row) {
        if (k >= j) r[j].insert(k);
      }
    }
  }
  for (Index k = 0; k < cols; ++k) {
    r[k].insert(k);
    for (auto i = std::next(r[k].begin()); i != r[k].end(); ++i) {
      for (auto j = i; j != r[k].end(); ++j) r[*i].insert(*j);
    }
  }
  return r;
}

/// The rows of S, by permuted columns.
std::vector<std::set<Index>> rows_of_s(const Symbolic& s, Index first, Index last) {
  std::vector<std::set<Index>> rows;
  const std::vector<Index> columns = s.columns_of_entries();
  for (Index r = first; r < last; ++r) {
    rows.emplace_back(columns.begin() + s.row_begin[r], columns.begin() + s.row_begin[r + 1]);
  }
  return rows;
}

Symbolic analyzed(const Triplets& a, Ordering ordering, const AnalyzeOptions& base = {}) {
  AnalyzeOptions options = base;
  options.ordering = ordering;
  return sparse::analyze_pattern(a.view(), options, {}, false);
}

void expect_permutation(const std::vector<Index>& perm, Index n) {
  ASSERT_EQ(static_cast<Index>(perm.size()), n);
  std::vector<Index> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (Index k = 0; k < n; ++k) ASSERT_EQ(sorted[k], k);
}

/// S is A permuted, and has the shape that symbolic.hpp draws.
void expect_matrix(const Triplets& a, const Symbolic& s) {
  expect_permutation(s.col_perm, a.cols);
  expect_permutation(s.row_perm, a.rows);
  std::vector<double> values(s.entries);
  sparse::gather_values(s, a.value.data(), values.data());
  const std::vector<double> dense = a.dense();
  std::set<std::pair<Index, Index>> positions;
  for (std::size_t k = 0; k < a.row.size(); ++k) positions.emplace(a.row[k], a.col[k]);
  ASSERT_EQ(s.entries, static_cast<Index>(positions.size()));
  ASSERT_EQ(s.user_entries, static_cast<Index>(a.row.size()));
  const Index end_of_fronts = s.cols - s.empty_cols;
  const std::vector<Index> columns = s.columns_of_entries();
  for (Index r = 0; r < s.rows; ++r) {
    for (Index p = s.row_begin[r]; p < s.row_begin[r + 1]; ++p) {
      const Index c = columns[p];
      ASSERT_TRUE(positions.contains({s.row_perm[r], s.col_perm[c]}));
      ASSERT_EQ(values[p], dense[s.row_perm[r] + s.col_perm[c] * s.rows]);
      if (p > s.row_begin[r]) {
        ASSERT_LT(columns[p - 1], c);
      }
      if (r >= s.singletons) {
        ASSERT_TRUE(c >= s.singletons && c < end_of_fronts);
      }
    }
    const bool empty = s.row_begin[r] == s.row_begin[r + 1];
    ASSERT_EQ(empty, r >= s.rows - s.empty_rows);
    if (empty) continue;
    const Index leftmost = columns[s.row_begin[r]];
    if (r < s.singletons) {
      ASSERT_EQ(leftmost, r);
    }
    ASSERT_TRUE(s.leftmost_begin[leftmost] <= r && r < s.leftmost_begin[leftmost + 1]);
  }
}

/// Postorder, children, bounds; the lists hold R's pattern, and exactly it where nothing was merged.
void expect_fronts(const Symbolic& s, bool merged) {
  const auto r = brute_force_r(rows_of_s(s, s.singletons, s.rows - s.empty_rows), s.cols);
  Index exact = s.row_begin[s.singletons];
  Index col = s.singletons, row = s.singletons, r_rows = s.singletons;
  for (Index f = 0; f < s.front_count(); ++f) {
    const Front& front = s.fronts[f];
    ASSERT_EQ(front.first_col, col);
    ASSERT_EQ(front.first_row, row);
    ASSERT_GT(front.pivots, 0);
    const Index* const list = s.front_cols.data() + front.cols_begin;
    const std::set<Index> columns(list, list + front.cols);
    ASSERT_EQ(static_cast<Index>(columns.size()), front.cols);
    ASSERT_TRUE(std::is_sorted(list, list + front.cols));
    for (Index k = 0; k < front.pivots; ++k) {
      ASSERT_EQ(list[k], col);
      ASSERT_EQ(s.front_of_col[col], f);
      ASSERT_TRUE(std::includes(columns.begin(), columns.end(), r[col].begin(), r[col].end())) << "column " << col;
      if (!merged) {
        ASSERT_EQ(static_cast<Index>(r[col].size()), front.cols - k);
      }
      exact += static_cast<Index>(r[col].size());
      ++col;
    }
    row += front.own_rows;
    Index rows = front.own_rows, bound = front.own_rows, first = f, level = 0;
    for (Index c = 0; c < front.child_count; ++c) {
      const Index number = s.children[front.child_begin + c];
      const Front& child = s.fronts[number];
      ASSERT_LT(number, f);
      ASSERT_EQ(child.parent, f);
      rows += child.cb_rows;
      bound += child.cb_rows_bound;
      first = std::min(first, child.first_descendant);
      level = std::max(level, child.level + 1);
      for (Index j = child.cols_begin + child.pivots; j < child.cols_begin + child.cols; ++j) {
        ASSERT_EQ(list[s.parent_col[j]], s.front_cols[j]);
      }
    }
    ASSERT_EQ(front.rows, rows);
    ASSERT_EQ(front.rows_bound, bound);
    ASSERT_LE(front.rows, front.rows_bound);
    ASSERT_EQ(front.first_descendant, first);
    ASSERT_EQ(front.level, level);
    ASSERT_EQ(front.r_rows, std::min(rows, front.pivots));
    ASSERT_EQ(front.cb_rows, std::min(rows - front.r_rows, front.cols - front.pivots));
    r_rows += front.r_rows;
    if (front.parent >= 0) {
      ASSERT_GT(front.parent, f);
      // contiguous subtrees: whatever lies between a front and its parent is below the parent too
      ASSERT_LE(s.fronts[front.parent].first_descendant, first);
    }
  }
  ASSERT_EQ(col, s.cols - s.empty_cols);
  ASSERT_EQ(row, s.rows - s.empty_rows);
  ASSERT_EQ(s.r_rows, r_rows);
  ASSERT_EQ(s.facts.r_entries_exact, exact);
}

/// Every slot is taken once, rows stand by leftmost column, stairs count them.
void expect_staircases(const Symbolic& s) {
  for (const Front& front : s.fronts) {
    std::vector<Index> leftmost(front.rows, -1);
    const auto place = [&](Local slot, Index local) {
      ASSERT_TRUE(slot >= 0 && slot < front.rows);
      ASSERT_EQ(leftmost[slot], -1);
      leftmost[slot] = local;
    };
    for (Index r = front.first_row; r < front.first_row + front.own_rows; ++r) {
      place(s.own_slot[r], s.entry_col[s.row_begin[r]]);
    }
    for (Index c = 0; c < front.child_count; ++c) {
      const Front& child = s.fronts[s.children[front.child_begin + c]];
      for (Index i = 0; i < child.cb_rows; ++i) {
        place(s.cb_slot[child.cb_begin + i], s.parent_col[child.cols_begin + child.pivots + i]);
      }
    }
    ASSERT_TRUE(std::is_sorted(leftmost.begin(), leftmost.end()));
    for (Index j = 0; j < front.cols; ++j) {
      ASSERT_EQ(s.stair[front.cols_begin + j],
                std::count_if(leftmost.begin(), leftmost.end(), [&](Index l) { return l <= j; }));
    }
  }
}

TEST(SparseSymbolic, AgreesWithBruteForce) {
  for (const auto& [name, a] : odd_matrices()) {
    for (const Ordering ordering : orderings()) {
      for (const bool singletons : {true, false}) {
        for (const bool merged : {true, false}) {
          SCOPED_TRACE(name + ", " + sparse::to_string(ordering) + (singletons ? ", singletons" : "") +
                       (merged ? ", merged" : ""));
          AnalyzeOptions options;
          options.singletons = singletons;
          if (!merged) options.expert.amalgamation = no_merging;
          const Symbolic s = analyzed(a, ordering, options);
          expect_matrix(a, s);
          expect_fronts(s, merged);
          expect_staircases(s);
          expect_factorization(a, s);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

template <class I>
void expect_column_trees() {
  for (const auto& [name, a] : odd_matrices()) {
    SCOPED_TRACE(name);
    const sparse::Compact<I> compact = sparse::compact<I>(a.view()).a;
    std::vector<I> order(a.cols), leftmost;
    std::iota(order.begin(), order.end(), I{0});
    const std::vector<I> parent = sparse::column_etree(compact, order, leftmost);
    std::vector<std::set<Index>> rows(a.rows);
    for (std::size_t k = 0; k < a.row.size(); ++k) rows[a.row[k]].insert(a.col[k]);
    for (Index i = 0; i < a.rows; ++i) EXPECT_EQ(leftmost[i], rows[i].empty() ? -1 : *rows[i].begin());
    const auto r = brute_force_r(rows, a.cols);
    for (Index k = 0; k < a.cols; ++k) {
      EXPECT_EQ(parent[k], r[k].size() > 1 ? *std::next(r[k].begin()) : -1);
    }
    const sparse::ColumnTree<I> tree = sparse::column_tree(compact, order);
    for (Index k = 0; k < a.cols; ++k) {
      EXPECT_EQ(tree.r_counts[k], static_cast<Index>(r[tree.order[k]].size()));
      if (tree.parent[k] >= 0) {
        EXPECT_GT(tree.parent[k], k);
      }
    }
  }
}

TEST(SparseSymbolic, ColumnTreeIsTheTreeOfTheFactor) {
  expect_column_trees<std::int32_t>();
  expect_column_trees<Index>();
}

TEST(SparseSymbolic, WiderIntegersGiveTheSameFronts) {
  for (const auto& [name, a] : odd_matrices()) {
    SCOPED_TRACE(name);
    for (const Ordering ordering : {Ordering::natural, Ordering::colamd, Ordering::amd}) {
      AnalyzeOptions options;
      options.ordering = ordering;
      const Symbolic narrow = sparse::analyze_pattern(a.view(), options, {}, false, false);
      const Symbolic wide = sparse::analyze_pattern(a.view(), options, {}, false, true);
      EXPECT_EQ(narrow.col_perm, wide.col_perm);
      EXPECT_EQ(narrow.row_perm, wide.row_perm);
      EXPECT_EQ(narrow.columns_of_entries(), wide.columns_of_entries());
      EXPECT_EQ(narrow.front_cols, wide.front_cols);
      EXPECT_EQ(narrow.stair, wide.stair);
      EXPECT_EQ(narrow.cb_slot, wide.cb_slot);
      EXPECT_EQ(narrow.own_slot, wide.own_slot);
      std::vector<double> by_narrow(narrow.entries), by_wide(wide.entries);
      sparse::gather_values(narrow, a.value.data(), by_narrow.data());
      sparse::gather_values(wide, a.value.data(), by_wide.data());
      EXPECT_EQ(by_narrow, by_wide);
    }
  }
}

TEST(SparseSymbolic, GivenOrderIsKeptUpToFill) {
  const Triplets a = random_sparse(40, 25, 0.1, 3);
  std::vector<Index> reversed(a.cols);
  for (Index k = 0; k < a.cols; ++k) reversed[k] = a.cols - 1 - k;
  AnalyzeOptions options;
  options.singletons = false;
  const Symbolic s = sparse::analyze_pattern(a.view(), options, {}, false, false, reversed.data());
  expect_matrix(a, s);
  std::vector<std::set<Index>> rows(a.rows);
  for (std::size_t k = 0; k < a.row.size(); ++k) rows[a.row[k]].insert(a.cols - 1 - a.col[k]);
  Index expected = 0;
  for (const auto& row : brute_force_r(rows, a.cols)) expected += static_cast<Index>(row.size());
  EXPECT_EQ(s.facts.r_entries_exact, expected - s.empty_cols);  // empty columns are in no front
}

TEST(SparseSymbolic, RowsAreLaidOutAgainForOtherChildren) {
  const Triplets a = random_sparse(60, 40, 0.06, 21);
  AnalyzeOptions options;
  options.expert.amalgamation = no_merging;
  const Symbolic s = analyzed(a, Ordering::natural, options);
  for (Index f = 0; f < s.front_count(); ++f) {
    const Front& front = s.fronts[f];
    std::vector<Index> child_rows, stair(front.cols);
    Index total = front.own_rows;
    for (Index c = 0; c < front.child_count; ++c) {
      child_rows.push_back(s.fronts[s.children[front.child_begin + c]].cb_rows_bound);
      total += child_rows.back();
    }
    std::vector<Local> own(front.own_rows), slots(total - front.own_rows);
    EXPECT_EQ(sparse::lay_out_rows(s, f, child_rows.data(), stair.data(), own.data(), slots.data()), front.rows_bound);
    std::vector<Local> all(own);
    all.insert(all.end(), slots.begin(), slots.end());
    std::sort(all.begin(), all.end());
    for (Index k = 0; k < total; ++k) ASSERT_EQ(all[k], k);
    EXPECT_EQ(stair.back(), total);
  }
}

TEST(SparseSymbolic, AutomaticTakesTheFewestFlops) {
  // Two-dimensional meshes of 120 x 120, rows of five: large enough for more than one ordering.
  Triplets a{28800, 14400, {}, {}, {}};
  for (Index i = 0; i < a.rows; ++i) {
    const Index j = i % 14400;
    for (const Index k : {j, j - 1, j + 1, j - 120, j + 120}) {
      if (k >= 0 && k < a.cols) a.add(i, k, 1.0 + static_cast<double>(i % 7));
    }
  }
  const Symbolic s = analyzed(a, Ordering::automatic);
  EXPECT_GE(s.facts.trials.size(), 2u);
  for (const auto& trial : s.facts.trials) {
    EXPECT_LE(s.facts.flops, trial.flops);
    EXPECT_EQ(analyzed(a, trial.ordering).facts.flops, trial.flops) << sparse::to_string(trial.ordering);
    if (trial.ordering == s.facts.ordering) {
      EXPECT_EQ(s.facts.flops, trial.flops);
    }
  }
  const Symbolic small = analyzed(random_sparse(30, 20, 0.2, 5), Ordering::automatic);
  EXPECT_EQ(small.facts.trials.size(), 1u);  // nothing to gain
}

}  // namespace
}  // namespace qrane::test
