// SPDX-License-Identifier: Apache-2.0
// Values, scaling, tolerance; R and the orders of rows and columns.
#include "sparse/factors.hpp"

#include <cmath>
#include <limits>
#include <new>

#include <qrane/error.hpp>

namespace qrane::sparse {

namespace {

/// The power of two that brings a column whose squares could overflow or underflow to about 1; 0 means "leave".
template <class T>
int safe_exponent(double largest) {
  constexpr double large = sizeof(T) == 4 ? 1e15 : 1e140, small = sizeof(T) == 4 ? 1e-6 : 1e-100;
  const bool scale = std::isfinite(largest) && largest > 0 && (largest > large || largest < small);
  return scale ? -std::ilogb(largest) : 0;
}

/// (m + n) eps nears 1 in float, where columns are scaled to length 1 and each is measured against its own.
template <class T>
double default_tolerance(Index lines) {
  const double n = static_cast<double>(lines);
  return 20 * (sizeof(T) == 4 ? std::sqrt(n) : n) * std::numeric_limits<T>::epsilon();
}

}  // namespace

template <class T>
Factors<T>::Factors(std::shared_ptr<const Symbolic> symbolic, const NumericOptions& options)
    : symbolic_(std::move(symbolic)), options_(options) {
  const Symbolic& s = *symbolic_;
  try {
    values_.resize(s.entries);
    column_sizes_.resize(s.cols);
    stored_.resize(s.fronts.size());
    dropped_.resize(s.fronts.size());
    r_begin_.resize(s.fronts.size() + 1);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, detail::concat("out of memory for a sparse factorization with ", s.entries,
                                                         " entries in ", s.fronts.size(), " fronts"));
  }
}

template <class T>
void Factors<T>::count_rank() {
  r_begin_[0] = symbolic_->singletons;
  for (std::size_t f = 0; f < stored_.size(); ++f) r_begin_[f + 1] = r_begin_[f] + stored_[f].r_rows;
  rank_ = r_begin_.back();
}

template <class T>
double Factors<T>::dropped_norm() const {
  double sum = 0;
  for (const double d : dropped_) sum += d;
  return std::sqrt(sum);
}

template <class T>
bool Factors<T>::prepare_values(const T* user_values) {
  const Symbolic& s = *symbolic_;
  rank_ = 0;
  gather_values(s, user_values, values_.data());
  for (ColumnSize& size : column_sizes_) size = {};
  for_each_value([&](T value, Index k) {
    const double v = static_cast<double>(value);
    ColumnSize& size = column_sizes_[k];
    size.largest = std::max(size.largest, std::abs(v));
    size.squares += v * v;  // good where the column needs no scaling, and in float
  });
  const Index lines = s.rows + s.cols;
  if (scaled_tolerance()) {
    double longest = 0;
    for (const ColumnSize& size : column_sizes_)
      if (std::isfinite(size.squares)) longest = std::max(longest, size.squares);
    longest = std::sqrt(longest);
    const double zero = default_tolerance<double>(lines) * longest;  // what double drops stays negligible
    scale_columns([&](const ColumnSize& size) {
      const double norm = std::sqrt(size.squares);
      if (!std::isfinite(norm) || longest == 0) return 0;
      return -std::ilogb(norm > zero ? norm : longest);
    });
    tolerance_ = default_tolerance<T>(lines);
    return singletons_fit();
  }
  scale_columns([](const ColumnSize& size) { return safe_exponent<T>(size.largest); });
  double longest = 0;
  for (Index k = 0; k < s.cols; ++k)
    longest =
        std::max(longest, std::ldexp(std::sqrt(column_sizes_[k].squares), exponents_.empty() ? 0 : -exponents_[k]));
  tolerance_ = options_.tolerance;
  if (tolerance_ < 0) tolerance_ = std::min(default_tolerance<T>(lines) * longest, std::numeric_limits<double>::max());
  if (!options_.detect_rank) tolerance_ = -1;
  return singletons_fit();
}

/// visit(value, column)
template <class T>
template <class Visit>
void Factors<T>::for_each_value(Visit visit) {
  symbolic_->for_each_row([&](Index, Index first, Index last, auto column) {
    for (Index p = first; p < last; ++p) visit(values_[p], column(p));
  });
}

/// Multiplies columns by 2^exponent_of(size); their sums of squares are those of the scaled ones.
template <class T>
template <class Exponent>
void Factors<T>::scale_columns(Exponent exponent_of) {
  exponents_.clear();
  for (Index k = 0; k < symbolic_->cols; ++k) {
    const int e = exponent_of(column_sizes_[k]);
    if (e == 0) continue;
    if (exponents_.empty()) exponents_.assign(symbolic_->cols, 0);
    exponents_[k] = e;
    column_sizes_[k].squares = 0;
  }
  if (exponents_.empty()) return;
  for_each_value([&](T& value, Index k) {
    const int e = exponents_[k];
    if (e == 0) return;
    value = std::ldexp(value, e);
    column_sizes_[k].squares += static_cast<double>(value) * static_cast<double>(value);
  });
}

/// Singletons' pivots are the first entries of their rows.
template <class T>
bool Factors<T>::singletons_fit() const {
  if (!options_.detect_rank) return true;
  const Symbolic& s = *symbolic_;
  for (Index k = 0; k < s.singletons; ++k) {
    const double pivot = std::abs(static_cast<double>(values_[s.row_begin[k]]));
    const int e = exponents_.empty() || scaled_tolerance() ? 0 : -exponents_[k];
    if (std::ldexp(pivot, e) <= tolerance_) return false;
  }
  return true;
}

/// Positions of the permuted columns in permutation().
template <class T>
std::vector<Index> Factors<T>::positions() const {
  const Symbolic& s = *symbolic_;
  std::vector<Index> position(s.cols, -1);
  Index next = 0;
  for (Index k = 0; k < s.singletons; ++k) position[k] = next++;
  for (std::size_t f = 0; f < s.fronts.size(); ++f)
    for (Index j = 0; j < s.fronts[f].pivots; ++j)
      if (stored_[f].is_live(j)) position[s.fronts[f].first_col + j] = next++;
  for (Index& p : position)
    if (p < 0) p = next++;
  return position;
}

template <class T>
std::vector<Index> Factors<T>::permutation() const {
  const std::vector<Index> position = positions();
  std::vector<Index> columns(position.size());
  for (std::size_t k = 0; k < position.size(); ++k) columns[position[k]] = symbolic_->col_perm[k];
  return columns;
}

/// visit(row of R, permuted column, value as it is stored), rows ascending.
template <class T>
template <class Visit>
void Factors<T>::for_r(Visit visit) const {
  const Symbolic& s = *symbolic_;
  for (Index k = 0; k < s.singletons; ++k)
    for (Index p = s.row_begin[k]; p < s.row_begin[k + 1]; ++p) visit(k, s.singleton_cols[p], values_[p]);
  for (std::size_t f = 0; f < s.fronts.size(); ++f) {
    const Front& shape = s.fronts[f];
    const StoredFront<T>& front = stored_[f];
    const T* r = front.r;
    for (Index j = 0; j < shape.cols; ++j) {
      const Index count = front.height(j, shape.pivots);
      const Index column = s.front_cols[shape.cols_begin + j];
      for (Index i = 0; i < count; ++i) visit(r_begin_[f] + i, column, r[i]);
      r += front.stride(j, shape.pivots);
    }
  }
}

template <class T>
SparseMatrix<T> Factors<T>::r() const {
  const std::vector<Index> position = positions();
  SparseMatrix<T> r;
  r.rows = rank_;
  r.cols = symbolic_->cols;
  r.pointers.assign(r.cols + 1, 0);
  for_r([&](Index, Index column, T value) { r.pointers[position[column] + 1] += value != T(0); });
  for (Index k = 0; k < r.cols; ++k) r.pointers[k + 1] += r.pointers[k];
  r.row_indices.resize(r.pointers.back());
  r.values.resize(r.pointers.back());
  std::vector<Index> next(r.pointers.begin(), r.pointers.end() - 1);
  for_r([&](Index row, Index column, T value) {
    if (value == T(0)) return;
    const Index p = next[position[column]]++;
    r.row_indices[p] = row;
    r.values[p] = unscaled(value, column);
  });
  return r;
}

template <class T>
std::vector<Index> Factors<T>::q_rows() const {
  const Symbolic& s = *symbolic_;
  std::vector<Index> order;
  order.reserve(s.rows);
  for (Index k = 0; k < s.singletons; ++k) order.push_back(k);
  for (const StoredFront<T>& front : stored_) order.insert(order.end(), front.row_ids, front.row_ids + front.r_rows);
  std::vector<char> taken(s.rows, 0);
  for (const Index row : order) taken[row] = 1;
  for (Index k = 0; k < s.rows; ++k)
    if (!taken[k]) order.push_back(k);
  return order;
}

template class Factors<float>;
template class Factors<double>;

}  // namespace qrane::sparse
