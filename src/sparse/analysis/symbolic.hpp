// SPDX-License-Identifier: Apache-2.0
// What analysis leaves behind: plain values that the scheduler, the numeric factorization and the solves read.
// (Davis, ACM TOMS 38(1), 2011, sections 2.1-2.5; Algorithm 980, sections 2.1 and 3.3.1: Rimap and Rjmap.)
//
// Rows and columns of A are permuted so that S = A(row_perm, col_perm) is
//
//                  singletons   columns of fronts   empty_cols
//   singletons    [  R11 (upper) |      R12          |  R13  ]   rows of R as they stand, but for the sign
//   rows of fronts[      0       |  x x . .          |   0   ]   sorted by leftmost column, so front by front
//                 [              |    x . x          |       ]
//                 [              |      x x          |       ]
//   empty_rows    [      0       |      0            |   0   ]
//
// "Permuted" indices count from 0 over all of S, singletons included. Front f has the columns
//
//    |<-- pivots -->|<-- cols - pivots -->|
//    first_col, first_col + 1, ...  then others, ascending         (front_cols)
//
// and its rows are those of A whose leftmost entry is in a pivotal column and the rows of its children's contribution
// blocks, all sorted by leftmost column: a staircase. After its QR the first r_rows rows are rows of R, the next
// cb_rows its contribution block, upper trapezoidal: row i of it begins in local column pivots + i.
//
//    x x x x x x      stair[0] = 2      r r r r r r
//    x x x x x x                        h r r r r r
//    . x x x x x      stair[1] = 3      . h c c c c   <- row 0 of the contribution block
//    . . . x x x      stair[3] = 4      . . h c c c
//    . . . . x x      stair[4] = 5      . . . h c c
//
// Fronts are numbered in postorder: children before their parent, every subtree contiguous.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/sparse_qr.hpp>

namespace qrane::sparse {

/// A column's or row's place inside a front. Larger fronts are refused by analyze().
using Local = std::int32_t;

struct Front {
  Index first_col = 0;  ///< permuted; its pivotal columns are first_col .. first_col + pivots - 1
  Index pivots = 0;
  Index cols = 0;        ///< pivotal and others
  Index cols_begin = 0;  ///< front_cols, stair, parent_col [cols_begin, cols_begin + cols) are this front's
  Index first_row = 0;   ///< permuted; rows of A assembled here are first_row .. first_row + own_rows - 1
  Index own_rows = 0;
  // With full column rank. r_rows = min(rows, pivots), cb_rows = min(rows - r_rows, cols - pivots).
  Index rows = 0;  ///< own_rows and its children's cb_rows
  Index r_rows = 0;
  Index cb_rows = 0;
  // The same when pivotal columns may be found dependent and dropped, here or below: most rows there can be.
  Index rows_bound = 0;
  Index cb_rows_bound = 0;  ///< min(rows_bound, cols - pivots)
  Index cb_begin = 0;       ///< cb_slot[cb_begin, cb_begin + cb_rows) are this front's
  Index parent = -1;        ///< front number; -1: a root. A front without a contribution block may have a parent
  Index child_begin = 0;    ///< children[child_begin, child_begin + child_count), ascending
  Index child_count = 0;
  Index first_descendant = 0;  ///< its subtree is first_descendant .. itself
  Index level = 0;             ///< 0: a leaf; else 1 + the highest of its children's
  double flops = 0;            ///< Householder QR within the staircase, canonical count

  Index nonpivots() const { return cols - pivots; }
  /// Entries as a dense column-major matrix.
  Index entries() const { return rows * cols; }
  /// Entries of R's rows kept here: trapezoid of r_rows x cols.
  Index r_entries() const { return r_rows * cols - r_rows * (r_rows - 1) / 2; }
  /// Entries of the contribution block: trapezoid of cb_rows x (cols - pivots).
  Index cb_entries() const { return cb_rows * nonpivots() - cb_rows * (cb_rows - 1) / 2; }
};

/// Numbers in 32 bits each where that holds them all, else in 64.
class IndexList {
 public:
  IndexList() = default;
  IndexList(std::vector<std::int32_t> numbers) : narrow_(std::move(numbers)) {}
  IndexList(std::vector<Index> numbers) : wide_(std::move(numbers)) {}

  bool empty() const { return narrow_.empty() && wide_.empty(); }
  Index operator[](std::size_t k) const { return wide_.empty() ? narrow_[k] : wide_[k]; }
  /// f(pointer to the first number)
  template <class F>
  void visit(F&& f) const {
    if (wide_.empty())
      f(narrow_.data());
    else
      f(wide_.data());
  }

 private:
  std::vector<std::int32_t> narrow_;
  std::vector<Index> wide_;
};

struct Symbolic {
  AnalysisFacts facts;

  Index rows = 0;
  Index cols = 0;
  Index entries = 0;       ///< of S: distinct positions
  Index user_entries = 0;  ///< as given, duplicates included
  Index singletons = 0;    ///< first rows and columns of S
  Index empty_cols = 0;    ///< last columns of S; in no front
  Index empty_rows = 0;    ///< last rows of S

  std::vector<Index> col_perm;  ///< cols; permuted column k is column col_perm[k] of A
  std::vector<Index> row_perm;  ///< rows; permuted row k is row row_perm[k] of A

  /// cols + 1; the rows whose leftmost entry is in permuted column k are permuted rows leftmost_begin[k] .. [k + 1] - 1
  std::vector<Index> leftmost_begin;

  // S by rows. Value p of S is the sum of the user's values gather[gather_begin[p] .. gather_begin[p + 1] - 1]; without
  // duplicates gather_begin is empty and value p is the user's value gather[p].
  // Columns are permuted ones in singletons' rows, else local ones of the row's front, ascending within a row.
  std::vector<Index> row_begin;       ///< rows + 1
  std::vector<Index> singleton_cols;  ///< of the entries of singletons' rows, which come first
  IndexList gather_begin;             ///< entries + 1, or empty
  IndexList gather;                   ///< user_entries

  // Fronts in postorder.
  std::vector<Front> fronts;
  std::vector<Index> children;      ///< front numbers
  std::vector<Index> front_cols;    ///< permuted column indices, ascending; the pivotal ones first
  std::vector<Index> stair;         ///< stair[j]: rows of the front whose leftmost local column is <= j
  std::vector<Local> parent_col;    ///< local column in the parent ("Rjmap"); -1 for pivotal columns and roots
  std::vector<Local> cb_slot;       ///< row of the parent that contribution row i becomes ("Rimap")
  std::vector<Local> own_slot;      ///< rows; row of its front that permuted row r becomes; -1 for rows outside fronts
  std::vector<Local> entry_col;     ///< entries; local column of entry p of S in its row's front; -1 in singleton rows
  std::vector<Index> front_of_col;  ///< cols; the front in which a permuted column is pivotal; -1: singleton or empty

  /// Whether a factorization has given back to the system what the analysis freed; by std::atomic_ref.
  alignas(std::atomic_ref<bool>::required_alignment) mutable bool tidied = false;

  Index front_count() const { return static_cast<Index>(fronts.size()); }
  /// f(row, first, last, column) for every permuted row with entries, ascending: they are first .. last - 1, and
  /// column(p) is the permuted column of entry p.
  template <class F>
  void for_each_row(F&& f) const {
    for (Index k = 0; k < singletons; ++k)
      f(k, row_begin[k], row_begin[k + 1], [&](Index p) { return singleton_cols[p]; });
    for (const Front& front : fronts) {
      const Index* const columns = front_cols.data() + front.cols_begin;
      for (Index k = front.first_row; k < front.first_row + front.own_rows; ++k)
        f(k, row_begin[k], row_begin[k + 1], [&](Index p) { return columns[entry_col[p]]; });
    }
  }
  /// The permuted column of every entry.
  std::vector<Index> columns_of_entries() const;
  /// Rows of R with full column rank: singletons and every front's r_rows.
  Index r_rows = 0;
};

/// Where the rows of front f go when its children's contribution blocks have other heights than Front::cb_rows says
/// (rank found on the way): child_rows[c] for child children[child_begin + c]. Writes stair (cols numbers), own_slot
/// (own_rows) and for each child after the other the slots of its rows to child_slot (sum of child_rows); returns the
/// front's rows. The analysis itself lays out rows by this: own rows before children's where leftmost columns agree,
/// children ascending.
Index lay_out_rows(const Symbolic& symbolic, Index f, const Index* child_rows, Index* stair, Local* own_slot,
                   Local* child_slot);

/// Householder QR of a front of that many rows within its staircase, canonical: for column k of min(rows, cols) a
/// reflector of height h = max(k + 1, stair[k]) - k, 4 h flops for each column to its right and 3 h for itself.
double staircase_flops(Index rows, Index cols, const Index* stair);

/// Duplicates are summed in wider arithmetic: what cancels leaves no rounding of the larger ones.
template <class T>
using DuplicateSum = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// values[p] of S from the user's values, in the order of the pattern that was analyzed; sums duplicates in that order.
template <class T>
void gather_values(const Symbolic& symbolic, const T* user_values, T* values) {
  symbolic.gather.visit([&](const auto* gather) {
    if (symbolic.gather_begin.empty()) {
      for (Index p = 0; p < symbolic.entries; ++p) values[p] = user_values[gather[p]];
      return;
    }
    for (Index p = 0; p < symbolic.entries; ++p) {
      DuplicateSum<T> sum{};
      for (Index q = symbolic.gather_begin[p]; q < symbolic.gather_begin[p + 1]; ++q) sum += user_values[gather[q]];
      values[p] = static_cast<T>(sum);
    }
  });
}

/// Whether the entry that is the sum of these of the user's entries may be a singleton's pivot.
using SingletonTest = std::function<bool(const Index* user_entries, Index count)>;

/// The entry that is the sum of these of the user's.
template <class T>
T sum_of(const T* user_values, const Index* entries, Index count) {
  DuplicateSum<T> sum{};
  for (Index k = 0; k < count; ++k) sum += user_values[entries[k]];
  return static_cast<T>(sum);
}

/// Of entries above the tolerance.
template <class T>
SingletonTest pivots_above(double tolerance, const T* user_values) {
  return [tolerance, user_values](const Index* entries, Index count) {
    return std::abs(static_cast<double>(sum_of(user_values, entries, count))) > tolerance;
  };
}

/// As qrane::sparse::analyze. An empty test: all may. gpu: whether orderings and fronts are chosen for a GPU. wide:
/// with integers of 64 bits where 32 would do.
Symbolic analyze_pattern(const Pattern& pattern, const AnalyzeOptions& options, const SingletonTest& may_pivot,
                         bool gpu, bool wide = false, Indices permutation = {});

/// The same pattern and order of columns, without singletons whose pivots are at most the tolerance when permuted
/// column k is multiplied by 2^exponents[k]; no exponents: as they are.
template <class T>
Symbolic analyze_again(const Symbolic& symbolic, const T* user_values, double tolerance,
                       const std::vector<std::int32_t>& exponents, bool gpu);

}  // namespace qrane::sparse
