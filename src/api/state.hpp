// SPDX-License-Identifier: Apache-2.0
// What the handles QR<T>, BatchQR<T> and UpdatableQR<T> hold: one implementation per backend (qr_engine.hpp,
// updated_engine.hpp).
#pragma once

#include <memory>
#include <vector>

#include <qrane/updatable_qr.hpp>

#include "update/choice/request.hpp"

namespace qrane::detail {

template <class T>
class UpdatableState;

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
  virtual RankReport rank(double relative_tolerance) = 0;
  virtual Determinant determinant() = 0;
  virtual Matrix<T> range_basis(double relative_tolerance) = 0;
  virtual Matrix<T> null_space_basis(double relative_tolerance) = 0;
  virtual Reflectors<T> reflectors() = 0;
  virtual bool fell_back() = 0;
  virtual Stage stage() = 0;
  virtual void refactor(MatrixView<const T> a) = 0;
  /// The factors in memory that can grow; this state is used up. Null: it is an UpdatableState.
  virtual std::unique_ptr<UpdatableState<T>> updatable() = 0;
};

template <class T>
class BatchState : public QRState<T> {
 public:
  using QRState<T>::refactor;
  virtual void refactor(BatchView<const T> a) = 0;
  virtual void r_into_batch(BatchView<T> out) = 0;
  virtual void q_into_batch(BatchView<T> out) = 0;
  virtual void apply_batch(BatchView<T> c, bool transpose) = 0;
  virtual void reflectors_into_batch(BatchView<T> packed, BatchView<T> tau) = 0;
  virtual BatchSolution<T> solve_batch(BatchView<const T> b, const SolveOptions& options) = 0;
  virtual std::vector<Index> solve_into_batch(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) = 0;
  virtual BatchUpdateReport update_batch(const update::BatchUpdateRequest<T>& request) = 0;
};

template <class T>
class UpdatableState : public QRState<T> {
 public:
  virtual UpdateReport update(const update::UpdateRequest<T>& request) = 0;
  virtual UpdateReport plan_update(Change change, Index k, Index p, const UpdateOptions& options,
                                   bool with_updated) = 0;
  virtual void time_updates(bool on) = 0;
  virtual void attach(MatrixView<const T> b, MatrixView<const T> a) = 0;
  virtual Solution<T> solve_attached(const SolveOptions& options) = 0;
  virtual Matrix<T> projected() = 0;
  virtual std::vector<double> residual_norms() = 0;
  virtual double drift(MatrixView<const T> a) = 0;
  virtual Index refused_updates() = 0;
};

}  // namespace qrane::detail
