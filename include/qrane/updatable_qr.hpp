// SPDX-License-Identifier: Apache-2.0
// A QR factorization whose A changes: rows and columns are inserted and deleted at the price of the change.
#pragma once

#include <vector>

#include <qrane/qr.hpp>
#include <qrane/update.hpp>

namespace qrane {

namespace detail {
template <class T>
class QRANE_API UpdatableState;
}  // namespace detail

/// A QR that can be updated. After every update it is the factorization of the changed matrix, of the same form, and
/// all members of QR apply to it.
///
/// Updates: k counts from 0. Blocks may lie in host or device memory, in any layout; nothing of the size of A goes to
/// the host. Memory grows by halves. Any m and n are legal before and after, 0 included. Where R loses rank, Q stays
/// orthonormal and the rank shows in R. Each update throws Error{invalid_argument} for k, p or shapes that do not fit,
/// Error{not_finite} with check_finite, Error{unavailable} for what the form does not give (said below),
/// Error{out_of_memory}; then the factorization is as it was.
///
/// `updated` is the matrix as it is after the update, which is only read during the call. With it `automatic` may
/// refactor, and drift is limited (UpdateOptions::drift_limit). Empty: not given.
template <class T>
class QRANE_API UpdatableQR : public QR<T> {
 public:
  /// A with the rows u (p x n) inserted before row k, 0 <= k <= m. While no right-hand sides are attached.
  UpdateReport insert_rows(Index k, MatrixView<const T> u, const UpdateOptions& options = {},
                           MatrixView<const T> updated = {});
  /// The same; e (p x nrhs) are the new rows' right-hand sides.
  UpdateReport insert_rows(Index k, MatrixView<const T> u, MatrixView<const T> e, const UpdateOptions& options = {},
                           MatrixView<const T> updated = {});
  /// A without its rows k .. k+p-1. QForm::none needs the rows: the next overload.
  UpdateReport delete_rows(Index k, Index p, const UpdateOptions& options = {}, MatrixView<const T> updated = {});
  /// The same; `removed` (p x n) are these rows, removed_b (p x nrhs) their right-hand sides where some are attached.
  /// Read with QForm::none alone, which may refuse the update (UpdateReport::refused).
  UpdateReport delete_rows(Index k, Index p, MatrixView<const T> removed, MatrixView<const T> removed_b = {},
                           const UpdateOptions& options = {}, MatrixView<const T> updated = {});
  /// A with the columns u (m x p) inserted before column k, 0 <= k <= n. QForm::none needs `updated`.
  UpdateReport insert_columns(Index k, MatrixView<const T> u, const UpdateOptions& options = {},
                              MatrixView<const T> updated = {});
  /// A without its columns k .. k+p-1.
  UpdateReport delete_columns(Index k, Index p, const UpdateOptions& options = {}, MatrixView<const T> updated = {});
  /// A + U Vᵀ, U m x p and V n x p. QForm::none needs `updated`.
  UpdateReport rank_k_update(MatrixView<const T> u, MatrixView<const T> v, const UpdateOptions& options = {},
                             MatrixView<const T> updated = {});
  /// What one of them would do now: the candidates and the choice (its measured fields are empty). with_updated: as if
  /// `updated` were given.
  UpdateReport plan_update(Change change, Index k, Index p, const UpdateOptions& options = {},
                           bool with_updated = false) const;
  /// From now on every report has the time that the update took on the device (which waits for it).
  void time_updates(bool on);

  /// From now on d = Qᵀb and the residual norms of b's columns (m x nrhs) are updated too. QForm::none needs `a`, the
  /// matrix as it is, which is only read during the call. An empty b ends it, and with QForm::none so does refactor.
  void attach(MatrixView<const T> b, MatrixView<const T> a = {});
  using QR<T>::solve;
  /// Least-squares solution for the attached right-hand sides. Error{unavailable} where none are attached.
  Solution<T> solve(const SolveOptions& options = {}) const;
  /// The leading min(m, n) rows of Qᵀb, x nrhs.
  Matrix<T> projected() const;
  /// ‖A x - b‖_2 of every attached right-hand side, from what has been kept.
  std::vector<double> residual_norms() const;
  /// How far the factorization has drifted, in units of (min(m, n) + 10) u, u the unit roundoff: of an explicit Q its
  /// loss of orthogonality, estimated by products with a few vectors, and with `a`, the matrix as it is, the residual
  /// too (the only one where Q is not explicit). Waits for the device.
  double drift(MatrixView<const T> a = {}) const;
  /// Updates with UpdateOptions::queued that were refused since the last call (waits for the device).
  Index refused_updates();

  /// For qrane itself.
  explicit UpdatableQR(std::unique_ptr<detail::UpdatableState<T>> state);

 private:
  detail::UpdatableState<T>& updates() const;
};

/// Takes f over. QForm::thin and none are copied into memory that grows; reflectors stay where they are. Throws
/// Error{out_of_memory}; then f is as it was.
template <class T>
QRANE_API UpdatableQR<T> updatable_qr(QR<T>&& f);

/// From factors that are there, which are copied: orthonormal q, m x min(m, n) with QForm::thin or m x m with
/// QForm::full, and the upper trapezoid of r, min(m, n) x n (its further rows are not read). Orthonormality is not
/// checked. Throws Error{invalid_argument} where shapes or the form do not fit, else as qr().
template <class T>
QRANE_API UpdatableQR<T> updatable_qr(const Context& context, std::type_identity_t<MatrixView<const T>> q,
                                      std::type_identity_t<MatrixView<const T>> r, QForm form);

/// Factors a copy of A, m x n, as qr() does, and keeps it ready for updates.
template <MatrixLike A>
UpdatableQR<ScalarOf<A>> updatable_qr(const Context& context, const A& a, const Options& options = {}) {
  return updatable_qr(qr(context, a, options));
}
template <class T>
UpdatableQR<T> updatable_qr(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                            const Options& options = {}) {
  return updatable_qr(qr<T>(context, a, options));
}

}  // namespace qrane
