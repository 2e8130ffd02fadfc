// SPDX-License-Identifier: Apache-2.0
// Blocked Householder QR with LAPACK-shaped reflectors: each panel by TSQR or guarded Cholesky QR, its
// Householder vectors rebuilt from the thin Q (Ballard et al. 2015, section 5), the trailing matrix by two
// products.
//
//      panel P  -->  thin Q, R  --reconstruct-->  V (unit lower trapezoidal), T, S R
//      C := C - V (Tᵀ (Vᵀ C))
//
// Two levels: panels of b columns update only the rest of their block of B columns (B a multiple of b); the
// block's T is then put together from its panels',
//
//      V = [V1 V2],  T = [ T1  -T1 (V1ᵀ V2) T2 ]
//                        [ 0          T2       ]
//
// and the matrix right of the block is updated once, by products with B columns, which run at full rate.
// T factors: block k's at t + k B^2 per matrix (leading dimension B), tau on their diagonals.
#pragma once

#include <memory>
#include <vector>

#include "dense/cholesky_qr.hpp"

namespace qrane::dense {

/// Panels of one shape of matrix; each has the tree of its own height, in coordinates of its copy.
template <class B>
struct BlockedSchedule {
  Index panel_cols = 0;
  Index block_cols = 0;
  std::vector<std::unique_ptr<DeviceSchedule<B>>> panels;
};

template <class B>
BlockedSchedule<B> make_blocked_schedule(typename B::Queue& queue, Index rows, Index cols, Index batch, int panel_cols,
                                         int block_cols, const TreeShape& shape) {
  BlockedSchedule<B> s;
  s.panel_cols = panel_cols;
  s.block_cols = block_cols;
  const Index k = std::min(rows, cols);
  for (Index col = 0; col < k; col += panel_cols) {
    const Index b = std::min<Index>(panel_cols, k - col);
    TreeShape own = shape;
    own.inner = std::min<int>(shape.inner, static_cast<int>(b));
    Schedule panel = make_schedule(rows - col, b, batch, own.inner, own);
    s.panels.push_back(std::make_unique<DeviceSchedule<B>>(queue, std::move(panel)));
  }
  return s;
}

/// How the thin Q of a panel comes about: by Cholesky QR where passes > 0 and the panel is tall, else by TSQR.
struct PanelMethod {
  int cholesky_passes = 0;
  double guard_limit = 0;
  bool cholesky(Index rows, Index cols) const { return cholesky_passes > 0 && rows >= 2 * cols; }
};

/// Memory that a blocked factorization uses for one panel and one block at a time.
template <class B, class T>
struct BlockedWorkspace {
  backend::DeviceMatrix<B, T> panel;      // m x b: copy of the panel for its tree, then its V as a full matrix
  backend::DeviceMatrix<B, T> q;          // m x b: thin Q
  backend::DeviceMatrix<B, T> r;          // b x b: the panel's R
  backend::DeviceMatrix<B, T> u_inverse;  // b x b
  backend::DeviceMatrix<B, T> v;          // m x B: V of a block as a full matrix
  backend::DeviceMatrix<B, T> gram;       // B x B: its Vᵀ V
  backend::DeviceMatrix<B, T> w;          // B x n, twice
  backend::DeviceMatrix<B, T> w2;
  typename B::template Pointer<T> t{};  // T factors of a panel's tree
  PanelMethod method;
  CholeskyWorkspace<B, T> cholesky;

  BlockedWorkspace() = default;
  BlockedWorkspace(Carver<B>& carver, Index rows, Index cols, Index batch, Index b, Index block, Index t_elements,
                   const PanelMethod& panel_method)
      : method(panel_method) {
    if (method.cholesky(rows, b)) cholesky = CholeskyWorkspace<B, T>(carver, rows, b, t_elements);
    r = carver.template matrix<T>(b, b, batch);
    panel = carver.template matrix<T>(rows, b, batch);
    q = carver.template matrix<T>(rows, b, batch);
    u_inverse = carver.template matrix<T>(b, b, batch);
    v = carver.template matrix<T>(rows, block, batch);
    gram = carver.template matrix<T>(block, block, batch);
    w = carver.template matrix<T>(block, std::max(cols, block), batch);
    w2 = carver.template matrix<T>(block, std::max(cols, block), batch);
    t = carver.template take<T>(t_elements);
  }
};

/// C := C - V op(T) (Vᵀ C), V as a full matrix.
template <class B, class T>
void apply_block_reflector(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& v,
                           const backend::DeviceMatrix<B, T>& t, backend::Op op, const backend::DeviceMatrix<B, T>& c,
                           const BlockedWorkspace<B, T>& work) {
  using backend::Op;
  if (c.cols == 0 || c.rows == 0) return;
  const auto w = work.w.block(0, 0, v.cols, c.cols);
  const auto w2 = work.w2.block(0, 0, v.cols, c.cols);
  queue.gemm(Op::transpose, Op::none, T(1), v, c, T(0), w);
  queue.gemm(op, Op::none, T(1), t, w, T(0), w2);
  queue.gemm(Op::none, Op::none, T(-1), v, w2, T(1), c);
}

/// work.q and work.r := thin Q and R of a panel.
template <class B, class T>
void factor_panel_thin(typename B::Queue& queue, const DeviceSchedule<B>& tree,
                       const backend::DeviceMatrix<B, T>& panel, const BlockedWorkspace<B, T>& work) {
  const Index b = panel.cols;
  const auto q = work.q.block(0, 0, panel.rows, b);
  const auto r = work.r.block(0, 0, b, b);
  if (work.method.cholesky(panel.rows, b)) {
    cholesky_qr(queue, tree, panel, r, q, work.method.cholesky_passes, work.method.guard_limit,
                work.cholesky.leading(panel.rows, b));
    return;
  }
  const auto copy = work.panel.block(0, 0, panel.rows, b);
  queue.copy(panel, copy, backend::Part::all);
  const ImplicitQ<B, T> implicit{&tree, copy, work.t};
  caqr(queue, implicit);
  form_q(queue, implicit, q);
  queue.copy(copy.block(0, 0, b, b), r, backend::Part::upper);
}

/// Reflectors and T of one panel: rows [col, m), columns [col, col + b) of a.
template <class B, class T>
void factor_panel(typename B::Queue& queue, const DeviceSchedule<B>& tree, const backend::DeviceMatrix<B, T>& panel,
                  const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work) {
  using namespace backend;
  const Index b = panel.cols;
  const auto q = work.q.block(0, 0, panel.rows, b);
  factor_panel_thin(queue, tree, panel, work);
  Reconstruct<B, T> r;
  r.q1 = q.block(0, 0, b, b);
  r.r = work.r.block(0, 0, b, b);
  r.panel = panel.block(0, 0, b, b);
  r.t = t;
  r.u_inverse = work.u_inverse.block(0, 0, b, b);
  queue.reconstruct(r);
  // V2 = Q2 U^-1
  if (panel.rows > b)
    queue.gemm(Op::none, Op::none, T(1), q.block(b, 0, panel.rows - b, b), r.u_inverse, T(0),
               panel.block(b, 0, panel.rows - b, b));
}

/// T factor of block k, B columns wide but for the last.
template <class B, class T>
backend::DeviceMatrix<B, T> block_t(const backend::DeviceMatrix<B, T>& t, Index k, Index cols) {
  return {t.data + k * t.ld * t.ld, cols, cols, t.ld, t.stride, t.count};
}

/// The blocks above the diagonal of a block's T, whose diagonal blocks (b wide) are there; work.v holds V.
template <class B, class T>
void join_t(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& t, Index b,
            const backend::DeviceMatrix<B, T>& v, const BlockedWorkspace<B, T>& work) {
  using backend::Op;
  if (t.cols <= b) return;
  const auto gram = work.gram.block(0, 0, t.cols, t.cols);
  queue.gemm(Op::transpose, Op::none, T(1), v, v, T(0), gram);
  for (Index col = b; col < t.cols; col += b) {
    const Index n = std::min(b, t.cols - col);
    const auto product = work.w.block(0, 0, col, n);
    // T12 = -T1 (V1ᵀ V2) T2
    queue.gemm(Op::none, Op::none, T(1), gram.block(0, col, col, n), t.block(col, col, n, n), T(0), product);
    queue.gemm(Op::none, Op::none, T(-1), t.block(0, 0, col, col), product, T(0), t.block(0, col, col, n));
  }
}

/// Factors a in place; t is B x (B * blocks).
template <class B, class T>
void blocked(typename B::Queue& queue, const BlockedSchedule<B>& schedule, const backend::DeviceMatrix<B, T>& a,
             const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work) {
  using namespace backend;
  const Index k = std::min(a.rows, a.cols), m = a.rows;
  queue.fill(t, T(0), T(0));
  for (Index first = 0; first < k; first += schedule.block_cols) {
    const Index end = std::min(first + schedule.block_cols, k);
    const auto block_factor = block_t(t, first / schedule.block_cols, end - first);
    for (Index col = first; col < end; col += schedule.panel_cols) {
      const Index b = std::min(schedule.panel_cols, end - col);
      const auto panel = a.block(col, col, m - col, b);
      const auto panel_factor = block_factor.block(col - first, col - first, b, b);
      factor_panel(queue, *schedule.panels[static_cast<std::size_t>(col / schedule.panel_cols)], panel, panel_factor,
                   work);
      if (col + b == end) continue;
      const auto v = work.panel.block(0, 0, m - col, b);
      queue.copy(panel, v, Part::unit_lower);
      apply_block_reflector(queue, v, panel_factor, Op::transpose, a.block(col, col + b, m - col, end - col - b), work);
    }
    const auto v = work.v.block(0, 0, m - first, end - first);
    queue.copy(a.block(first, first, m - first, end - first), v, Part::unit_lower);
    join_t(queue, block_factor, schedule.panel_cols, v, work);
    apply_block_reflector(queue, v, block_factor, Op::transpose, a.block(first, end, m - first, a.cols - end), work);
  }
}

/// C := Qᵀ C or Q C with the reflectors of `blocked`.
template <class B, class T>
void apply_blocked(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& t,
                   backend::Op op, const backend::DeviceMatrix<B, T>& c, const BlockedWorkspace<B, T>& work,
                   bool identity = false) {
  using namespace backend;
  const Index k = std::min(a.rows, a.cols), block_cols = t.ld;
  const Index blocks = (k + block_cols - 1) / block_cols;
  for (Index i = 0; i < blocks; ++i) {
    const Index index = op == Op::transpose ? i : blocks - 1 - i;
    const Index col = index * block_cols;
    const Index n = std::min(block_cols, k - col);
    const auto v = work.v.block(0, 0, a.rows - col, n);
    queue.copy(a.block(col, col, a.rows - col, n), v, Part::unit_lower);
    const Index first = identity ? std::min(col, c.cols) : 0;
    apply_block_reflector(queue, v, block_t(t, index, n), op, c.block(col, first, a.rows - col, c.cols - first), work);
  }
}

}  // namespace qrane::dense
