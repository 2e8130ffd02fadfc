// SPDX-License-Identifier: Apache-2.0
// sparse::Factor<T> and least_squares: handles over api/sparse_state.hpp.
#include <utility>

#include <qrane/sparse_qr.hpp>

#include "api/sparse_state.hpp"

namespace qrane::sparse {

template <class T>
Factor<T> Analysis::factor(const T* values, const FactorOptions& options,
                           std::type_identity_t<MatrixView<const T>> rhs) const {
  auto state = std::make_unique<qrane::detail::SparseFactorState<T>>(*this, options, rhs.cols);
  state->run(values, rhs);
  return Factor<T>(std::move(state));
}

template <class T>
Factor<T> Analysis::factor(const SparseView<T>& a, const FactorOptions& options,
                           std::type_identity_t<MatrixView<const T>> rhs) const {
  const Symbolic& s = *symbolic_;
  qrane::detail::check(a.rows == s.rows && a.cols == s.cols && a.entries == s.user_entries, ErrorCode::invalid_argument,
                       "factor: a matrix of ", a.rows, " x ", a.cols, " with ", a.entries,
                       " entries, but the analyzed pattern is ", s.rows, " x ", s.cols, " with ", s.user_entries);
  return factor(a.values, options, rhs);
}

template <class T>
std::vector<std::int32_t> Analysis::stages(const FactorOptions& options, Index rhs_cols) const {
  return context_.engine()->template scalar<T>().sparse_stages(*symbolic_, qrane::detail::numeric_options(options),
                                                               rhs_cols);
}

template <class T>
Factor<T>::Factor(std::unique_ptr<qrane::detail::SparseFactorState<T>> state) : state_(std::move(state)) {}
template <class T>
Factor<T>::Factor(Factor&&) noexcept = default;
template <class T>
Factor<T>& Factor<T>::operator=(Factor&&) noexcept = default;
template <class T>
Factor<T>::~Factor() = default;

template <class T>
Index Factor<T>::rows() const {
  return state_->symbolic().rows;
}
template <class T>
Index Factor<T>::cols() const {
  return state_->symbolic().cols;
}
template <class T>
Index Factor<T>::rank() const {
  return state_->facts().rank;
}
template <class T>
const FactorFacts& Factor<T>::facts() const {
  return state_->facts();
}
template <class T>
SparseMatrix<T> Factor<T>::r() const {
  return state_->r();
}
template <class T>
std::vector<Index> Factor<T>::permutation() const {
  return state_->permutation();
}
template <class T>
void Factor<T>::apply_qt(MatrixView<T> c) const {
  state_->apply(backend::Op::transpose, c);
}
template <class T>
void Factor<T>::apply_q(MatrixView<T> c) const {
  state_->apply(backend::Op::none, c);
}
template <class T>
Solution<T> Factor<T>::solve(MatrixView<const T> b) const {
  return state_->solve(b);
}
template <class T>
Solution<T> Factor<T>::solve() const {
  return state_->solve();
}
template <class T>
Solution<T> Factor<T>::solve_transposed(MatrixView<const T> b) const {
  return state_->solve_transposed(b);
}
template <class T>
void Factor<T>::refactor(const T* values, MatrixView<const T> rhs) {
  state_->run(values, rhs);
}

template <class T>
Solution<T> least_squares(const Context& context, const SparseView<T>& a, std::type_identity_t<MatrixView<const T>> b,
                          const AnalyzeOptions& analyze_options, const FactorOptions& factor_options) {
  if (a.rows >= a.cols) return analyze(context, a, analyze_options).factor(a, factor_options).solve(b);
  SparseView<T> transpose = a;
  std::swap(transpose.rows, transpose.cols);
  std::swap(transpose.row_indices, transpose.col_indices);
  if (a.storage != Storage::triplets)
    transpose.storage = a.storage == Storage::columns ? Storage::rows : Storage::columns;
  return analyze(context, transpose, analyze_options).factor(transpose, factor_options).solve_transposed(b);
}

#define QRANE_INSTANTIATE(T)                                                                                  \
  template class Factor<T>;                                                                                   \
  template Factor<T> Analysis::factor(const T*, const FactorOptions&, MatrixView<const T>) const;             \
  template std::vector<std::int32_t> Analysis::stages<T>(const FactorOptions&, Index) const;                  \
  template Factor<T> Analysis::factor(const SparseView<T>&, const FactorOptions&, MatrixView<const T>) const; \
  template Solution<T> least_squares<T>(const Context&, const SparseView<T>&, MatrixView<const T>,            \
                                        const AnalyzeOptions&, const FactorOptions&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::sparse
