// SPDX-License-Identifier: Apache-2.0
// Guarded Cholesky QR: R from a Gram matrix in double, with a proof, a repair, or a way back.
//
//     G = AᵀA,  G = RᵀR,  Q = A R^-1
//
// One pass is backward stable as far as the Gram matrix's rounding, amplified by kappa, stays small: for float data,
// with products and sums in double, R to kappa near 1e7 (Yamazaki, Tomov, Dongarra, SISC 2015) and Q from one double
// product to 2e5; for double data nearly orthogonal columns. The guard bounds the condition number of the
// column-scaled factor from above (‖R̂‖_F ‖R̂^-1‖_F, with the Gram's own rounding added), on the device, and its flags
// let kernels that were queued behind it act, or else do nothing: the host never waits. Stages, in order:
//
//     one pass    the bound is within `limit`: R, and Q = A R^-1, are given.
//     two passes  else A is multiplied by the inverse of some triangle P that makes its columns nearly orthonormal,
//                 Q1 = A P^-1, and Q1 gets a pass of its own, R = R2 P. Its guard is the proof, whatever P is:
//                 Q1 within a small condition bound has |Q1||P| within that bound times the columns of A.
//                   float    P from G + shift (Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa, SISC 2020), which
//                            always exists and leaves Q1 a condition number near sqrt(shift) kappa
//                   double   P = R of the first pass while n eps kappa^2 is small (CholeskyQR2, same paper); Q1 by
//                            substitution, since a product with the inverse would lose kappa eps
//     sketch      double beyond that: P = R of a CountSketch of A by the Householder tree (rand_cholQR: Higgins,
//                 Szyld, Boman, Yamazaki, arXiv 2309.05868): Q1 is nearly orthonormal to kappa near 1 / eps
//     tree        when the second guard refuses: CAQR overwrites R and Q.
//
// Where nothing but the tree follows a factor that is no preconditioner (double, too few rows for a sketch) and the
// backend has two queues, the tree does not wait: it begins beside the first pass, on a copy of A, under a flag that
// the first stage to answer clears. What it has done by then is not looked at. Such a matrix is small, the device
// mostly idle.
//
// Cost: m n (n + 1) flops and one read of A for R, the same and one write more for Q. Two passes add two times m n^2
// flops and 4 passes over the data (5 with Q), the sketch one read of A.
#pragma once

#include <cmath>
#include <memory>

#include <qrane/qr.hpp>

#include "dense/caqr.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::dense {

/// How far one pass may go, and whether a second one is queued behind it.
struct CholeskyGuard {
  int passes = 1;
  double limit = 0;
};

/// The rows of a sketch and its tree; a matrix without one has rows = 0.
template <class B>
struct Sketch {
  Index rows = 0;
  std::unique_ptr<DeviceSchedule<B>> tree;
};

template <class B, class T>
struct CholeskyWorkspace {
  using Flag = typename B::template Pointer<std::int32_t>;

  backend::DeviceMatrix<B, double> gram, r, inverse, r2;  // n x n
  Flag flags{};                                           // see below
  Flag failed{};                                          // a flag of the caller's, which is 0; null: one of `flags`
  typename B::template Pointer<double> condition{};
  backend::DeviceMatrix<B, T> v;       // m x n: the sketch, then Q1
  backend::DeviceMatrix<B, T> tree_v;  // m x n: the fall-back's reflectors; v unless the tree starts early
  bool early_tree = false;
  typename B::template Pointer<T> t{};  // T factors of the sketch's tree and of the fall-back's
  backend::Scratch<B> scratch;

  CholeskyWorkspace() = default;
  CholeskyWorkspace(Carver<B>& carver, Index rows, Index cols, Index t_elements, bool early = false)
      : early_tree(early) {
    gram = carver.template matrix<double>(cols, cols);
    r = carver.template matrix<double>(cols, cols);
    inverse = carver.template matrix<double>(cols, cols);
    r2 = carver.template matrix<double>(cols, cols);
    flags = carver.template take<std::int32_t>(flag_count);
    condition = carver.template take<double>(2);
    v = carver.template matrix<T>(rows, cols);
    tree_v = early_tree ? carver.template matrix<T>(rows, cols) : v;
    t = carver.template take<T>(t_elements);
    // double copies of row chunks of A and of the product; large enough for the products to run at full rate
    constexpr Index chunk_bytes = Index{256} << 20;
    scratch.bytes = std::max<Index>(std::min<Index>(chunk_bytes, 16 * rows * cols), 32 * cols * 8) + 65536;
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }

  static constexpr Index first_at = 1, second_at = 5, failed_at = 9, flag_count = 10;
  Flag unanswered() const { return flags; }                  // an early tree's condition, set at first
  Flag first_verdict() const { return flags + first_at; }    // GuardedCholesky::verdict
  Flag second_verdict() const { return flags + second_at; }  // the same, with an early tree
  Flag to_tree() const { return failed ? failed : flags + failed_at; }

  /// The same memory for a smaller matrix.
  CholeskyWorkspace leading(Index rows, Index cols) const {
    CholeskyWorkspace w = *this;
    for (auto* a : {&w.gram, &w.r, &w.inverse, &w.r2}) *a = a->block(0, 0, cols, cols);
    w.v = w.v.block(0, 0, rows, cols);
    w.tree_v = w.tree_v.block(0, 0, rows, cols);
    return w;
  }
};

/// The stage that answered, from the flags on the device; waits.
template <class B, class T>
Stage stage_of(typename B::Queue& queue, const CholeskyWorkspace<B, T>& work) {
  using Work = CholeskyWorkspace<B, T>;
  std::int32_t flags[Work::flag_count] = {};
  queue.download(work.flags, flags, Work::flag_count);
  if (flags[Work::first_at] != 0) return Stage::one_pass;
  if (flags[Work::failed_at] != 0) return Stage::tree;
  return sizeof(T) == 4 || flags[Work::first_at + 3] == 0 ? Stage::two_passes : Stage::sketch;
}

/// The guarded factor of work.gram into r and work.inverse; limits and flags are the caller's.
template <class B, class T>
backend::GuardedCholesky<B, T> cholesky_task(const CholeskyWorkspace<B, T>& work,
                                             const backend::DeviceMatrix<B, double>& r) {
  backend::GuardedCholesky<B, T> c;
  c.gram = work.gram;
  c.r = r;
  c.inverse = work.inverse;
  c.condition = work.condition;
  c.rounding = 0x1p-53;
  return c;
}

/// Q1 = A P^-1 into work.v, P in work.r. `hopeless` is the flag of a first factor that is no preconditioner.
template <class B, class T>
void precondition(typename B::Queue& queue, const Sketch<B>& sketch, const backend::DeviceMatrix<B, T>& a,
                  typename B::template Pointer<std::int32_t> hopeless, const CholeskyWorkspace<B, T>& work) {
  using namespace backend;
  const Index n = a.cols;
  if constexpr (sizeof(T) == 4) {
    // The Gram matrix's rounding is some n 2^-53 of its scaled norm: with 16 times that added it is positive definite.
    // sqrt(16 * 192 * 2^-53) * 1e8 = 58: what is left of float's largest condition number. The inverse loses
    // 2^-53 / sqrt(shift) in Q1, far below float's own rounding.
    auto shifted = cholesky_task<B, T>(work, work.r);
    shifted.limit = shifted.fit_limit = 1e300;
    shifted.shift = 16.0 * static_cast<double>(n) * 0x1p-53;
    guarded_cholesky(queue, shifted);
    multiply_wide(queue, a, work.inverse, work.v, work.scratch);
  } else {
    if (sketch.rows > 0) {
      queue.guarded(hopeless, [&](typename B::Queue& hard) {
        const DeviceMatrix<B, T> s{work.v.data, sketch.rows, n, sketch.rows, 0, 1};
        apply_sketch(hard, a, s);
        caqr(hard, ImplicitQ<B, T>{sketch.tree.get(), s, work.t});
        copy(hard, s.block(0, 0, n, n), work.r, Part::upper);
      });
    }
    solve_wide(queue, a, work.r, work.v);
  }
}

/// Whether the tree starts beside the guard: where nothing else is left when the first pass fails.
template <class B, class T>
constexpr bool starts_tree_early(int passes, Index sketch_rows) {
  return B::has_side && sizeof(T) == 8 && passes > 1 && sketch_rows == 0;
}

/// Something else has answered: under that condition the rest of an early tree does nothing.
template <class B, class T>
void call_off_tree(typename B::Queue queue, const CholeskyWorkspace<B, T>& work) {
  set_flags(queue, work.unanswered(), 1, 0);
}

/// R and thin Q from two passes, under the queue's condition; work.to_tree() is set when Q1 is not as it should be.
template <class B, class T>
void two_passes(typename B::Queue& queue, const Sketch<B>& sketch, const backend::DeviceMatrix<B, T>& a,
                const backend::DeviceMatrix<B, T>& r, const backend::DeviceMatrix<B, T>& q,
                typename B::template Pointer<std::int32_t> hopeless, const CholeskyWorkspace<B, T>& work) {
  const auto n = static_cast<double>(a.cols);
  precondition(queue, sketch, a, hopeless, work);
  gram(queue, work.v, work.gram, work.scratch);
  auto second = cholesky_task<B, T>(work, work.r2);
  second.failed = work.to_tree();
  if (work.early_tree) second.verdict = work.second_verdict();
  // Orthonormal columns have n. double: as for one pass. float: what Q1's own rounding leaves in a column,
  // 2^-24 sqrt(n) times ‖R̂2^-1‖ = limit / sqrt(n), is half of the 30 p 2^-24 allowed.
  second.limit = second.fit_limit = sizeof(T) == 8 ? std::sqrt(n * (2 * n + 10)) : 15 * (n + 10);
  guarded_cholesky(queue, second);
  if (work.early_tree) call_off_tree(queue.when(work.second_verdict()), work);
  multiply_wide(queue, work.r2, work.r, work.gram, work.scratch);  // R = R2 P
  narrow(queue, work.gram, r, backend::Part::upper);
  if (q.cols > 0) multiply_wide(queue, work.v, work.inverse, q, work.scratch);
}

/// R (n x n) and, when q.cols > 0, the thin Q of a; a is only read. `tree` is CAQR's of a.
template <class B, class T>
void cholesky_qr(typename B::Queue& queue, const DeviceSchedule<B>& tree, const Sketch<B>& sketch,
                 const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& r,
                 const backend::DeviceMatrix<B, T>& q, const CholeskyGuard& guard,
                 const CholeskyWorkspace<B, T>& work) {
  using namespace backend;
  using Work = CholeskyWorkspace<B, T>;
  const bool thin = q.cols > 0, repairs = guard.passes > 1;
  // whether a first factor that is no preconditioner leaves another
  const bool rescues = sizeof(T) == 4 || sketch.rows > 0;
  set_flags(queue, work.flags, Work::flag_count, 0);
  if (work.early_tree) set_flags(queue, work.unanswered(), 1, 1);
  const auto within = work.first_verdict(), beyond = within + 1, fit = within + 2, hopeless = within + 3;
  const ImplicitQ<B, T> implicit{&tree, work.tree_v, work.t};
  auto side = work.early_tree ? queue.side() : queue;
  side.follow(queue);

  gram(queue, a, work.gram, work.scratch);
  auto first = cholesky_task<B, T>(work, work.r);
  first.verdict = work.first_verdict();
  first.limit = guard.limit;
  // n 2^-53 kappa^2 <= 1/64: what the rounding of G may take from the orthogonality of A R^-1
  const double fit_limit = std::sqrt(0x1p47 / static_cast<double>(std::max<Index>(a.cols, 1)));
  first.fit_limit = repairs ? std::max(guard.limit, fit_limit) : guard.limit;
  if (!repairs || !rescues) first.failed = work.to_tree();
  guarded_cholesky(queue, first);
  if (work.early_tree) {
    call_off_tree(queue.when(within), work);
    auto early = side.when(work.unanswered());
    copy(early, a, work.tree_v, Part::all);
    caqr(early, implicit, true);
  }
  narrow(queue, work.r, r, Part::upper);
  if (thin) {
    auto good = queue.when(within);
    multiply_wide(good, a, work.inverse, q, work.scratch);
  }
  const auto repair = [&](typename B::Queue& hard) { two_passes(hard, sketch, a, r, q, hopeless, work); };
  const auto go_back = [&](typename B::Queue& fallback) {
    if (!work.early_tree) {
      copy(fallback, a, work.tree_v, Part::all);
      caqr(fallback, implicit);
    }
    copy(fallback, work.tree_v.block(0, 0, r.rows, r.cols), r, Part::upper);
    if (thin) form_q(fallback, implicit, q);
  };
  if (repairs && rescues) {  // only the second guard sends to the tree
    queue.guarded(beyond, [&](typename B::Queue& hard) {
      repair(hard);
      hard.guarded(work.to_tree(), go_back);
    });
    return;
  }
  if (repairs) queue.guarded(fit, repair);
  queue.follow(side);
  queue.guarded(work.to_tree(), go_back);
}

}  // namespace qrane::dense
