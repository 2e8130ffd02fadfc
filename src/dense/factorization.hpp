// SPDX-License-Identifier: Apache-2.0
// One dense factorization on one backend: memory, the algorithm its plan names, and what R and Q give directly.
// What consumes a factorization (solve, rank, bases, SVD) is in dense/solve/consume.hpp.
//
//                 v_                     t_            r_               q_
//   implicit      reflectors and R       T factors     -                -
//   lapack        as LAPACK's geqrf      T factors     -                -
//   thin          workspace              workspace     R                thin Q
//   full          workspace              workspace     R                Q, m x m
//   none          workspace              workspace     R                -
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include <qrane/qr.hpp>

#include "dense/batch.hpp"
#include "dense/blocked.hpp"
#include "dense/cholesky_qr.hpp"
#include "dense/repeated.hpp"
#include "dense/transfer.hpp"
#include "dense/tsqr.hpp"
#include "plan/plan.hpp"

namespace qrane::dense {

/// Where R (none, thin, full) and an explicit Q are written: in memory of the factorization's own, or each time where
/// deliver_to says.
enum class Results { kept, delivered };

/// The pieces that a factorization's memory is cut into.
template <class B, class T>
struct Pieces {
  backend::DeviceMatrix<B, T> v_, t_, r_, q_;
  BlockedWorkspace<B, T> blocked_;
  CholeskyWorkspace<B, T> cholesky_;
  HouseholderWorkspace<B, T> householder_;
  AbsorbWorkspace<B, T> absorbed_;

  Pieces() = default;
  Pieces(Carver<B>& carver, const Plan& plan, const std::optional<backend::DeviceMatrix<B, T>>& in_place,
         Results results) {
    const Index m = plan.rows, n = plan.cols, k = std::min(m, n), batch = plan.count, b = plan.expert.panel_cols,
                block = plan.expert.block_cols;
    if (results == Results::kept) {
      if (plan.q != QForm::implicit && plan.q != QForm::lapack) r_ = carver.template matrix<T>(k, n, batch);
      if (plan.q == QForm::thin) q_ = carver.template matrix<T>(m, k, batch);
      if (plan.q == QForm::full) q_ = carver.template matrix<T>(m, m, batch);
    }
    if (plan.algorithm == Algorithm::cholesky_qr) {
      const Index t_elements =
          std::max(schedule_of(plan, m, k).t_elements, schedule_of(plan, plan.expert.sketch_rows, k).t_elements);
      const bool early = starts_tree_early<B, T>(plan.expert.passes, plan.expert.sketch_rows);
      cholesky_ = CholeskyWorkspace<B, T>(carver, m, n, t_elements, early);
      return;
    }
    if (plan.expert.absorbing_units > 0) {
      if (in_place) v_ = *in_place;
      const Index rows = AbsorbWorkspace<B, T>::chains(plan).triangles * n;
      absorbed_ = AbsorbWorkspace<B, T>(carver, plan, schedule_of(plan, rows, n).t_elements);
      return;
    }
    v_ = in_place ? *in_place : carver.template matrix<T>(m, n, batch);
    if (plan.algorithm == Algorithm::householder) {
      if (!plan.expert.small)
        t_ = carver.template matrix<T>(block, std::max<Index>((k + block - 1) / block, 1) * block, batch);
      householder_ = HouseholderWorkspace<B, T>(carver, plan);
    } else if (plan.algorithm == Algorithm::blocked) {
      t_ = carver.template matrix<T>(block, (k + block - 1) / block * block, batch);
      Index t_elements = 0;  // not always the first panel's: leaves are cut to fit the height
      for (Index col = 0; col < k; col += b)
        t_elements = std::max(t_elements, schedule_of(plan, m - col, std::min(b, k - col)).t_elements);
      // C may be far wider than A, and each pass over some of its columns is four launches
      constexpr Index least_applied = 1024;
      const bool kept = (plan.q == QForm::implicit || plan.q == QForm::lapack) && batch == 1;
      blocked_ = BlockedWorkspace<B, T>(carver, m, n, std::max(n, kept ? least_applied : k), batch, b, block,
                                        t_elements, PanelMethod{plan.expert.passes, plan.expert.guard_limit});
    } else {
      t_ = carver.template matrix<T>(std::max<Index>(schedule_of(plan, m, k).t_elements, 1), 1);
    }
  }

 private:
  static Schedule schedule_of(const Plan& plan, Index rows, Index cols) {
    // a panel of the blocked algorithm is a matrix of its own, with narrower panels where the device asks for them
    const int panel_cols = plan.algorithm == Algorithm::blocked ? plan.expert.inner : plan.expert.panel_cols;
    return make_schedule(rows, cols, plan.count, panel_cols,
                         {plan.expert.block_rows, plan.expert.arity, plan.expert.inner});
  }
};

template <class B, class T>
class Factorization : Pieces<B, T> {
  using Pieces = dense::Pieces<B, T>;
  using Pieces::absorbed_, Pieces::blocked_, Pieces::cholesky_, Pieces::householder_, Pieces::q_, Pieces::r_,
      Pieces::t_, Pieces::v_;

 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  /// Allocates everything that `plan` needs. `in_place`: memory of the user that becomes v_.
  Factorization(Queue queue, Plan plan, std::optional<Mat> in_place = {}, Results results = Results::kept)
      : queue_(std::move(queue)), plan_(std::move(plan)) {
    make_schedules();
    plan_.workspace_bytes = workspace_bytes(plan_, in_place.has_value(), results);
    memory_ = Buffer<B>(queue_, plan_.workspace_bytes);
    Carver<B> carver(memory_.template as<std::byte>());
    static_cast<Pieces&>(*this) = Pieces(carver, plan_, in_place, results);
  }

  /// Device memory of a factorization: results, reflectors and scratch; without A where it is factored in place.
  static Index workspace_bytes(const Plan& plan, bool in_place = false, Results results = Results::kept) {
    Carver<B> sizes;
    Pieces(sizes, plan, in_place ? std::optional<Mat>(Mat{}) : std::nullopt, results);
    return sizes.used();
  }

  /// The next run's R (k x n) and explicit Q, of any leading dimension; what lies below R's diagonal is of no meaning.
  void deliver_to(const Mat& r, const Mat& q) {
    r_ = r;
    q_ = q;
  }

  /// Factors `a` (only read); allocates nothing here, and does not wait. With `in_place` memory pass v(). What comes
  /// again with the same address is a recording from the third time on (repeated.hpp), where that pays.
  void run(const Mat& a) {
    if (plan_.count == 0) return;
    if (!replays())
      run_on(queue_, a);
    else
      repeated_.run(queue_, {a.data, r_.data, q_.data, a.ld, a.stride, r_.ld, q_.ld}, has_products(),
                    [&](Queue& queue) { run_on(queue, a); });
  }

  /// The same under the condition of a queue; for plans without library products (tsqr, caqr).
  void run_under(Queue& queue, const Mat& a) { run_on(queue, a); }

  /// Takes over reflectors as LAPACK's geqrf stores them, tau in host memory; blocked plans of one matrix.
  void restore(const Mat& packed, const T* tau) {
    if (!(packed.data == v_.data)) copy(queue_, packed, v_, backend::Part::all);
    t_from_reflectors(queue_, v_, tau, t_, blocked_);
  }

  /// run() of matrices whose addresses are in a table in device memory; small plans only.
  void run_table(const T* const* table, Index ld) {
    if (plan_.count == 0) return;
    Mat a = v_;
    a.ld = std::max<Index>(ld, 1);
    factor_small(queue_, backend::FactorSmall<B, T>{a, v_, householder_.tau, const_cast<T* const*>(table)});
    finish(queue_);
  }

  Queue& queue() { return queue_; }
  const Plan& plan() const { return plan_; }
  Index k() const { return std::min(plan_.rows, plan_.cols); }
  bool keeps_reflectors() const { return plan_.q == QForm::implicit || plan_.q == QForm::lapack; }
  bool has_explicit_q() const { return plan_.q == QForm::thin || plan_.q == QForm::full; }

  /// The matrix whose upper triangle is R: k x n.
  Mat r_source() const { return keeps_reflectors() ? v_.block(0, 0, k(), plan_.cols) : r_; }
  const Mat& v() const { return v_; }
  const Mat& q() const { return q_; }
  Mat t() const { return t_; }

  /// out := the first out.cols columns of Q; needs reflectors.
  void form(const Mat& out) { form_on(queue_, out); }

  /// C := op(Q) C with the full m x m Q; needs reflectors or the full Q, whose product takes memory of its own.
  void apply(backend::Op op, const Mat& c) { apply_under(queue_, op, c); }
  /// The same on a queue with a condition; for plans without library products.
  void apply_under(Queue& queue, backend::Op op, const Mat& c) {
    if (plan_.q == QForm::full) {
      const Temporary<B, T> memory(queue, c.rows, c.cols * c.count);
      const Mat copied{memory.matrix.data, c.rows, c.cols, memory.matrix.ld, memory.matrix.ld * c.cols, c.count};
      copy(queue, c, copied, backend::Part::all);
      gemm(queue, op, backend::Op::none, T(1), q_, copied, T(0), c);
      return;
    }
    if (plan_.expert.small)
      apply_small(queue, backend::ApplySmall<B, T>{v_, householder_.tau, c, op});
    else if (plan_.algorithm == Algorithm::householder)
      apply_householder(queue, whole_panels_, v_, t_, op, c, householder_);
    else if (plan_.algorithm == Algorithm::blocked)
      apply_blocked_columns(queue, op, c, false);
    else
      dense::apply(queue, implicit(), op, c);
  }

  /// tau of every reflector, in any order: T's diagonals. For the determinant's sign.
  std::vector<T> taus() {
    std::vector<T> out;
    if (plan_.algorithm == Algorithm::blocked || plan_.algorithm == Algorithm::householder) {
      const Matrix<T> t = host_copy(tau_row());
      out.assign(t.data(), t.data() + t.cols());
      return out;
    }
    const Schedule& s = tree_->schedule;
    Matrix<T> t = Matrix<T>::host(s.t_elements, 1);
    queue_.download(t_.data, t.data(), s.t_elements);
    for (const backend::BlockTask& task : s.tasks)
      for (Index j = 0; j < task.cols; ++j)
        out.push_back(t.data()[task.t + j / s.inner * s.inner * s.inner + j % s.inner * (s.inner + 1)]);
    return out;
  }

  /// 1 x k, contiguous, for every matrix of the batch: tau of the LAPACK-shaped reflectors, copied from the T factors'
  /// diagonals block by block.
  Mat tau_row() {
    if (plan_.expert.small) return {householder_.tau.data, 1, k(), 1, k(), plan_.count};
    const Index b = plan_.expert.block_cols;
    tau_ = Buffer<B>(queue_, bytes_of(std::max<Index>(k() * plan_.count, 1), 1, 1, sizeof(T)));
    const Mat tau{tau_.template as<T>(), 1, k(), 1, k(), plan_.count};
    for (Index p = 0; p * b < k(); ++p) {
      const Index n = std::min(b, k() - p * b);
      const Mat diagonal{t_.data + p * b * b, 1, n, b + 1, t_.stride, plan_.count};
      copy(queue_, diagonal, tau.columns(p * b, n), backend::Part::all);
    }
    return tau;
  }

  /// Cholesky QR's guard, or that of any of blocked's panels, refused.
  bool fell_back() { return plan_.algorithm == Algorithm::blocked ? blocked_fell_back() : stage() == Stage::tree; }

  Stage stage() {
    if (plan_.algorithm != Algorithm::cholesky_qr) return Stage::planned;
    return stage_of(queue_, cholesky_);
  }

 private:
  bool blocked_fell_back() {
    const auto& panel = blocked_.panel;
    if (panel.method.cholesky_passes == 0) return false;
    std::vector<std::int32_t> refused(static_cast<std::size_t>(2 * panel.panels));
    queue_.download(panel.refused, refused.data(), 2 * panel.panels);
    return std::any_of(refused.begin(), refused.end(), [](std::int32_t flag) { return flag != 0; });
  }

  ImplicitQ<B, T> implicit() const { return {tree_.get(), v_, t_.data}; }

  Matrix<T> host_copy(const Mat& a) {
    Matrix<T> out = Matrix<T>::host(a.rows, a.cols);
    store<B, T>(queue_, a, out.view());
    return out;
  }

  void make_schedules() {
    const TreeShape shape{plan_.expert.block_rows, plan_.expert.arity, plan_.expert.inner};
    if (plan_.algorithm == Algorithm::householder) {
      if (!plan_.expert.small)
        whole_panels_ = WholePanels<B>(queue_, plan_, queue_.limits(T{}), block_t_stride(), compact_t_stride());
    } else if (plan_.algorithm == Algorithm::blocked) {
      blocked_schedule_ = make_blocked_schedule<B, T>(queue_, plan_.rows, plan_.cols, plan_.count,
                                                      plan_.expert.panel_cols, plan_.expert.block_cols, shape,
                                                      PanelMethod{plan_.expert.passes, plan_.expert.guard_limit});
    } else {
      const Index rows =
          plan_.expert.absorbing_units > 0 ? AbsorbWorkspace<B, T>::chains(plan_).triangles * plan_.cols : plan_.rows;
      tree_ = std::make_unique<DeviceSchedule<B>>(
          queue_, make_schedule(rows, plan_.cols, plan_.count, plan_.expert.panel_cols, shape));
    }
    if (plan_.algorithm == Algorithm::cholesky_qr &&
        starts_tree_early<B, T>(plan_.expert.passes, plan_.expert.sketch_rows))
      (void)queue_.side();  // now: making one allocates
    if (plan_.expert.sketch_rows > 0) {
      sketch_.rows = plan_.expert.sketch_rows;
      sketch_.tree = std::make_unique<DeviceSchedule<B>>(
          queue_, make_schedule(plan_.expert.sketch_rows, plan_.cols, 1, plan_.expert.panel_cols, shape));
    }
  }

  /// Elements between two matrices' T factors, and between the places where a panel's T comes first; as carved.
  Index block_t_stride() const {
    const Index b = plan_.expert.block_cols;
    return b * b * std::max<Index>((k() + b - 1) / b, 1);
  }
  Index compact_t_stride() const {
    Carver<B> sizes;
    return HouseholderWorkspace<B, T>(sizes, plan_).update.w.stride;
  }

  bool has_products() const {
    return plan_.algorithm == Algorithm::blocked || plan_.algorithm == Algorithm::householder;
  }
  /// Where a recording soon pays for being made: it spares a guard's way back altogether, but dozens of panels that are
  /// all to be factored only 5 to 10 in 100.
  bool replays() const {
    constexpr Index most_cols = 256;
    return plan_.algorithm == Algorithm::cholesky_qr || (plan_.count == 1 && !plan_.expert.small && k() <= most_cols);
  }

  void run_on(Queue& queue, const Mat& a) {
    if (plan_.algorithm == Algorithm::cholesky_qr) {
      cholesky_qr(queue, *tree_, sketch_, a, r_, q_, {plan_.expert.passes, plan_.expert.guard_limit}, cholesky_);
      return;
    }
    if (plan_.expert.absorbing_units > 0) return tsqr_absorbing(queue, plan_, *tree_, a, r_, q_, absorbed_);
    if (plan_.expert.small) {
      factor_small(queue, backend::FactorSmall<B, T>{a, v_, householder_.tau});
    } else if (!(a.data == v_.data)) {
      copy(queue, a, v_, backend::Part::all);
    }
    if (plan_.algorithm == Algorithm::householder) {
      if (!plan_.expert.small) householder(queue, whole_panels_, v_, t_, householder_);
    } else if (plan_.algorithm == Algorithm::blocked) {
      blocked(queue, blocked_schedule_, v_, t_, blocked_, plan_.q != QForm::none);
    } else {
      caqr(queue, implicit());
    }
    finish(queue);
  }

  /// What is kept when the reflectors are not.
  void finish(Queue& queue) {
    if (keeps_reflectors()) return;
    copy(queue, v_.block(0, 0, k(), plan_.cols), r_, backend::Part::upper);
    if (has_explicit_q()) form_on(queue, q_);
  }

  void form_on(Queue& queue, const Mat& out) {
    if (plan_.expert.small) {
      apply_small(queue, backend::ApplySmall<B, T>{v_, householder_.tau, out, backend::Op::none, true});
    } else if (plan_.algorithm == Algorithm::householder) {
      fill(queue, out, T(0), T(1));
      apply_householder(queue, whole_panels_, v_, t_, backend::Op::none, out, householder_, true);
    } else if (plan_.algorithm == Algorithm::blocked) {
      fill(queue, out, T(0), T(1));
      apply_blocked_columns(queue, backend::Op::none, out, true);
    } else {
      form_q(queue, implicit(), out);
    }
  }

  /// apply_blocked over as many columns at a time as the workspace is wide.
  void apply_blocked_columns(Queue& queue, backend::Op op, const Mat& c, bool identity) {
    const Index wide = std::max<Index>(blocked_.rest.w.cols, 1);
    if (identity && c.cols <= wide) {
      apply_blocked(queue, v_, t_, op, c, blocked_, true);
      return;
    }
    for (Index first = 0; first < c.cols; first += wide)
      apply_blocked(queue, v_, t_, op, c.columns(first, std::min(wide, c.cols - first)), blocked_);
  }

  /// What decides about the launches of a run.
  struct Places {
    typename B::template Pointer<T> a{}, r{}, q{};
    Index ld = 0, stride = 0, r_ld = 0, q_ld = 0;
    bool operator==(const Places&) const = default;
  };

  Queue queue_;
  Plan plan_;
  std::unique_ptr<DeviceSchedule<B>> tree_;
  BlockedSchedule<B> blocked_schedule_;
  Sketch<B> sketch_;
  WholePanels<B> whole_panels_;
  Buffer<B> memory_;
  Buffer<B> tau_;
  Repeated<Queue, Places> repeated_;
};

}  // namespace qrane::dense
