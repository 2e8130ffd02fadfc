// SPDX-License-Identifier: Apache-2.0
#include "sparse/analysis/compact.hpp"

namespace qrane::sparse {
namespace {

constexpr auto bad = ErrorCode::invalid_argument;
using detail::check;

/// begin[k] becomes the number of entries with a key below k; begin has one number more than there are keys.
template <class I>
void sum_up(std::vector<I>& begin) {
  I total = 0;
  for (I& b : begin) {
    const I count = b;
    b = total;
    total += count;
  }
}

void check_sizes(const char* who, const Pattern& p) {
  check(p.rows >= 0, bad, who, ": the pattern has ", p.rows, " rows");
  check(p.cols >= 0, bad, who, ": the pattern has ", p.cols, " columns");
  check(p.entries >= 0, bad, who, ": the pattern has ", p.entries, " entries");
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  check(p.rows < most && p.cols < most && p.entries < most, bad, who, ": a pattern of ", p.rows, " x ", p.cols,
        " with ", p.entries, " entries is beyond 64-bit sizes");
  const bool needs_rows = p.storage != Storage::rows;
  const bool needs_cols = p.storage != Storage::columns;
  check(p.entries == 0 || !needs_rows || p.row_indices, bad, who, ": row_indices is null");
  check(p.entries == 0 || !needs_cols || p.col_indices, bad, who, ": col_indices is null");
}

/// Pointers of `lines` columns or rows.
void check_pointers(const char* who, const Pattern& p, Index lines, const char* line) {
  if (!p.pointers) {
    check(lines == 0 && p.entries == 0, bad, who, ": pointers is null");
    return;
  }
  check(p.pointers[0] == 0, bad, who, ": pointers[0] is ", p.pointers[0], ", not 0");
  for (Index k = 0; k < lines; ++k) {
    check(p.pointers[k] <= p.pointers[k + 1], bad, who, ": pointers fall from ", p.pointers[k], " to ",
          p.pointers[k + 1], " at ", line, " ", k);
  }
  check(p.pointers[lines] == p.entries, bad, who, ": pointers end at ", p.pointers[lines], ", but there are ",
        p.entries, " entries");
}

void check_indices(const char* who, const Indices& all, Index entries, Index limit, const char* what) {
  all.visit([&](const auto* indices) {
    for (Index p = 0; p < entries; ++p) {
      check(indices[p] >= 0 && indices[p] < limit, bad, who, ": entry ", p, " is in ", what, " ", indices[p],
            ", outside 0..", limit - 1);
    }
  });
}

/// The line of every entry of compressed storage.
std::vector<Index> spread_pointers(const Indices& pointers, Index lines, Index entries) {
  std::vector<Index> line_of(entries);
  for (Index k = 0; k < lines; ++k) {
    for (Index p = pointers[k]; p < pointers[k + 1]; ++p) line_of[p] = k;
  }
  return line_of;
}

/// Compressed columns that ascend can be taken as they stand: they have no duplicates.
bool columns_ascend(const Pattern& p) {
  for (Index j = 0; j < p.cols; ++j) {
    for (Index q = p.pointers[j] + 1; q < p.pointers[j + 1]; ++q) {
      if (p.row_indices[q - 1] >= p.row_indices[q]) return false;
    }
  }
  return true;
}

/// Two stable counting sorts, by rows and then by columns, bring duplicates together in the user's order.
template <class I>
CompactedPattern<I> sorted_by_columns(const Pattern& p, const Indices& row_of, const Indices& col_of) {
  std::vector<I> by_row(p.entries);
  {
    std::vector<I> begin(p.rows + 1, 0);
    for (Index e = 0; e < p.entries; ++e) ++begin[row_of[e]];
    sum_up(begin);
    for (Index e = 0; e < p.entries; ++e) by_row[begin[row_of[e]]++] = static_cast<I>(e);
  }
  CompactedPattern<I> result;
  std::vector<I>& user = result.sources.user;
  user.resize(p.entries);
  std::vector<I> begin(p.cols + 1, 0);
  for (Index e = 0; e < p.entries; ++e) ++begin[col_of[e]];
  sum_up(begin);
  for (const I e : by_row) user[begin[col_of[e]]++] = e;  // now begin[j] is where column j ends

  Compact<I>& a = result.a;
  a.col_begin.reserve(p.cols + 1);
  a.col_begin.push_back(0);
  a.row_index.reserve(p.entries);
  std::vector<I>& sums = by_row;  // its memory
  Index e = 0;
  for (Index j = 0; j < p.cols; ++j) {
    for (; e < begin[j]; ++e) {
      const auto row = static_cast<I>(row_of[user[e]]);
      if (a.entries() > a.col_begin[j] && a.row_index.back() == row) continue;
      sums[a.row_index.size()] = static_cast<I>(e);
      a.row_index.push_back(row);
    }
    a.col_begin.push_back(static_cast<I>(a.row_index.size()));
  }
  if (a.entries() < p.entries) {
    sums.resize(a.row_index.size());
    sums.push_back(static_cast<I>(p.entries));
    result.sources.begin = std::move(sums);
  }
  return result;
}

template <class I>
void index_rows(Compact<I>& a) {
  a.row_begin.assign(a.rows + 2, 0);  // counts two places on, so that the pointers come out where they belong
  for (const I i : a.row_index) ++a.row_begin[i + 2];
  for (I i = 0; i < a.rows; ++i) a.row_begin[i + 2] += a.row_begin[i + 1];
  a.col_index.resize(a.row_index.size());
  for (I j = 0; j < a.cols; ++j) {
    for (I p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) a.col_index[a.row_begin[a.row_index[p] + 1]++] = j;
  }
  a.row_begin.pop_back();
}

}  // namespace

void check_pattern(const char* who, const Pattern& p) {
  check_sizes(who, p);
  if (p.storage == Storage::columns) check_pointers(who, p, p.cols, "column");
  if (p.storage == Storage::rows) check_pointers(who, p, p.rows, "row");
  if (p.storage != Storage::rows) check_indices(who, p.row_indices, p.entries, p.rows, "row");
  if (p.storage != Storage::columns) check_indices(who, p.col_indices, p.entries, p.cols, "column");
}

template <class I>
CompactedPattern<I> compact(const Pattern& p) {
  check_pattern("analyze", p);
  CompactedPattern<I> result;
  Compact<I>& a = result.a;
  if (p.storage == Storage::columns && columns_ascend(p)) {
    if (p.cols > 0)
      p.pointers.visit([&](const auto* pointers) { a.col_begin.assign(pointers, pointers + p.cols + 1); });
    else
      a.col_begin.assign(1, 0);
    p.row_indices.visit([&](const auto* rows) { a.row_index.assign(rows, rows + p.entries); });
  } else {
    std::vector<Index> lines;
    if (p.storage == Storage::columns) lines = spread_pointers(p.pointers, p.cols, p.entries);
    if (p.storage == Storage::rows) lines = spread_pointers(p.pointers, p.rows, p.entries);
    result = sorted_by_columns<I>(p, p.storage == Storage::rows ? Indices(lines.data()) : p.row_indices,
                                  p.storage == Storage::columns ? Indices(lines.data()) : p.col_indices);
  }
  a.rows = static_cast<I>(p.rows);
  a.cols = static_cast<I>(p.cols);
  index_rows(a);
  return result;
}

template <class I>
Singletons<I> find_singletons(const CompactedPattern<I>& pattern, bool wanted, const SingletonTest& may_pivot) {
  const Compact<I>& a = pattern.a;
  const Sources<I>& sources = pattern.sources;
  Singletons<I> found;
  std::vector<I> degree(a.cols);  // entries in live rows
  std::vector<char> row_taken(a.rows, 0), col_taken(a.cols, 0);
  std::vector<I> waiting;
  std::vector<Index> entries;
  for (I j = 0; j < a.cols; ++j) {
    degree[j] = a.col_begin[j + 1] - a.col_begin[j];
    if (wanted && degree[j] == 1) waiting.push_back(j);
  }
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const I j = waiting[next];
    if (degree[j] != 1) continue;
    I entry = a.col_begin[j];
    while (row_taken[a.row_index[entry]]) ++entry;
    if (may_pivot) {
      entries.clear();
      for (I k = sources.first(entry); k < sources.last(entry); ++k) entries.push_back(sources.at(k));
      if (!may_pivot(entries.data(), static_cast<Index>(entries.size()))) continue;
    }
    const I i = a.row_index[entry];
    row_taken[i] = col_taken[j] = 1;
    found.rows.push_back(i);
    found.cols.push_back(j);
    for (I p = a.row_begin[i]; p < a.row_begin[i + 1]; ++p) {
      if (--degree[a.col_index[p]] == 1) waiting.push_back(a.col_index[p]);
    }
  }
  found.live_cols.reserve(a.cols - found.cols.size());
  for (I j = 0; j < a.cols; ++j) {
    if (!col_taken[j]) (degree[j] > 0 ? found.live_cols : found.empty_cols).push_back(j);
  }
  found.live_rows.reserve(a.rows - found.rows.size());
  for (I i = 0; i < a.rows; ++i) {
    if (!row_taken[i]) (a.row_begin[i + 1] > a.row_begin[i] ? found.live_rows : found.empty_rows).push_back(i);
  }
  return found;
}

template <class I>
Compact<I> reduce(const Compact<I>& a, const Singletons<I>& singletons) {
  Compact<I> b;
  b.rows = static_cast<I>(singletons.live_rows.size());
  b.cols = static_cast<I>(singletons.live_cols.size());
  std::vector<I> new_row(a.rows, -1);
  for (I r = 0; r < b.rows; ++r) new_row[singletons.live_rows[r]] = r;
  b.col_begin.reserve(b.cols + 1);
  b.col_begin.push_back(0);
  b.row_index.reserve(a.row_index.size());
  for (const I j : singletons.live_cols) {
    for (I p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) {
      if (const I r = new_row[a.row_index[p]]; r >= 0) b.row_index.push_back(r);
    }
    b.col_begin.push_back(static_cast<I>(b.row_index.size()));
  }
  index_rows(b);
  return b;
}

#define QRANE_INSTANTIATE(I)                                                                      \
  template CompactedPattern<I> compact<I>(const Pattern&);                                        \
  template Singletons<I> find_singletons(const CompactedPattern<I>&, bool, const SingletonTest&); \
  template Compact<I> reduce(const Compact<I>&, const Singletons<I>&);
QRANE_INSTANTIATE(std::int32_t)
QRANE_INSTANTIATE(Index)

}  // namespace qrane::sparse
