// SPDX-License-Identifier: Apache-2.0
// Rows out of a thin Q, all by products. Q̂, Q without the rows, has Q̂ᵀQ̂ = I - WWᵀ = SᵀS with W = Q(rows, :)ᵀ, S
// upper triangular, so that Q̂ R = (Q̂ S⁻¹) (S R), and d becomes S^-T (d - W e). S is always found in double.
//
// Q̂ S⁻¹ loses orthonormality to rounding times cond(S)², and has what Q had lost, as much larger. The eigenvalues of
// SᵀS are 1 at most, so that ‖S⁻¹‖² <= ‖S⁻¹‖_F² - (n - 1), and ‖S⁻¹‖⁴ <= ‖S⁻¹S⁻ᵀ‖_F² - (n - 1), which is much closer
// where many rows go: bounds from above, read by the host. Up to `direct_limit` that is within the measures; up to
// `repair_limit` a second pass with the Gram matrix of what came out repairs it (Yamamoto, Nakatsukasa, Yanagisawa,
// Fukaya, ETNA 2015); beyond it, or where S does not exist, the rows go out the orthogonal way. 2 p n² + n³ flops on
// small matrices, and 1.25 m n² on Q, whose columns are replaced from the right in four panels.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "update/thin_q/blocked_cholesky.hpp"
#include "update/thin_q/rows.hpp"

namespace qrane::update {

/// G = SᵀS and S⁻¹, in double, n x n upper triangles with zeros below.
template <class B>
struct WideFactor {
  DeviceMatrix<B, double> s, inverse;
};

namespace detail {

/// Blocked; a pivot that is not positive makes *failed 1. g is destroyed.
template <class B, class T>
WideFactor<B> wide_cholesky(Tools<B, T>& tools, const DeviceMatrix<B, double>& g,
                            typename B::template Pointer<std::int32_t> failed) {
  using Block = CholeskyBlock<B, T>;
  auto& queue = tools.queue;
  const Index n = g.cols;
  const WideFactor<B> f{tools.scratch.template matrix<double>(n, n), tools.scratch.template matrix<double>(n, n)};
  const DeviceMatrix<B, double> product = tools.scratch.template matrix<double>(n, cholesky_block(tools));
  fill(queue, f.inverse, 0.0, 0.0);
  blocked_cholesky(
      tools, g, f.s, failed, 1e15,
      [&](const Block& block, const DeviceMatrix<B, double>& g12, const DeviceMatrix<B, double>& s12) {
        gemm(queue, Op::transpose, Op::none, 1.0, block.inverse, g12, 0.0, s12);
      },
      [&](Index j, const Block& block) {
        const Index b = block.r.cols;
        copy(queue, block.inverse, f.inverse.block(j, j, b, b), Part::all);
        if (j == 0) return;
        const DeviceMatrix<B, double> above = product.block(0, 0, j, b);
        gemm(queue, Op::none, Op::none, 1.0, f.s.block(0, j, j, b), block.inverse, 0.0, above);
        gemm(queue, Op::none, Op::none, -1.0, f.inverse.block(0, 0, j, j), above, 0.0, f.inverse.block(0, j, j, b));
      });
  return f;
}

/// Q := Q W for an upper triangular W, panels of columns from the last to the first, by strips of rows.
template <class B, class T>
void multiply_in_place(Tools<B, T>& tools, const DeviceMatrix<B, T>& q, const DeviceMatrix<B, T>& w,
                       const DeviceMatrix<B, T>& strip) {
  const Index n = q.cols, panel = strip.cols;
  for (Index row = 0; row < q.rows; row += strip.rows) {
    const DeviceMatrix<B, T> rows = q.block(row, 0, std::min(strip.rows, q.rows - row), n);
    for (Index end = n; end > 0;) {
      const Index first = (end - 1) / panel * panel, cols = end - first;
      const DeviceMatrix<B, T> product = strip.block(0, 0, rows.rows, cols);
      gemm(tools.queue, Op::none, Op::none, T(1), rows.columns(0, end), w.block(0, first, end, cols), T(0), product);
      copy(tools.queue, product, rows.columns(first, cols), Part::all);
      end = first;
    }
  }
}

}  // namespace detail

/// The limits that the bound on ‖S⁻¹‖² is held against.
template <class T>
struct CholeskyLimits {
  static constexpr double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  static double direct(Index n) { return static_cast<double>(n) / 8 + 4; }
  static constexpr double repair = 1e-3 / u;
};

/// Rows k .. k+p-1 out; false, with nothing changed, where the guard refuses. Needs m - p >= n > 0 and Q thin.
template <class B, class T>
bool delete_rows_cholesky(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p) {
  auto& queue = tools.queue;
  const Index n = store.n, extent = store.order.extent(), nrhs = store.nrhs;
  const std::vector<Run> gone = store.order.runs(k, p);
  RowOrder order = store.order;
  order.erase(k, p);
  const DeviceMatrix<B, T> w = tools.scratch.template matrix<T>(p, n);  // Wᵀ
  copy_runs<B, T>(queue, store.q(), gone, w, false);
  // G = I - WWᵀ
  const DeviceMatrix<B, double> ww = tools.gram_of(w), g = tools.scratch.template matrix<double>(n, n);
  const DeviceMatrix<B, double> identity = tools.scratch.template matrix<double>(n, n);
  fill(queue, g, 0.0, 1.0);
  fill(queue, identity, 0.0, 1.0);
  gemm(queue, Op::none, Op::none, -1.0, identity, ww, 1.0, g);
  const auto failed = tools.scratch.template take<std::int32_t>(1);
  const auto clear = [&] { set_flags(queue, failed, 1, 0); };
  constexpr Index sum_bytes = Index{1} << 20;
  const backend::Scratch<B> sum_scratch{tools.scratch.template take<std::byte>(sum_bytes), sum_bytes};
  const auto sum = tools.scratch.template take<double>(1);
  // the bound; infinite where there is no factor
  const auto bound = [&](const WideFactor<B>& f) {
    double square = 0;
    std::int32_t refused = 0;
    sum_squares(queue, f.inverse, sum, sum_scratch);
    queue.download(sum, &square, 1);
    queue.download(failed, &refused, 1);
    const double most = square - static_cast<double>(n - 1);
    return refused != 0 || !(most < 1e300) ? std::numeric_limits<double>::infinity() : most;
  };
  clear();
  const WideFactor<B> first = detail::wide_cholesky(tools, g, failed);
  const double most = bound(first);
  if (!(most <= CholeskyLimits<T>::repair)) return false;
  bool repair = most > CholeskyLimits<T>::direct(n);
  if (repair) {
    const DeviceMatrix<B, double> square = tools.scratch.template matrix<double>(n, n);
    gemm(queue, Op::none, Op::transpose, 1.0, first.inverse, first.inverse, 0.0, square);
    sum_squares(queue, square, sum, sum_scratch);
    double fourth = 0;
    queue.download(sum, &fourth, 1);
    repair = !(std::sqrt(fourth - static_cast<double>(n - 1)) <= CholeskyLimits<T>::direct(n));
  }

  const DeviceMatrix<B, T> s = tools.scratch.template matrix<T>(n, n), inverse = tools.scratch.template matrix<T>(n, n);
  const DeviceMatrix<B, T> upper = tools.scratch.template matrix<T>(n, n), r = store.next_r(n, n + nrhs);
  const Index panel = std::max<Index>((n + 3) / 4, std::min<Index>(n, 64));
  constexpr Index strip_rows = Index{1} << 16;
  const DeviceMatrix<B, T> strip = tools.scratch.template matrix<T>(std::min(extent, strip_rows), panel);
  // With a repair Q̂ becomes orthonormal in a copy first: its own factor may refuse.
  DeviceMatrix<B, T> q = store.q();
  if (repair) {
    q = tools.scratch.template matrix<T>(extent, n);
    copy(queue, store.q(), q, Part::all);
    store.zero(q, gone);
  }
  DeviceMatrix<B, T> d = store.d(), b_out = tools.scratch.template matrix<T>(p, nrhs);
  if (nrhs > 0) {
    const DeviceMatrix<B, T> less = tools.scratch.template matrix<T>(n, nrhs);
    copy_runs<B, T>(queue, store.b(), gone, b_out, false);
    copy(queue, d, less, Part::all);
    gemm(queue, Op::transpose, Op::none, T(-1), w, b_out, T(1), less);
    d = less;
  }
  narrow(queue, first.s, s, Part::upper);
  narrow(queue, first.inverse, inverse, Part::upper);
  copy(queue, store.triangle(), upper, Part::upper);
  gemm(queue, Op::none, Op::none, T(1), s, upper, T(0), r.columns(0, n));
  const auto turn_d = [&](const DeviceMatrix<B, T>& from) {
    if (nrhs > 0) gemm(queue, Op::transpose, Op::none, T(1), inverse, from, T(0), r.columns(n, nrhs));
  };
  turn_d(d);
  if (repair) {
    detail::multiply_in_place(tools, q, inverse, strip);
    const DeviceMatrix<B, double> again = tools.gram_of(q);
    clear();
    const WideFactor<B> second = detail::wide_cholesky(tools, again, failed);
    if (!(bound(second) <= 2 * static_cast<double>(n))) return false;  // it was not near the identity
    narrow(queue, second.s, s, Part::upper);
    narrow(queue, second.inverse, inverse, Part::upper);
    copy(queue, r.columns(0, n), upper, Part::upper);
    gemm(queue, Op::none, Op::none, T(1), s, upper, T(0), r.columns(0, n));
    if (nrhs > 0) {
      copy(queue, r.columns(n, nrhs), d, Part::all);
      turn_d(d);
    }
    copy(queue, q, store.q(), Part::all);
  }
  detail::multiply_in_place(tools, store.q(), inverse, strip);
  store.zero(store.q(), gone);
  if (nrhs > 0) store.zero(store.b(), gone);
  store.take_r(r);
  store.m -= p;
  store.order = std::move(order);
  return true;
}

}  // namespace qrane::update
