// SPDX-License-Identifier: Apache-2.0
// Columns in where only R is kept and the matrix itself is lent: Q = A R⁻¹ is used without being formed. C = R^-T AᵀU
// and S = U - A R⁻¹C, both once more for what S still has of A's range (corrected semi-normal equations: Björck,
// "Stability analysis of the method of seminormal equations", Linear Algebra Appl. 1987), S = Z L by QR, and the chain
// up on [C; L]. 8 m n p + 2 m p² flops. Its error is about cond(R) u ‖u‖, and the second C shows it: where that is more
// than rounding may be, refused.
#pragma once

#include "update/columns.hpp"

namespace qrane::update {

namespace detail {

/// No column of c is longer than 10 (rows + 10) roundoffs of that of u. Waits.
template <class B, class T>
bool is_rounding(Tools<B, T>& tools, const DeviceMatrix<B, T>& c, const DeviceMatrix<B, T>& u) {
  const Index p = c.cols;
  const double most =
      10 * static_cast<double>(c.rows + 10) * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const DeviceMatrix<B, double> squares = tools.scratch.template matrix<double>(p, 2);
  Index at = 0;
  for (const DeviceMatrix<B, T>& a : {c, u}) {
    const DeviceMatrix<B, double> gram = tools.gram(a), diagonal{gram.data, 1, p, gram.ld + 1, 0, 1};
    tools.queue.transpose(diagonal, squares.columns(at++, 1));
  }
  std::vector<double> host(static_cast<std::size_t>(2 * p));
  tools.queue.download(squares.data, host.data(), 2 * p);
  for (std::size_t j = 0; j < static_cast<std::size_t>(p); ++j) {
    const double found = std::sqrt(host[j]), length = std::sqrt(host[j + static_cast<std::size_t>(p)]);
    if (!(found < most * length || (found == 0 && length == 0))) return false;
  }
  return true;
}

}  // namespace detail

/// lent: A with the columns u before column k. False, with nothing changed, where R is too ill-conditioned for it.
template <class B, class T>
bool insert_columns_without_q(Tools<B, T>& tools, Store<B, T>& store, Index k, const DeviceMatrix<B, T>& u,
                              const DeviceMatrix<B, T>& lent, Index block) {
  using backend::Diagonal, backend::Side, backend::Triangle;
  auto& queue = tools.queue;
  const Index m = store.m, n = store.n, p = u.cols;
  if (m < n + p) return false;
  const DeviceMatrix<B, T> c = tools.scratch.template matrix<T>(n, p), s = tools.scratch.template matrix<T>(m, p);
  queue.copy(u, s, Part::all);
  if (n > 0) {
    const DeviceMatrix<B, T> part = tools.scratch.template matrix<T>(n, p), x = tools.scratch.template matrix<T>(n, p);
    const DeviceMatrix<B, T> identity = tools.scratch.template matrix<T>(p, p);
    queue.fill(c, T(0), T(0));
    queue.fill(identity, T(0), T(1));
    const auto solve = [&](Op op, const DeviceMatrix<B, T>& y) {
      queue.trsm(Side::left, Triangle::upper, op, Diagonal::non_unit, T(1), store.triangle(), y);
    };
    for (int pass = 0; pass < 2; ++pass) {
      const auto each_part = [&](auto&& use) {
        if (k > 0) use(lent.columns(0, k), 0, k);
        if (k < n) use(lent.columns(k + p, n - k), k, n - k);
      };
      each_part([&](const DeviceMatrix<B, T>& a, Index first, Index cols) {
        queue.gemm(Op::transpose, Op::none, T(1), a, s, T(0), part.block(first, 0, cols, p));
      });
      solve(Op::transpose, part);
      if (pass > 0 && !detail::is_rounding(tools, part, u)) return false;
      queue.gemm(Op::none, Op::none, T(1), part, identity, T(1), c);
      queue.copy(part, x, Part::all);
      solve(Op::none, x);
      each_part([&](const DeviceMatrix<B, T>& a, Index first, Index cols) {
        queue.gemm(Op::none, Op::none, T(-1), a, x.block(first, 0, cols, p), T(1), s);
      });
    }
  }
  auto& f = tools.factorization(m, p, QForm::none);
  f.run(s);
  const DeviceMatrix<B, T> l = tools.scratch.template matrix<T>(p, p), next = store.next_r(n + p, n + p);
  queue.copy(f.r_source(), l, Part::upper);
  insert_into_r(tools, store, k, c, l, true, next, block, false);
  store.take_r(next);
  store.n = n + p;
  return true;
}

}  // namespace qrane::update
