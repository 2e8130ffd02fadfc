// SPDX-License-Identifier: Apache-2.0
// QR<T>, UpdatableQR<T>, BatchQR<T> and the free functions: forwarding to the engine of the context.
#include <limits>

#include "api/engine.hpp"
#include "dense/solve/rank.hpp"

namespace qrane {

template <class T>
QR<T>::QR(std::unique_ptr<detail::QRState<T>> state) : state_(std::move(state)) {}
template <class T>
QR<T>::QR(QR&&) noexcept = default;
template <class T>
QR<T>& QR<T>::operator=(QR&&) noexcept = default;
template <class T>
QR<T>::~QR() = default;

template <class T>
Index QR<T>::rows() const {
  return state_->plan().rows;
}
template <class T>
Index QR<T>::cols() const {
  return state_->plan().cols;
}
template <class T>
const Plan& QR<T>::plan() const {
  return state_->plan();
}
template <class T>
Matrix<T> QR<T>::r(Columns columns) const {
  return state_->r(columns);
}
template <class T>
Matrix<T> QR<T>::q(Columns columns) const {
  return state_->q(columns);
}
template <class T>
void QR<T>::r_into(MatrixView<T> out) const {
  state_->r_into(out);
}
template <class T>
void QR<T>::q_into(MatrixView<T> out) const {
  state_->q_into(out);
}
template <class T>
void QR<T>::apply_q(MatrixView<T> c, Side side) const {
  state_->apply(c, side, false);
}
template <class T>
void QR<T>::apply_qt(MatrixView<T> c, Side side) const {
  state_->apply(c, side, true);
}
template <class T>
Solution<T> QR<T>::solve(MatrixView<const T> b, const SolveOptions& options) const {
  return state_->solve(b, options);
}
template <class T>
double QR<T>::condition() const {
  return state_->condition();
}
template <class T>
RankReport QR<T>::rank(double tolerance) const {
  return state_->rank(tolerance);
}
template <class T>
void QR<T>::refactor(MatrixView<const T> a) {
  state_->refactor(a);
}

template <class T>
Determinant determinant(const QR<T>& f) {
  return f.state().determinant();
}
template <class T>
Matrix<T> range_basis(const QR<T>& f, double tolerance) {
  return f.state().range_basis(tolerance);
}
template <class T>
Matrix<T> null_space_basis(const QR<T>& f, double tolerance) {
  return f.state().null_space_basis(tolerance);
}
template <class T>
Reflectors<T> reflectors(const QR<T>& f) {
  return f.state().reflectors();
}
template <class T>
GuardReport guard_report(const QR<T>& f) {
  return {f.state().stage(), f.state().fell_back()};
}

template <class T>
UpdatableQR<T>::UpdatableQR(std::unique_ptr<detail::UpdatableState<T>> state) : QR<T>(std::move(state)) {}
template <class T>
detail::UpdatableState<T>& UpdatableQR<T>::updates() const {
  return static_cast<detail::UpdatableState<T>&>(this->state());
}
template <class T>
UpdateReport UpdatableQR<T>::insert_rows(Index k, MatrixView<const T> u, const UpdateOptions& options,
                                         MatrixView<const T> updated) {
  return updates().update({Change::insert_rows, k, u.rows, u, {}, {}, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::insert_rows(Index k, MatrixView<const T> u, MatrixView<const T> e,
                                         const UpdateOptions& options, MatrixView<const T> updated) {
  return updates().update({Change::insert_rows, k, u.rows, u, {}, e, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::delete_rows(Index k, Index p, const UpdateOptions& options, MatrixView<const T> updated) {
  return updates().update({Change::delete_rows, k, p, {}, {}, {}, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::delete_rows(Index k, Index p, MatrixView<const T> removed, MatrixView<const T> removed_b,
                                         const UpdateOptions& options, MatrixView<const T> updated) {
  return updates().update({Change::delete_rows, k, p, {}, {}, {}, options, updated, removed, removed_b});
}
template <class T>
UpdateReport UpdatableQR<T>::insert_columns(Index k, MatrixView<const T> u, const UpdateOptions& options,
                                            MatrixView<const T> updated) {
  return updates().update({Change::insert_columns, k, u.cols, u, {}, {}, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::delete_columns(Index k, Index p, const UpdateOptions& options,
                                            MatrixView<const T> updated) {
  return updates().update({Change::delete_columns, k, p, {}, {}, {}, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::rank_k_update(MatrixView<const T> u, MatrixView<const T> v, const UpdateOptions& options,
                                           MatrixView<const T> updated) {
  return updates().update({Change::rank_k, 0, u.cols, u, v, {}, options, updated});
}
template <class T>
UpdateReport UpdatableQR<T>::plan_update(Change change, Index k, Index p, const UpdateOptions& options,
                                         bool with_updated) const {
  return updates().plan_update(change, k, p, options, with_updated);
}
template <class T>
void UpdatableQR<T>::time_updates(bool on) {
  updates().time_updates(on);
}
template <class T>
void UpdatableQR<T>::attach(MatrixView<const T> b, MatrixView<const T> a) {
  updates().attach(b, a);
}
template <class T>
Solution<T> UpdatableQR<T>::solve(const SolveOptions& options) const {
  return updates().solve_attached(options);
}
template <class T>
Matrix<T> UpdatableQR<T>::projected() const {
  return updates().projected();
}
template <class T>
std::vector<double> UpdatableQR<T>::residual_norms() const {
  return updates().residual_norms();
}
template <class T>
double UpdatableQR<T>::drift(MatrixView<const T> a) const {
  return updates().drift(a);
}
template <class T>
Index UpdatableQR<T>::refused_updates() {
  return updates().refused_updates();
}

template <class T>
UpdatableQR<T> updatable_qr(QR<T>&& f) {
  auto grown = f.state().updatable();
  std::unique_ptr<detail::QRState<T>> old = std::move(f).take_state();
  if (!grown) grown.reset(static_cast<detail::UpdatableState<T>*>(old.release()));
  return UpdatableQR<T>(std::move(grown));
}

template <class T>
UpdatableQR<T> updatable_qr(const Context& context, std::type_identity_t<MatrixView<const T>> q,
                            std::type_identity_t<MatrixView<const T>> r, QForm form) {
  return UpdatableQR<T>(context.engine()->template scalar<T>().updatable(q, r, form));
}

template <class T>
BatchQR<T>::BatchQR(std::unique_ptr<detail::BatchState<T>> state) : state_(std::move(state)) {}
template <class T>
BatchQR<T>::BatchQR(BatchQR&&) noexcept = default;
template <class T>
BatchQR<T>& BatchQR<T>::operator=(BatchQR&&) noexcept = default;
template <class T>
BatchQR<T>::~BatchQR() = default;
template <class T>
Index BatchQR<T>::count() const {
  return state_->plan().count;
}
template <class T>
const Plan& BatchQR<T>::plan() const {
  return state_->plan();
}
template <class T>
Matrix<T> BatchQR<T>::r() const {
  return state_->r(Columns::thin);
}
template <class T>
Matrix<T> BatchQR<T>::q() const {
  return state_->q(Columns::thin);
}
template <class T>
void BatchQR<T>::r_into(BatchView<T> out) const {
  state_->r_into_batch(out);
}
template <class T>
void BatchQR<T>::q_into(BatchView<T> out) const {
  state_->q_into_batch(out);
}
template <class T>
void BatchQR<T>::apply_q(BatchView<T> c) const {
  state_->apply_batch(c, false);
}
template <class T>
void BatchQR<T>::apply_qt(BatchView<T> c) const {
  state_->apply_batch(c, true);
}
template <class T>
Reflectors<T> BatchQR<T>::reflectors() const {
  return state_->reflectors();
}
template <class T>
void BatchQR<T>::reflectors_into(BatchView<T> packed, BatchView<T> tau) const {
  state_->reflectors_into_batch(packed, tau);
}
template <class T>
BatchSolution<T> BatchQR<T>::solve(BatchView<const T> b, const SolveOptions& options) const {
  return state_->solve_batch(b, options);
}
template <class T>
std::vector<Index> BatchQR<T>::solve_into(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) const {
  return state_->solve_into_batch(b, x, options);
}
template <class T>
void BatchQR<T>::refactor(BatchView<const T> a) {
  state_->refactor(a);
}

template <class T>
BatchUpdateReport BatchQR<T>::insert_rows(Index k, BatchView<const T> u, const UpdateOptions& options) {
  return state_->update_batch({Change::insert_rows, k, u.first.rows, u, options});
}
template <class T>
BatchUpdateReport BatchQR<T>::delete_rows(Index k, Index p, BatchView<const T> removed, const UpdateOptions& options) {
  return state_->update_batch({Change::delete_rows, k, p, removed, options});
}
template <class T>
BatchUpdateReport BatchQR<T>::delete_columns(Index k, Index p, const UpdateOptions& options) {
  return state_->update_batch({Change::delete_columns, k, p, {}, options});
}

template <class T>
Plan plan_qr(const Context& context, Index rows, Index cols, const Options& options, Index count) {
  return context.engine()->scalar<T>().plan(rows, cols, count, options);
}
template <class T>
QR<T> qr(const Context& context, std::type_identity_t<MatrixView<const T>> a, const Options& options) {
  return QR<T>(context.engine()->scalar<T>().qr({a, 0, 1, nullptr}, options));
}
template <class T>
QR<T> qr_in_place(const Context& context, std::type_identity_t<MatrixView<T>> a, const Options& options) {
  return QR<T>(context.engine()->scalar<T>().qr_in_place({a, 0, 1, nullptr}, options));
}
template <class T>
QR<T> qr_from_reflectors(const Context& context, std::type_identity_t<MatrixView<const T>> packed,
                         std::type_identity_t<MatrixView<const T>> tau) {
  return QR<T>(context.engine()->scalar<T>().from_reflectors(packed, tau));
}
template <class T>
BatchQR<T> qr_in_place(const Context& context, const BatchView<T>& a, const Options& options) {
  return BatchQR<T>(context.engine()->scalar<T>().qr_in_place(a, options));
}
template <class T>
BatchQR<T> qr(const Context& context, std::type_identity_t<BatchView<const T>> a, const Options& options) {
  return BatchQR<T>(context.engine()->scalar<T>().qr(a, options));
}
template <class T>
Solution<T> least_squares(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                          std::type_identity_t<MatrixView<const T>> b, const LeastSquaresOptions& options) {
  return context.engine()->scalar<T>().least_squares(a, b, options);
}
template <class T>
Svd<T> svd(const Context& context, std::type_identity_t<MatrixView<const T>> a, const SvdOptions& options) {
  return context.engine()->scalar<T>().svd(a, options);
}
template <class T>
RobustPca<T> robust_pca(const Context& context, std::type_identity_t<MatrixView<const T>> m,
                        const RobustPcaOptions& options) {
  return context.engine()->scalar<T>().robust_pca(m, options);
}

template <class T>
RankReport numerical_rank(std::type_identity_t<MatrixView<const T>> s, double relative_tolerance) {
  detail::check(s.cols == 1 && s.memory == Memory::host, ErrorCode::invalid_argument, "s is ", s.rows, " x ", s.cols,
                s.memory == Memory::host ? "" : " in device memory", "; singular values are one column in host memory");
  RankReport report;
  report.full = s.rows;
  report.condition = 1;
  if (s.rows == 0) return report;
  const double largest = s.data[0], smallest = s.data[s.rows - 1];
  report.absolute_tolerance = dense::tolerance_or_default<T>(relative_tolerance, s.rows, s.rows) * largest;
  while (report.rank < s.rows && s.data[report.rank] > report.absolute_tolerance) ++report.rank;
  report.condition = smallest > 0 ? largest / smallest : std::numeric_limits<double>::infinity();
  return report;
}

#define QRANE_INSTANTIATE(T)                                                                                \
  template class QR<T>;                                                                                     \
  template class UpdatableQR<T>;                                                                            \
  template class BatchQR<T>;                                                                                \
  template Determinant determinant(const QR<T>&);                                                           \
  template Matrix<T> range_basis(const QR<T>&, double);                                                     \
  template Matrix<T> null_space_basis(const QR<T>&, double);                                                \
  template Reflectors<T> reflectors(const QR<T>&);                                                          \
  template GuardReport guard_report(const QR<T>&);                                                          \
  template UpdatableQR<T> updatable_qr(QR<T>&&);                                                            \
  template UpdatableQR<T> updatable_qr<T>(const Context&, MatrixView<const T>, MatrixView<const T>, QForm); \
  template Plan plan_qr<T>(const Context&, Index, Index, const Options&, Index);                            \
  template QR<T> qr<T>(const Context&, MatrixView<const T>, const Options&);                                \
  template QR<T> qr_in_place<T>(const Context&, MatrixView<T>, const Options&);                             \
  template QR<T> qr_from_reflectors<T>(const Context&, MatrixView<const T>, MatrixView<const T>);           \
  template BatchQR<T> qr<T>(const Context&, BatchView<const T>, const Options&);                            \
  template BatchQR<T> qr_in_place(const Context&, const BatchView<T>&, const Options&);                     \
  template Solution<T> least_squares<T>(const Context&, MatrixView<const T>, MatrixView<const T>,           \
                                        const LeastSquaresOptions&);                                        \
  template Svd<T> svd<T>(const Context&, MatrixView<const T>, const SvdOptions&);                           \
  template RankReport numerical_rank<T>(MatrixView<const T>, double);                                       \
  template RobustPca<T> robust_pca<T>(const Context&, MatrixView<const T>, const RobustPcaOptions&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane
