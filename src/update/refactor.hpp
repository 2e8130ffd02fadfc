// SPDX-License-Identifier: Apache-2.0
// Method `refactor`: the updated matrix, lent or put together from thin Q times R and the change, is factored by its
// ordinary plan.
#pragma once

#include "dense/solve/least_squares.hpp"
#include "update/choice/request.hpp"
#include "update/thin_q/rows.hpp"

namespace qrane::update {

namespace detail {
inline void check_q(const Plan& plan) {
  qrane::detail::check(plan.q != QForm::none, ErrorCode::unavailable,
                       "this needs Q, but the factorization was made with QForm::none");
}
}  // namespace detail

/// The attached right-hand sides in the order of A's rows, where they lie or a copy; no columns where there are none.
template <class B, class T>
DeviceMatrix<B, T> logical_b(Tools<B, T>& tools, Store<B, T>& store) {
  if (store.has_q && store.nrhs > 0 && store.order == RowOrder(store.m)) return store.b();
  const DeviceMatrix<B, T> b = tools.scratch.template matrix<T>(store.m, store.has_q ? store.nrhs : 0);
  if (b.cols > 0 && b.rows > 0) store.gather(store.b(), b);
  return b;
}

/// R is new, and so is Q: the store takes them over, with b in the order of A's rows.
template <class B, class T>
void finish_anew(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& r, Index m, Index n,
                 const DeviceMatrix<B, T>& b) {
  store.m = m;
  store.n = n;
  store.nrhs = b.cols;
  store.order = RowOrder(m);
  if (store.has_q && r.rows > 0 && b.cols > 0)
    gemm(tools.queue, Op::transpose, Op::none, T(1), store.q(), b, T(0), r.columns(n, b.cols));
  if (b.cols > 0 && m > 0 && !(b.data == store.b().data)) copy(tools.queue, b, store.b(), Part::all);
  store.take_r(r);
}

/// The store becomes the factorization of a, with the right-hand sides b (a's rows; the store's own, or in scratch
/// memory) where it keeps Q.
template <class B, class T>
void factor_anew(Tools<B, T>& tools, Store<B, T>& store, const DeviceMatrix<B, T>& a, const DeviceMatrix<B, T>& b) {
  const Index m = a.rows, n = a.cols, c = std::min(m, n);
  const DeviceMatrix<B, T> r = store.next_r(c, n + b.cols);
  dense::Factorization<B, T>* f = nullptr;
  if (c > 0) f = &tools.factorization(m, n, store.has_q ? QForm::thin : QForm::none, dense::Results::delivered);
  store.reserve_q(m, c);
  if (f) {
    f->deliver_to(r.columns(0, n), store.q_view(m, store.has_q ? c : 0));
    f->run(a);
  }
  finish_anew(tools, store, r, m, n, b);
}

/// Rows out where nothing is lent: Q without them is Y S, A without them Y (S R).
template <class B, class T>
void refactor_rows_left(Tools<B, T>& tools, Store<B, T>& store, Index k, Index p, const DeviceMatrix<B, T>& b) {
  auto& queue = tools.queue;
  const Index m = store.m - p, n = store.n, c = store.positions(), kept = std::min(m, c);
  RowOrder order = store.order;
  order.erase(k, p);
  const DeviceMatrix<B, T> left = tools.scratch.template matrix<T>(m, c), s = tools.scratch.template matrix<T>(kept, c);
  const DeviceMatrix<B, T> found = tools.scratch.template matrix<T>(kept, c);
  const DeviceMatrix<B, T> upper = tools.scratch.template matrix<T>(c, n), r = store.next_r(kept, n + b.cols);
  auto& f = tools.factorization(m, c, QForm::thin, dense::Results::delivered);
  copy_runs<B, T>(queue, store.q(), order.runs(), left, false);
  f.deliver_to(found, store.q_view(m, kept));
  f.run(left);
  copy(queue, found, s, Part::upper);
  copy(queue, store.triangle(), upper, Part::upper);
  gemm(queue, Op::none, Op::none, T(1), s, upper, T(0), r.columns(0, n));
  finish_anew(tools, store, r, m, n, b);
}

/// target := source without its rows or columns k .. k+p-1, or with room for p before k.
template <class B, class T>
void copy_around(typename B::Queue& queue, const DeviceMatrix<B, T>& source, const DeviceMatrix<B, T>& target, Index k,
                 Index p, bool rows, bool in) {
  const Index skip = in ? 0 : p, room = in ? p : 0, size = rows ? source.rows : source.cols, rest = size - k - skip;
  const auto part = [&](const DeviceMatrix<B, T>& a, Index first, Index count) {
    return rows ? a.block(first, 0, count, a.cols) : a.columns(first, count);
  };
  if (source.rows == 0 || source.cols == 0) return;
  if (k > 0) copy(queue, part(source, 0, k), part(target, 0, k), Part::all);
  if (rest > 0) copy(queue, part(source, k + skip, rest), part(target, k + room, rest), Part::all);
}

/// The matrix after the change, and b after it, from scratch.
template <class B, class T>
void refactor_changed(Tools<B, T>& tools, Store<B, T>& store, const UpdateRequest<T>& request,
                      const DeviceMatrix<B, T>& u, const DeviceMatrix<B, T>& e) {
  auto& queue = tools.queue;
  const Index k = request.k, p = request.p;
  const bool rows = request.change == Change::insert_rows || request.change == Change::delete_rows;
  const bool in = request.change == Change::insert_rows || request.change == Change::insert_columns;
  const Index step = in ? p : -p, m = store.m + (rows ? step : 0), n = store.n + (rows ? 0 : step);
  DeviceMatrix<B, T> b = logical_b(tools, store);
  if (rows && b.cols > 0) {
    const DeviceMatrix<B, T> changed = tools.scratch.template matrix<T>(m, b.cols);
    copy_around<B, T>(queue, b, changed, k, p, true, in);
    if (in) copy(queue, e, changed.block(k, 0, p, b.cols), Part::all);
    b = changed;
  }
  if (request.updated.rows > 0 || request.updated.cols > 0) {
    const dense::OnDevice<B, T> lent(queue, request.updated);
    factor_anew(tools, store, lent.matrix, b);
    return;
  }
  const Index c = store.positions(), extent = store.order.extent();
  if (request.change == Change::delete_rows && c > 0 && m > 0) return refactor_rows_left(tools, store, k, p, b);
  const DeviceMatrix<B, T> a = tools.scratch.template matrix<T>(store.m, store.n);
  if (c > 0) {
    const DeviceMatrix<B, T> physical = tools.scratch.template matrix<T>(extent, store.n);
    const DeviceMatrix<B, T> upper = tools.scratch.template matrix<T>(c, store.n);
    copy(queue, store.triangle(), upper, Part::upper);
    gemm(queue, Op::none, Op::none, T(1), store.q(), upper, T(0), physical);
    store.gather(physical, a);
  }
  const DeviceMatrix<B, T> changed = tools.scratch.template matrix<T>(m, n);
  copy_around<B, T>(queue, a, changed, k, p, rows, in);
  if (in && u.rows > 0 && u.cols > 0)
    copy(queue, u, rows ? changed.block(k, 0, p, n) : changed.columns(k, p), Part::all);
  factor_anew(tools, store, changed, b);
}

}  // namespace qrane::update
