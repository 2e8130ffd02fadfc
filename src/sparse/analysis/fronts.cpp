// SPDX-License-Identifier: Apache-2.0
#include "sparse/analysis/fronts.hpp"

#include <algorithm>
#include <limits>

namespace qrane::sparse {
namespace {

void link_children(Symbolic& s) {
  std::vector<Front>& fronts = s.fronts;
  for (Index f = 0; f < s.front_count(); ++f) {
    fronts[f].first_descendant = f;
    fronts[f].child_count = 0;
  }
  for (Index f = 0; f < s.front_count(); ++f) {
    if (fronts[f].parent < 0) continue;
    Front& parent = fronts[fronts[f].parent];
    ++parent.child_count;
    parent.first_descendant = std::min(parent.first_descendant, fronts[f].first_descendant);
    parent.level = std::max(parent.level, fronts[f].level + 1);
  }
  Index begin = 0;
  for (Front& front : fronts) {
    front.child_begin = begin;
    begin += front.child_count;
  }
  s.children.resize(begin);
  std::vector<Index> next(fronts.size());
  for (Index f = 0; f < s.front_count(); ++f) next[f] = fronts[f].child_begin;
  for (Index f = 0; f < s.front_count(); ++f) {
    if (fronts[f].parent >= 0) s.children[next[fronts[f].parent]++] = f;
  }
}

/// Column c is in the lists of the fronts on the paths from where c's rows are assembled up to where c is pivotal.
/// Taken in ascending order, columns leave every list sorted.
template <class I>
void list_columns(const Compact<I>& a, const FrontTree<I>& tree, Symbolic& s) {
  const auto count = static_cast<I>(s.fronts.size());
  struct List {  // what the loop below needs of a front, contiguous
    Index end;
    I parent, seen;
  };
  std::vector<List> lists(count);
  std::vector<I> front_of(a.cols), front_of_row(a.rows);
  Index total = 0;
  for (I f = 0; f < count; ++f) {
    Front& front = s.fronts[f];
    constexpr Index most = std::numeric_limits<Local>::max();
    detail::check(front.cols <= most && front.rows_bound <= most, ErrorCode::invalid_argument, "analyze: a front of ",
                  front.rows_bound, " x ", front.cols, " is too large");
    front.cols_begin = total;
    lists[f] = {total, static_cast<I>(front.parent), -1};
    total += front.cols;
    std::fill_n(front_of.begin() + front.first_col, front.pivots, f);
  }
  for (I i = 0; i < a.rows; ++i) front_of_row[i] = tree.leftmost[i] < 0 ? -1 : front_of[tree.leftmost[i]];
  s.front_cols.resize(total);
  for (I c = 0; c < a.cols; ++c) {
    const auto put = [&](List& list) {
      s.front_cols[list.end++] = s.singletons + c;
      list.seen = c;
    };
    put(lists[front_of[c]]);
    for (I p = a.col_begin[tree.order[c]]; p < a.col_begin[tree.order[c] + 1]; ++p) {
      for (I f = front_of_row[a.row_index[p]]; lists[f].seen != c; f = lists[f].parent) put(lists[f]);
    }
  }
}

/// Local column in the parent of every child's columns.
void map_columns(Symbolic& s) {
  s.parent_col.assign(s.front_cols.size(), -1);
  std::vector<Local> local(s.cols, -1);  // of permuted columns in the front at hand
  for (const Front& front : s.fronts) {
    if (front.child_count == 0) continue;
    for (Index j = 0; j < front.cols; ++j) local[s.front_cols[front.cols_begin + j]] = static_cast<Local>(j);
    for (Index c = 0; c < front.child_count; ++c) {
      const Front& child = s.fronts[s.children[front.child_begin + c]];
      for (Index j = child.cols_begin + child.pivots; j < child.cols_begin + child.cols; ++j) {
        s.parent_col[j] = local[s.front_cols[j]];
      }
    }
  }
}

void lay_out_all_rows(Symbolic& s) {
  s.stair.resize(s.front_cols.size());
  s.own_slot.assign(s.rows, -1);
  Index total = 0;
  for (Front& front : s.fronts) {
    front.cb_begin = total;
    total += front.cb_rows;
  }
  s.cb_slot.assign(total, -1);
  std::vector<Index> child_rows;
  std::vector<Local> child_slot;
  for (Index f = 0; f < s.front_count(); ++f) {
    Front& front = s.fronts[f];
    child_rows.clear();
    for (Index c = 0; c < front.child_count; ++c) {
      child_rows.push_back(s.fronts[s.children[front.child_begin + c]].cb_rows);
    }
    child_slot.resize(front.rows - front.own_rows);
    Index* const stair = s.stair.data() + front.cols_begin;
    lay_out_rows(s, f, child_rows.data(), stair, s.own_slot.data() + front.first_row, child_slot.data());
    const Local* slots = child_slot.data();
    for (Index c = 0; c < front.child_count; ++c) {
      const Front& child = s.fronts[s.children[front.child_begin + c]];
      std::copy_n(slots, child.cb_rows, s.cb_slot.begin() + child.cb_begin);
      slots += child.cb_rows;
    }
    front.flops = staircase_flops(front.rows, front.cols, stair);
  }
}

/// f(height, columns to the right) for every reflector of a front's QR.
template <class F>
void for_each_reflector(Index rows, Index cols, const Index* stair, F&& f) {
  for (Index k = 0; k < std::min(rows, cols); ++k) f(std::max(k + 1, stair[k]) - k, cols - k - 1);
}

}  // namespace

Index lay_out_rows(const Symbolic& s, Index f, const Index* child_rows, Index* stair, Local* own_slot,
                   Local* child_slot) {
  const Front& front = s.fronts[f];
  const Index* const own_begin = s.leftmost_begin.data() + front.first_col;
  const auto for_each_child_row = [&](auto&& place) {
    for (Index c = 0; c < front.child_count; ++c) {
      const Front& child = s.fronts[s.children[front.child_begin + c]];
      const Local* const cols = s.parent_col.data() + child.cols_begin + child.pivots;
      for (Index i = 0; i < child_rows[c]; ++i) place(cols[i]);
    }
  };
  // First how many rows begin in each column, then where those rows begin, which the placing turns into where they end.
  std::fill_n(stair, front.cols, Index{0});
  for (Index j = 0; j < front.pivots; ++j) stair[j] = own_begin[j + 1] - own_begin[j];
  for_each_child_row([&](Local col) { ++stair[col]; });
  Index rows = 0;
  for (Index j = 0; j < front.cols; ++j) {
    const Index count = stair[j];
    stair[j] = rows;
    rows += count;
  }
  for (Index j = 0; j < front.pivots; ++j) {
    for (Index r = own_begin[j]; r < own_begin[j + 1]; ++r) *own_slot++ = static_cast<Local>(stair[j]++);
  }
  for_each_child_row([&](Local col) { *child_slot++ = static_cast<Local>(stair[col]++); });
  return rows;
}

double staircase_flops(Index rows, Index cols, const Index* stair) {
  double flops = 0;
  for_each_reflector(rows, cols, stair, [&](Index height, Index right) {
    flops += static_cast<double>(height) * (4.0 * static_cast<double>(right) + 3.0);
  });
  return flops;
}

Index staircase_entries(Index rows, Index cols, const Index* stair) {
  Index entries = 0;
  for_each_reflector(rows, cols, stair, [&](Index height, Index) { entries += height; });
  return entries;
}

template <class I>
void lay_out_fronts(const Compact<I>& a, const FrontTree<I>& tree, Symbolic& s) {
  s.fronts = tree.fronts;
  s.leftmost_begin.assign(s.cols + 1, 0);
  s.front_of_col.assign(s.cols, -1);
  Index row = s.singletons;
  for (Index k = 0; k < s.singletons; ++k) s.leftmost_begin[k] = k;
  for (Index k = 0; k < a.cols; ++k) {
    s.leftmost_begin[s.singletons + k] = row;
    row += tree.own_rows[k];
  }
  std::fill(s.leftmost_begin.begin() + s.singletons + a.cols, s.leftmost_begin.end(), row);
  list_columns(a, tree, s);
  s.r_rows = s.singletons;
  for (Index f = 0; f < s.front_count(); ++f) {
    Front& front = s.fronts[f];
    front.first_col += s.singletons;
    front.first_row = s.leftmost_begin[front.first_col];
    std::fill_n(s.front_of_col.begin() + front.first_col, front.pivots, f);
    s.r_rows += front.r_rows;
  }
  link_children(s);
  map_columns(s);
  lay_out_all_rows(s);
}

template <class I>
void lay_out_matrix(const CompactedPattern<I>& pattern, const Singletons<I>& singletons, const std::vector<I>& leftmost,
                    const I* row_of, Symbolic& s) {
  const Compact<I>& a = pattern.a;
  // Rows: singletons', then by leftmost column, then empty ones.
  s.row_perm.resize(a.rows);
  std::copy(singletons.rows.begin(), singletons.rows.end(), s.row_perm.begin());
  std::vector<I> next(s.leftmost_begin.begin() + s.singletons, s.leftmost_begin.end() - 1);
  for (std::size_t r = 0; r < leftmost.size(); ++r)
    if (leftmost[r] >= 0) s.row_perm[next[leftmost[r]]++] = row_of ? row_of[r] : static_cast<I>(r);
  std::copy(singletons.empty_rows.begin(), singletons.empty_rows.end(), s.row_perm.end() - s.empty_rows);

  s.row_begin.resize(a.rows + 1);
  s.row_begin[0] = 0;
  next.resize(a.rows);  // of every row of A its next entry in S
  for (I r = 0; r < a.rows; ++r) {
    const Index i = s.row_perm[r];
    next[i] = static_cast<I>(s.row_begin[r]);
    s.row_begin[r + 1] = s.row_begin[r] + a.row_begin[i + 1] - a.row_begin[i];
  }
  // Columns in their new order leave every row sorted.
  std::vector<I> column(s.entries), entry_of(s.entries);  // permuted; of S -> of the compact pattern
  for (I k = 0; k < a.cols; ++k) {
    for (I e = a.col_begin[s.col_perm[k]]; e < a.col_begin[s.col_perm[k] + 1]; ++e) {
      const I p = next[a.row_index[e]]++;
      column[p] = k;
      entry_of[p] = e;
    }
  }
  s.singleton_cols.assign(column.begin(), column.begin() + s.row_begin[s.singletons]);
  s.entry_col.assign(s.entries, -1);
  std::vector<Local> local(s.cols);
  for (const Front& front : s.fronts) {
    for (Index j = 0; j < front.cols; ++j) local[s.front_cols[front.cols_begin + j]] = static_cast<Local>(j);
    const Index end = s.row_begin[front.first_row + front.own_rows];
    for (Index p = s.row_begin[front.first_row]; p < end; ++p) s.entry_col[p] = local[column[p]];
  }

  const Sources<I>& sources = pattern.sources;
  if (sources.begin.empty()) {
    if (!sources.user.empty())
      for (I& entry : entry_of) entry = sources.user[entry];
    s.gather = std::move(entry_of);
    return;
  }
  std::vector<I> gather, begin;
  gather.reserve(s.user_entries);
  begin.reserve(s.entries + 1);
  for (const I entry : entry_of) {
    begin.push_back(static_cast<I>(gather.size()));
    for (I k = sources.first(entry); k < sources.last(entry); ++k) gather.push_back(sources.at(k));
  }
  begin.push_back(static_cast<I>(s.user_entries));
  s.gather = std::move(gather);
  s.gather_begin = std::move(begin);
}

std::vector<Index> Symbolic::columns_of_entries() const {
  std::vector<Index> columns(entries);
  for_each_row([&](Index, Index first, Index last, auto column) {
    for (Index p = first; p < last; ++p) columns[p] = column(p);
  });
  return columns;
}

#define QRANE_INSTANTIATE(I)                                                                                      \
  template void lay_out_fronts(const Compact<I>&, const FrontTree<I>&, Symbolic&);                                \
  template void lay_out_matrix(const CompactedPattern<I>&, const Singletons<I>&, const std::vector<I>&, const I*, \
                               Symbolic&);
QRANE_INSTANTIATE(std::int32_t)
QRANE_INSTANTIATE(Index)

}  // namespace qrane::sparse
