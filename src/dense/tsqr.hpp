// SPDX-License-Identifier: Apache-2.0
// TSQR of a matrix so narrow that a backend absorbs it into a few triangles in one pass (Anderson, Ballard, Demmel,
// Keutzer 2011, section III: a flat tree under a tree). Householder reflections throughout, so no guard is needed.
//
//     none    A --absorb--> r --absorb--> R                            reads A once
//     thin    A --absorb--> r, checkpoints;  r = U R by the tree       reads A twice and writes Q once
//             Q := diag(Q_0, Q_1, ...) U  by form_absorbed
//
// The stepwise tree (dense/caqr.hpp) is the way of backends without these kernels, of implicit Q and of batches.
#pragma once

#include "dense/caqr.hpp"
#include "plan/plan.hpp"

namespace qrane::dense {

template <class B, class T>
concept Absorbing = requires(typename B::Queue& queue, backend::Absorb<B, T> a, backend::FormAbsorbed<B, T> f) {
  queue.absorb(a);
  queue.form_absorbed(f);
};

template <class B, class T>
struct AbsorbWorkspace {
  backend::DeviceMatrix<B, T> r;    // triangles * n rows; thin: then the reflectors of its own tree
  backend::DeviceMatrix<B, T> top;  // thin: U
  typename B::template Pointer<T> checkpoints{}, t{};

  AbsorbWorkspace() = default;
  AbsorbWorkspace(Carver<B>& carver, const Plan& plan, Index t_elements) {
    const backend::Chains c = chains(plan);
    r = carver.template matrix<T>(c.triangles * plan.cols, plan.cols);
    if (plan.q == QForm::none) return;
    top = carver.template matrix<T>(r.rows, plan.cols);
    checkpoints = carver.template take<T>(std::max<Index>(c.checkpoint_elements, 1));
    t = carver.template take<T>(std::max<Index>(t_elements, 1));
  }

  /// What the kernels leave of a matrix; nothing where the plan goes by steps.
  static backend::Chains chains(const Plan& plan) {
    if constexpr (Absorbing<B, T>) {
      if (plan.absorbing_units > 0)
        return B::Queue::template absorb_chains<T>(plan.rows, plan.cols, plan.q == QForm::thin, plan.absorbing_units);
    }
    return {};
  }
};

/// R (n x n) and, when q.cols > 0, the thin Q of a; a is only read. `tree` is for work.r.
template <class B, class T>
  requires Absorbing<B, T>
void tsqr_absorbing(typename B::Queue& queue, const DeviceSchedule<B>& tree, const backend::DeviceMatrix<B, T>& a,
                    const backend::DeviceMatrix<B, T>& r, const backend::DeviceMatrix<B, T>& q,
                    const AbsorbWorkspace<B, T>& work) {
  queue.absorb(backend::Absorb<B, T>{a, work.r, work.checkpoints});
  if (q.cols == 0) {
    queue.absorb(backend::Absorb<B, T>{work.r, r, {}});
    return;
  }
  const ImplicitQ<B, T> upper{&tree, work.r, work.t};
  caqr(queue, upper);
  queue.copy(work.r.block(0, 0, r.rows, r.cols), r, backend::Part::upper);
  form_q(queue, upper, work.top);
  queue.form_absorbed(backend::FormAbsorbed<B, T>{a, work.checkpoints, work.top, q});
}

}  // namespace qrane::dense
