// SPDX-License-Identifier: Apache-2.0
// A user's pattern checked, freed of duplicates, by columns and by rows; singletons; what is left when they are out.
// Everything here is linear in entries + rows + cols.
#pragma once

#include <vector>

#include "sparse/symbolic.hpp"

namespace qrane::sparse {

/// A pattern of distinct positions: column j has the rows row_index[col_begin[j] .. col_begin[j + 1] - 1], in any
/// order; row i the columns col_index[row_begin[i] .. row_begin[i + 1] - 1], ascending.
struct Compact {
  Index rows = 0;
  Index cols = 0;
  std::vector<Index> col_begin, row_index;
  std::vector<Index> row_begin, col_index;

  Index entries() const { return static_cast<Index>(row_index.size()); }
};

/// Which of the user's entries an entry of Compact (numbered by columns) is the sum of.
struct Sources {
  std::vector<Index> begin;  ///< entries + 1, or empty: one each
  std::vector<Index> user;   ///< the user's entries, in the user's order within each sum

  Index first(Index entry) const { return begin.empty() ? entry : begin[entry]; }
  Index last(Index entry) const { return begin.empty() ? entry + 1 : begin[entry + 1]; }
};

struct CompactedPattern {
  Compact a;
  Sources sources;
};

/// Throws Error{invalid_argument} naming the first thing wrong.
CompactedPattern compact(const Pattern& pattern);

/// Fills row_begin and col_index from col_begin and row_index.
void index_rows(Compact& a);

/// Columns with one entry, taken out with their rows, again and again: row rows[k] has no entry in cols[0 .. k - 1].
struct Singletons {
  std::vector<Index> rows;
  std::vector<Index> cols;
  /// The rest: columns with entries in the rest's rows, those without, and the rows likewise; ascending.
  std::vector<Index> live_cols, empty_cols;
  std::vector<Index> live_rows, empty_rows;
};

Singletons find_singletons(const CompactedPattern& pattern, bool wanted, const SingletonTest& may_pivot);

/// A(live_rows, live_cols), rows and columns renumbered from 0.
Compact reduce(const Compact& a, const Singletons& singletons);

}  // namespace qrane::sparse
