// SPDX-License-Identifier: Apache-2.0
// Batches of matrices small enough for one warp or one block each.
//
// Limits say how far a backend's own kernels reach: small_elements and small_rows for factor_small and apply_small,
// whole_panel_elements and whole_panel_rows for factor_whole_panel. Plans take other batches through
// vocabulary/panels.hpp.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// Householder QR of many small matrices in one launch, LAPACK-shaped. `factor` on blocks of whole matrices gives the
/// same reflectors.
template <class B, class T>
struct FactorSmall {
  DeviceMatrix<B, T> source;         // in: the batch; may be `a`
  DeviceMatrix<B, T> a;              // out: R on and above the diagonal, V below it
  DeviceMatrix<B, T> tau;            // out: column b is the min(m, n) tau of matrix b; its count is the batch's
  T* const* source_table = nullptr;  // where pointers are addresses: the address of each matrix, instead of a stride
  T* const* table = nullptr;
};
template <class Queue, class B, class T>
Default factor_small(const Queue&, const FactorSmall<B, T>&) {
  return not_whole("factor_small");
}

/// C := Qᵀ C or Q C for every matrix of a batch that factor_small has factored.
template <class B, class T>
struct ApplySmall {
  DeviceMatrix<B, T> v;    // in: what factor_small left in `a`
  DeviceMatrix<B, T> tau;  // in
  DeviceMatrix<B, T> c;    // in and out: v.rows x any
  Op op = Op::transpose;
  bool identity = false;      // C is not read: it is the leading columns of the identity
  T* const* table = nullptr;  // address of each V
};
template <class Queue, class B, class T>
Default apply_small(const Queue&, const ApplySmall<B, T>&) {
  return not_whole("apply_small");
}

/// Householder QR of one panel of every matrix of a batch, LAPACK-shaped; one block of threads takes all rows of a
/// panel.
template <class B, class T>
struct WholePanel {
  DeviceMatrix<B, T> a;  // in: the panels; out: R on and above the diagonal, V below it
  DeviceMatrix<B, T> t;  // out: T of the compact WY form, cols x cols, zeros below, tau on its diagonal
  DeviceMatrix<B, T> v;  // out, unless null: V with its ones and zeros
};
template <class Queue, class B, class T>
Default factor_whole_panel(const Queue&, const WholePanel<B, T>&) {
  return not_whole("factor_whole_panel");
}

/// Copies between contiguous matrices and matrices whose addresses are in a table in device memory.
template <class B, class T>
struct CopyTable {
  T* const* table = nullptr;  // a.count addresses
  Index ld = 0;               // of the matrices there
  DeviceMatrix<B, T> a;
  bool gather = true;  // a := table's, else table's := a
};
/// By default refused: there are no addresses in device memory that the host can name.
template <class Queue, class B, class T>
Default copy_table(const Queue&, const CopyTable<B, T>&) {
  throw Error(ErrorCode::unavailable, "this backend takes no table of addresses in device memory");
}

}  // namespace qrane::backend
