// SPDX-License-Identifier: Apache-2.0
// What uses the factors: Q of the fronts on right-hand sides, and triangular solves with R, front by front.
#include <algorithm>

#include <qrane/error.hpp>

#include "cpu/queue/blas.hpp"
#include "sparse/factors.hpp"
#include "sparse/host/front_qr.hpp"

namespace qrane::sparse {

namespace blas = backend::cpu::blas;

namespace {

/// The live columns of a front's pivotal part of R as a dense upper triangle.
template <class T>
void unpack_triangle(const StoredFront<T>& front, Index pivots, T* triangle) {
  const T* r = front.r;
  Index k = 0;
  for (Index j = 0; j < pivots; r += front.stride(j, pivots), ++j) {
    if (!front.is_live(j)) continue;
    std::copy(r, r + k + 1, triangle + k * front.r_rows);
    std::fill(triangle + k * front.r_rows + k + 1, triangle + (k + 1) * front.r_rows, T(0));
    ++k;
  }
}

/// R's columns of a front beyond the pivotal ones: r_rows x nonpivots, stride(pivots, pivots) apart.
template <class T>
const T* rectangle(const StoredFront<T>& front, Index pivots) {
  const T* r = front.r;
  for (Index j = 0; j < pivots; ++j) r += front.stride(j, pivots);
  return r;
}

/// Right-hand sides up to which R's packed columns are used as they are: a triangle unpacked for one is read once.
constexpr Index few = 4;

/// rows (r_rows x n, ld) := R⁻¹ rows or R⁻ᵀ rows with the live columns of a front's pivotal part of R.
template <class T>
void solve_packed(const StoredFront<T>& front, Index pivots, Op op, Index n, T* rows, Index ld) {
  const T* r = front.r;
  if (op == Op::transpose) {
    for (Index j = 0, k = 0; j < pivots; r += front.stride(j, pivots), ++j) {
      if (!front.is_live(j)) continue;
      for (Index c = 0; c < n; ++c) {
        T* const y = rows + c * ld;
        y[k] = (y[k] - blas::dot(k, r, y)) / r[k];
      }
      ++k;
    }
    return;
  }
  r = rectangle(front, pivots);
  for (Index j = pivots - 1, k = front.r_rows - 1; j >= 0; --j) {
    r -= front.stride(j, pivots);
    if (!front.is_live(j)) continue;
    for (Index c = 0; c < n; ++c) {
      T* const y = rows + c * ld;
      const T value = y[k] /= r[k];
      for (Index i = 0; i < k; ++i) y[i] -= value * r[i];
    }
    --k;
  }
}

/// The same for any number of columns; `triangle` is workspace.
template <class T>
void solve_triangle(const StoredFront<T>& front, Index pivots, Op op, Index n, T* rows, Index ld,
                    std::vector<T>& triangle) {
  if (n <= few) return solve_packed(front, pivots, op, n, rows, ld);
  const Index m = front.r_rows;
  triangle.resize(m * m);
  unpack_triangle(front, pivots, triangle.data());
  blas::trsm(backend::Side::left, backend::Triangle::upper, op, backend::Diagonal::non_unit, m, n, T(1),
             triangle.data(), m, rows, ld);
}

}  // namespace

template <class T>
void Factors<T>::apply(Op op, T* b, Index cols) {
  fetch_q();
  const blas::SingleThread single;
  const Index count = symbolic_->front_count(), ld = symbolic_->rows;
  Scratch<T> scratch;
  for (Index k = 0; k < count; ++k) {
    const StoredFront<T>& front = stored_[op == Op::transpose ? k : count - 1 - k];
    if (front.panel_count == 0) continue;
    T* const c = scratch.get(scratch_c, front.rows * cols);
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < front.rows; ++i) c[i + j * front.rows] = b[front.row_ids[i] + j * ld];
    for (Index p = 0; p < front.panel_count; ++p) {
      const StoredPanel<T>& panel = front.panels[op == Op::transpose ? p : front.panel_count - 1 - p];
      apply_block(panel.v, panel.v_ld, panel.height, panel.cols, panel.t, panel.t_ld, op, c + panel.first_row,
                  front.rows, cols, scratch);
    }
    for (Index j = 0; j < cols; ++j)
      for (Index i = 0; i < front.rows; ++i) b[front.row_ids[i] + j * ld] = c[i + j * front.rows];
  }
}

template <class T>
void Factors<T>::gather_r_rows(const T* b, T* y, Index n) const {
  const Index ldb = symbolic_->rows, ldy = rank_;
  for (Index j = 0; j < n; ++j) {
    std::copy(b + j * ldb, b + j * ldb + symbolic_->singletons, y + j * ldy);
    for (std::size_t f = 0; f < stored_.size(); ++f)
      for (Index i = 0; i < stored_[f].r_rows; ++i) y[r_begin_[f] + i + j * ldy] = b[stored_[f].row_ids[i] + j * ldb];
  }
}

template <class T>
void Factors<T>::scatter_r_rows(const T* y, T* b, Index n) const {
  const Index ldb = symbolic_->rows, ldy = rank_;
  std::fill(b, b + ldb * n, T(0));
  for (Index j = 0; j < n; ++j) {
    std::copy(y + j * ldy, y + j * ldy + symbolic_->singletons, b + j * ldb);
    for (std::size_t f = 0; f < stored_.size(); ++f)
      for (Index i = 0; i < stored_[f].r_rows; ++i) b[stored_[f].row_ids[i] + j * ldb] = y[r_begin_[f] + i + j * ldy];
  }
}

template <class T>
void Factors<T>::solve_r(T* y, T* x, Index n) const {
  const blas::SingleThread single;
  const Symbolic& s = *symbolic_;
  const Index ldx = s.cols, ldy = rank_;
  std::fill(x, x + ldx * n, T(0));
  std::vector<T> known, triangle;
  for (Index f = s.front_count() - 1; f >= 0; --f) {
    const StoredFront<T>& front = stored_[f];
    const Front& shape = s.fronts[f];
    const Index m = front.r_rows, others = shape.nonpivots();
    if (m == 0) continue;
    T* const rows = y + r_begin_[f];
    const Index* const columns = s.front_cols.data() + shape.cols_begin;
    known.resize(others * n);
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < others; ++i) known[i + j * others] = x[columns[shape.pivots + i] + j * ldx];
    if (others > 0)
      blas::gemm(Op::none, Op::none, m, n, others, T(-1), rectangle(front, shape.pivots),
                 front.stride(shape.pivots, shape.pivots), known.data(), others, T(1), rows, ldy);
    solve_triangle(front, shape.pivots, Op::none, n, rows, ldy, triangle);
    for (Index j = 0, k = 0; j < shape.pivots; ++j) {
      if (!front.is_live(j)) continue;
      for (Index c = 0; c < n; ++c) x[shape.first_col + j + c * ldx] = rows[k + c * ldy];
      ++k;
    }
  }
  for (Index k = s.singletons - 1; k >= 0; --k) {
    const Index begin = s.row_begin[k], end = s.row_begin[k + 1];
    for (Index c = 0; c < n; ++c) {
      T sum = y[k + c * ldy];
      for (Index p = begin + 1; p < end; ++p) sum -= values_[p] * x[s.singleton_cols[p] + c * ldx];
      x[k + c * ldx] = sum / values_[begin];
    }
  }
}

template <class T>
void Factors<T>::solve_rt(T* b, T* y, Index n) const {
  const blas::SingleThread single;
  const Symbolic& s = *symbolic_;
  const Index ldb = s.cols, ldy = rank_;
  for (Index k = 0; k < s.singletons; ++k) {
    const Index begin = s.row_begin[k], end = s.row_begin[k + 1];
    for (Index c = 0; c < n; ++c) {
      const T value = b[k + c * ldb] / values_[begin];
      y[k + c * ldy] = value;
      for (Index p = begin + 1; p < end; ++p) b[s.singleton_cols[p] + c * ldb] -= values_[p] * value;
    }
  }
  std::vector<T> update, triangle;
  for (Index f = 0; f < s.front_count(); ++f) {
    const StoredFront<T>& front = stored_[f];
    const Front& shape = s.fronts[f];
    const Index m = front.r_rows, others = shape.nonpivots();
    if (m == 0) continue;
    T* const rows = y + r_begin_[f];
    for (Index j = 0, k = 0; j < shape.pivots; ++j) {
      if (!front.is_live(j)) continue;
      for (Index c = 0; c < n; ++c) rows[k + c * ldy] = b[shape.first_col + j + c * ldb];
      ++k;
    }
    solve_triangle(front, shape.pivots, Op::transpose, n, rows, ldy, triangle);
    if (others == 0) continue;
    update.resize(others * n);
    blas::gemm(Op::transpose, Op::none, others, n, m, T(1), rectangle(front, shape.pivots),
               front.stride(shape.pivots, shape.pivots), rows, ldy, T(0), update.data(), others);
    const Index* const columns = s.front_cols.data() + shape.cols_begin + shape.pivots;
    for (Index c = 0; c < n; ++c)
      for (Index i = 0; i < others; ++i) b[columns[i] + c * ldb] -= update[i + c * others];
  }
}

#define QRANE_INSTANTIATE(T)                                           \
  template void Factors<T>::apply(Op, T*, Index);                      \
  template void Factors<T>::gather_r_rows(const T*, T*, Index) const;  \
  template void Factors<T>::scatter_r_rows(const T*, T*, Index) const; \
  template void Factors<T>::solve_r(T*, T*, Index) const;              \
  template void Factors<T>::solve_rt(T*, T*, Index) const;
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::sparse
