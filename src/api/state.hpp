// SPDX-License-Identifier: Apache-2.0
// What a QR<T> or BatchQR<T> handle holds: one implementation per backend (dense/factorization.hpp).
#pragma once

#include <qrane/error.hpp>
#include <qrane/qr.hpp>

namespace qrane::detail {

/// One call of an update.
template <class T>
struct UpdateRequest {
  Change change = Change::insert_rows;
  Index k = 0, p = 0;
  MatrixView<const T> u{};  // the block that comes in, or U of rank_k
  MatrixView<const T> v{};  // V of rank_k
  MatrixView<const T> e{};  // right-hand sides of rows that come in
  UpdateOptions<T> options{};
};

/// One call of an update of a batch.
template <class T>
struct BatchUpdateRequest {
  Change change = Change::insert_rows;
  Index k = 0, p = 0;
  BatchView<const T> block{};  // the rows that come in; R only: those that go out
  UpdateOptions<T> options{};
};

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
  // updates (src/update/): only the states that updatable() makes have the rest
  /// The factors in memory that can grow; null: this state is one already.
  virtual std::unique_ptr<QRState<T>> updatable() { return nullptr; }
  virtual UpdateReport update(const UpdateRequest<T>&) { not_updatable(); }
  virtual UpdateReport plan_update(Change, Index, Index, const UpdateOptions<T>&) { not_updatable(); }
  virtual void time_updates(bool) { not_updatable(); }
  virtual void attach(MatrixView<const T>, MatrixView<const T>) { not_updatable(); }
  virtual Solution<T> solve_attached(const SolveOptions&) { nothing_attached(); }
  virtual Matrix<T> projected() { nothing_attached(); }
  virtual std::vector<double> residual_norms() { nothing_attached(); }
  virtual double drift(MatrixView<const T>) { not_updatable(); }
  virtual Index refused_updates() { return 0; }
  // of a batch
  virtual BatchUpdateReport update_batch(const BatchUpdateRequest<T>&) { not_updatable(); }
  virtual void r_into_batch(BatchView<T> out) = 0;
  virtual void q_into_batch(BatchView<T> out) = 0;
  virtual void apply_batch(BatchView<T> c, bool transpose) = 0;
  virtual void reflectors_into_batch(BatchView<T> packed, BatchView<T> tau) = 0;
  virtual BatchSolution<T> solve_batch(BatchView<const T> b, const SolveOptions& options) = 0;
  virtual std::vector<Index> solve_into_batch(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) = 0;

 protected:
  [[noreturn]] static void not_updatable() {
    throw Error(ErrorCode::unavailable, "this factorization cannot be updated");
  }
  [[noreturn]] static void nothing_attached() {
    throw Error(ErrorCode::unavailable, "no right-hand sides are attached: QR::attach(b) comes first");
  }
};

}  // namespace qrane::detail
