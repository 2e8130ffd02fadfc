// SPDX-License-Identifier: Apache-2.0
// A user's pattern, checked and without duplicates, by columns and by rows; singletons; the matrix without them.
// Everything here is linear in entries + rows + cols.
//
// The analysis is written for integers I of 32 bits and of 64: the former, where they hold rows, columns and entries,
// take half the memory and less time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sparse/analysis/symbolic.hpp"

namespace qrane::sparse {

/// A pattern of distinct positions: column j has the rows row_index[col_begin[j] .. col_begin[j + 1] - 1], row i the
/// columns col_index[row_begin[i] .. row_begin[i + 1] - 1], both ascending.
template <class I>
struct Compact {
  I rows = 0;
  I cols = 0;
  std::vector<I> col_begin, row_index;
  std::vector<I> row_begin, col_index;

  Index entries() const { return static_cast<Index>(row_index.size()); }
};

/// Which of the user's entries an entry of Compact (numbered by columns) is the sum of.
template <class I>
struct Sources {
  std::vector<I> begin;  ///< entries + 1, or empty: one each
  std::vector<I> user;   ///< the user's entries, in the user's order within each sum; empty: the entry itself

  I first(I entry) const { return begin.empty() ? entry : begin[entry]; }
  I last(I entry) const { return begin.empty() ? entry + 1 : begin[entry + 1]; }
  I at(I k) const { return user.empty() ? k : user[k]; }
};

template <class I>
struct CompactedPattern {
  Compact<I> a;
  Sources<I> sources;
};

/// Throws Error{invalid_argument} naming the caller and the first fault.
void check_pattern(const char* who, const Pattern& pattern);

/// Whether integers of 32 bits hold the pattern and its fronts' lists of rows and columns.
inline bool fits_narrow(const Pattern& pattern) {
  constexpr Index most = std::numeric_limits<std::int32_t>::max() / 2;
  return pattern.rows < most && pattern.cols < most && pattern.entries < most;
}

/// Throws as check_pattern.
template <class I>
CompactedPattern<I> compact(const Pattern& pattern);

/// Columns with one entry, removed with their rows repeatedly: row rows[k] has no entry in cols[0 .. k - 1].
template <class I>
struct Singletons {
  std::vector<I> rows;
  std::vector<I> cols;
  /// Remaining columns with and without entries in remaining rows, and remaining rows likewise; ascending.
  std::vector<I> live_cols, empty_cols;
  std::vector<I> live_rows, empty_rows;
};

template <class I>
Singletons<I> find_singletons(const CompactedPattern<I>& pattern, bool wanted, const SingletonTest& may_pivot);

/// A(live_rows, live_cols), rows and columns renumbered from 0.
template <class I>
Compact<I> reduce(const Compact<I>& a, const Singletons<I>& singletons);

}  // namespace qrane::sparse
