// SPDX-License-Identifier: Apache-2.0
// SvdPlan<T> and LeastSquaresPlan<T>: handles over api/plan_state.hpp.
#include "api/engine.hpp"

namespace qrane {

template <class T>
SvdPlan<T>::SvdPlan(const Context& context, Index rows, Index cols, const SvdOptions& options)
    : state_(context.engine()->scalar<T>().svd_plan(rows, cols, options)) {}
template <class T>
SvdPlan<T>::SvdPlan(SvdPlan&&) noexcept = default;
template <class T>
SvdPlan<T>& SvdPlan<T>::operator=(SvdPlan&&) noexcept = default;
template <class T>
SvdPlan<T>::~SvdPlan() = default;
template <class T>
Index SvdPlan<T>::rows() const {
  return state_->rows();
}
template <class T>
Index SvdPlan<T>::cols() const {
  return state_->cols();
}
template <class T>
const Plan& SvdPlan<T>::qr_plan() const {
  return state_->plan();
}
template <class T>
std::int64_t SvdPlan<T>::workspace_bytes() const {
  return state_->workspace_bytes();
}
template <class T>
bool SvdPlan<T>::on_device() const {
  return state_->on_device();
}
template <class T>
void SvdPlan<T>::execute(MatrixView<const T> a, MatrixView<T> s, MatrixView<T> u, MatrixView<T> vt) {
  state_->execute(a, s, u, vt);
}
template <class T>
bool SvdPlan<T>::finish() {
  return state_->finish();
}

template <class T>
LeastSquaresPlan<T>::LeastSquaresPlan(const Context& context, Index rows, Index cols, Index nrhs,
                                      const LeastSquaresOptions& options)
    : state_(context.engine()->scalar<T>().least_squares_plan(rows, cols, nrhs, options)) {}
template <class T>
LeastSquaresPlan<T>::LeastSquaresPlan(LeastSquaresPlan&&) noexcept = default;
template <class T>
LeastSquaresPlan<T>& LeastSquaresPlan<T>::operator=(LeastSquaresPlan&&) noexcept = default;
template <class T>
LeastSquaresPlan<T>::~LeastSquaresPlan() = default;
template <class T>
Index LeastSquaresPlan<T>::rows() const {
  return state_->rows();
}
template <class T>
Index LeastSquaresPlan<T>::cols() const {
  return state_->cols();
}
template <class T>
Index LeastSquaresPlan<T>::rhs_cols() const {
  return state_->rhs_cols();
}
template <class T>
const Plan& LeastSquaresPlan<T>::qr_plan() const {
  return state_->plan();
}
template <class T>
std::int64_t LeastSquaresPlan<T>::workspace_bytes() const {
  return state_->workspace_bytes();
}
template <class T>
void LeastSquaresPlan<T>::execute(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x) {
  state_->execute(a, b, x);
}
template <class T>
Solution<T> LeastSquaresPlan<T>::finish() {
  return state_->finish();
}

template class SvdPlan<float>;
template class SvdPlan<double>;
template class LeastSquaresPlan<float>;
template class LeastSquaresPlan<double>;

}  // namespace qrane
