// SPDX-License-Identifier: Apache-2.0
// One panel of blocked QR (dense/blocked.hpp): its reflectors in place, and its T.
//
// Where the backend has them, a panel is two launches of its own kernels, the second of which does nothing unless the
// first one's guard refused:
//
//     rows >= 2 b      reflect_panel      through the Gram matrix, no thin Q on the way
//     the rest, and what the guard refuses:
//                      householder_panel  column by column, as far down as it reaches; beyond, the steps below
//
// The steps, which are the specification of both and run everywhere: the panel's thin Q and R by guarded Cholesky QR or
// by TSQR, then Householder reconstruction (Ballard et al. 2015, section 5), then V2 = Q2 U^-1.
#pragma once

#include <memory>

#include "dense/cholesky_qr.hpp"

namespace qrane::dense {

/// How the thin Q of a panel comes about: by Cholesky QR where passes > 0 and the panel is tall, else by TSQR.
struct PanelMethod {
  int cholesky_passes = 0;
  double guard_limit = 0;
  bool cholesky(Index rows, Index cols) const { return cholesky_passes > 0 && rows >= 2 * cols; }
};

/// What reflect_panel's guard lets through: float sums in double may lose 29 bits, of which 4 are kept; double loses 7.
template <class T>
constexpr double reflect_limit = sizeof(T) == 4 ? 0x1p25 : 0x1p7;

/// The way of one panel.
template <class B>
struct BlockedPanel {
  bool reflect = false;                     // reflect_panel first
  bool householder = false;                 // householder_panel, else the steps
  std::unique_ptr<DeviceSchedule<B>> tree;  // of the steps, in coordinates of the panel's copy
};

template <class B, class T>
BlockedPanel<B> make_blocked_panel(typename B::Queue& queue, Index rows, Index cols, Index batch, TreeShape shape,
                                   const PanelMethod& method) {
  BlockedPanel<B> p;
  const bool own = method.cholesky_passes > 0 && batch == 1;
  const backend::Limits& limits = queue.limits(T{});
  p.reflect = own && rows >= 2 * cols && cols <= limits.max_reflect_cols;
  p.householder = own && rows <= limits.max_householder_rows && cols <= limits.max_reflect_cols;
  if (p.householder) return p;
  shape.inner = std::min<int>(shape.inner, static_cast<int>(cols));
  p.tree = std::make_unique<DeviceSchedule<B>>(queue, make_schedule(rows, cols, batch, shape.inner, shape));
  return p;
}

/// Memory for one panel at a time.
template <class B, class T>
struct PanelWorkspace {
  backend::DeviceMatrix<B, T> copy;                      // m x b: the panel for its tree
  backend::DeviceMatrix<B, T> q;                         // m x b: thin Q
  backend::DeviceMatrix<B, T> r;                         // b x b: the panel's R
  backend::DeviceMatrix<B, T> y;                         // m x b: V T, for the update of the panel's block
  backend::DeviceMatrix<B, T> u_inverse;                 // b x b
  backend::DeviceMatrix<B, double> wide_inverse;         // b x b: the same
  typename B::template Pointer<T> t{};                   // T factors of the panel's tree
  typename B::template Pointer<std::int32_t> refused{};  // one flag for each panel, 8 bytes apart: its guard refused
  Index panels = 0;
  backend::Scratch<B> scratch;
  PanelMethod method;
  CholeskyWorkspace<B, T> cholesky;

  PanelWorkspace() = default;
  PanelWorkspace(Carver<B>& carver, Index rows, Index cols, Index batch, Index b, Index t_elements,
                 const PanelMethod& panel_method)
      : panels((std::min(rows, cols) + b - 1) / b), method(panel_method) {
    // though the first panel may be too low for it: the last one can be narrow
    if (method.cholesky_passes > 0) cholesky = CholeskyWorkspace<B, T>(carver, rows, b, t_elements);
    r = carver.template matrix<T>(b, b, batch);
    copy = carver.template matrix<T>(rows, b, batch);
    q = carver.template matrix<T>(rows, b, batch);
    y = carver.template matrix<T>(rows, b, batch);
    u_inverse = carver.template matrix<T>(b, b, batch);
    t = carver.template take<T>(t_elements);
    if (method.cholesky_passes == 0) return;
    wide_inverse = carver.template matrix<double>(b, b, batch);
    refused = carver.template take<std::int32_t>(2 * panels);
    scratch.bytes = backend::reflect_scratch_bytes(rows);
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }

  typename B::template Pointer<std::int32_t> flag(Index panel) const { return refused + 2 * panel; }
};

/// work.q and work.r := thin Q and R of a panel.
template <class B, class T>
void factor_panel_thin(typename B::Queue& queue, const DeviceSchedule<B>& tree,
                       const backend::DeviceMatrix<B, T>& panel, Index index, const PanelWorkspace<B, T>& work) {
  const Index b = panel.cols;
  const auto q = work.q.block(0, 0, panel.rows, b);
  const auto r = work.r.block(0, 0, b, b);
  if (work.method.cholesky(panel.rows, b)) {
    CholeskyWorkspace<B, T> cholesky = work.cholesky.leading(panel.rows, b);
    cholesky.failed = work.flag(index);
    cholesky_qr(queue, tree, {}, panel, r, q, {work.method.cholesky_passes, work.method.guard_limit}, cholesky);
    return;
  }
  const auto copied = work.copy.block(0, 0, panel.rows, b);
  copy(queue, panel, copied, backend::Part::all);
  const ImplicitQ<B, T> implicit{&tree, copied, work.t};
  caqr(queue, implicit);
  form_q(queue, implicit, q);
  copy(queue, copied.block(0, 0, b, b), r, backend::Part::upper);
}

/// The steps after the thin Q: R and V1 into the panel's top, T.
template <class B, class T>
void reconstruct_top(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& panel,
                     const backend::DeviceMatrix<B, T>& t, const PanelWorkspace<B, T>& work) {
  const Index b = panel.cols;
  backend::Reconstruct<B, T> r;
  r.q1 = work.q.block(0, 0, b, b);
  r.r = work.r.block(0, 0, b, b);
  r.panel = panel.block(0, 0, b, b);
  r.t = t;
  r.u_inverse = work.u_inverse.block(0, 0, b, b);
  reconstruct(queue, r);
}

template <class B, class T>
void factor_panel_by_steps(typename B::Queue& queue, const DeviceSchedule<B>& tree, Index index,
                           const backend::DeviceMatrix<B, T>& panel, const backend::DeviceMatrix<B, T>& t,
                           const backend::DeviceMatrix<B, T>& v, const backend::DeviceMatrix<B, T>& y,
                           const PanelWorkspace<B, T>& work) {
  using namespace backend;
  const Index b = panel.cols;
  factor_panel_thin(queue, tree, panel, index, work);
  reconstruct_top(queue, panel, t, work);
  // V2 = Q2 U^-1
  if (panel.rows > b)
    gemm(queue, Op::none, Op::none, T(1), work.q.block(b, 0, panel.rows - b, b), work.u_inverse.block(0, 0, b, b), T(0),
         panel.block(b, 0, panel.rows - b, b));
  copy(queue, panel, v, Part::unit_lower);
  gemm(queue, Op::none, Op::none, T(1), v, t, T(0), y);
}

/// The same under a condition, which library products do not take.
template <class B, class T>
void refactor_panel_by_tree(typename B::Queue& queue, const DeviceSchedule<B>& tree,
                            const backend::DeviceMatrix<B, T>& panel, const backend::DeviceMatrix<B, T>& t,
                            const backend::DeviceMatrix<B, T>& v, const backend::DeviceMatrix<B, T>& y,
                            const PanelWorkspace<B, T>& work) {
  using backend::Part;
  const Index b = panel.cols;
  const auto q = work.q.block(0, 0, panel.rows, b), copied = work.copy.block(0, 0, panel.rows, b);
  copy(queue, panel, copied, Part::all);
  const ImplicitQ<B, T> implicit{&tree, copied, work.t};
  caqr(queue, implicit);
  form_q(queue, implicit, q);
  copy(queue, copied.block(0, 0, b, b), work.r.block(0, 0, b, b), Part::upper);
  reconstruct_top(queue, panel, t, work);
  widen(queue, work.u_inverse.block(0, 0, b, b), work.wide_inverse.block(0, 0, b, b));
  multiply_wide(queue, q.block(b, 0, panel.rows - b, b), work.wide_inverse.block(0, 0, b, b),
                panel.block(b, 0, panel.rows - b, b), work.scratch);
  copy(queue, panel, v, Part::unit_lower);
  widen(queue, t, work.wide_inverse.block(0, 0, b, b));
  multiply_wide(queue, v, work.wide_inverse.block(0, 0, b, b), y, work.scratch);
}

/// Reflectors of a panel in place, v := the same with their ones and zeros, T, y := V T.
template <class B, class T>
void factor_panel(typename B::Queue& queue, const BlockedPanel<B>& way, Index index,
                  const backend::DeviceMatrix<B, T>& panel, const backend::DeviceMatrix<B, T>& t,
                  const backend::DeviceMatrix<B, T>& v, const backend::DeviceMatrix<B, T>& y,
                  const PanelWorkspace<B, T>& work) {
  const backend::HouseholderPanel<B, T> whole{panel, t, v, y};
  if (!way.reflect && way.householder) {
    householder_panel(queue, whole);
    return;
  }
  if (way.reflect) {
    const auto refused = work.flag(index);
    reflect_panel(queue, backend::ReflectPanel<B, T>{panel, t, v, y, refused, reflect_limit<T>}, work.scratch);
    if (way.householder) {
      householder_panel(queue.when(refused), whole);
      return;
    }
    return queue.guarded(
        refused, [&](typename B::Queue& hard) { refactor_panel_by_tree(hard, *way.tree, panel, t, v, y, work); });
  }
  factor_panel_by_steps(queue, *way.tree, index, panel, t, v, y, work);
}

}  // namespace qrane::dense
