// SPDX-License-Identifier: Apache-2.0
// Householder QR of one front on the CPU, panel by panel within its staircase, dropping dependent pivotal columns.
// (Davis, ACM TOMS 38(1), 2011, section 2.4; Heath, "Some extensions of an algorithm for sparse linear least squares
// problems", 1982: a column whose remaining part is no longer than the tolerance gets no reflector, and the next column
// takes its row.)
//
//          panel 0   panel 1                panel 0, factored
//        | x x x   x x x   x |            | 1       r r r   r |    V stands in the front with its ones and zeros, so
//        | x x x   x x x   x |            | v 1     r r r   r |    that it goes into products as it is; R's triangle of
//        | . . x   x x x   x |            | v v 1   r r r   r |    the panel is kept beside the front, in its `corner`.
//        | . . .   x x x   x |            | . v v   x x x   x |
//        | . . .   . . x   x |            | . . .   . . x   x |
//                                           rows 0 .. 3: what the panel's update touches
//
// Flops: those of the staircase, but for zeros between a column's height and its panel's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sparse/host/reflect.hpp"
#include "sparse/progress.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::sparse {

using backend::Op;

/// Widths of panels and blocks; measured on CPUs with wide vectors, results do not depend on them beyond rounding.
struct FrontTuning {
  Index panel = 64;         ///< columns of a panel, at most
  Index narrow_panel = 32;  ///< and in fronts of fewer than wide_front columns
  Index wide_front = 256;
  Index direct_elements = 512;  ///< fronts of no more elements are factored without blocks
  Index store_least = 64;  ///< columns that are equally high in memory, about: a sixteenth of all, at least so many
  Index store_most = 256;  ///< and at most: products over fewer are slower
  double waste = 1.6;      ///< a panel ends where its rectangle is that many times its columns' heights

  Index panel_cols(Index front_cols) const { return front_cols < wide_front ? narrow_panel : panel; }
};

/// A front's matrix by columns, some panels after the other as high as the staircase is there:
///
///     ___.            Rows of column j from its height on are zero up to the height of its panel's last column,
///     | |___.         rounded up to vectors; below that nothing is read.
///     | | | |
template <class T>
struct FrontMatrix {
  T* a = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index pivots = 0;              ///< leading columns that may be dropped
  const Index* stair = nullptr;  ///< cols heights
  const Index* begin = nullptr;  ///< cols + 1; FrontResult::begin

  T* column(Index j) const { return a + begin[j]; }
  /// From column j to the next one.
  Index ld(Index j) const { return begin[j + 1] - begin[j]; }
  Index elements() const { return begin[cols]; }
};

/// Rows in whole vectors, and no power of two that would bring all of a row into one set of the cache.
template <class T>
Index leading_dimension(Index rows) {
  const Index ld = round_up_to_lanes<T>(std::max<Index>(rows, 1));
  return ld * static_cast<Index>(sizeof(T)) % 1024 == 0 ? ld + lanes<T> : ld;
}

struct FrontPanel {
  Index col = 0, cols = 0;  ///< columns of the front
  Index first_row = 0;      ///< of its V; as many rows of R are above it
  Index live = 0;           ///< reflectors; fewer than cols where columns were dropped or rows ran out
  Index height = 0;         ///< rows of its V
};

/// When columns are dropped.
struct DropRule {
  double tolerance = -1;           ///< < 0: never
  bool scaled = false;             ///< the tolerance is for columns as they are scaled, else for the user's
  const int* exponents = nullptr;  ///< local column j was multiplied by 2^exponents[j]; or null
};

/// What factoring leaves beside the front's matrix; reused from front to front.
template <class T>
struct FrontResult {
  std::vector<FrontPanel> panels;
  std::vector<Index> begin;         ///< where the columns are; the last number is the matrix's elements
  std::vector<std::int32_t> pivot;  ///< row of column j's reflector, or -1
  Index panel_cols = 0;             ///< columns of a panel, at most
  bool direct = false;              ///< small: reflectors went to all columns one by one
  bool with_t = true;
  Index rows_of_r = 0;       ///< live pivotal columns; final when factored beyond them
  double dropped_norm2 = 0;  ///< sum of squares of what was dropped

  /// Cuts the columns into panels, lays them out for FrontMatrix::begin and makes room. `keep_t`: T is wanted of direct
  /// fronts, too.
  void plan(const FrontMatrix<T>& front, bool keep_t, const FrontTuning& tuning = {});
  /// Rows of column j of its panel's rectangle: how far the matrix must be zeroed.
  static Index zero_height(const FrontMatrix<T>& front, const FrontPanel& panel);

  // Two triangles of every panel in one square: T above, R's columns below it, the last one first.
  //
  //     T T T T     T: Q = prod (I - V T Vᵀ); not with `direct` unless it is wanted
  //     3 T T T     R of column c (here 0 .. 3) from the panel's first row on: its `corner`
  //     3 2 T T
  //     3 2 1 T
  //     3 2 1 0     Memory of panels that come when there are no rows left is never touched.
  T* t(const FrontPanel& panel) const { return triangles_.get() + panel.col * triangle_ld(); }
  Index triangle_ld() const { return panel_cols + 1; }
  /// For column c of the panel c + 1 elements.
  T* corner(const FrontPanel& panel, Index c) const {
    return t(panel) + (panel.cols - 1 - c) * triangle_ld() + (panel.cols - c);
  }
  /// Elements of that for a front of so many columns, and how many there is memory for.
  static Index triangle_elements(Index cols, const FrontTuning& tuning = {}) {
    return cols * (tuning.panel_cols(cols) + 1);
  }
  Index most_elements() const { return triangles_size_; }

 private:
  std::unique_ptr<T[]> triangles_;
  Index triangles_size_ = 0;
};

/// Scratch of one thread, aligned to vectors.
template <class T>
class Scratch {
 public:
  T* get(int slot, Index count);

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<T, Free> data_[4];
  Index size_[4] = {0, 0, 0, 0};
};
enum ScratchSlot { scratch_v, scratch_w, scratch_z, scratch_c };

/// Factors panel k, whose columns have been updated by all panels before; `row`: its first row. Returns the next
/// panel's.
template <class T>
Index factor_panel(const FrontMatrix<T>& front, FrontResult<T>& result, std::size_t k, Index row, const DropRule& rule,
                   Scratch<T>& scratch);

/// C := C - V op(T) Vᵀ C for the rows of C that V has, cols columns.
template <class T>
void apply_block(const T* v, Index ldv, Index rows, Index reflectors, const T* t, Index ldt, Op op, T* c, Index ldc,
                 Index cols, Scratch<T>& scratch);

/// Panel k's update of the front's columns [first, last).
template <class T>
void update_columns(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k, Index first, Index last,
                    Scratch<T>& scratch);

/// Of a front's flops, about: panel k's.
template <class T>
double panel_share(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k);

/// All panels; each one's share of the front's flops is added to `progress`.
template <class T>
void factor_front(const FrontMatrix<T>& front, FrontResult<T>& result, const DropRule& rule, Scratch<T>& scratch,
                  Progress& progress, double flops);

}  // namespace qrane::sparse
