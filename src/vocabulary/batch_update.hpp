// SPDX-License-Identifier: Apache-2.0
// A page of the vocabulary (kernels.hpp) of its own: updates of many small factorizations at once.
#pragma once

#include "vocabulary/kernels.hpp"

namespace qrane::backend {

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

}  // namespace qrane::backend
