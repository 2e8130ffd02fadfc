// SPDX-License-Identifier: Apache-2.0
#include "sparse/host/front_qr.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>

#include "cpu/queue/blas.hpp"

namespace qrane::sparse {

namespace blas = backend::cpu::blas;

namespace {

constexpr Index base_columns = 8;  // factored column by column inside a panel

/// One panel being factored.
template <class T>
class PanelFactorization {
 public:
  PanelFactorization(const FrontMatrix<T>& front, FrontResult<T>& result, FrontPanel& panel, const DropRule& rule,
                     Scratch<T>& scratch)
      : front_(front), ld_(front.ld(panel.col)), result_(result), panel_(panel), rule_(rule), scratch_(scratch) {}

  Index run() {
    if (panel_.first_row >= front_.rows) {  // nothing is left to reflect
      std::fill_n(result_.pivot.begin() + panel_.col, panel_.cols, -1);
      panel_.live = panel_.height = 0;
      return panel_.first_row;
    }
    // R of the panel's columns lies above row_, too; only what is below goes to the corner
    const Index end = result_.direct ? columns(panel_.col, panel_.cols, panel_.first_row, front_.cols)
                                     : split(panel_.col, panel_.cols, panel_.first_row);
    panel_.live = end - panel_.first_row;
    panel_.height = std::max(height_, end) - panel_.first_row;
    return end;
  }

 private:
  T* corner(Index j) const { return result_.corner(panel_, j - panel_.col); }
  T* t(Index j) const {  // row 0: the panel's first column
    return result_.t(panel_) + (j - panel_.col) * result_.triangle_ld();
  }

  /// Columns [j, j + n), the left half first, then its update of the right half.
  Index split(Index j, Index n, Index row) {
    if (n <= base_columns) return columns(j, n, row, j + n);
    const Index half = (n / 2 + base_columns - 1) / base_columns * base_columns, rest = n - half;
    const Index next = split(j, half, row);
    T* const t11 = t(j) + (j - panel_.col);
    const Index ld = ld_, ldt = result_.triangle_ld(), left_end = std::max(height_, next);
    apply_block(front_.column(j) + row, ld, left_end - row, half, t11, ldt, Op::transpose,
                front_.column(j + half) + row, ld, rest, scratch_);
    const Index end = split(j + half, rest, next);
    // T12 = -T11 (V1ᵀ V2) T22; V2 is zero above `next`, V1 below left_end
    T* const t12 = t(j + half) + (j - panel_.col);
    T* const t22 = t(j + half) + (j + half - panel_.col);
    blas::gemm(Op::transpose, Op::none, half, rest, left_end - next, T(-1), front_.column(j) + next, ld,
               front_.column(j + half) + next, ld, T(0), t12, ldt);
    blas::trmm_upper(Op::none, half, rest, t11, ldt, t12, ldt);
    multiply_by_upper(t12, half, rest, t22, ldt);
    return end;
  }

  /// B := B U, U upper triangular, small.
  static void multiply_by_upper(T* b, Index m, Index n, const T* u, Index ld) {
    for (Index j = n - 1; j >= 0; --j) {
      T* const bj = b + j * ld;
      const T diagonal = u[j + j * ld];
      for (Index i = 0; i < m; ++i) bj[i] *= diagonal;
      for (Index k = 0; k < j; ++k) {
        const T factor = u[k + j * ld];
        const T* const bk = b + k * ld;
        for (Index i = 0; i < m; ++i) bj[i] += factor * bk[i];
      }
    }
  }

  /// Columns [j, j + n) one by one; reflectors go to all columns up to `right`.
  Index columns(Index j, Index n, Index row, Index right) {
    const Index first = j;
    for (; j < first + n; ++j) row = column(first, j, row, right);
    return row;
  }

  /// R of column j from the panel's first row to `count` rows further goes to the corner, zeros take its place.
  void move_to_corner(Index j, Index count) {
    T* const x = front_.column(j) + panel_.first_row;
    std::copy(x, x + count, corner(j));
    std::fill(x, x + count, T(0));
  }

  Index column(Index first, Index j, Index row, Index right) {
    // squares below this underflow, and columns are scaled so that nothing is lost with what is below it
    constexpr T negligible = sizeof(T) == 4 ? T(1e-34) : T(1e-290);
    T* const tj = t(j) + (first - panel_.col);
    if (result_.with_t) std::fill(t(j), t(j) + (j - panel_.col) + 1, T(0));
    result_.pivot[j] = -1;
    T* const x = front_.column(j);
    if (row >= front_.rows) {
      move_to_corner(j, front_.rows - panel_.first_row);
      return row;
    }
    const Index height = std::min(front_.rows, std::max(front_.stair[j], row + 1));
    height_ = std::max(height_, height);
    const Index top = row / lanes<T> * lanes<T>, length = round_up_to_lanes<T>(height) - top;
    T* const v = scratch_.get(scratch_v, ld_);  // from row `top` on
    std::copy(x + row + 1, x + top + length, v + (row + 1 - top));
    std::fill(v, v + (row + 1 - top), T(0));
    const T alpha = x[row];
    const T tail = sum_squares(length, v);
    const T norm = std::sqrt(alpha * alpha + tail);
    if (rule_.tolerance >= 0 && j < front_.pivots) {
      const double true_norm = rule_.exponents ? std::ldexp(static_cast<double>(norm), -rule_.exponents[j]) : norm;
      if ((rule_.scaled ? static_cast<double>(norm) : true_norm) <= rule_.tolerance) {
        result_.dropped_norm2 += true_norm * true_norm;
        move_to_corner(j, row - panel_.first_row);
        std::fill(x + row, x + height, T(0));
        return row;
      }
    }
    result_.pivot[j] = static_cast<std::int32_t>(row);
    T tau = 0, beta = alpha;
    if (tail <= negligible) {  // H = I; NaN goes the other way and spreads
      std::fill(v, v + length, T(0));
    } else {
      beta = -std::copysign(norm, alpha);
      tau = (beta - alpha) / beta;
      const T inverse = 1 / (alpha - beta);
      for (Index i = 0; i < length; ++i) v[i] *= inverse;
    }
    v[row - top] = 1;
    const Index above = row - panel_.first_row;
    move_to_corner(j, above);
    corner(j)[above] = beta;
    std::copy(v + (row - top), v + length, x + row);
    if (tau != 0 && right > j + 1) reflect(length, v, tau, front_.column(j + 1) + top, ld_, right - j - 1);
    if (result_.with_t) {
      T* const z = scratch_.get(scratch_z, panel_.cols);
      dots(length, v, front_.column(first) + top, ld_, j - first, z);
      const T* const t11 = t(first) + (first - panel_.col);
      for (Index i = 0; i < j - first; ++i) {
        T sum = 0;
        for (Index k = i; k < j - first; ++k) sum += t11[i + k * result_.triangle_ld()] * z[k];
        tj[i] = -tau * sum;
      }
      tj[j - first] = tau;
    }
    return row + 1;
  }

  const FrontMatrix<T>& front_;
  const Index ld_;  // of the panel's columns; of all where reflectors go beyond it
  FrontResult<T>& result_;
  FrontPanel& panel_;
  const DropRule& rule_;
  Scratch<T>& scratch_;
  Index height_ = 0;  // end of the longest reflector so far
};

}  // namespace

template <class T>
void Scratch<T>::Free::operator()(void* p) const {
  std::free(p);
}

template <class T>
T* Scratch<T>::get(int slot, Index count) {
  if (size_[slot] < count) {
    const Index size = round_up_to_lanes<T>(std::max(count, size_[slot] * 3 / 2));
    data_[slot].reset(static_cast<T*>(std::aligned_alloc(vector_bytes, size * sizeof(T))));
    size_[slot] = data_[slot] ? size : 0;
    if (!data_[slot]) throw std::bad_alloc();
  }
  return data_[slot].get();
}

template <class T>
void FrontResult<T>::plan(const FrontMatrix<T>& front, bool keep_t, const FrontTuning& tuning) {
  panels.clear();
  direct = front.rows * front.cols <= tuning.direct_elements;
  with_t = keep_t || !direct;
  panel_cols = tuning.panel_cols(front.cols);
  rows_of_r = 0;
  dropped_norm2 = 0;
  const auto height = [&](Index j) { return std::min(front.rows, std::max(front.stair[j], j + 1)); };
  for (Index j = 0; j < front.cols;) {
    FrontPanel panel;
    panel.col = j;
    double sum = 0;
    const Index top = std::min(j, front.rows);
    for (; j < front.cols && panel.cols < panel_cols; ++j, ++panel.cols) {
      const double h = static_cast<double>(height(j) - top);
      if (!direct && panel.cols >= 2 * base_columns &&
          h * static_cast<double>(panel.cols + 1) > tuning.waste * (sum + h))
        break;
      sum += h;
    }
    panels.push_back(panel);
  }
  begin.resize(front.cols + 1);
  const Index alike = std::clamp(front.cols / 16, tuning.store_least, tuning.store_most);
  Index next = 0, col = 0;
  for (std::size_t k = 0; k < panels.size();) {
    std::size_t last = k;
    while (last + 1 < panels.size() && (direct || panels[last + 1].col - panels[k].col < alike)) ++last;
    const Index end = panels[last].col + panels[last].cols;
    const Index ld = leading_dimension<T>(direct ? front.rows : zero_height(front, panels[last]));
    for (; col < end; ++col, next += ld) begin[col] = next;
    k = last + 1;
  }
  begin[front.cols] = next;
  pivot.resize(front.cols);
  const Index size = triangle_elements(front.cols, tuning);
  if (triangles_size_ >= size) return;
  triangles_.reset();
  triangles_size_ = 0;
  triangles_ = std::make_unique_for_overwrite<T[]>(size);
  triangles_size_ = size;
}

template <class T>
Index FrontResult<T>::zero_height(const FrontMatrix<T>& front, const FrontPanel& panel) {
  const Index last = panel.col + panel.cols - 1;
  return round_up_to_lanes<T>(std::min(front.rows, std::max(front.stair[last], last + 1)));
}

template <class T>
Index factor_panel(const FrontMatrix<T>& front, FrontResult<T>& result, std::size_t k, Index row, const DropRule& rule,
                   Scratch<T>& scratch) {
  FrontPanel& panel = result.panels[k];
  panel.first_row = row;
  const Index end = PanelFactorization<T>(front, result, panel, rule, scratch).run();
  for (Index j = panel.col; j < std::min(panel.col + panel.cols, front.pivots); ++j)
    result.rows_of_r += result.pivot[j] >= 0;
  return end;
}

template <class T>
void apply_block(const T* v, Index ldv, Index rows, Index reflectors, const T* t, Index ldt, Op op, T* c, Index ldc,
                 Index cols, Scratch<T>& scratch) {
  if (rows == 0 || reflectors == 0) return;
  constexpr Index tile = 256;  // columns that stay in cache between the two products
  for (Index first = 0; first < cols; first += tile) {
    const Index n = std::min(tile, cols - first);
    T* const w = scratch.get(scratch_w, reflectors * n);
    T* const target = c + first * ldc;
    // w = Vᵀ c;  w = op(T) w;  c = c - V w
    blas::gemm(Op::transpose, Op::none, reflectors, n, rows, T(1), v, ldv, target, ldc, T(0), w, reflectors);
    blas::trmm_upper(op, reflectors, n, t, ldt, w, reflectors);
    blas::gemm(Op::none, Op::none, rows, n, reflectors, T(-1), v, ldv, w, reflectors, T(1), target, ldc);
  }
}

template <class T>
void update_columns(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k, Index first, Index last,
                    Scratch<T>& scratch) {
  const FrontPanel& panel = result.panels[k];
  if (panel.live == 0 || first >= last) return;
  for (Index j = first; j < last;) {  // columns that are equally far apart
    const Index ld = front.ld(j), begin = j;
    while (j < last && front.ld(j) == ld) ++j;
    apply_block(front.column(panel.col) + panel.first_row, front.ld(panel.col), panel.height, panel.cols,
                result.t(panel), result.triangle_ld(), Op::transpose, front.column(begin) + panel.first_row, ld,
                j - begin, scratch);
  }
}

template <class T>
double panel_share(const FrontMatrix<T>& front, const FrontResult<T>& result, std::size_t k) {
  const double all = static_cast<double>(front.cols), before = static_cast<double>(result.panels[k].col) / all;
  const double after = before + static_cast<double>(result.panels[k].cols) / all;
  return (1 - before) * (1 - before) - (1 - after) * (1 - after);
}

template <class T>
void factor_front(const FrontMatrix<T>& front, FrontResult<T>& result, const DropRule& rule, Scratch<T>& scratch,
                  Progress& progress, double flops) {
  Index row = 0;
  for (std::size_t k = 0; k < result.panels.size(); ++k) {
    row = factor_panel(front, result, k, row, rule, scratch);
    if (!result.direct)
      update_columns(front, result, k, result.panels[k].col + result.panels[k].cols, front.cols, scratch);
    progress.add(flops * panel_share(front, result, k));
  }
}

#define QRANE_INSTANTIATE(T)                                                                                          \
  template class Scratch<T>;                                                                                          \
  template struct FrontResult<T>;                                                                                     \
  template Index factor_panel(const FrontMatrix<T>&, FrontResult<T>&, std::size_t, Index, const DropRule&,            \
                              Scratch<T>&);                                                                           \
  template void apply_block(const T*, Index, Index, Index, const T*, Index, Op, T*, Index, Index, Scratch<T>&);       \
  template void update_columns(const FrontMatrix<T>&, const FrontResult<T>&, std::size_t, Index, Index, Scratch<T>&); \
  template double panel_share(const FrontMatrix<T>&, const FrontResult<T>&, std::size_t);                             \
  template void factor_front(const FrontMatrix<T>&, FrontResult<T>&, const DropRule&, Scratch<T>&, Progress&, double);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::sparse
