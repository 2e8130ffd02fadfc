// SPDX-License-Identifier: Apache-2.0
// Blocked Householder QR with LAPACK-shaped reflectors: each panel by TSQR, its Householder vectors
// rebuilt from the thin Q (Ballard et al. 2015, section 5), the trailing matrix by two products.
//
//      panel P  --TSQR-->  thin Q, R  --reconstruct-->  V (unit lower trapezoidal), T, S R
//      C := C - V (Tᵀ (Vᵀ C))
//
// T factors: panel k's at t + k b^2 per matrix (leading dimension b), tau on their diagonals.
#pragma once

#include <memory>
#include <vector>

#include "dense/caqr.hpp"

namespace qrane::dense {

/// Panels of one shape of matrix; each has the tree of its own height, in coordinates of its copy.
template <class B>
struct BlockedSchedule {
  Index panel_cols = 0;
  std::vector<std::unique_ptr<DeviceSchedule<B>>> panels;
};

template <class B>
BlockedSchedule<B> make_blocked_schedule(typename B::Queue& queue, Index rows, Index cols, Index batch, int panel_cols,
                                         const TreeShape& shape) {
  BlockedSchedule<B> s;
  s.panel_cols = panel_cols;
  const Index k = std::min(rows, cols);
  for (Index col = 0; col < k; col += panel_cols) {
    const Index b = std::min<Index>(panel_cols, k - col);
    TreeShape own = shape;
    own.inner = std::min<int>(shape.inner, static_cast<int>(b));
    Schedule panel = make_schedule(rows - col, b, batch, static_cast<int>(b), own);
    s.panels.push_back(std::make_unique<DeviceSchedule<B>>(queue, std::move(panel)));
  }
  return s;
}

/// Memory that a blocked factorization uses for one panel at a time.
template <class B, class T>
struct BlockedWorkspace {
  backend::DeviceMatrix<B, T> panel;      // m x b: copy of the panel, then V as a full matrix
  backend::DeviceMatrix<B, T> q;          // m x b: thin Q
  backend::DeviceMatrix<B, T> u_inverse;  // b x b
  backend::DeviceMatrix<B, T> w;          // b x n, twice
  backend::DeviceMatrix<B, T> w2;
  typename B::template Pointer<T> t{};    // T factors of a panel's tree

  BlockedWorkspace() = default;
  BlockedWorkspace(Carver<B>& carver, Index rows, Index cols, Index batch, Index b, Index t_elements) {
    panel = carver.template matrix<T>(rows, b, batch);
    q = carver.template matrix<T>(rows, b, batch);
    u_inverse = carver.template matrix<T>(b, b, batch);
    w = carver.template matrix<T>(b, cols, batch);
    w2 = carver.template matrix<T>(b, cols, batch);
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

/// Reflectors and T of one panel: rows [col, m), columns [col, col + b) of a.
template <class B, class T>
void factor_panel(typename B::Queue& queue, const DeviceSchedule<B>& tree, const backend::DeviceMatrix<B, T>& panel,
                  const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work) {
  using namespace backend;
  const Index b = panel.cols;
  const auto copy = work.panel.block(0, 0, panel.rows, b);
  const auto q = work.q.block(0, 0, panel.rows, b);
  queue.copy(panel, copy, Part::all);
  const ImplicitQ<B, T> implicit{&tree, copy, work.t};
  caqr(queue, implicit);
  form_q(queue, implicit, q);
  Reconstruct<B, T> r;
  r.q1 = q.block(0, 0, b, b);
  r.r = copy.block(0, 0, b, b);
  r.panel = panel.block(0, 0, b, b);
  r.t = t;
  r.u_inverse = work.u_inverse.block(0, 0, b, b);
  queue.reconstruct(r);
  // V2 = Q2 U^-1
  if (panel.rows > b)
    queue.gemm(Op::none, Op::none, T(1), q.block(b, 0, panel.rows - b, b), r.u_inverse, T(0),
               panel.block(b, 0, panel.rows - b, b));
}

/// T factor of panel k.
template <class B, class T>
backend::DeviceMatrix<B, T> panel_t(const backend::DeviceMatrix<B, T>& t, Index k, Index b) {
  return {t.data + k * t.ld * t.ld, b, b, t.ld, t.stride, t.count};
}

/// Factors a in place; t is b x (b * panels) with leading dimension panel_cols.
template <class B, class T>
void blocked(typename B::Queue& queue, const BlockedSchedule<B>& schedule, const backend::DeviceMatrix<B, T>& a,
             const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work) {
  using namespace backend;
  const Index k = std::min(a.rows, a.cols);
  for (std::size_t p = 0; p < schedule.panels.size(); ++p) {
    const Index col = static_cast<Index>(p) * schedule.panel_cols;
    const Index b = std::min(schedule.panel_cols, k - col);
    const auto panel = a.block(col, col, a.rows - col, b);
    const auto panel_factor = panel_t(t, static_cast<Index>(p), b);
    factor_panel(queue, *schedule.panels[p], panel, panel_factor, work);
    const Index right = a.cols - col - b;
    if (right == 0) continue;
    const auto v = work.panel.block(0, 0, panel.rows, b);
    queue.copy(panel, v, Part::unit_lower);
    apply_block_reflector(queue, v, panel_factor, Op::transpose, a.block(col, col + b, a.rows - col, right), work);
  }
}

/// C := Qᵀ C or Q C with the reflectors of `blocked`.
template <class B, class T>
void apply_blocked(typename B::Queue& queue, Index panel_cols, const backend::DeviceMatrix<B, T>& a,
                   const backend::DeviceMatrix<B, T>& t, backend::Op op, const backend::DeviceMatrix<B, T>& c,
                   const BlockedWorkspace<B, T>& work, bool identity = false) {
  using namespace backend;
  const Index k = std::min(a.rows, a.cols);
  const Index panels = (k + panel_cols - 1) / panel_cols;
  for (Index i = 0; i < panels; ++i) {
    const Index p = op == Op::transpose ? i : panels - 1 - i;
    const Index col = p * panel_cols;
    const Index b = std::min(panel_cols, k - col);
    const auto v = work.panel.block(0, 0, a.rows - col, b);
    queue.copy(a.block(col, col, a.rows - col, b), v, Part::unit_lower);
    const Index first = identity ? std::min(col, c.cols) : 0;
    apply_block_reflector(queue, v, panel_t(t, p, b), op, c.block(col, first, a.rows - col, c.cols - first), work);
  }
}

}  // namespace qrane::dense
