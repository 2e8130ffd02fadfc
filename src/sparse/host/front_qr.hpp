// SPDX-License-Identifier: Apache-2.0
// Householder QR of one front on the CPU, panel by panel within its staircase, dropping dependent pivotal columns.
// (Davis, ACM TOMS 38(1), 2011, section 2.4; Heath, "Some extensions of an algorithm for sparse linear least squares
// problems", 1982: a column whose remaining part is no longer than the tolerance gets no reflector, and the next column
// takes its row.)
//
//          panel 0   panel 1                panel 0, factored
//        | x x x   x x x   x |            | 1       r r r   r |    V is stored in the front with ones and zeros, so
//        | x x x   x x x   x |            | v 1     r r r   r |    that products can use it; the panel's triangle of R
//        | . . x   x x x   x |            | v v 1   r r r   r |    is stored beside the front, in its `corner`.
//        | . . .   x x x   x |            | . v v   x x x   x |
//        | . . .   . . x   x |            | . . .   . . x   x |
//                                           rows 0 .. 3: what the panel's update touches
//
// Flops: those of the staircase, plus zeros between a column's height and its panel's.
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
  Index narrow_panel = 32;  ///< the same for fronts of fewer than wide_front columns
  Index wide_front = 256;
  Index direct_elements = 512;  ///< fronts of at most so many elements are factored without panels
  Index store_least = 64;       ///< columns stored with equal height: about a sixteenth of all, at least so many
  Index store_most = 256;       ///< and at most so many; products over fewer columns are slower
  double waste = 1.6;           ///< a panel ends when its rectangle exceeds its columns' heights by this factor

  Index panel_cols(Index front_cols) const { return front_cols < wide_front ? narrow_panel : panel; }
};

/// A front's matrix by columns. Groups of panels are stored with the height of the staircase there:
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

/// Rows rounded up to whole vectors; no power of two, which would map a row to one cache set.
template <class T>
Index leading_dimension(Index rows) {
  const Index ld = round_up_to_lanes<T>(std::max<Index>(rows, 1));
  return ld * static_cast<Index>(sizeof(T)) % 1024 == 0 ? ld + lanes<T> : ld;
}

struct FrontPanel {
  Index col = 0, cols = 0;  ///< columns of the front
  Index first_row = 0;      ///< first row of V; R's rows above it are final
  Index live = 0;           ///< reflectors; fewer than cols if columns were dropped or rows ran out
  Index height = 0;         ///< rows of its V
};

/// When columns are dropped.
struct DropRule {
  double tolerance = -1;           ///< < 0: never
  bool scaled = false;             ///< the tolerance is for columns as they are scaled, else for the user's
  const int* exponents = nullptr;  ///< local column j was multiplied by 2^exponents[j]; or null
};

/// What factoring stores beside the front's matrix; reused by later fronts.
template <class T>
struct FrontResult {
  std::vector<FrontPanel> panels;
  std::vector<Index> begin;         ///< offsets of the columns; the last is the number of elements
  std::vector<std::int32_t> pivot;  ///< row of column j's reflector, or -1
  Index panel_cols = 0;             ///< columns of a panel, at most
  bool direct = false;              ///< small front: each reflector was applied to all columns
  bool with_t = true;
  Index rows_of_r = 0;       ///< live pivotal columns; final once all of them are factored
  double dropped_norm2 = 0;  ///< sum of squares of dropped entries

  /// Divides the columns into panels, sets FrontMatrix::begin and allocates. `keep_t`: store T of direct fronts, too.
  void plan(const FrontMatrix<T>& front, bool keep_t, const FrontTuning& tuning = {});
  /// Rows of column j in its panel's rectangle; the matrix must be zeroed so far.
  static Index zero_height(const FrontMatrix<T>& front, const FrontPanel& panel);

  // Two triangles of every panel in one square: T above, R's columns below it, the last one first.
  //
  //     T T T T     T: Q = prod (I - V T Vᵀ); not with `direct` unless it is wanted
  //     3 T T T     R of column c (here 0 .. 3) from the panel's first row on: its `corner`
  //     3 2 T T
  //     3 2 1 T
  //     3 2 1 0     Memory of panels without rows is never touched.
  T* t(const FrontPanel& panel) const { return triangles_.get() + panel.col * triangle_ld(); }
  Index triangle_ld() const { return panel_cols + 1; }
  /// Column c of the panel has c + 1 elements.
  T* corner(const FrontPanel& panel, Index c) const {
    return t(panel) + (panel.cols - 1 - c) * triangle_ld() + (panel.cols - c);
  }
  /// Elements of these for a front of so many columns, and how many fit into the memory allocated.
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

/// Factors panel k, whose columns have been updated by all earlier panels; `row` is its first row. Returns the first
/// row of the next panel.
template <class T>
Index factor_panel(const FrontMatrix<T>& front, FrontResult<T>& result, std::size_t k, Index row, const DropRule& rule,
                   Scratch<T>& scratch);

/// C := C - V op(T) Vᵀ C on V's rows and cols columns of C.
template <class T>
void apply_block(const T* v, Index ldv, Index rows, Index reflectors, const T* t, Index ldt, Op op, T* c, Index ldc,
                 Index cols, Scratch<T>& scratch);

/// Panel k's update of the front's columns [first, last).
template <class T>
void update_columns(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k, Index first, Index last,
                    Scratch<T>& scratch);

/// Estimate of the share of a front's flops in panel k.
template <class T>
double panel_share(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k);

/// Factors all panels; each one's share of the front's flops is added to `progress`.
template <class T>
void factor_front(const FrontMatrix<T>& front, FrontResult<T>& result, const DropRule& rule, Scratch<T>& scratch,
                  Progress& progress, double flops);

}  // namespace qrane::sparse
