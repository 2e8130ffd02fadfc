// SPDX-License-Identifier: Apache-2.0
// Updates of factorizations: chains of orthogonal blocks applied to Q, rows in and out of R, batches.
//
// Limits say how far a backend reaches: max_sweep_carry and max_sweep_block for sweep and wide_sweep, max_update_cols
// and max_update_rows for update_rows. Beyond that update/chains/sweep.hpp and update/no_q/rows.hpp do the same by
// products.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// A chain of orthogonal blocks applied from the right, one after another, to the columns of X, with p columns (the
/// carry) that all blocks share. Block j acts on the columns J_j = first + j block, ... of X (the last block may be
/// narrower) and on the carry. H_j is square, of order |J_j| + p, at h + j (block + p)² with leading dimension |J_j| +
/// p.
///
///   down:  j = 0, 1, ...   [ X(:, J_j + shift) | carry ] := [ carry | X(:, J_j) ] H_j       shift <= 0
///   up:    j = last, ...   [ carry | X(:, J_j + shift) ] := [ X(:, J_j) | carry ] H_j       shift >= 0
///
/// |shift| <= p. The carry starts as `carry_in` and ends in `carry_out`. Both have X's rows and may be columns of X:
/// carry_in is read before, carry_out written after all blocks. Columns that carry_in lacks of p are zeros; those that
/// carry_out lacks are dropped. Rows of X are independent.
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
template <class Queue, class B, class T>
Default sweep(const Queue&, const Sweep<B, T>&) {
  return not_whole("sweep");
}

/// The same with the blocks, products, sums and the carry in double; X and carry_out are rounded as they are written.
/// Backends with B::float_sums_lean have it for float.
template <class B, class T>
struct WideSweep {
  Sweep<B, T> sweep;                         // its h is unused
  typename B::template Pointer<double> h{};  // laid out as Sweep's
};
template <class Queue, class B, class T>
Default wide_sweep(const Queue&, const WideSweep<B, T>&) {
  return not_whole("wide_sweep");
}

/// Rows into, then rows out of, many small triangles R, in one launch. [R d] belongs to A and b (d = Qᵀb) and becomes
/// that of A and b with the rows rows_in (right-hand sides e_in), without the rows rows_out (e_out), which must be
/// among A's rows.
///
/// Rows enter by rotations or reflections. A row u leaves by Saunders' method (LINPACK's dchdd): Rᵀ a = u, and
/// rotations that take (a, alpha) to e_{n+1}, alpha² = 1 - aᵀa. Where alpha² is not above `least_left`, the other rows
/// of A lack a direction of u to working accuracy: this matrix then stays as it was, without rows_in too, and `refused`
/// counts one. Signs of R's diagonal stay. Meant for few rows: each is a chain of n rotations.
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
template <class Queue, class B, class T>
Default update_rows(const Queue&, const RowUpdate<B, T>&) {
  return not_whole("update_rows");
}

/// Rows into, rows out of, or columns out of all matrices of a batch, Q and R at once. Each matrix's result depends on
/// that matrix alone.
///
/// Rows enter by reflectors over the diagonal and the new rows. Columns leave by reflectors on the diagonal and p
/// entries below it. For rows that leave, thin Q is completed by an orthonormal Z so that the unit vectors of those
/// rows are in its range; rotations from the bottom up move them into Z, which is dropped. Q stays orthonormal for any
/// rows. Input and output must not overlap.
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
/// Whether batch_update takes m x n matrices and p rows or columns: queue, m (0 without Q), n, p, a scalar.
template <class Queue, class T>
bool takes_batch_update(const Queue&, Index, Index, Index, T) {
  return false;
}
template <class Queue, class B, class T>
Default batch_update(const Queue&, const BatchUpdate<B, T>&) {
  return not_whole("batch_update");
}

}  // namespace qrane::backend
