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
struct AbsorbWorkspace {
  backend::DeviceMatrix<B, T> r;     // triangles * n rows; thin: then the reflectors of its own tree
  backend::DeviceMatrix<B, T> next;  // none: what is left of r, where that is not R yet
  backend::DeviceMatrix<B, T> top;   // thin: U
  typename B::template Pointer<T> checkpoints{}, t{};

  AbsorbWorkspace() = default;
  AbsorbWorkspace(Carver<B>& carver, const Plan& plan, Index t_elements) {
    const backend::Chains c = chains(plan);
    r = carver.template matrix<T>(c.triangles * plan.cols, plan.cols);
    if (plan.q == QForm::none) {
      next = carver.template matrix<T>(chains(plan, r.rows).triangles * plan.cols, plan.cols);
      return;
    }
    top = carver.template matrix<T>(r.rows, plan.cols);
    checkpoints = carver.template take<T>(std::max<Index>(c.checkpoint_elements, 1));
    t = carver.template take<T>(std::max<Index>(t_elements, 1));
  }

  /// What the kernels leave of `rows` rows (of the matrix); nothing where the plan goes by steps.
  static backend::Chains chains(const Plan& plan) { return chains(plan, plan.rows); }
  static backend::Chains chains(const Plan& plan, Index rows) {
    if (plan.expert.absorbing_units == 0) return {};
    return absorb_chains(B{}, T{}, rows, plan.cols, plan.q == QForm::thin, plan.expert.absorbing_units);
  }
};

/// R (n x n) of a, level by level; a is only read.
template <class B, class T>
void absorb_all(typename B::Queue& queue, const Plan& plan, const backend::DeviceMatrix<B, T>& a,
                const backend::DeviceMatrix<B, T>& r, const AbsorbWorkspace<B, T>& work) {
  auto from = a, to = work.r, other = work.next;
  while (true) {
    const Index rows = AbsorbWorkspace<B, T>::chains(plan, from.rows).triangles * a.cols;
    if (rows == a.cols) break;
    absorb(queue, backend::Absorb<B, T>{from, to.block(0, 0, rows, a.cols), {}});
    from = to.block(0, 0, rows, a.cols);
    std::swap(to, other);
  }
  absorb(queue, backend::Absorb<B, T>{from, r, {}});
}

/// R (n x n) and, when q.cols > 0, the thin Q of a; a is only read. `tree` is for work.r.
template <class B, class T>
void tsqr_absorbing(typename B::Queue& queue, const Plan& plan, const DeviceSchedule<B>& tree,
                    const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& r,
                    const backend::DeviceMatrix<B, T>& q, const AbsorbWorkspace<B, T>& work) {
  if (q.cols == 0) return absorb_all(queue, plan, a, r, work);
  absorb(queue, backend::Absorb<B, T>{a, work.r, work.checkpoints});
  const ImplicitQ<B, T> upper{&tree, work.r, work.t};
  caqr(queue, upper);
  copy(queue, work.r.block(0, 0, r.rows, r.cols), r, backend::Part::upper);
  form_q(queue, upper, work.top);
  form_absorbed(queue, backend::FormAbsorbed<B, T>{a, work.checkpoints, work.top, q});
}

}  // namespace qrane::dense
