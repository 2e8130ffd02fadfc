// SPDX-License-Identifier: Apache-2.0
// Blocks of Householder reflectors in compact form (Schreiber, Van Loan 1989), as products apply them: V an explicit
// matrix with its ones and zeros, T upper triangular.
//
//     Q = I - V T Vᵀ,    op(Q) C = C - V (op(T) (Vᵀ C))
#pragma once

#include "dense/buffer.hpp"

namespace qrane::dense {

/// Products with a block's T, for as many columns as are updated at once.
template <class B, class T>
struct UpdateWorkspace {
  backend::DeviceMatrix<B, T> w, w2;  // B x n each

  UpdateWorkspace() = default;
  UpdateWorkspace(Carver<B>& carver, Index block, Index cols, Index batch)
      : w(carver.template matrix<T>(block, cols, batch)), w2(carver.template matrix<T>(block, cols, batch)) {}
};

/// C := C - V op(T) (Vᵀ C), V as a full matrix.
template <class B, class T>
void apply_block_reflector(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& v,
                           const backend::DeviceMatrix<B, T>& t, backend::Op op, const backend::DeviceMatrix<B, T>& c,
                           const UpdateWorkspace<B, T>& work) {
  using backend::Op;
  if (c.cols == 0 || c.rows == 0) return;
  const auto w = work.w.block(0, 0, v.cols, c.cols);
  const auto w2 = work.w2.block(0, 0, v.cols, c.cols);
  gemm(queue, Op::transpose, Op::none, T(1), v, c, T(0), w);
  gemm(queue, op, Op::none, T(1), t, w, T(0), w2);
  gemm(queue, Op::none, Op::none, T(-1), v, w2, T(1), c);
}

/// T factor of block k of a factorization, t.ld columns wide but for the last; t holds them one after the other.
template <class B, class T>
backend::DeviceMatrix<B, T> block_t(const backend::DeviceMatrix<B, T>& t, Index k, Index cols) {
  return {t.data + k * t.ld * t.ld, cols, cols, t.ld, t.stride, t.count};
}

}  // namespace qrane::dense
