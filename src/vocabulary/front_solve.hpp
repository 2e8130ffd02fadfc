// SPDX-License-Identifier: Apache-2.0
// What uses the fronts once they are factored (vocabulary/fronts.hpp
// says what they leave). Triangular solves with R and Rᵀ, and Q, front by front; right-hand sides are lines. (Algorithm
// 980, section 2.1; Davis, ACM TOMS 38(1), 2011, section 2.4.)
//
// Lines are rows of right-hand sides, `cols` numbers side by side: element (k, c) is lines[k * cols + c]. Index lists
// then pick whole lines. R's rows, columns of S and rows of S have lines each.
//
// A front's rows of R are cut into blocks of front_block_rows. Its columns are counted by what a solve sees of them:
//
//        0 .. r_bound - 1       the live pivotal columns, as many as the front has rows of R (then none)
//        r_bound ..             the others
//
// so that tasks, planned from the pattern, stay right when columns were dropped: kernels leave early where rows end.
#pragma once

#include "vocabulary/fronts.hpp"

namespace qrane::backend {

inline constexpr std::int32_t front_block_rows = 64;

/// target line ti(k), k = 0 .. count-1, := source line si(k) times 2^(sign exponents[k]), or that is added. si, ti: k
/// itself without a list. Lines here may have any strides, so that one side can be a column-major matrix.
template <class B, class T>
struct CopyLines {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  Pointer<T> source{}, target{};
  Pointer<std::int32_t> source_index{}, target_index{}, exponents{};  // or null
  Index source_line = 0, source_step = 1, target_line = 0, target_step = 1;
  Index count = 0;
  std::int32_t cols = 0, sign = 1;
  bool add = false;
};

/// For every line o of the list (without one: o = 0 .. count-1)
///
///     out[o] := (in[i] + sign sum_p v(p) x[index[p]]) / d      p = begin[o] + skip .. begin[o + 1] - 1
///
/// i = in_index[o], where -1 stands for zeros, or o without in_index; without `in` zeros. v(p) = values[entry[p]], or
/// values[p] without entry, or 1 without values. d = v(begin[o]) with skip = 1, else 1. Sums go along p. x may be out
/// where no line that is read is written.
template <class B, class T>
struct SumLines {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  Pointer<T> out{}, in{}, x{}, values{};
  Pointer<std::int32_t> list{}, in_index{}, index{}, entry{};
  Pointer<std::int64_t> begin{};
  Index count = 0;
  std::int32_t cols = 0, sign = 1, skip = 0;
};

/// Lines of part p, count p / parts .. count (p + 1) / parts - 1, times 2^(sign exponents[k]): for every column c a
/// scale and the sum of squares of what is divided by it, at partials[2 (p cols + c)] and behind it. A norm is
/// sqrt(sum_p scale^2 squares), and nothing overflows on the way.
template <class B, class T>
struct NormLines {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  Pointer<T> lines{};
  Pointer<std::int32_t> exponents{};
  Pointer<double> partials{};
  Index count = 0;
  std::int32_t cols = 0, sign = 1, parts = 1;
};

/// Rows row .. row + rows - 1 of R (as far as there are so many) and columns first .. first + cols - 1, as counted
/// above.
struct FrontBlock {
  std::int32_t front, row, rows, first, cols, unused;
};
static_assert(sizeof(FrontBlock) == 24, "the OpenCL kernels read this layout");

/// What solves are bound to.
template <class B, class T>
struct FrontSolve {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  std::int32_t cols = 0;  // of right-hand sides
  Pointer<FrontShape> shapes{};
  Pointer<FrontState> states{};        // r_rows
  Pointer<std::int64_t> r_begin{};     // line of y of a front's first row of R
  Pointer<std::int32_t> live{};        // by line of y: the row's live pivotal column, local
  Pointer<std::int32_t> front_cols{};  // columns of S by shape.columns + local column
  Pointer<T> r{};
  Pointer<T> x{};  // in/out: lines by column of S
  Pointer<T> y{};  // in/out: lines by row of R
  Pointer<T> w{};  // in/out, Op::transpose: lines by shape.columns + local column
};

/// Part `part` of `parts` of the rows of a panel of Q.
struct FrontPanelPart {
  std::int32_t front, panel, part, parts;
};
static_assert(sizeof(FrontPanelPart) == 16, "the OpenCL kernels read this layout");

/// What Q is bound to.
template <class B, class T>
struct FrontReflect {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  std::int32_t panel = 32, cols = 0;  // columns of a panel; of right-hand sides
  Pointer<FrontShape> shapes{};
  Pointer<FrontPanelState> panels{};
  Pointer<std::int32_t> row_ids{};
  Pointer<T> storage{};
  Pointer<T> lines{};     // in/out: by row of S
  Pointer<T> products{};  // scratch: panel x cols numbers for every task of a launch
};

// The operations, which every backend has; the first argument is the queue:
//
//   copy_lines(CopyLines), sum_lines(SumLines), norm_lines(NormLines)
//   solve_front_rows(f, FrontTasks<B, FrontBlock>, op)     a block of at most front_block_rows rows, its triangle at
//       columns row .. row + rows - 1, and columns `first` on, which lie right of it
//         none:       y := R_block^-1 (y - R(rows, columns) x(columns)), and x of the block's columns := y
//         transpose:  y := R_block^-T w(its columns), then w(columns) -= R(rows, columns)ᵀ y
//   update_front_rows(f, FrontTasks<B, FrontBlock>, op)
//         none:       y(rows) -= R(rows, columns) x(columns), at most front_block_rows rows
//         transpose:  w(columns) -= R(rows, columns)ᵀ y(rows), at most front_block_rows columns
//       Tasks of a launch write different lines.
//   reflect_front_lines(f, FrontTasks<B, std::int32_t>, op)    all panels of Qᵀ (transpose) or Q of the fronts listed,
//   one
//       block of threads each: C := (I - V op(T) Vᵀ) C for the lines of the panel's rows
//   multiply_front_panels(f, FrontTasks<B, FrontPanelPart>)    products[task] := Vᵀ C of a part of the rows
//   update_front_lines(f, FrontTasks<B, FrontPanelPart>, op)   C := C - V op(T) (sum of the parts' products) in a part
//   of
//       the rows; the tasks of multiply_front_panels, where the parts of a panel follow each other
//
// Results repeat bit for bit: every sum has a fixed order.

}  // namespace qrane::backend
