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
//
// Look-ahead: the tree's levels are launches of few blocks that wait for one another, so they run beside the updates.
// A second queue goes from panel to panel, updating of the trailing columns only the next panel's; the first updates
// all the rest, one panel behind:
//
//      second   tree 0 | wait rest by -1 | panel 1 by 0 | tree 1    | wait rest by 0 | panel 2 by 1 | tree 2 ...
//      first           |  rest by 0 ........................|               | rest by 1 ...
#pragma once

#include "dense/implicit_q.hpp"

namespace qrane::dense {

/// All panels of q.v in place. `alone`: on this queue, since the one beside it has other work.
template <class B, class T>
void caqr(typename B::Queue& queue, const ImplicitQ<B, T>& q, bool alone = false) {
  const auto& panels = q.stages->schedule.panels;
  const Index n = q.v.cols;
  const bool looks_ahead = !alone && panels.size() > 2;
  auto side = looks_ahead ? queue.side() : queue;
  side.follow(queue);
  for (const PanelTree& panel : panels) {
    const Index right = panel.col + panel.cols, rest = looks_ahead ? std::min(right + panel.cols, n) : right;
    for (const Level& level : panel.levels) {
      if (level.tree)
        factor_tree(side, q.panel(level));
      else
        factor(side, q.panel(level));
    }
    if (right == n) continue;
    side.follow(queue);  // the update of the rest by the panel before has been to the next panel's columns
    queue.follow(side);
    for (const Level& level : panel.levels) {
      apply_level(side, q, level, backend::Op::transpose, q.v.columns(right, rest - right));
      apply_level(queue, q, level, backend::Op::transpose, q.v.columns(rest, n - rest));
    }
  }
  queue.follow(side);
}

/// out := the first out.cols columns of Q.
template <class B, class T>
void form_q(typename B::Queue& queue, const ImplicitQ<B, T>& q, const backend::DeviceMatrix<B, T>& out) {
  fill(queue, out, T(0), T(1));
  apply(queue, q, backend::Op::none, out, true);
}

}  // namespace qrane::dense
