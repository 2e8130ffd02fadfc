// SPDX-License-Identifier: Apache-2.0
// Rows of A that come and go, R [Q] [d] brought along.
//
// In: [U; A] = [E 0; 0 Q] [U; R], and the chain down makes [U; R] triangular. More rows than columns are reduced to a
// triangle of their own first. 2 p n² flops on R, and on Q one sweep.
//
// Out, with Q: the unit vectors E of the rows are Q W + Z L, W = Q(rows, :)ᵀ (complement.hpp), and [W; L] has
// orthonormal columns, so that the chain up leaves ±I of it: what is left of X = [Q Z] beside its first p columns, ±E,
// is zero in the rows. More rows than Q has columns are brought down to as many first: Q(rows, :) = Y T, and turning
// these rows of [A b] by [Y Y']ᵀ leaves T in Q's first ones and zeros in the others, which just go. Without Q:
// no_q/rows.hpp.
#pragma once

#include <cmath>

#include "update/chains/sweep.hpp"
#include "update/thin_q/complement.hpp"

namespace qrane::update {

/// Adds (or takes away) the squares of the columns of `part` to those of the residuals that a store without Q keeps.
template <class B, class T>
void add_residuals(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& part, double sign) {
  if (part.rows == 0 || store.residual_squares.cols == 0) return;
  const DeviceMatrix<B, double> gram = tools.gram_of(part), one = tools.scratch.template matrix<double>(1, 1);
  fill(tools.queue, one, 1.0, 1.0);
  const DeviceMatrix<B, double> diagonal{gram.data, 1, part.cols, gram.ld + 1, 0, 1};
  gemm(tools.queue, Op::none, Op::none, sign, one, diagonal, 1.0, store.residual_squares);
}

/// The rows u (p x n) and their right-hand sides e (p x nrhs), both on the device, before row k.
template <class B, class T>
void insert_rows(Tools<B, T>& tools, Store<B, T>& store, Index k, const DeviceMatrix<B, T>& u,
                 const DeviceMatrix<B, T>& e, Index block) {
  auto& queue = tools.queue;
  const Index p = u.rows, n = store.n, c = store.positions(), width = n + store.nrhs;
  const Index carry = std::min(p, n), kept = std::min(c + carry, n) - c;
  const bool reduced = p > n;
  // [U; R], or its triangle in place of U
  const DeviceMatrix<B, T> m = store.next_r(carry + c, width);
  const DeviceMatrix<B, T> top = m.block(0, 0, carry, width);
  DeviceMatrix<B, T> e_turned = e, u_q = tools.scratch.template matrix<T>(0, 0);
  if (reduced) {
    if (store.nrhs > 0) {
      e_turned = tools.scratch.template matrix<T>(p, store.nrhs);
      copy(queue, e, e_turned, Part::all);
    }
    if (n > 0) {
      auto& f = tools.factorization(p, n, QForm::implicit);
      f.run(u);
      copy(queue, f.r_source(), top.columns(0, n), Part::upper);
      if (store.nrhs > 0) f.apply(Op::transpose, e_turned);
      if (store.has_q) {
        u_q = tools.scratch.template matrix<T>(p, n);
        f.form(u_q);
      }
    }
  } else if (n > 0) {
    copy(queue, u, top.columns(0, n), Part::all);
  }
  if (store.nrhs > 0 && carry > 0)
    copy(queue, e_turned.block(0, 0, carry, store.nrhs), top.columns(n, store.nrhs), Part::all);
  if (c > 0) {
    copy(queue, store.triangle(), m.block(carry, 0, c, n), Part::upper);
    if (store.nrhs > 0) copy(queue, store.d(), m.block(carry, n, c, store.nrhs), Part::all);
  }
  const Chain<B, T> chain = chain_down(tools, m, carry, c, n, block, store.has_q);
  const Index positions = c + kept;

  RowOrder order = store.order;
  if (store.has_q) {
    order.insert(k, p);
    store.reserve_q(order.extent(), positions);
    const DeviceMatrix<B, T> q = store.q_view(order.extent(), positions);
    const DeviceMatrix<B, T> e_in = tools.scratch.template matrix<T>(order.extent(), carry);
    Place<B, T> place{q, 0, 0, e_in, {}};
    if (kept > 0) place.carry_out = q.columns(c, kept);
    Sweeper<B, T> sweep(tools, chain, place);
    const std::vector<Run> fresh = order.runs(k, p);
    if (carry > 0) fill(queue, e_in, T(0), T(0));
    Index at = 0;
    for (const Run& run : fresh) {
      if (c > 0) fill(queue, q.block(run.first, 0, run.count, c), T(0), T(0));
      if (reduced && n > 0)
        copy(queue, u_q.block(at, 0, run.count, n), e_in.block(run.first, 0, run.count, n), Part::all);
      else if (carry > 0)
        fill(queue, e_in.block(run.first, at, run.count, run.count), T(0), T(1));
      if (store.nrhs > 0)
        copy(queue, e.block(at, 0, run.count, store.nrhs),
             store.b_view(order.extent()).block(run.first, 0, run.count, store.nrhs), Part::all);
      at += run.count;
    }
    sweep.run();
  } else if (store.nrhs > 0) {
    add_residuals(tools, store, m.block(positions, n, carry + c - positions, store.nrhs), 1);
    if (p > carry) add_residuals(tools, store, e_turned.block(carry, 0, p - carry, store.nrhs), 1);
  }
  store.take_r(m.block(0, 0, positions, width));
  store.m += p;
  store.order = std::move(order);
}

/// The physical rows `runs` of `physical` to (or with `scatter` from) the rows of `block`, one run after another.
template <class B, class T>
void copy_runs(typename B::Queue& queue, const DeviceMatrix<B, T>& physical, const std::vector<Run>& runs,
               const DeviceMatrix<B, T>& block, bool scatter) {
  Index at = 0;
  if (block.cols == 0) return;
  for (const Run& run : runs) {
    const DeviceMatrix<B, T> there = physical.block(run.first, 0, run.count, block.cols);
    const DeviceMatrix<B, T> here = block.block(at, 0, run.count, block.cols);
    copy(queue, scatter ? here : there, scatter ? there : here, Part::all);
    at += run.count;
  }
}

/// Everything goes but the columns' number.
template <class B, class T>
void remove_all_rows(Tools<B, T>& tools, Store<B, T>& store) {
  const DeviceMatrix<B, T> none = store.next_r(0, store.n + store.nrhs);
  if (store.residual_squares.cols > 0) fill(tools.queue, store.residual_squares, 0.0, 0.0);
  store.take_r(none);
  store.m = 0;
  store.order = RowOrder(0);
}

/// Rows k .. k+p-1, more than Q has columns, brought down to rows k .. k+c-1 of a matrix with as many rows fewer.
/// Undone unless kept.
template <class B, class T>
class Condensed {
 public:
  Condensed(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p)
      : store_(store), order_(store.order), gone_(store.order.runs(k, p)), p_(p), c_(store.positions()) {
    auto& queue = tools.queue;
    q_ = tools.scratch.template matrix<T>(p, c_);
    b_ = tools.scratch.template matrix<T>(p, store.nrhs);
    const DeviceMatrix<B, T> turned = tools.scratch.template matrix<T>(p, store.nrhs);
    const DeviceMatrix<B, T> triangle = tools.scratch.template matrix<T>(c_, c_);
    auto& f = tools.factorization(p, c_, QForm::implicit);
    RowOrder order = order_;
    order.erase(k + c_, p - c_);
    copy_runs<B, T>(queue, store.q(), gone_, q_, false);
    f.run(q_);
    copy(queue, f.r_source(), triangle, Part::upper);
    if (store.nrhs > 0) {
      copy_runs<B, T>(queue, store.b(), gone_, b_, false);
      copy(queue, b_, turned, Part::all);
      f.apply(Op::transpose, turned);
    }
    const std::vector<Run> left = order_.runs(k, c_);
    store.zero(store.q(), gone_);
    copy_runs<B, T>(queue, store.q(), left, triangle, true);
    if (store.nrhs > 0) {
      store.zero(store.b(), gone_);
      copy_runs<B, T>(queue, store.b(), left, turned, true);
    }
    store.order = std::move(order);
    store.m -= p - c_;
  }
  ~Condensed() {
    if (kept_) return;
    store_.order = std::move(order_);
    store_.m += p_ - c_;
    try {
      copy_runs<B, T>(store_.queue, store_.q(), gone_, q_, true);
      if (b_.cols > 0) copy_runs<B, T>(store_.queue, store_.b(), gone_, b_, true);
    } catch (...) {  // what failed first is on its way to the caller
    }
  }
  Condensed(const Condensed&) = delete;
  Condensed& operator=(const Condensed&) = delete;
  void keep() { kept_ = true; }

 private:
  Store<B, T>& store_;
  RowOrder order_;
  std::vector<Run> gone_;
  Index p_, c_;
  DeviceMatrix<B, T> q_, b_;  // what was in the rows
  bool kept_ = false;
};

/// What chains for rows going out are scaled by. Their columns have length 1, near which roots are rounded down more
/// often than up; reflections made from those would lengthen what they are applied to, a little each time.
template <class T>
constexpr T off_unit = T(1.375);

/// Rows k .. k+p-1, with Q. `turn(g, m, q, carry)` takes g = [W; L] ((c + found) x carry) to ±a triangle over zeros by
/// orthogonal transforms from the left, the rows of m = [R d; 0 ..] and the columns of q = [Q Z] with it; it drops the
/// first `carry` columns of q, the others moving left, and returns m without as many rows.
template <class B, class T, class Turn>
void delete_rows_by(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p, Turn turn) {
  auto& queue = tools.queue;
  if (p == store.m) return remove_all_rows(tools, store);
  const Index n = store.n, c = store.positions(), extent = store.order.extent(), width = n + store.nrhs;
  if (c > 0 && p > c) {
    Condensed<B, T> condensed(tools, store, k, p);
    delete_rows_by(tools, store, k, c, turn);
    condensed.keep();
    return;
  }
  const std::vector<Run> gone = store.order.runs(k, p);
  RowOrder order = store.order;
  order.erase(k, p);
  if (c > 0) {
    const Index carry = p, room = store.m - c;
    const DeviceMatrix<B, T> w = tools.scratch.template matrix<T>(c, carry);
    const DeviceMatrix<B, T> s = tools.scratch.template matrix<T>(extent, carry);
    fill(queue, s, T(0), T(0));
    Index at = 0;
    for (const Run& run : gone) {
      transpose(queue, store.q().block(run.first, 0, run.count, c), w.columns(at, run.count));
      fill(queue, s.block(run.first, at, run.count, run.count), T(0), T(1));
      at += run.count;
    }
    const Complement<B, T> e = complement(tools, store.order, store.q(), s, w, true, room);
    const Index found = e.l.rows, kept = c + found - carry;
    store.reserve_q(extent, c + found);
    const DeviceMatrix<B, T> g = tools.scratch.template matrix<T>(c + found, carry);
    scaled_copy(tools, off_unit<T>, w, g.block(0, 0, c, carry));
    const DeviceMatrix<B, T> m = store.next_r(c + found, width);
    copy(queue, store.triangle(), m.block(0, 0, c, n), Part::upper);
    if (store.nrhs > 0) copy(queue, store.d(), m.block(0, n, c, store.nrhs), Part::all);
    const DeviceMatrix<B, T> q = store.q_view(extent, c + found);
    if (found > 0) {
      scaled_copy(tools, off_unit<T>, e.l, g.block(c, 0, found, carry));
      fill(queue, m.block(c, 0, found, n), T(0), T(0));
      if (store.nrhs > 0)
        gemm(queue, Op::transpose, Op::none, T(1), e.z, store.b(), T(0), m.block(c, n, found, store.nrhs));
      copy(queue, e.z, q.columns(c, found), Part::all);
    }
    const DeviceMatrix<B, T> r = turn(g, m, q, carry);
    store.zero(q.columns(0, kept), gone);
    store.take_r(r);
  }
  if (store.nrhs > 0) store.zero(store.b(), gone);
  store.m -= p;
  store.order = std::move(order);
}

/// The same by the chain up.
template <class B, class T>
void delete_rows(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p, Index block) {
  using Mat = DeviceMatrix<B, T>;
  delete_rows_by(tools, store, k, p, [&](const Mat& g, const Mat& m, const Mat& q, Index carry) {
    const Index kept = m.rows - carry;
    const Mat corner = tools.scratch.template matrix<T>(carry, carry);
    const Chain<B, T> chain = chain_up(tools, g, m, carry, kept, corner, block, true);
    Sweeper<B, T>(tools, chain, {q, 0, 0, q.columns(kept, carry), {}}).run();
    return m.block(carry, 0, kept, m.cols);
  });
}

}  // namespace qrane::update
