// SPDX-License-Identifier: Apache-2.0
// Columns in where only R is kept and the matrix itself is lent: Q = A R⁻¹ is used without being formed. C = R^-T AᵀU
// and S = U - A R⁻¹C, and once more C for what S still has of A's range (corrected semi-normal equations: Björck,
// "Stability analysis of the method of seminormal equations", Linear Algebra Appl. 1987), S = Z L by QR, and the chain
// up on [C; L]. 6 m n p + 2 m p² flops. Its error is about cond(R) u ‖u‖, and the second C shows it: where that is more
// than rounding may be, refused. Where it is a rounding or two S may keep it, since LᵀL has but its square; else that
// goes out of S, too (2 m n p).
#pragma once

#include "update/thin_q/columns.hpp"

namespace qrane::update {

namespace detail {

/// R⁻¹ and R⁻ᵀ times few columns, with the inverses of R's diagonal blocks: substitution alone would wait for every few
/// rows. What blocks of bad condition cost in accuracy is seen where it is used, as cond(R) is.
template <class B, class T>
class BlockSolver {
 public:
  using Mat = DeviceMatrix<B, T>;

  /// For up to `cols` columns at a time. r: upper triangle, n x n.
  BlockSolver(Tools<B, T>& tools, const Mat& r, Index cols) : queue_(tools.queue), r_(r) {
    using backend::Diagonal, backend::Side, backend::Triangle;
    const Index n = r.rows, blocks = (n + widest - 1) / widest;
    block_ = (n + blocks - 1) / blocks;
    inverses_ = tools.scratch.template matrix<T>(block_, block_, blocks);
    product_ = tools.scratch.template matrix<T>(block_, cols);
    fill(queue_, inverses_, T(0), T(1));
    const auto invert = [&](const Mat& triangles, const Mat& inverses) {
      trsm(queue_, Side::left, Triangle::upper, Op::none, Diagonal::non_unit, T(1), triangles, inverses);
    };
    const Index full = n / block_, rest = n - full * block_;
    Mat inverses = inverses_;
    inverses.count = full;
    invert({r.data, block_, block_, r.ld, block_ * (r.ld + 1), full}, inverses);
    if (rest > 0) invert(r.block(n - rest, n - rest, rest, rest), inverse(full));
  }

  /// y := R⁻¹ y or R⁻ᵀ y.
  void solve(Op op, const Mat& y) {
    const Index n = r_.rows, blocks = (n + block_ - 1) / block_;
    for (Index step = 0; step < blocks; ++step) {
      const Index j = op == Op::transpose ? step : blocks - 1 - step, row = j * block_, rows = size(j);
      const Mat mine = y.block(row, 0, rows, y.cols), product = product_.block(0, 0, rows, y.cols);
      gemm(queue_, op, Op::none, T(1), inverse(j), mine, T(0), product);
      copy(queue_, product, mine, Part::all);
      const Index first = op == Op::transpose ? row + rows : 0, count = op == Op::transpose ? n - first : row;
      const Mat others = y.block(first, 0, count, y.cols);
      const Mat factor = op == Op::transpose ? r_.block(row, first, rows, count) : r_.block(0, row, row, rows);
      if (count > 0) gemm(queue_, op, Op::none, T(-1), factor, product, T(1), others);
    }
  }

 private:
  static constexpr Index widest = 256;
  Index size(Index j) const { return std::min(block_, r_.rows - j * block_); }
  Mat inverse(Index j) const { return inverses_.matrix(j).block(0, 0, size(j), size(j)); }

  typename B::Queue& queue_;
  Mat r_, inverses_, product_;
  Index block_ = 0;
};

/// The longest column of c, against that of u and in units of (rows + 10) roundoffs. Waits.
template <class B, class T>
double in_roundings(Tools<B, T>& tools, const DeviceMatrix<B, T>& c, const DeviceMatrix<B, T>& u) {
  const Index p = c.cols;
  const double unit = static_cast<double>(c.rows + 10) * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const DeviceMatrix<B, double> squares = tools.scratch.template matrix<double>(p, 2);
  Index at = 0;
  for (const DeviceMatrix<B, T>& a : {c, u}) {
    const DeviceMatrix<B, double> gram = tools.gram_of(a), diagonal{gram.data, 1, p, gram.ld + 1, 0, 1};
    transpose(tools.queue, diagonal, squares.columns(at++, 1));
  }
  std::vector<double> host(static_cast<std::size_t>(2 * p));
  tools.queue.download(squares.data, host.data(), 2 * p);
  double most = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(p); ++j) {
    const double found = std::sqrt(host[j]), length = std::sqrt(host[j + static_cast<std::size_t>(p)]);
    const double ratio = found == 0 && length == 0 ? 0 : found / (unit * length);
    if (std::isnan(ratio)) return ratio;
    most = std::max(most, ratio);
  }
  return most;
}

}  // namespace detail

/// lent: A with the columns u before column k. False, with nothing changed, where R is too ill-conditioned for it.
template <class B, class T>
bool insert_columns_without_q(Tools<B, T>& tools, Store<B, T>& store, Index k, const DeviceMatrix<B, T>& u,
                              const DeviceMatrix<B, T>& lent, Index block) {
  auto& queue = tools.queue;
  const Index m = store.m, n = store.n, p = u.cols;
  if (m < n + p) return false;
  const DeviceMatrix<B, T> c = tools.scratch.template matrix<T>(n, p), s = tools.scratch.template matrix<T>(m, p);
  copy(queue, u, s, Part::all);
  if (n > 0) {
    const DeviceMatrix<B, T> part = tools.scratch.template matrix<T>(n, p), x = tools.scratch.template matrix<T>(n, p);
    const DeviceMatrix<B, T> identity = tools.scratch.template matrix<T>(p, p);
    fill(queue, c, T(0), T(0));
    fill(queue, identity, T(0), T(1));
    detail::BlockSolver<B, T> r(tools, store.triangle(), p);
    for (int pass = 0; pass < 2; ++pass) {
      const auto each_part = [&](auto&& use) {
        if (k > 0) use(lent.columns(0, k), 0, k);
        if (k < n) use(lent.columns(k + p, n - k), k, n - k);
      };
      each_part([&](const DeviceMatrix<B, T>& a, Index first, Index cols) {
        gemm(queue, Op::transpose, Op::none, T(1), a, s, T(0), part.block(first, 0, cols, p));
      });
      r.solve(Op::transpose, part);
      const double left = pass > 0 ? detail::in_roundings(tools, part, u) : 0;
      if (!(left < 10)) return false;
      gemm(queue, Op::none, Op::none, T(1), part, identity, T(1), c);
      if (pass > 0 && left < 1) break;
      copy(queue, part, x, Part::all);
      r.solve(Op::none, x);
      each_part([&](const DeviceMatrix<B, T>& a, Index first, Index cols) {
        gemm(queue, Op::none, Op::none, T(-1), a, x.block(first, 0, cols, p), T(1), s);
      });
    }
  }
  auto& f = tools.factorization(m, p, QForm::none);
  f.run(s);
  const DeviceMatrix<B, T> l = tools.scratch.template matrix<T>(p, p), next = store.next_r(n + p, n + p);
  copy(queue, f.r_source(), l, Part::upper);
  insert_into_r(tools, store, k, c, l, true, next, block, false);
  store.take_r(next);
  store.n = n + p;
  return true;
}

}  // namespace qrane::update
