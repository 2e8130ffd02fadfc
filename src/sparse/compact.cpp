// SPDX-License-Identifier: Apache-2.0
#include "sparse/compact.hpp"

#include <limits>
#include <numeric>

namespace qrane::sparse {
namespace {

constexpr auto bad = ErrorCode::invalid_argument;
using detail::check;

/// begin[k] becomes the number of entries with a key below k; begin has one number more than there are keys.
void sum_up(std::vector<Index>& begin) {
  Index total = 0;
  for (Index& b : begin) {
    const Index count = b;
    b = total;
    total += count;
  }
}

void check_sizes(const Pattern& p) {
  check(p.rows >= 0, bad, "analyze: the pattern has ", p.rows, " rows");
  check(p.cols >= 0, bad, "analyze: the pattern has ", p.cols, " columns");
  check(p.entries >= 0, bad, "analyze: the pattern has ", p.entries, " entries");
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  check(p.rows < most && p.cols < most && p.entries < most, bad, "analyze: a pattern of ", p.rows, " x ", p.cols,
        " with ", p.entries, " entries is beyond 64-bit sizes");
  const bool needs_rows = p.storage != Storage::rows;
  const bool needs_cols = p.storage != Storage::columns;
  check(p.entries == 0 || !needs_rows || p.row_indices, bad, "analyze: row_indices is null");
  check(p.entries == 0 || !needs_cols || p.col_indices, bad, "analyze: col_indices is null");
}

/// Pointers of `lines` columns or rows.
void check_pointers(const Pattern& p, Index lines, const char* line) {
  if (!p.pointers) {
    check(lines == 0 && p.entries == 0, bad, "analyze: pointers is null");
    return;
  }
  check(p.pointers[0] == 0, bad, "analyze: pointers[0] is ", p.pointers[0], ", not 0");
  for (Index k = 0; k < lines; ++k) {
    check(p.pointers[k] <= p.pointers[k + 1], bad, "analyze: pointers fall from ", p.pointers[k], " to ",
          p.pointers[k + 1], " at ", line, " ", k);
  }
  check(p.pointers[lines] == p.entries, bad, "analyze: pointers end at ", p.pointers[lines], ", but there are ",
        p.entries, " entries");
}

void check_indices(const Index* indices, Index entries, Index limit, const char* what) {
  for (Index p = 0; p < entries; ++p) {
    check(indices[p] >= 0 && indices[p] < limit, bad, "analyze: entry ", p, " is in ", what, " ", indices[p],
          ", outside 0..", limit - 1);
  }
}

/// The line of every entry of compressed storage.
std::vector<Index> spread_pointers(const Index* pointers, Index lines, Index entries) {
  std::vector<Index> line_of(entries);
  for (Index k = 0; k < lines; ++k) {
    for (Index p = pointers[k]; p < pointers[k + 1]; ++p) line_of[p] = k;
  }
  return line_of;
}

/// Compressed columns without duplicates can be taken as they stand.
bool is_distinct(const Pattern& p) {
  std::vector<Index> seen_in(p.rows, -1);
  for (Index j = 0; j < p.cols; ++j) {
    for (Index q = p.pointers[j]; q < p.pointers[j + 1]; ++q) {
      if (seen_in[p.row_indices[q]] == j) return false;
      seen_in[p.row_indices[q]] = j;
    }
  }
  return true;
}

/// Two stable counting sorts, by rows and then by columns, bring duplicates together in the user's order.
CompactedPattern sorted_by_columns(const Pattern& p, const Index* row_of, const Index* col_of) {
  std::vector<Index> by_row(p.entries);
  {
    std::vector<Index> begin(p.rows + 1, 0);
    for (Index e = 0; e < p.entries; ++e) ++begin[row_of[e]];
    sum_up(begin);
    for (Index e = 0; e < p.entries; ++e) by_row[begin[row_of[e]]++] = e;
  }
  CompactedPattern result;
  std::vector<Index>& user = result.sources.user;
  user.resize(p.entries);
  std::vector<Index> begin(p.cols + 1, 0);
  for (Index e = 0; e < p.entries; ++e) ++begin[col_of[e]];
  sum_up(begin);
  for (const Index e : by_row) user[begin[col_of[e]]++] = e;  // now begin[j] is where column j ends

  Compact& a = result.a;
  a.rows = p.rows;
  a.cols = p.cols;
  a.col_begin.reserve(p.cols + 1);
  a.col_begin.push_back(0);
  std::vector<Index> sums;
  Index e = 0;
  for (Index j = 0; j < p.cols; ++j) {
    for (; e < begin[j]; ++e) {
      const Index row = row_of[user[e]];
      if (a.entries() > a.col_begin[j] && a.row_index.back() == row) continue;
      a.row_index.push_back(row);
      sums.push_back(e);
    }
    a.col_begin.push_back(a.entries());
  }
  if (a.entries() < p.entries) {
    sums.push_back(p.entries);
    result.sources.begin = std::move(sums);
  }
  return result;
}

}  // namespace

void index_rows(Compact& a) {
  a.row_begin.assign(a.rows + 1, 0);
  for (const Index i : a.row_index) ++a.row_begin[i];
  sum_up(a.row_begin);
  a.col_index.resize(a.row_index.size());
  for (Index j = 0; j < a.cols; ++j) {
    for (Index p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) a.col_index[a.row_begin[a.row_index[p]]++] = j;
  }
  for (Index i = a.rows; i > 0; --i) a.row_begin[i] = a.row_begin[i - 1];
  a.row_begin[0] = 0;
}

CompactedPattern compact(const Pattern& p) {
  check_sizes(p);
  if (p.storage == Storage::columns) check_pointers(p, p.cols, "column");
  if (p.storage == Storage::rows) check_pointers(p, p.rows, "row");
  if (p.storage != Storage::rows) check_indices(p.row_indices, p.entries, p.rows, "row");
  if (p.storage != Storage::columns) check_indices(p.col_indices, p.entries, p.cols, "column");

  CompactedPattern result;
  if (p.storage == Storage::columns && is_distinct(p)) {
    result.a.rows = p.rows;
    result.a.cols = p.cols;
    if (p.cols > 0)
      result.a.col_begin.assign(p.pointers, p.pointers + p.cols + 1);
    else
      result.a.col_begin.assign(1, 0);
    result.a.row_index.assign(p.row_indices, p.row_indices + p.entries);
    result.sources.user.resize(p.entries);
    std::iota(result.sources.user.begin(), result.sources.user.end(), Index{0});
  } else {
    std::vector<Index> lines;
    if (p.storage == Storage::columns) lines = spread_pointers(p.pointers, p.cols, p.entries);
    if (p.storage == Storage::rows) lines = spread_pointers(p.pointers, p.rows, p.entries);
    result = sorted_by_columns(p, p.storage == Storage::rows ? lines.data() : p.row_indices,
                               p.storage == Storage::columns ? lines.data() : p.col_indices);
  }
  index_rows(result.a);
  return result;
}

Singletons find_singletons(const CompactedPattern& pattern, bool wanted, const SingletonTest& may_pivot) {
  const Compact& a = pattern.a;
  const Sources& sources = pattern.sources;
  Singletons found;
  std::vector<Index> degree(a.cols);  // entries in live rows
  std::vector<char> row_taken(a.rows, 0), col_taken(a.cols, 0);
  std::vector<Index> waiting;
  for (Index j = 0; j < a.cols; ++j) {
    degree[j] = a.col_begin[j + 1] - a.col_begin[j];
    if (wanted && degree[j] == 1) waiting.push_back(j);
  }
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const Index j = waiting[next];
    if (degree[j] != 1) continue;
    Index entry = a.col_begin[j];
    while (row_taken[a.row_index[entry]]) ++entry;
    const Index from = sources.first(entry);
    if (may_pivot && !may_pivot(sources.user.data() + from, sources.last(entry) - from)) continue;
    const Index i = a.row_index[entry];
    row_taken[i] = col_taken[j] = 1;
    found.rows.push_back(i);
    found.cols.push_back(j);
    for (Index p = a.row_begin[i]; p < a.row_begin[i + 1]; ++p) {
      if (--degree[a.col_index[p]] == 1) waiting.push_back(a.col_index[p]);
    }
  }
  for (Index j = 0; j < a.cols; ++j) {
    if (!col_taken[j]) (degree[j] > 0 ? found.live_cols : found.empty_cols).push_back(j);
  }
  for (Index i = 0; i < a.rows; ++i) {
    if (!row_taken[i]) (a.row_begin[i + 1] > a.row_begin[i] ? found.live_rows : found.empty_rows).push_back(i);
  }
  return found;
}

Compact reduce(const Compact& a, const Singletons& singletons) {
  Compact b;
  b.rows = static_cast<Index>(singletons.live_rows.size());
  b.cols = static_cast<Index>(singletons.live_cols.size());
  std::vector<Index> new_row(a.rows, -1);
  for (Index r = 0; r < b.rows; ++r) new_row[singletons.live_rows[r]] = r;
  b.col_begin.reserve(b.cols + 1);
  b.col_begin.push_back(0);
  for (const Index j : singletons.live_cols) {
    for (Index p = a.col_begin[j]; p < a.col_begin[j + 1]; ++p) {
      if (const Index r = new_row[a.row_index[p]]; r >= 0) b.row_index.push_back(r);
    }
    b.col_begin.push_back(b.entries());
  }
  index_rows(b);
  return b;
}

}  // namespace qrane::sparse
