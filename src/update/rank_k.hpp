// SPDX-License-Identifier: Apache-2.0
// A + U Vᵀ with a thin Q: U = Q C + Z L (complement.hpp), so that A + U Vᵀ = [Q Z] ([R; 0] + [C; L] Vᵀ).
//
//     [C; L]  up    [T; 0]        the same windows turn [R; 0] into H, p nonzeros below its diagonal
//     H + [T Vᵀ; 0]  down  R~     and [Q Z] goes along with both
//
// Stable for every U and V: where U lies in the range of Q its remainder is rounding, and Z is completed. Source:
// Golub, Van Loan, "Matrix Computations" (4th edition), section 6.5.1, where p = 1 and the windows are rotations.
#pragma once

#include "update/chains/sweep.hpp"
#include "update/thin_q/complement.hpp"

namespace qrane::update {

/// u: m x p, v: n x p, both on the device.
template <class B, class T>
void rank_k_update(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& u, const DeviceMatrix<B, T>& v,
                   Index block) {
  auto& queue = tools.queue;
  const Index p = u.cols, n = store.n, c = store.positions(), extent = store.order.extent(), width = n + store.nrhs;
  if (c == 0) return;
  const DeviceMatrix<B, T> s = tools.scratch.template matrix<T>(extent, p),
                           in_q = tools.scratch.template matrix<T>(c, p);
  store.scatter(u, s);
  const Complement<B, T> rest = complement(tools, store.order, store.q(), s, in_q, false, store.m - c);
  const Index found = rest.l.rows, rows = c + found, carry = std::min(p, rows), cols = rows - carry;
  store.reserve_q(extent, rows);
  const DeviceMatrix<B, T> m = store.next_r(rows, width), q = store.q_view(extent, rows);
  const DeviceMatrix<B, T> g = tools.scratch.template matrix<T>(rows, p),
                           corner = tools.scratch.template matrix<T>(carry, p);
  copy(queue, in_q, g.block(0, 0, c, p), Part::all);
  copy(queue, store.triangle(), m.block(0, 0, c, n), Part::upper);
  if (store.nrhs > 0) copy(queue, store.d(), m.block(0, n, c, store.nrhs), Part::all);
  if (found > 0) {
    copy(queue, rest.l, g.block(c, 0, found, p), Part::all);
    copy(queue, rest.z, q.columns(c, found), Part::all);
    fill(queue, m.block(c, 0, found, n), T(0), T(0));
    if (store.nrhs > 0)
      gemm(queue, Op::transpose, Op::none, T(1), rest.z, store.b(), T(0), m.block(c, n, found, store.nrhs));
  }
  const Chain<B, T> up = chain_up(tools, g, m, carry, cols, corner, block, true);
  gemm(queue, Op::none, Op::transpose, T(1), corner, v, T(1), m.block(0, 0, carry, n));
  const Chain<B, T> down = chain_down(tools, m, carry, cols, std::min(rows, n), block, true);
  // the carry rests in the first columns between the two; what it is at last counts as far as R has rows
  const DeviceMatrix<B, T> first = q.columns(0, carry);
  Place<B, T> back{q, carry, -carry, first, {}};
  if (c > cols) back.carry_out = q.columns(cols, c - cols);
  Sweeper<B, T> out(tools, up, {q, 0, carry, q.columns(cols, carry), first}), in(tools, down, back);
  out.run();
  in.run();
  store.take_r(m.block(0, 0, c, width));
}

}  // namespace qrane::update
