// SPDX-License-Identifier: Apache-2.0
// What a QR<T> or BatchQR<T> handle holds: one implementation per backend (dense/factorization.hpp).
#pragma once

#include <qrane/qr.hpp>

namespace qrane::detail {

template <class T>
class QRState {
 public:
  virtual ~QRState() = default;
  virtual const Plan& plan() const = 0;
  virtual Matrix<T> r(Columns columns) = 0;
  virtual Matrix<T> q(Columns columns) = 0;
  virtual void r_into(MatrixView<T> out) = 0;
  virtual void q_into(MatrixView<T> out) = 0;
  virtual void apply(MatrixView<T> c, Side side, bool transpose) = 0;
  virtual Solution<T> solve(MatrixView<const T> b, const SolveOptions& options) = 0;
  virtual double condition() = 0;
  virtual RankReport rank(double tolerance) = 0;
  virtual Determinant determinant() = 0;
  virtual Matrix<T> range_basis(double tolerance) = 0;
  virtual Matrix<T> null_space_basis(double tolerance) = 0;
  virtual Reflectors<T> reflectors() = 0;
  virtual bool fell_back() = 0;
  virtual Stage stage() = 0;
  virtual void refactor(BatchView<const T> a) = 0;
  // of a batch
  virtual void r_into_batch(BatchView<T> out) = 0;
  virtual void q_into_batch(BatchView<T> out) = 0;
  virtual void apply_batch(BatchView<T> c, bool transpose) = 0;
  virtual void reflectors_into_batch(BatchView<T> packed, BatchView<T> tau) = 0;
  virtual BatchSolution<T> solve_batch(BatchView<const T> b, const SolveOptions& options) = 0;
  virtual std::vector<Index> solve_into_batch(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) = 0;
};

}  // namespace qrane::detail
