// SPDX-License-Identifier: Apache-2.0
// Columns of A that come and go, R [Q] [d] brought along.
//
// Out: R without them has p nonzeros below its diagonal from column k on, and the chain down takes those away.
// In: U = Q C + Z L (complement.hpp), and [Q Z] [R1 C R2; 0 L 0] becomes triangular by the chain up on [C(k:); L].
//
// Method `trailing` is either with a chain of one block: all of R from row k down is factored anew, and Q's columns
// from k on are multiplied by the orthogonal factor.
#pragma once

#include "update/thin_q/complement.hpp"
#include "update/thin_q/rows.hpp"

namespace qrane::update {

/// Columns first .. first+cols-1 of the store's R, an upper trapezoid, to columns at .. of m; m's rows below them
/// become zero.
template <class B, class T>
void copy_r_columns(Tools<B, T>& tools, const Store<B, T>& store, Index first, Index cols, const DeviceMatrix<B, T>& m,
                    Index at) {
  if (cols == 0) return;
  const Index c = store.positions(), above = std::min(c, first);
  if (above > 0) copy(tools.queue, store.r.block(0, first, above, cols), m.block(0, at, above, cols), Part::all);
  if (c > above)
    copy(tools.queue, store.r.block(above, first, c - above, cols), m.block(above, at, c - above, cols), Part::upper);
  if (m.rows > c) fill(tools.queue, m.block(c, at, m.rows - c, cols), T(0), T(0));
}

/// Columns k .. k+p-1.
template <class B, class T>
void delete_columns(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p, Index block, bool trailing = false) {
  const Index n = store.n - p, c = store.positions(), width = n + store.nrhs, below = std::max<Index>(c - k, 0);
  const Index carry = trailing ? below : std::min(below, p), cols = below - carry;
  const DeviceMatrix<B, T> m = store.next_r(c, width);
  copy_r_columns(tools, store, 0, k, m, 0);
  copy_r_columns(tools, store, k + p, n - k, m, k);
  if (store.nrhs > 0 && c > 0) copy(tools.queue, store.d(), m.columns(n, store.nrhs), Part::all);
  Index positions = c;
  if (carry > 0) {
    const Chain<B, T> chain =
        chain_down(tools, m.block(k, k, c - k, width - k), carry, cols, n - k, block, store.has_q);
    const Index kept = std::min(carry, n - k - cols);  // 0 where the windows take all
    positions = k + cols + kept;
    if (store.has_q) {
      const DeviceMatrix<B, T> q = store.q();
      Place<B, T> place{q, k + carry, -carry, q.columns(k, carry), {}};
      if (kept > 0) place.carry_out = q.columns(k + cols, kept);
      Sweeper<B, T>(tools, chain, place).run();
    } else if (store.nrhs > 0) {
      add_residuals(tools, store, m.block(positions, n, c - positions, store.nrhs), 1);
    }
  }
  store.take_r(m.block(0, 0, positions, width));
  store.n = n;
}

/// R with the columns C (and Z L) before column k, and the chain that makes it triangular; see insert_columns. With
/// `triangular` l is, and columns that come in after all others need no chain.
template <class B, class T>
Chain<B, T> insert_into_r(Tools<B, T>& tools, const Store<B, T>& store, Index k, const DeviceMatrix<B, T>& c,
                          const DeviceMatrix<B, T>& l, bool triangular, const DeviceMatrix<B, T>& m, Index block,
                          bool trailing) {
  auto& queue = tools.queue;
  const Index p = c.cols, before = store.positions(), after = before + l.rows, n = store.n + p;
  copy_r_columns(tools, store, 0, k, m, 0);
  copy_r_columns(tools, store, k, store.n - k, m, k + p);
  const Index above = std::min(k, before), turned = std::max<Index>(after - k, 0);
  if (above > 0) copy(queue, c.block(0, 0, above, p), m.block(0, k, above, p), Part::all);
  if (turned == 0) return {};
  if (triangular && k >= before) {
    copy(queue, l, m.block(before, k, l.rows, p), Part::upper);
    return {};
  }
  if (trailing) {
    if (before > k) copy(queue, c.block(k, 0, before - k, p), m.block(k, k, before - k, p), Part::all);
    if (l.rows > 0) copy(queue, l, m.block(before, k, l.rows, p), Part::all);
    return chain_down(tools, m.block(k, k, turned, m.cols - k), turned, 0, n - k, block, store.has_q);
  }
  const Index carry = std::min(p, turned);
  const DeviceMatrix<B, T> g = tools.scratch.template matrix<T>(turned, p);
  if (before > k) copy(queue, c.block(k, 0, before - k, p), g.block(0, 0, before - k, p), Part::all);
  if (l.rows > 0) copy(queue, l, g.block(before - k, 0, l.rows, p), Part::all);
  return chain_up(tools, g, m.block(k, k + p, turned, m.cols - k - p), carry, turned - carry, m.block(k, k, carry, p),
                  block, store.has_q);
}

/// u: m x p on the device, before column k; with Q. `turn(c, rest, m, q)`, U = Q c + Z L, makes m (positions x [n + p +
/// nrhs] with d in it) the new R and turns the columns of q = [Q Z] likewise.
template <class B, class T, class Turn>
void insert_columns_by(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& u, Turn turn) {
  auto& queue = tools.queue;
  const Index p = u.cols, c = store.positions(), extent = store.order.extent(), n = store.n + p;
  const DeviceMatrix<B, T> s = tools.scratch.template matrix<T>(extent, p),
                           in_q = tools.scratch.template matrix<T>(c, p);
  store.scatter(u, s);
  const Complement<B, T> rest = complement(tools, store.order, store.q(), s, in_q, false, store.m - c);
  const Index found = rest.l.rows, positions = c + found;
  store.reserve_q(extent, positions);
  const DeviceMatrix<B, T> m = store.next_r(positions, n + store.nrhs), q = store.q_view(extent, positions);
  if (found > 0) copy(queue, rest.z, q.columns(c, found), Part::all);
  if (store.nrhs > 0) {
    if (c > 0) copy(queue, store.d(), m.block(0, n, c, store.nrhs), Part::all);
    if (found > 0)
      gemm(queue, Op::transpose, Op::none, T(1), rest.z, store.b(), T(0), m.block(c, n, found, store.nrhs));
  }
  turn(in_q, rest, m, q);
  store.take_r(m);
  store.n = n;
}

/// The same by the chain up, or (trailing) by one block.
template <class B, class T>
void insert_columns(Tools<B, T>& tools, Store<B, T>& store, Index k, const DeviceMatrix<B, T>& u, Index block,
                    bool trailing = false) {
  using Mat = DeviceMatrix<B, T>;
  insert_columns_by(tools, store, u, [&](const Mat& c, const Complement<B, T>& rest, const Mat& m, const Mat& q) {
    const Chain<B, T> chain = insert_into_r(tools, store, k, c, rest.l, rest.triangular, m, block, trailing);
    if (chain.carry == 0) return;
    const Mat carry_in = q.columns(k + chain.cols, chain.carry), carry_out = q.columns(k, chain.carry);
    Sweeper<B, T>(tools, chain, {q, k, chain.carry, carry_in, carry_out}).run();
  });
}

}  // namespace qrane::update
