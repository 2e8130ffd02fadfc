// SPDX-License-Identifier: Apache-2.0
// Frontal matrices of a sparse multifrontal QR
// (sparse/analysis/symbolic.hpp says what a front is). Assembly, panels and their updates, and packing, each for a
// batch of fronts. (Yeralan, Davis, Sid-Lakhdar, Ranka, Algorithm 980, sections 3.1-3.3; Heath, "Some extensions of an
// algorithm for sparse linear least squares problems", 1982, for the columns that are dropped.)
//
// Columns are dropped on the device, so how many rows a front and its contribution block have is known on the device
// alone. The host plans with upper bounds, fixed by the pattern; kernels read the heights and leave early. Nothing
// waits for the host between the values of A and R.
//
// A front's matrix is column-major, `ld` apart. Its columns are cut into panels of Fronts::panel. Factored, a panel's
// columns hold
//
//        |  R above    |  rows 0 .. first_row-1
//        |  V          |  rows first_row .. first_row+height-1: reflectors with their ones and zeros, so that V goes
//        into |             |  products as it is; column j has its one in row pivot[j], and is zero where pivot[j] = -1
//
// and R from row first_row on (up to `panel` rows) is kept in the front's `corner`: R(first_row + i, j) = corner[i + j
// * panel]. T of a panel is upper triangular, column j of it at t[j * panel]; Q of a panel is I - V T Vᵀ. A dropped
// column's tau is 0. Every column is given to a panel, beyond the pivotal ones too: the contribution block is an upper
// trapezoid, its row i beginning in local column pivots + i. Where rows run out (first_row = rows) a panel has height
// 0.
//
// Right-hand sides ride along as columns cols .. cols + rhs_cols - 1 of every front's matrix: gathered by row when the
// front is assembled, scattered back when it is finished.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// A front's places and bounds; constant for a plan. Offsets are in elements of the named arrays of Fronts.
struct FrontShape {
  std::int64_t matrix;      // storage: ld x (cols + rhs_cols)
  std::int64_t corner;      // storage: panel x cols
  std::int64_t t;           // storage: panel x cols
  std::int64_t r;           // r: see finish_fronts
  std::int64_t columns;     // stair, full_stair, parent_col, pivot: cols numbers each
  std::int64_t first_row;   // row_begin, own_slot, full_own_slot, own_column: rows first_row .. + own_rows - 1 of S
  std::int64_t full_slots;  // full_cb_slot: cb_rows numbers
  std::int64_t slots;       // cb_slot: cb_bound numbers
  std::int64_t row_ids;     // row_ids: rows_bound numbers
  std::int64_t children;    // children: child_count front numbers, ascending
  std::int64_t panels;      // panels: ceil(cols / panel)
  std::int64_t first_col;   // exponents: of permuted column first_col + local pivotal column
  std::int64_t packed;      // where its contribution block is when its parent is assembled; > 0: in storage, packed; 0:
                            // where the front lies; < 0: assemble_fronts leaves it out, it comes by unpack_fronts
  std::int32_t ld, rows_bound, cols, pivots;
  std::int32_t own_rows, child_count;
  std::int32_t full_rows, cb_rows;  // with full rank
  std::int32_t cb_bound;            // most rows of the contribution block: min(rows_bound, cols - pivots)
  std::int32_t r_bound;             // min(rows_bound, pivots)
};
static_assert(sizeof(FrontShape) == 144, "the OpenCL kernels read this layout");

/// What is found out on the way, by front.
struct FrontState {
  double dropped;         // sum of squares of what was dropped
  std::int32_t rows;      // lay_out_fronts
  std::int32_t position;  // row at which the next panel begins
  std::int32_t r_rows;    // live pivotal columns so far
  std::int32_t cb_rows;   // finish_fronts: min(rows - r_rows, cols - pivots)
};
static_assert(sizeof(FrontState) == 24);

/// And by panel. live: reflectors.
struct FrontPanelState {
  std::int32_t first_row, height, live, unused;
};
static_assert(sizeof(FrontPanelState) == 16);

/// All that is bound at a launch. "S" is A with rows and columns permuted.
template <class B, class T>
struct Fronts {
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  std::int32_t panel = 32;  // columns of a panel
  std::int32_t rhs_cols = 0;
  std::int64_t rhs_ld = 0;
  double tolerance = -1;               // a pivotal column whose remaining norm is at most this is dropped; < 0: none is
  Pointer<double> device_tolerance{};  // where it is instead, unless null; for queues that record their work
  std::int32_t scaled_tolerance = 0;   // 1: it is for the columns of S as they are scaled; 0: for the user's

  // constant for a plan
  Pointer<FrontShape> shapes{};
  Pointer<std::int32_t> children{};
  Pointer<std::int64_t> row_begin{};   // rows of S + 1: entries of row r are values row_begin[r] .. [r + 1] - 1
  Pointer<std::int32_t> entry_col{};   // local column of each entry in its row's front
  Pointer<std::int32_t> own_column{};  // leftmost local column of each row of S in its front
  Pointer<std::int32_t> parent_col{};  // local column in the parent of each column; -1 for pivotal ones ("Rjmap")
  Pointer<std::int32_t> full_stair{}, full_own_slot{}, full_cb_slot{};  // the analysis's layout, with full rank

  // in, new for every factorization
  Pointer<T> values{};                // of S
  Pointer<std::int32_t> exponents{};  // column k of S was multiplied by 2^exponents[k]; or null
  Pointer<T> rhs{};                   // in/out: rows of S x rhs_cols

  // made by the kernels
  Pointer<FrontState> states{};
  Pointer<FrontPanelState> panels{};
  Pointer<std::int32_t> stair{};     // stair[j]: rows of the front whose leftmost local column is <= j
  Pointer<std::int32_t> own_slot{};  // row of its front that row r of S becomes
  Pointer<std::int32_t> cb_slot{};   // row of the parent that row i of the contribution block becomes ("Rimap")
  Pointer<std::int32_t> row_ids{};   // row of S in which each row of a front stands
  Pointer<std::int32_t> pivot{};     // row of column j's reflector, or -1: dropped, or rows ran out
  Pointer<T> storage{};              // fronts, corners, T
  Pointer<T> r{};                    // out
};

/// A share of a front's work: part 0 .. parts - 1.
struct FrontShare {
  std::int32_t front, part, parts, unused;
};
/// Panel `panel` of a front.
struct FrontPanelTask {
  std::int32_t front, panel;
};
/// Panel `panel`'s update of columns first .. first + cols - 1 of the front's matrix (right-hand sides are columns,
/// too).
struct FrontUpdateTask {
  std::int32_t front, panel, first, cols;
};

/// Columns first .. first + cols - 1 of a front's contribution block, packed: column j has min(j + 1, cb_bound)
/// elements, of which the first cb_rows are set, and the first of these columns begins at storage[place].
struct FrontPieceTask {
  std::int32_t front, parent, first, cols;
  std::int64_t place;
};
static_assert(sizeof(FrontPieceTask) == 24);

/// Elements of the first `cols` columns of a packed contribution block of at most `rows` rows.
constexpr std::int64_t packed_front_block(std::int64_t cols, std::int64_t rows) {
  const std::int64_t whole = cols < rows ? cols : rows;
  return whole * (whole + 1) / 2 + (cols - whole) * rows;
}

/// Tasks in device memory, `count` of them from `tasks`; independent of each other. max_rows: the largest rows_bound
/// among their fronts, by which a backend chooses how many blocks work on one task, where `blocks` does not say it.
template <class B, class Task>
struct FrontTasks {
  typename B::template Pointer<Task> tasks{};
  Index count = 0;
  std::int32_t max_rows = 0;
  std::int32_t max_cols = 0;  // likewise, cols + rhs_cols
  /// Of updates: so many blocks share each task's rows, a power of two up to front_update_blocks, where a device can
  /// have them; the order of sums follows from it.
  std::int32_t blocks = 1;
  Index max_elements = 0;  // largest product of rows_bound and cols + rhs_cols; 0: max_rows * max_cols
};
inline constexpr std::int32_t front_update_blocks = 16;

// The operations; every backend has them but update_fronts_pair. The first argument is the queue; f is a Fronts<B, T>:
//
//   lay_out_fronts(f, FrontTasks<B, std::int32_t>)     list of fronts whose children are finished
//       From the children's cb_rows: states[front] = {0, rows, 0, 0, 0}, stair, own_slot of its rows, cb_slot of its
//       children's contribution blocks, row_ids. Rows are sorted by leftmost local column; where that agrees own rows
//       come first, then children's, children ascending (sparse::lay_out_rows). Where every child has the cb_rows of
//       the analysis this is full_stair, full_own_slot, full_cb_slot.
//   assemble_fronts(f, FrontTasks<B, FrontShare>)
//       Zeros in rows 0 .. rows-1 (rounded up within ld) of all columns, then values of A's own rows, the children's
//       contribution blocks (read from where their fronts hold R: matrix above first_row of a column's panel, corner
//       below; or as `packed` says), and right-hand sides by row_ids. Parts divide the columns.
//   pack_fronts(f, FrontTasks<B, FrontPieceTask>)
//       Pieces of contribution blocks of finished fronts, written to their places.
//   unpack_fronts(f, FrontTasks<B, FrontPieceTask>)
//       The same pieces, read from their places into the fronts' parents, which have been assembled without them.
//   factor_front_panels(f, FrontTasks<B, FrontPanelTask>)
//       Panel k of fronts whose columns have been updated by all panels before; columns left to right as in
//       sparse/host/front_qr.hpp: column j has height h = min(rows, max(stair[j], row + 1)), where row is the next
//       pivot row. A pivotal column (j < pivots) with tolerance >= 0 whose norm over rows row .. h-1, times
//       2^-exponent unless scaled_tolerance, is at most tolerance is dropped: pivot -1, its rows from `row` on become
//       zero, dropped += (norm 2^-exponent)^2, the next column takes its row. Writes V, corner, T, pivot, panels;
//       position := row after the panel; r_rows += live pivotal columns.
//   update_fronts(f, FrontTasks<B, FrontUpdateTask>)
//       C := (I - V Tᵀ Vᵀ) C = Q^T C for rows first_row .. first_row+height-1 of the given columns. Columns of one
//       task: at most Limits::front_update_cols.
//   update_fronts_pair(f, FrontTasks<B, FrontUpdateTask>)
//       update_fronts by panel `panel`, then by the next, of at most Limits::front_update_pair_cols columns (0: the
//       backend has no faster way than two updates), for fronts of many rows.
//   finish_fronts(f, FrontTasks<B, FrontShare>)
//       After a front's last panel and update: cb_rows; right-hand sides scattered; rows of R packed by columns from
//       r + shape.r on: pivotal column j holds its first live(j) rows (live(j): live pivotal columns up to and with j)
//       at offset sum_{i<j} min(i + 1, r_bound); column pivots + j holds r_rows rows, from there on r_bound apart.
//   factor_whole_fronts(f, FrontTasks<B, std::int32_t>, keep_q)
//       All of the above for small fronts, one block each, its matrix in shared memory: fronts with
//       rows_bound * (cols + rhs_cols) <= Limits::front_whole_elements, of at most
//       front_whole_rows rows, whose children
//       are finished. Without keep_q V and T are not written; R, contribution block and the lists are left where the
//       kernels above leave them.
//
// Results repeat bit for bit: every sum has a fixed order.

template <class Queue, class B, class T>
Default update_fronts_pair(const Queue&, const Fronts<B, T>&, const FrontTasks<B, FrontUpdateTask>&) {
  return not_whole("update_fronts_pair");
}

}  // namespace qrane::backend
