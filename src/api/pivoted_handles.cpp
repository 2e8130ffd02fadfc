// SPDX-License-Identifier: Apache-2.0
// PivotedQR<T> and pivoted_qr: forwarding to the engine of the context.
#include <array>
#include <utility>

#include "api/engine.hpp"
#include "plan/names.hpp"

namespace qrane {

namespace {
constexpr std::array<std::pair<Pivoting, const char*>, 3> names{
    {{Pivoting::automatic, "automatic"}, {Pivoting::exact, "exact"}, {Pivoting::randomized, "randomized"}}};
}

const char* to_string(Pivoting pivoting) { return detail::name_of(names, pivoting); }
Pivoting pivoting_from_string(const std::string& name) { return detail::value_of(names, name, "pivoting"); }

template <class T>
PivotedQR<T>::PivotedQR(std::unique_ptr<detail::PivotedState<T>> state) : state_(std::move(state)) {}
template <class T>
PivotedQR<T>::PivotedQR(PivotedQR&&) noexcept = default;
template <class T>
PivotedQR<T>& PivotedQR<T>::operator=(PivotedQR&&) noexcept = default;
template <class T>
PivotedQR<T>::~PivotedQR() = default;

template <class T>
Index PivotedQR<T>::rows() const {
  return state_->rows();
}
template <class T>
Index PivotedQR<T>::cols() const {
  return state_->cols();
}
template <class T>
Index PivotedQR<T>::rank() const {
  return state_->rank();
}
template <class T>
Index PivotedQR<T>::kept() const {
  return state_->kept();
}
template <class T>
double PivotedQR<T>::absolute_tolerance() const {
  return state_->absolute_tolerance();
}
template <class T>
Pivoting PivotedQR<T>::pivoting() const {
  return state_->pivoting();
}
template <class T>
std::vector<Index> PivotedQR<T>::permutation() const {
  return state_->permutation();
}
template <class T>
Matrix<T> PivotedQR<T>::r() const {
  return state_->r();
}
template <class T>
Matrix<T> PivotedQR<T>::q() const {
  return state_->q();
}
template <class T>
void PivotedQR<T>::apply_q(MatrixView<T> c, Side side) const {
  state_->apply(c, side, false);
}
template <class T>
void PivotedQR<T>::apply_qt(MatrixView<T> c, Side side) const {
  state_->apply(c, side, true);
}
template <class T>
Solution<T> PivotedQR<T>::solve(MatrixView<const T> b, const SolveOptions& options) const {
  return state_->solve(b, options);
}
template <class T>
PivotedQR<T> pivoted_qr(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                        const PivotOptions& options) {
  return PivotedQR<T>(context.engine()->scalar<T>().pivoted_qr(a, options));
}

#define QRANE_INSTANTIATE(T)   \
  template class PivotedQR<T>; \
  template PivotedQR<T> pivoted_qr<T>(const Context&, MatrixView<const T>, const PivotOptions&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane
