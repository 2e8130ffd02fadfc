// SPDX-License-Identifier: Apache-2.0
// Givens rotations, for the updates of by_rotations.hpp.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// `waves` fronts of rotations that pass over the columns of a matrix from right to left, each one column behind the
/// one before. In steps i = heights, ..., 2, 1 and in each of them for fronts j = 0, 1, ..., waves - 1, one after the
/// other, as far as there are such columns,
///
///     [ x(:, i-1+j)  x(:, i+j) ] := [ x(:, i-1+j)  x(:, i+j) ] [ c -s ]      c, s at cs + 2 ((heights - i) waves + j)
///                                                              [ s  c ]
///
/// Rows are independent. make_rotations finds the rotations that make row j of the strip zero right of its column j:
/// with heights = cols - waves the strip's last columns are a lower triangle already. make_rotations(queue, task) and
/// rotate(queue, task) take 1, 2, 4, 8 or 16 waves; one matrix, not a batch.
constexpr Index max_waves = 16;

template <class B, class T>
struct Rotations {
  DeviceMatrix<B, T> strip;              // in/out: waves x any
  Index heights = 0;                     // < strip.cols
  typename B::template Pointer<T> cs{};  // out: 2 heights waves elements
};

template <class B, class T>
struct Rotate {
  DeviceMatrix<B, T> x;  // in/out: any x the strip's columns
  Index heights = 0, waves = 0;
  typename B::template Pointer<T> cs{};  // in
  bool drop = false;   // the columns that the fronts end at, 0 .. waves-1, are dropped: the others move left by `waves`
  bool lower = false;  // on entry row r is zero right of column r, and this need not be computed with
};

}  // namespace qrane::backend
