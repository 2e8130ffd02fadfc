// SPDX-License-Identifier: Apache-2.0
// TSQR and CAQR (Anderson, Ballard, Demmel, Keutzer 2011, sections III and IV).
//
// For each panel: factor its row blocks (factor), reduce their triangles through the tree (factor_tree),
// and after each level apply its reflectors to the trailing matrix (apply_qt_h, apply_qt_tree). The next
// panel starts one panel lower, with its own grid:
//
//       panel 0          panel 1
//      +--+-------+     R R R R R R
//      |  |       |     +--+-------       R and all reflectors end in place of A; TSQR is the case
//      +--+       |     |  |              of one panel. Flops 2 m n^2 - 2 n^3 / 3 plus the tree's.
//      |  |  C    |     +--+   C
//      +--+       |     |  |
//      |  |       |     +--+-------
#pragma once

#include "dense/implicit_q.hpp"

namespace qrane::dense {

/// All panels of q.v in place.
template <class B, class T>
void caqr(typename B::Queue& queue, const ImplicitQ<B, T>& q) {
  for (const PanelTree& panel : q.stages->schedule.panels) {
    const Index right = panel.col + panel.cols;
    for (const Level& level : panel.levels) {
      if (level.tree)
        queue.factor_tree(q.panel(level));
      else
        queue.factor(q.panel(level));
      apply_level(queue, q, level, backend::Op::transpose, q.v.columns(right, q.v.cols - right));
    }
  }
}

/// out := the first out.cols columns of Q.
template <class B, class T>
void form_q(typename B::Queue& queue, const ImplicitQ<B, T>& q, const backend::DeviceMatrix<B, T>& out) {
  queue.fill(out, T(0), T(1));
  apply(queue, q, backend::Op::none, out, true);
}

}  // namespace qrane::dense
