// SPDX-License-Identifier: Apache-2.0
// Chains of small orthogonal blocks ("windows"): what every update computes from small data before it touches Q.
//
// Down, for rows coming in and columns going out. M has p nonzeros below its diagonal; window j is rows [j nb, j nb +
// nb
// + p) and columns [j nb, j nb + nb). Its QR leaves p rows, the carry, for the next one (nb = 2, p = 2):
//
//     x x x x x x       x x x x x x       x x x x x x
//     x x x x x x       . x x x x x       . x x x x x
//     x x x x x x   0   . . x x x x   1   . . x x x x
//     . x x x x x   ->  . . x x x x   ->  . . . x x x
//     . . x x x x       . . x x x x       . . . . x x  carry
//     . . . x x x       . . . x x x       . . . . x x
//
// Up, for rows going out and columns coming in. G is [C; L], p columns with L in the last p rows; window j is the rows
// [j nb, j nb + nb + p), from the last to the first, and its QR leaves the triangle in its top p rows, zeros below.
// From the left the same windows turn [R; 0], whose diagonal blocks fill; those are triangularized all at once, and
// their orthogonal factors become part of the windows.
//
// The windows come out as explicit matrices, so that what they do to Q is a product (sweep.hpp). Blocks beyond what one
// task of the tile kernels takes are factored as matrices of their own. On CUDA all of this is done in double for
// float, too (in_double in tools.hpp). Sources: Hammarling, Lucas, "Updating the QR factorization and the least squares
// problem" (2008), sections 2 and 3, where nb = 1.
#pragma once

#include "update/chains/window.hpp"
#include "update/tools.hpp"

namespace qrane::update {

/// What a chain does to the columns of X, see backend::Sweep; and to what it carries at last, from the right.
template <class B, class T>
struct Chain {
  bool down = true;
  Index cols = 0;                                 // columns of X that the windows stand on
  Index block = 0;                                // nb
  Index carry = 0;                                // p
  typename B::template Pointer<T> h{};            // (nb + p)² elements a window
  typename B::template Pointer<double> wide_h{};  // the same before rounding, where they were found in double
  DeviceMatrix<B, T> tail;                        // carry x carry, or no columns: then the carry comes out as it is

  Index windows() const { return block > 0 ? (cols + block - 1) / block : 0; }
  Index width(Index j) const { return std::min(block, cols - j * block); }
  DeviceMatrix<B, T> window(Index j) const {
    const Index order = width(j) + carry, slot = block + carry;
    return {h + j * slot * slot, order, order, order, 0, 1};
  }
  /// All full windows as one batch.
  DeviceMatrix<B, T> full_windows() const {
    const Index slot = block + carry;
    return {h, slot, slot, slot, slot * slot, block > 0 ? cols / block : 0};
  }
};

/// C := Qᵀ C or Q C for a block factored by Tools::panel, or by a factorization.
template <class B, class T>
void apply_panel(Tools<B, T>& tools, const backend::Panel<B, T>& panel, Op op, const DeviceMatrix<B, T>& c) {
  if (c.cols > 0 && c.count > 0) apply_qt_h(tools.queue, backend::Apply<B, T>{panel, c, op});
}

/// QR of the p x any matrix a, p its rows: R is left in its upper triangle, and the orthogonal factor in q (p x p).
template <class B, class T>
void factor_tail(Tools<B, T>& tools, const DeviceMatrix<B, T>& a, Index factored, const DeviceMatrix<B, T>& q) {
  auto& f = tools.factorization(a.rows, factored, QForm::implicit);
  const DeviceMatrix<B, T> left = a.columns(0, factored);
  f.run(left);
  copy(tools.queue, f.r_source(), left.block(0, 0, f.k(), factored), Part::upper);
  if (a.cols > factored) f.apply(Op::transpose, a.columns(factored, a.cols - factored));
  fill(tools.queue, q, T(0), T(1));
  f.apply(Op::none, q);
}

namespace detail {

/// Down, every window one task.
template <class B, class T>
void down_by_tasks(Tools<B, T>& tools, const Chain<B, T>& chain, const DeviceMatrix<B, T>& m, bool want_h) {
  const Index nb = chain.block, p = chain.carry, te = tools.t_elements(nb);
  const auto t = tools.scratch.template take<T>(chain.windows() * te);
  for (Index j = 0; j < chain.windows(); ++j) {
    const Index r = j * nb, cols = chain.width(j), right = r + cols;
    const auto panel = tools.panel(m.block(r, r, cols + p, cols), t + j * te);
    factor(tools.queue, panel);
    apply_panel(tools, panel, Op::transpose, m.block(r, right, cols + p, m.cols - right));
  }
  if (!want_h) return;
  const auto form = [&](const DeviceMatrix<B, T>& v, Index first, const DeviceMatrix<B, T>& h) {
    if (v.count == 0) return;
    fill(tools.queue, h, T(0), T(1));
    apply_panel(tools, tools.panel(v, t + first * te), Op::none, h);
  };
  const Index full = chain.cols / nb;
  const DeviceMatrix<B, T> windows{m.data, nb + p, nb, m.ld, nb * (m.ld + 1), full};
  form(windows, 0, chain.full_windows());
  if (full < chain.windows()) {
    const Index r = full * nb, cols = chain.width(full);
    form(m.block(r, r, cols + p, cols), full, chain.window(full));
  }
}

/// Down, every window a factorization of its own.
template <class B, class T>
void down_by_blocks(Tools<B, T>& tools, const Chain<B, T>& chain, const DeviceMatrix<B, T>& m, bool want_h) {
  for (Index j = 0; j < chain.windows(); ++j) {
    const Index r = j * chain.block, cols = chain.width(j), right = r + cols, rows = cols + chain.carry;
    auto& f = tools.factorization(rows, cols, QForm::implicit);
    f.run(m.block(r, r, rows, cols));
    copy(tools.queue, f.r_source(), m.block(r, r, cols, cols), Part::upper);
    if (right < m.cols) f.apply(Op::transpose, m.block(r, right, rows, m.cols - right));
    if (!want_h) continue;
    fill(tools.queue, chain.window(j), T(0), T(1));
    f.apply(Op::none, chain.window(j));
  }
}

/// Up, every window one task. Returns the triangle that is left on top. A window waits for the one below it, but not
/// for what that one does to m: windows are factored in the side queue.
template <class B, class T>
DeviceMatrix<B, T> up_by_tasks(Tools<B, T>& tools, const Chain<B, T>& chain, const DeviceMatrix<B, T>& g,
                               const DeviceMatrix<B, T>& m, bool want_h) {
  auto& queue = tools.queue;
  const Index nb = chain.block, p = chain.carry, full = chain.cols / nb, last = chain.windows() - 1;
  const Index te = tools.t_elements(p), ke = tools.t_elements(nb), diagonal = nb * nb;
  const auto t = tools.scratch.template take<T>(chain.windows() * te);
  const auto k_t = tools.scratch.template take<T>(chain.windows() * ke);
  const DeviceMatrix<B, T> slots = tools.scratch.template matrix<T>(nb + p, p, chain.windows());
  const DeviceMatrix<B, T> k = tools.scratch.template matrix<T>(nb, nb, chain.windows());
  const auto slot = [&](Index j) { return slots.matrix(j).block(0, 0, chain.width(j) + p, p); };
  if (full > 0) {
    DeviceMatrix<B, T> tops = slots.block(0, 0, nb, p), source{g.data, nb, p, g.ld, nb, full};
    tops.count = full;
    copy(queue, source, tops, Part::all);
  }
  if (full <= last)
    copy(queue, g.block(full * nb, 0, chain.width(full), p), slot(full).block(0, 0, chain.width(full), p), Part::all);
  typename B::Queue side = queue.side();
  side.follow(queue);
  for (Index j = last; j >= 0; --j) {
    const Index r = j * nb, cols = chain.width(j);
    const DeviceMatrix<B, T> s = slot(j), bottom = s.block(cols, 0, p, p);
    if (j == last)
      copy(side, g.block(r + cols, 0, p, p), bottom, Part::all);
    else
      copy(side, slot(j + 1).block(0, 0, p, p), bottom, Part::upper);
    const auto panel = tools.panel(s, t + j * te);
    factor(side, panel);
    queue.follow(side);
    apply_panel(tools, panel, Op::transpose, m.block(r, r, cols + p, m.cols - r));
  }
  // the diagonal blocks of rows that the carry has left, all at once
  const auto triangularize = [&](Index first, const DeviceMatrix<B, T>& h) {
    const Index count = h.count, cols = h.rows - p;
    if (count == 0) return;
    const Index r = first * nb;
    DeviceMatrix<B, T> factors{k.data + first * diagonal, cols, cols, cols, diagonal, count};
    const DeviceMatrix<B, T> blocks{m.data + (p + r + r * m.ld), cols, cols, m.ld, nb * (m.ld + 1), count};
    copy(queue, blocks, factors, Part::all);
    const auto panel = tools.panel(factors, k_t + first * ke);
    factor(queue, panel);
    const DeviceMatrix<B, T> rows{m.data + (p + r), cols, m.cols, m.ld, nb, count};
    apply_panel(tools, panel, Op::transpose, rows);
    if (!want_h) return;
    DeviceMatrix<B, T> v = slot(first);
    v.count = count;
    v.stride = slots.stride;
    fill(queue, h, T(0), T(1));
    apply_panel(tools, panel, Op::none, h.block(p, p, cols, cols));
    apply_panel(tools, tools.panel(v, t + first * te), Op::none, h);
  };
  triangularize(0, chain.full_windows());
  if (full <= last) triangularize(full, chain.window(full));
  return slot(0).block(0, 0, p, p);
}

/// Up, every window a factorization of its own.
template <class B, class T>
DeviceMatrix<B, T> up_by_blocks(Tools<B, T>& tools, const Chain<B, T>& chain, const DeviceMatrix<B, T>& g,
                                const DeviceMatrix<B, T>& m, bool want_h) {
  auto& queue = tools.queue;
  const Index p = chain.carry, last = chain.windows() - 1;
  const DeviceMatrix<B, T> window = tools.scratch.template matrix<T>(chain.block + p, p);
  const DeviceMatrix<B, T> triangle = tools.scratch.template matrix<T>(p, p);
  copy(queue, g.block(chain.cols, 0, p, p), triangle, Part::all);
  for (Index j = last; j >= 0; --j) {
    const Index r = j * chain.block, cols = chain.width(j);
    copy(queue, g.block(r, 0, cols, p), window.block(0, 0, cols, p), Part::all);
    copy(queue, triangle, window.block(cols, 0, p, p), Part::all);
    auto& f = tools.factorization(cols + p, p, QForm::implicit);
    f.run(window.block(0, 0, cols + p, p));
    copy(queue, f.r_source(), triangle, Part::upper);
    f.apply(Op::transpose, m.block(r, r, cols + p, m.cols - r));
    auto& k = tools.factorization(cols, cols, QForm::implicit);
    const DeviceMatrix<B, T> rows = m.block(p + r, r, cols, m.cols - r);
    k.run(rows.block(0, 0, cols, cols));
    copy(queue, k.r_source(), rows.block(0, 0, cols, cols), Part::upper);
    if (rows.cols > cols) k.apply(Op::transpose, rows.block(0, cols, cols, rows.cols - cols));
    if (!want_h) continue;
    const DeviceMatrix<B, T> h = chain.window(j);
    fill(queue, h, T(0), T(1));
    k.apply(Op::none, h.block(p, p, cols, cols));
    f.apply(Op::none, h);
  }
  return triangle;
}

template <class B, class T>
Chain<B, T> down(Tools<B, T>& tools, const DeviceMatrix<B, T>& m, Index carry, Index cols, Index triangle, Index wanted,
                 bool want_h) {
  Chain<B, T> chain;
  chain.cols = cols;
  chain.carry = carry;
  chain.block = std::min(window_cols(tools.profile.limits, carry, wanted, true), std::max<Index>(cols, 1));
  const Index order = chain.block + carry;
  if (want_h) chain.h = tools.scratch.template take<T>(chain.windows() * order * order);
  if (cols > 0 && carry > 0) {
    if (is_one_task(tools.profile.limits, order, chain.block))
      down_by_tasks(tools, chain, m, want_h);
    else
      down_by_blocks(tools, chain, m, want_h);
  }
  if (triangle > cols && carry > 0) {
    chain.tail = tools.scratch.template matrix<T>(carry, carry);
    factor_tail(tools, m.block(cols, cols, carry, m.cols - cols), triangle - cols, chain.tail);
  }
  return chain;
}

template <class B, class T>
Chain<B, T> up(Tools<B, T>& tools, const DeviceMatrix<B, T>& g, const DeviceMatrix<B, T>& m, Index carry, Index cols,
               const DeviceMatrix<B, T>& corner, Index wanted, bool want_h) {
  Chain<B, T> chain;
  chain.down = false;
  chain.cols = cols;
  chain.carry = carry;
  chain.block = std::min(window_cols(tools.profile.limits, carry, wanted, false), std::max<Index>(cols, 1));
  const Index order = chain.block + carry;
  if (want_h) chain.h = tools.scratch.template take<T>(chain.windows() * order * order);
  if (carry == 0) return chain;
  if (cols == 0) {
    chain.tail = tools.scratch.template matrix<T>(carry, carry);
    auto& f = tools.factorization(carry, g.cols, QForm::implicit);
    f.run(g);
    copy(tools.queue, f.r_source(), corner, Part::upper);
    if (m.cols > 0) f.apply(Op::transpose, m);
    fill(tools.queue, chain.tail, T(0), T(1));
    f.apply(Op::none, chain.tail);
    return chain;
  }
  const bool tasks =
      is_one_task(tools.profile.limits, order, carry) && is_one_task(tools.profile.limits, chain.block, chain.block);
  copy(tools.queue, tasks ? up_by_tasks(tools, chain, g, m, want_h) : up_by_blocks(tools, chain, g, m, want_h), corner,
       Part::upper);
  return chain;
}

/// What was found in double, for an X of T.
template <class B, class T>
Chain<B, T> narrowed(Tools<B, T>& tools, const Chain<B, double>& wide, bool want_h) {
  Chain<B, T> chain;
  chain.down = wide.down;
  chain.cols = wide.cols;
  chain.block = wide.block;
  chain.carry = wide.carry;
  const Index order = wide.block + wide.carry, elements = wide.windows() * order * order;
  if (want_h && elements > 0) {
    chain.h = tools.scratch.template take<T>(elements);
    chain.wide_h = wide.h;
    narrow<B, T>(tools, {wide.h, elements, 1, elements, 0, 1}, {chain.h, elements, 1, elements, 0, 1});
  }
  if (wide.tail.cols > 0) {
    chain.tail = tools.scratch.template matrix<T>(wide.tail.rows, wide.tail.cols);
    narrow(tools, wide.tail, chain.tail);
  }
  return chain;
}

/// A chain of one large block is a factorization as any other, and done as fast as those are.
inline bool is_large_block(Index carry, Index cols) {
  constexpr Index large = 512;
  return cols == 0 && carry > large;
}

}  // namespace detail

/// Down. m: (carry + cols) rows; its first `triangle` >= cols columns become upper trapezoidal, those after them ride
/// along. `wanted`: columns of a window, or 0. Without want_h only m is computed.
template <class B, class T>
Chain<B, T> chain_down(Tools<B, T>& tools, const DeviceMatrix<B, T>& m, Index carry, Index cols, Index triangle,
                       Index wanted, bool want_h) {
  if constexpr (in_double<B, T>) {
    if (!detail::is_large_block(carry, cols)) {
      const DeviceMatrix<B, double> wide = widened(tools, m);
      const Chain<B, double> chain = detail::down(tools.wide(), wide, carry, cols, triangle, wanted, want_h);
      narrow(tools, wide, m);
      return detail::narrowed(tools, chain, want_h);
    }
  }
  return detail::down(tools, m, carry, cols, triangle, wanted, want_h);
}

/// Up. g: (cols + carry) x p, where carry = p, or cols = 0 and carry <= p; destroyed. m: the same rows; on entry upper
/// trapezoidal with zeros in the rows of the carry below column m.cols, its element (0, 0) on the diagonal of R; on
/// return upper trapezoidal from row `carry` on, with its first `carry` rows full. `corner` (carry x p) := the triangle
/// that is left of g.
template <class B, class T>
Chain<B, T> chain_up(Tools<B, T>& tools, const DeviceMatrix<B, T>& g, const DeviceMatrix<B, T>& m, Index carry,
                     Index cols, const DeviceMatrix<B, T>& corner, Index wanted, bool want_h) {
  if constexpr (in_double<B, T>) {
    if (!detail::is_large_block(carry, cols)) {
      const DeviceMatrix<B, double> wide = widened(tools, m), wide_corner = widened(tools, corner);
      const Chain<B, double> chain =
          detail::up(tools.wide(), widened(tools, g), wide, carry, cols, wide_corner, wanted, want_h);
      narrow(tools, wide, m);
      narrow(tools, wide_corner, corner);
      return detail::narrowed(tools, chain, want_h);
    }
  }
  return detail::up(tools, g, m, carry, cols, corner, wanted, want_h);
}

}  // namespace qrane::update
