// SPDX-License-Identifier: Apache-2.0
// Matrix products, in a library where one has them, and triangular solves.
//
// Every backend has
//
//   gemm(queue, op_a, op_b, alpha, a, b, beta, c)                C := alpha op(A) op(B) + beta C, batched; a count of 1
//                                                                serves every C; not under a condition
//   trsm(queue, side, triangle, op, diagonal, alpha, a, b)       B := alpha op(A)^-1 B, or B op(A)^-1; likewise
//   gram(queue, a, w, scratch)                                   W := AᵀA, upper triangle; products and sums in double
//   multiply_wide(queue, a, w, q, scratch)                       Q := A W, W upper triangular with zeros below,
//   products
//                                                                and sums in double, rounded once to T; Q may be A
//   count_sketch(queue, a, s)                                    S := Omega A (vocabulary/sketch.hpp)
//
// gram and multiply_wide convert or sum in chunks that fit the scratch they are given.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// Q := A R^-1 in double, R upper triangular; Q and A apart. By default by the library's triangular solve.
template <class Queue, class B>
Default solve_wide(const Queue& queue, const DeviceMatrix<B, double>& a, const DeviceMatrix<B, double>& r,
                   const DeviceMatrix<B, double>& q) {
  copy(queue, a, q, Part::all);
  trsm(queue, Side::right, Triangle::upper, Op::none, Diagonal::non_unit, 1.0, r, q);
  return {};
}

/// Q := A W for any W, products and sums in double; Q is not A.
template <class Queue, class B, class T>
Default multiply_full(const Queue&, const DeviceMatrix<B, T>&, const DeviceMatrix<B, double>&,
                      const DeviceMatrix<B, T>&) {
  return not_whole("multiply_full");
}

}  // namespace qrane::backend
