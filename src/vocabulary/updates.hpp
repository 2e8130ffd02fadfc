// SPDX-License-Identifier: Apache-2.0
// Updates of factorizations: chains of orthogonal blocks applied to Q, rows in and out of R, batches.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// Optional, updates of an explicit Q: a chain of orthogonal blocks applied from the right, one after another, to the
/// columns of X, with p columns (the carry) that every block shares. Block j stands on the columns J_j = first + j *
/// block
/// .. of X (the last one may be narrower) and on the carry; H_j is square, of order |J_j| + p, at h + j * (block + p)^2
/// with leading dimension |J_j| + p.
///
///   down:  j = 0, 1, ...   [ X(:, J_j + shift) | carry ] := [ carry | X(:, J_j) ] H_j       shift <= 0
///   up:    j = last, ...   [ carry | X(:, J_j + shift) ] := [ X(:, J_j) | carry ] H_j       shift >= 0
///
/// |shift| <= p. The carry is `carry_in` at first and goes to `carry_out` at last; both have X's rows and may be
/// columns of X: carry_in is read before, carry_out written after all blocks. Columns that carry_in lacks of p are
/// zeros, those that carry_out lacks are dropped. Rows of X are independent. A backend with `sweep(task)` has
/// max_sweep_carry(T), the largest p, and max_sweep_block(T).
template <class B, class T>
struct Sweep {
  DeviceMatrix<B, T> x;  // rows x any, batched
  DeviceMatrix<B, T> carry_in, carry_out;
  typename B::template Pointer<T> h{};
  Index h_stride = 0;         // between the chains of a batch
  Index first = 0, cols = 0;  // columns of X that the blocks stand on
  Index block = 0, p = 0, shift = 0;
  bool down = true;
};

/// Optional, updates of R alone: rows in, then rows out of many small factorizations, in one launch. With [R d] as it
/// is for A and b (d = Qᵀb), it becomes that of A and b with the rows rows_in and their right-hand sides e_in, without
/// the rows rows_out and theirs (which the caller knows: they are among A's). Rows come in by rotations or reflections;
/// a row u goes out by Saunders' way (LINPACK's dchdd): Rᵀ a = u, rotations that take (a, alpha) to e_{n+1}, alpha² = 1
/// - aᵀa. Where alpha² is not above `least_left` the rest of A lacks a direction that u has, to working accuracy: then
/// this matrix stays as it was, rows in and all, and `refused` counts one. The signs of R's diagonal stay. Made for few
/// rows at a time: a chain of n rotations for each. A backend with `update_rows(task)` has max_update_cols(), the
/// largest n, and max_update_rows(), the most rows in and out together.
template <class B, class T>
struct RowUpdate {
  DeviceMatrix<B, T> r;                            // in/out: n x n, upper triangles alone; its count is the batch's
  DeviceMatrix<B, T> d;                            // in/out: n x nrhs; or no columns
  typename B::template Pointer<double> squares{};  // in/out: ‖b - A x‖² of every right-hand side, nrhs per matrix
  DeviceMatrix<B, T> rows_in, e_in;                // in: any x n, x nrhs; or no rows
  DeviceMatrix<B, T> rows_out, e_out;              // in: likewise
  typename B::template Pointer<std::int32_t> refused{};  // in/out: one counter per matrix; or null

  static constexpr double least_left(Index n) {
    return static_cast<double>(n + 10) * std::numeric_limits<T>::epsilon();
  }
};


/// Optional, in place of `sweep`: the same with the blocks, products, sums and the carry in double; X and carry_out are
/// rounded as they are written. A backend with `wide_sweep(task)` has max_sweep_carry(T) and max_sweep_block(T), too.
template <class B, class T>
struct WideSweep {
  Sweep<B, T> sweep;                         // its h is not looked at
  typename B::template Pointer<double> h{};  // laid out as Sweep's
};


/// Optional: rows into, rows out of, or columns out of all matrices of a batch, Q and R at once, each matrix's result
/// from that matrix alone. Rows come in by reflectors over the diagonal and the rows that come; columns go by
/// reflectors on the diagonal and p numbers below it; for rows that go, thin Q is completed by an orthonormal Z so that
/// the unit vectors of those rows are in its range, and rotations from the bottom up take them into Z, which is
/// dropped. Q stays orthonormal whatever the rows carried. What is read must not overlap what is written. A backend
/// with `batch_update(task)` has takes_batch_update(rows, cols, p, T), whether m x n matrices and p are within its
/// limits.
template <class B, class T>
struct BatchUpdate {
  enum class Change { rows_in, rows_out, columns_out };
  Change change = Change::rows_in;
  Index k = 0, p = 0;          // 1 <= p; m >= n before and after
  DeviceMatrix<B, T> r;        // in: n x n, upper triangles alone; its count is the batch's
  DeviceMatrix<B, T> q;        // in: m x n; or no columns: R alone (not for rows_out)
  DeviceMatrix<B, T> rows;     // in, rows_in: p x n
  DeviceMatrix<B, T> r_after;  // out: the same after the change, upper triangles alone
  DeviceMatrix<B, T> q_after;
};

template <class Queue, class B, class T>
Default sweep(const Queue&, const Sweep<B, T>&) {
  return not_whole("sweep");
}
template <class Queue, class B, class T>
Default wide_sweep(const Queue&, const WideSweep<B, T>&) {
  return not_whole("wide_sweep");
}
template <class Queue, class B, class T>
Default update_rows(const Queue&, const RowUpdate<B, T>&) {
  return not_whole("update_rows");
}
template <class Queue, class T>
bool takes_batch_update(const Queue&, Index, Index, Index, T) {
  return false;
}
template <class Queue, class B, class T>
Default batch_update(const Queue&, const BatchUpdate<B, T>&) {
  return not_whole("batch_update");
}

}  // namespace qrane::backend
