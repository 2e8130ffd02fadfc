// SPDX-License-Identifier: Apache-2.0
// Copies, conversions and reductions; every backend has all of them. Matrices are batches of equal shapes.
//
//   copy(queue, source, target, part)        target := part of source
//   transpose(queue, source, target)         target := sourceᵀ; not in place
//   copy_rows(queue, source, sources, target, targets, count)
//                                            row targets[i] of target := row sources[i] of source for i < count; a null
//                                            list is 0, 1, ...; the lists serve the whole batch; rows written are
//                                            distinct, and none of them is read
//   gather_columns(queue, source, columns, target)
//                                            column j of target := column columns[j] of source, where source has that
//                                            many columns; other columns of target stay; one matrix
//   fill(queue, a, off_diagonal, diagonal)
//   set_flags(queue, flags, count, value)    int32 flags[i] := value for i < count
//   narrow(queue, source, target, part)      double to T, rounded
//   widen(queue, source, target)             T to double
//
// Reductions of one matrix; the result is in device memory, and repeats bit for bit:
//
//   sum_squares(queue, a, sum, scratch)      in double
//   sum_abs(queue, a, sum, scratch)          in double
//   max_abs(queue, a, maximum, scratch)      double; NaN if any element is NaN
//   first_not_finite(queue, a, position, scratch)
//                                            two int64: row and column of the first NaN or Inf in column-major order,
//                                            or -1, -1
//
// Scratch of a reduction: at least one double; partial results fill what is given.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

template <class Queue, class B, class T>
void copy(const Queue& queue, const DeviceMatrix<B, T>& source, const DeviceMatrix<B, T>& target, Part part) = delete;
template <class Queue, class B, class T>
void transpose(const Queue& queue, const DeviceMatrix<B, T>& source, const DeviceMatrix<B, T>& target) = delete;
template <class Queue, class B, class T>
void fill(const Queue& queue, const DeviceMatrix<B, T>& a, T off_diagonal, T diagonal) = delete;

}  // namespace qrane::backend
