// SPDX-License-Identifier: Apache-2.0
// Q as an ordered list of batched steps: Q = S_1 S_2 ... S_k, each step a level of a panel's tree
// with its reflectors stored in the factored matrix and its T factors beside it. One routine applies them.
#pragma once

#include "dense/buffer.hpp"
#include "dense/tree.hpp"

namespace qrane::dense {

/// A schedule whose task list lies on the device; shared by every factorization of the same plan.
template <class B>
struct DeviceSchedule {
  Schedule schedule;
  Buffer<B> tasks;

  DeviceSchedule(typename B::Queue& queue, Schedule made)
      : schedule(std::move(made)),
        tasks(queue, static_cast<Index>(schedule.tasks.size() * sizeof(backend::BlockTask))) {
    if (schedule.panels.size() > 2) (void)queue.side();  // now, for caqr: making one allocates
    if (!schedule.tasks.empty())
      queue.upload(schedule.tasks.data(), tasks.template as<backend::BlockTask>(),
                   static_cast<Index>(schedule.tasks.size()));
  }
};

/// A schedule bound to the matrix that holds R and the reflectors, and to the T factors.
template <class B, class T>
struct ImplicitQ {
  const DeviceSchedule<B>* stages = nullptr;
  backend::DeviceMatrix<B, T> v;
  typename B::template Pointer<T> t{};

  backend::Panel<B, T> panel(const Level& level) const {
    backend::Panel<B, T> p;
    p.a = v;
    p.t = t;
    p.tasks = stages->tasks.template as<backend::BlockTask>() + level.first_task;
    p.task_count = level.task_count;
    p.max_rows = level.max_rows;
    p.max_cols = stages->schedule.max_cols;
    p.inner = stages->schedule.inner;
    return p;
  }
};

/// C := op(S) C for one level.
template <class B, class T>
void apply_level(typename B::Queue& queue, const ImplicitQ<B, T>& q, const Level& level, backend::Op op,
                 const backend::DeviceMatrix<B, T>& c) {
  if (c.cols == 0) return;
  const backend::Apply<B, T> apply{q.panel(level), c, op};
  if (level.tree)
    apply_qt_tree(queue, apply);
  else
    apply_qt_h(queue, apply);
}

/// C := Qᵀ C or Q C; C has Q's rows. `identity`: C holds columns of the identity in order, so that a panel
/// leaves the columns before its own alone.
template <class B, class T>
void apply(typename B::Queue& queue, const ImplicitQ<B, T>& q, backend::Op op, const backend::DeviceMatrix<B, T>& c,
           bool identity = false) {
  const auto& panels = q.stages->schedule.panels;
  if (op == backend::Op::transpose) {
    for (const PanelTree& panel : panels)
      for (const Level& level : panel.levels) apply_level(queue, q, level, op, c);
  } else {
    for (auto panel = panels.rbegin(); panel != panels.rend(); ++panel) {
      const Index first = identity ? std::min(panel->col, c.cols) : 0;
      for (auto level = panel->levels.rbegin(); level != panel->levels.rend(); ++level)
        apply_level(queue, q, *level, op, c.columns(first, c.cols - first));
    }
  }
}

}  // namespace qrane::dense
