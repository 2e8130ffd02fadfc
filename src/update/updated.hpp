// SPDX-License-Identifier: Apache-2.0
// A factorization that can be updated: its store, what changes it, and what consumers ask of it
// (dense/solve/consume.hpp). Every update checks its arguments and finds its memory before it changes anything.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "dense/solve/consume.hpp"
#include "dense/solve/least_squares.hpp"
#include "update/choice/request.hpp"
#include "update/drift.hpp"
#include "update/no_q/columns.hpp"
#include "update/no_q/rows.hpp"
#include "update/rank_k.hpp"
#include "update/refactor.hpp"
#include "update/thin_q/cholesky.hpp"
#include "update/thin_q/columns.hpp"

namespace qrane::update {

template <class B, class T>
class Updated {
 public:
  using Mat = DeviceMatrix<B, T>;

  /// A copy of the factors of f.
  Updated(dense::Factorization<B, T>& f, const plan::DeviceProfile& profile)
      : plan_(f.plan()), tools_(f.queue(), profile), store_(f.queue(), f.plan().q == QForm::thin), pending_(f.queue()) {
    qrane::detail::check(plan_.q == QForm::thin || plan_.q == QForm::none, ErrorCode::unavailable,
                         "updates need a factorization with QForm::thin or none, not ", to_string(plan_.q));
    qrane::detail::check(plan_.count == 1, ErrorCode::unavailable, "updates take one matrix, not a batch of ",
                         plan_.count);
    store_.m = 0;  // until all memory is there
    const Index m = plan_.rows, n = plan_.cols, c = std::min(m, n);
    const Mat r = store_.next_r(c, n);
    store_.reserve_q(m, c);
    if (c > 0) copy(queue(), f.r_source(), r, Part::upper);
    if (store_.has_q && c > 0) copy(queue(), f.q(), store_.q_view(m, c), Part::all);
    store_.take_r(r);
    store_.m = m;
    store_.n = n;
    store_.order = RowOrder(m);
    settle();
  }

  typename B::Queue& queue() { return tools_.queue; }
  const Plan& plan() const { return plan_; }
  Index k() const { return store_.positions(); }
  Mat r_source() const { return store_.triangle(); }
  Store<B, T>& store() { return store_; }
  Tools<B, T>& tools() { return tools_; }
  const plan::DeviceProfile& profile() const { return tools_.profile; }

  UpdateReport update(const UpdateRequest<T>& request);
  UpdateReport plan_update(const UpdateRequest<T>& request) {
    check_place(request, subject());
    return planner_.plan(tools_.profile, request, subject());
  }
  /// From now on reports have the times of an update's stages.
  void time_stages(bool on) { tools_.timed = on; }

  /// Thin Q, rows in order.
  void form(const Mat& out) { store_.gather(store_.q(), out); }

  void attach(MatrixView<const T> b, MatrixView<const T> a);
  bool attached() const { return store_.attached; }
  Mat d() const { return store_.d(); }
  /// ‖b - Q d‖ of every attached column.
  std::vector<double> residual_norms();

  /// Queued deletions that were refused since the last call.
  Index refused_updates() {
    settle_refusals();
    return std::exchange(refused_, 0);
  }

  /// Another matrix of the same shape; right-hand sides stay attached where b has been kept.
  void refactor(MatrixView<const T> a);

  /// In units of decision 9; see drift.hpp.
  double drift(MatrixView<const T> a);

 private:
  using Request = UpdateRequest<T>;
  void run(const Request& request, UpdateReport& report);
  void run_small(const Request& request, UpdateReport& report, const Mat& u, const Mat& e);
  void delete_rows_of_r(const Request& request, UpdateReport& report);

 protected:  // for methods of other kinds
  Subject subject() const { return {store_.m, store_.n, store_.nrhs, plan_.q}; }
  /// What queued deletions have left undone is known from here on.
  void settle_refusals() {
    const auto refused = pending_.settle();
    refused_ += refused.updates;
    store_.m += refused.rows;
    settle();
  }
  /// After every change: the plan says the shape.
  void settle() {
    plan_.rows = store_.m;
    plan_.cols = store_.n;
    plan_.flops = plan::qr_flops(static_cast<double>(store_.m), static_cast<double>(store_.n));
  }

 private:
  Plan plan_;
  Tools<B, T> tools_;
  Store<B, T> store_;
  Pending<B> pending_;
  Index refused_ = 0;
  Planner planner_;
  Index since_drift_ = 0;  // updates since it was measured
};

/// y is m x nrhs, small k x nrhs.
template <class B, class T>
DeviceMatrix<B, T> project(Updated<B, T>& f, const DeviceMatrix<B, T>& y, const DeviceMatrix<B, T>& small) {
  detail::check_q(f.plan());
  if (f.k() == 0 || y.cols == 0) return small;
  f.tools().scratch.reset();
  const DeviceMatrix<B, T> physical = f.tools().scratch.template matrix<T>(f.store().order.extent(), y.cols);
  f.store().scatter(y, physical);
  gemm(f.queue(), Op::transpose, Op::none, T(1), f.store().q(), physical, T(0), small);
  return small;
}

/// out := Q small.
template <class B, class T>
void multiply_q(Updated<B, T>& f, const Matrix<T>& small, const DeviceMatrix<B, T>& out) {
  detail::check_q(f.plan());
  if (out.rows == 0 || out.cols == 0) return;
  f.tools().scratch.reset();
  const DeviceMatrix<B, T> s = f.tools().scratch.template matrix<T>(small.rows(), small.cols());
  const DeviceMatrix<B, T> physical = f.tools().scratch.template matrix<T>(f.store().order.extent(), out.cols);
  dense::load<B, T>(f.queue(), small.view(), s);
  if (s.rows > 0)
    gemm(f.queue(), Op::none, Op::none, T(1), f.store().q(), s, T(0), physical);
  else
    fill(f.queue(), physical, T(0), T(0));
  f.store().gather(physical, out);
  f.queue().synchronize();
}

template <class B, class T>
UpdateReport Updated<B, T>::update(const Request& request) {
  if (!request.options.queued || pending_.full()) settle_refusals();
  check_request(request, subject());
  UpdateReport report = planner_.plan(tools_.profile, request, subject());
  if (shape_of(request, subject()).changes_nothing()) return report;
  tools_.trim();
  tools_.scratch.reset();
  tools_.begin_stages();
  try {
    run(request, report);
  } catch (...) {
    tools_.release();
    throw;
  }
  report.stages = tools_.stages();
  settle();
  refresh_when_due(*this, request.options, request.updated, since_drift_, store_.has_q || store_.nrhs == 0, report);
  return report;
}

template <class B, class T>
void Updated<B, T>::run(const Request& r, UpdateReport& report) {
  const UpdateOptions& options = r.options;
  const dense::OnDevice<B, T> u(queue(), r.u), v(queue(), r.v), e(queue(), r.e);
  if (options.check_finite) {
    dense::check_finite<B, T>(queue(), "u", u.matrix);
    dense::check_finite<B, T>(queue(), "v", v.matrix);
    dense::check_finite<B, T>(queue(), "e", e.matrix);
  }
  if (report.method == UpdateMethod::refactor) {
    refactor_changed(tools_, store_, r, u.matrix, e.matrix);
    return;
  }
  const bool trailing = report.method == UpdateMethod::trailing;
  switch (r.change) {
    case Change::insert_rows:
      if (options.block_cols == 0 && takes_update_rows(tools_, store_, r.p))
        run_small(r, report, u.matrix, e.matrix);
      else
        insert_rows(tools_, store_, r.k, u.matrix, e.matrix, options.block_cols);
      break;
    case Change::delete_rows:
      if (report.method == UpdateMethod::cholesky) {
        report.fell_back = !delete_rows_cholesky(tools_, store_, r.k, r.p);
        if (report.fell_back) delete_rows(tools_, store_, r.k, r.p, options.block_cols);
      } else if (store_.has_q) {
        delete_rows(tools_, store_, r.k, r.p, options.block_cols);
      } else {
        delete_rows_of_r(r, report);
      }
      break;
    case Change::insert_columns:
      if (store_.has_q) {
        insert_columns(tools_, store_, r.k, u.matrix, options.block_cols, trailing);
      } else {
        const dense::OnDevice<B, T> lent(queue(), r.updated);
        report.fell_back = !insert_columns_without_q(tools_, store_, r.k, u.matrix, lent.matrix, options.block_cols);
        if (report.fell_back) {
          report.method = UpdateMethod::refactor;
          factor_anew(tools_, store_, lent.matrix, tools_.scratch.template matrix<T>(0, 0));
        }
      }
      break;
    case Change::delete_columns: delete_columns(tools_, store_, r.k, r.p, options.block_cols, trailing); break;
    case Change::rank_k: rank_k_update(tools_, store_, u.matrix, v.matrix, options.block_cols); break;
  }
}

template <class B, class T>
void Updated<B, T>::run_small(const Request& r, UpdateReport& report, const Mat& u, const Mat& e) {
  const bool in = r.change == Change::insert_rows;
  typename B::template Pointer<std::int32_t> counter{};
  if (!in) counter = pending_.next(r.p);
  update_small(tools_, store_, u, e, in, counter);
  report.queued = r.options.queued;
  if (in || report.queued) return;
  const auto refused = pending_.settle();
  store_.m += refused.rows;
  report.refused = refused.updates > 0;
}

template <class B, class T>
void Updated<B, T>::delete_rows_of_r(const Request& r, UpdateReport& report) {
  const UpdateOptions& options = r.options;
  const dense::OnDevice<B, T> gone(queue(), r.removed), gone_b(queue(), r.removed_b);
  if (options.check_finite) {
    dense::check_finite<B, T>(queue(), "removed", gone.matrix);
    dense::check_finite<B, T>(queue(), "removed_b", gone_b.matrix);
  }
  if (options.block_cols == 0 && r.p < store_.m && store_.m - r.p >= store_.n && takes_update_rows(tools_, store_, r.p))
    run_small(r, report, gone.matrix, gone_b.matrix);
  else
    report.refused = !delete_rows_without_q(tools_, store_, gone.matrix, gone_b.matrix, r.p, options.block_cols);
  const bool lent = r.updated.rows > 0 || r.updated.cols > 0;
  if (!report.refused || !lent || store_.nrhs > 0) return;
  const dense::OnDevice<B, T> updated(queue(), r.updated);
  factor_anew(tools_, store_, updated.matrix, tools_.scratch.template matrix<T>(0, 0));
  report.refused = false;
  report.fell_back = true;
  report.method = UpdateMethod::refactor;
}

template <class B, class T>
void Updated<B, T>::attach(MatrixView<const T> b, MatrixView<const T> a) {
  using qrane::detail::check;
  dense::check_view("b", b);
  settle_refusals();
  tools_.scratch.reset();
  if (b.cols == 0) {
    store_.r = store_.triangle();
    store_.nrhs = 0;
    store_.attached = false;
    return;
  }
  const Index m = store_.m, n = store_.n, c = k(), nrhs = b.cols;
  check(b.rows == m, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", m);
  const dense::OnDevice<B, T> right(queue(), b);
  const Mat r = store_.next_r(c, n + nrhs);
  if (store_.has_q) {
    const Mat physical = tools_.scratch.template matrix<T>(store_.order.extent(), nrhs);
    store_.scatter(right.matrix, physical);
    if (c > 0) {
      copy(queue(), store_.triangle(), r.columns(0, n), Part::upper);
      gemm(queue(), Op::transpose, Op::none, T(1), store_.q(), physical, T(0), r.columns(n, nrhs));
    }
    store_.reserve_b(nrhs);
    store_.nrhs = nrhs;
    if (physical.rows > 0) copy(queue(), physical, store_.b(), Part::all);
  } else {
    dense::check_view("a", a);
    check(a.rows == m && a.cols == n, ErrorCode::invalid_argument, "a is ", a.rows, " x ", a.cols,
          ", but with QForm::none the matrix itself is needed to attach right-hand sides, ", m, " x ", n);
    factor_augmented(tools_, store_, a, right.matrix, r);
    store_.nrhs = nrhs;
  }
  store_.attached = true;
  store_.take_r(r);
}

template <class B, class T>
std::vector<double> Updated<B, T>::residual_norms() {
  tools_.scratch.reset();
  const Index nrhs = store_.nrhs;
  if (store_.has_q) {
    const Mat rest = tools_.scratch.template matrix<T>(store_.order.extent(), nrhs);
    if (rest.rows > 0) copy(queue(), store_.b(), rest, Part::all);
    const Mat d = tools_.scratch.template matrix<T>(k(), nrhs);
    if (d.rows > 0) copy(queue(), store_.d(), d, Part::all);
    return dense::general_residual_norms<B, T>(queue(), store_.q(), d, rest);
  }
  std::vector<double> norms(static_cast<std::size_t>(nrhs));
  queue().download(store_.residual_squares.data, norms.data(), nrhs);
  for (double& norm : norms) norm = std::sqrt(std::max(norm, 0.0));
  return norms;
}

template <class B, class T>
void Updated<B, T>::refactor(MatrixView<const T> a) {
  using qrane::detail::check;
  dense::check_view("A", a);
  settle_refusals();
  check(a.rows == store_.m && a.cols == store_.n, ErrorCode::invalid_argument, "refactor takes the present shape, ",
        store_.m, " x ", store_.n, "; got ", a.rows, " x ", a.cols);
  tools_.scratch.reset();
  const dense::OnDevice<B, T> input(queue(), a);
  if (!store_.has_q && store_.nrhs > 0) attach({}, {});
  factor_anew(tools_, store_, input.matrix, logical_b(tools_, store_));
}

template <class B, class T>
double Updated<B, T>::drift(MatrixView<const T> a) {
  qrane::detail::check(store_.has_q || (a.rows > 0 && a.cols > 0) || k() == 0, ErrorCode::unavailable,
                       "the drift of R alone is measured against the matrix: lend it");
  settle_refusals();
  check_lent_matrix(a, store_.m, store_.n);
  if (k() == 0) return 0;
  const bool lent = a.rows > 0;
  const dense::OnDevice<B, T> matrix(queue(), a);
  if (!store_.has_q)
    return triangle_drift<B, T>(queue(), matrix.matrix, r_source()) / drift_unit<T>(store_.m, store_.n);
  const auto forward = [&](const Mat& x, const Mat& y) {
    gemm(queue(), Op::none, Op::none, T(1), store_.q(), x, T(0), y);
  };
  const auto backward = [&](const Mat& y, const Mat& x) {
    gemm(queue(), Op::transpose, Op::none, T(1), store_.q(), y, T(0), x);
  };
  tools_.scratch.reset();
  double worst = orthogonality_drift<B, T>(queue(), store_.order.extent(), k(), forward, backward);
  if (lent) {
    const auto from_logical = [&](const Mat& y, const Mat& x) {
      const Mat physical = tools_.scratch.template matrix<T>(store_.order.extent(), y.cols);
      store_.scatter(y, physical);
      backward(physical, x);
    };
    worst = detail::worse(residual_drift<B, T>(queue(), matrix.matrix, r_source(), from_logical), worst);
  }
  return worst / drift_unit<T>(store_.m, store_.n);
}

}  // namespace qrane::update
