// SPDX-License-Identifier: Apache-2.0
// A factorization that can be updated: its store, what changes it, and what consumers ask of it (dense/consume.hpp).
// Every update checks its arguments and finds its memory before it changes anything.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "api/state.hpp"
#include "dense/consume.hpp"
#include "dense/least_squares.hpp"
#include "update/cholesky.hpp"
#include "update/columns.hpp"
#include "update/columns_without_q.hpp"
#include "update/refactor.hpp"
#include "update/rows_without_q.hpp"

namespace qrane::update {

template <class B, class T>
class Updated {
 public:
  using Mat = DeviceMatrix<B, T>;

  /// A copy of the factors of f.
  Updated(dense::Factorization<B, T>& f, const plan::DeviceProfile& profile)
      : plan_(f.plan()),
        tools_(f.queue(), profile),
        store_(f.queue(), f.plan().q == QForm::thin),
        pending_(f.queue()) {
    qrane::detail::check(plan_.q == QForm::thin || plan_.q == QForm::none, ErrorCode::unavailable,
                         "updates need a factorization with QForm::thin or none, not ", to_string(plan_.q));
    qrane::detail::check(plan_.count == 1, ErrorCode::unavailable, "updates take one matrix, not a batch of ", plan_.count);
    store_.m = 0;  // until all memory is there
    const Index m = plan_.rows, n = plan_.cols, c = std::min(m, n);
    const Mat r = store_.next_r(c, n);
    store_.reserve_q(m, c);
    if (c > 0) queue().copy(f.r_source(), r, Part::upper);
    if (store_.has_q && c > 0) queue().copy(f.q(), store_.q_view(m, c), Part::all);
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

  UpdateReport update(const qrane::detail::UpdateRequest<T>& request);

  /// Thin Q, rows in order.
  void form(const Mat& out) { store_.gather(store_.q(), out); }

  void attach(MatrixView<const T> b, MatrixView<const T> a);
  bool attached() const { return store_.attached; }
  Mat d() const { return store_.d(); }
  /// ‖b - Q d‖ of every attached column.
  Matrix<double> residual_norms();

  /// Queued deletions that were refused since the last call.
  Index refused_updates() {
    settle_refusals();
    return std::exchange(refused_, 0);
  }

  /// Another matrix of the same shape; right-hand sides stay attached where b has been kept.
  void refactor(MatrixView<const T> a);

 private:
  using Request = qrane::detail::UpdateRequest<T>;
  void check(const Request& request) const;
  void check_lent(const Request& request) const;
  Index rows_after(const Request& request) const;
  Index cols_after(const Request& request) const;
  void run(const Request& request, UpdateReport& report);
  void run_small(const Request& request, UpdateReport& report, const Mat& u, const Mat& e);
  void delete_rows_of_r(const Request& request, UpdateReport& report);
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

  Plan plan_;
  Tools<B, T> tools_;
  Store<B, T> store_;
  Pending<B> pending_;
  Index refused_ = 0;
};

/// y is m x nrhs, small k x nrhs.
template <class B, class T>
DeviceMatrix<B, T> project(Updated<B, T>& f, const DeviceMatrix<B, T>& y, const DeviceMatrix<B, T>& small) {
  detail::check_q(f.plan());
  if (f.k() == 0 || y.cols == 0) return small;
  f.tools().scratch.reset();
  const DeviceMatrix<B, T> physical = f.tools().scratch.template matrix<T>(f.store().order.extent(), y.cols);
  f.store().scatter(y, physical);
  f.queue().gemm(Op::transpose, Op::none, T(1), f.store().q(), physical, T(0), small);
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
    f.queue().gemm(Op::none, Op::none, T(1), f.store().q(), s, T(0), physical);
  else
    f.queue().fill(physical, T(0), T(0));
  f.store().gather(physical, out);
  f.queue().synchronize();
}

template <class B, class T>
Index Updated<B, T>::rows_after(const Request& r) const {
  return store_.m + (r.change == Change::insert_rows ? r.p : r.change == Change::delete_rows ? -r.p : 0);
}
template <class B, class T>
Index Updated<B, T>::cols_after(const Request& r) const {
  return store_.n + (r.change == Change::insert_columns ? r.p : r.change == Change::delete_columns ? -r.p : 0);
}

template <class B, class T>
void Updated<B, T>::check(const Request& r) const {
  using qrane::detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  const bool rows = r.change == Change::insert_rows || r.change == Change::delete_rows;
  const bool in = r.change == Change::insert_rows || r.change == Change::insert_columns;
  const Index size = rows ? store_.m : store_.n;
  const char* what = rows ? "rows" : "columns";
  check(r.p >= 0, bad, to_string(r.change), ": p must not be negative, got ", r.p);
  check(r.k >= 0 && r.k <= size && (in || r.p <= size - r.k), bad, to_string(r.change), ": k = ", r.k, ", p = ", r.p,
        in ? " is no place among " : " is no part of ", size, " ", what);
  check(r.options.block_cols >= 0, bad, to_string(r.change), ": block_cols must not be negative, got ",
        r.options.block_cols);
  if (in) {
    dense::check_view("u", r.u);
    const Index have = rows ? r.u.cols : r.u.rows, want = rows ? store_.n : store_.m;
    check(have == want, bad, "u is ", r.u.rows, " x ", r.u.cols, ", but the matrix has ", want, rows ? " columns" : " rows");
    check(store_.m <= std::numeric_limits<Index>::max() - r.p && store_.n <= std::numeric_limits<Index>::max() - r.p, bad,
          to_string(r.change), ": p = ", r.p, " overflows 64-bit sizes");
  }
  if (r.change == Change::insert_rows) {
    dense::check_view("e", r.e);
    const bool empty = r.e.rows == 0 || r.e.cols == 0;
    check(store_.nrhs > 0 || empty, bad, "e is ", r.e.rows, " x ", r.e.cols,
          ", but no right-hand sides are attached: QR::attach(b) comes first");
    check(store_.nrhs == 0 || r.p == 0 || (r.e.rows == r.p && r.e.cols == store_.nrhs), bad, "e is ", r.e.rows, " x ",
          r.e.cols, ", but the ", r.p, " rows that come in need right-hand sides of ", r.p, " x ", store_.nrhs);
  }
  if (r.change == Change::delete_rows && !store_.has_q && r.p > 0 && r.p < store_.m) {
    const MatrixView<const T>&gone = r.options.removed, &gone_b = r.options.removed_b;
    dense::check_view("options.removed", gone);
    check(gone.rows == r.p && gone.cols == store_.n, bad, "options.removed is ", gone.rows, " x ", gone.cols,
          ", but with QForm::none the rows that go out are needed, ", r.p, " x ", store_.n);
    dense::check_view("options.removed_b", gone_b);
    check(store_.nrhs == 0 || (gone_b.rows == r.p && gone_b.cols == store_.nrhs), bad, "options.removed_b is ",
          gone_b.rows, " x ", gone_b.cols, ", but with QForm::none the right-hand sides of the rows that go out are needed, ",
          r.p, " x ", store_.nrhs);
  }
  check_lent(r);
}

template <class B, class T>
void Updated<B, T>::check_lent(const Request& r) const {
  using qrane::detail::check;
  const MatrixView<const T>& lent = r.options.updated;
  dense::check_view("options.updated", lent);
  if (lent.rows == 0 && lent.cols == 0) return;
  check(lent.rows == rows_after(r) && lent.cols == cols_after(r), ErrorCode::invalid_argument, "options.updated is ",
        lent.rows, " x ", lent.cols, ", but after this update the matrix is ", rows_after(r), " x ", cols_after(r));
}

template <class B, class T>
UpdateReport Updated<B, T>::update(const Request& request) {
  if (!request.options.queued || pending_.full()) settle_refusals();
  check(request);
  UpdateReport report;
  report.change = request.change;
  report.rows = store_.m;
  report.cols = store_.n;
  report.k = request.k;
  report.p = request.p;
  const Facts facts{request.change,
                    store_.m,
                    store_.n,
                    request.p,
                    store_.has_q,
                    store_.nrhs > 0,
                    request.options.updated.rows > 0 || request.options.updated.cols > 0,
                    tools_.profile.limits.max_cholesky > 0};
  report.method = choose_method(facts, request.options.method);
  if (request.p == 0) return report;
  tools_.trim();
  tools_.scratch.reset();
  run(request, report);
  settle();
  return report;
}

template <class B, class T>
void Updated<B, T>::run(const Request& r, UpdateReport& report) {
  const UpdateOptions<T>& options = r.options;
  const dense::OnDevice<B, T> u(queue(), r.u), e(queue(), r.e);
  if (options.check_finite) {
    dense::check_finite<B, T>(queue(), "u", u.matrix);
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
        const dense::OnDevice<B, T> lent(queue(), options.updated);
        report.fell_back = !insert_columns_without_q(tools_, store_, r.k, u.matrix, lent.matrix, options.block_cols);
        if (report.fell_back) {
          report.method = UpdateMethod::refactor;
          factor_anew(tools_, store_, lent.matrix, tools_.scratch.template matrix<T>(0, 0));
        }
      }
      break;
    case Change::delete_columns: delete_columns(tools_, store_, r.k, r.p, options.block_cols, trailing); break;
    case Change::rank_k: break;
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
  const UpdateOptions<T>& options = r.options;
  const dense::OnDevice<B, T> gone(queue(), options.removed), gone_b(queue(), options.removed_b);
  if (options.check_finite) {
    dense::check_finite<B, T>(queue(), "options.removed", gone.matrix);
    dense::check_finite<B, T>(queue(), "options.removed_b", gone_b.matrix);
  }
  if (options.block_cols == 0 && r.p < store_.m && store_.m - r.p >= store_.n && takes_update_rows(tools_, store_, r.p))
    run_small(r, report, gone.matrix, gone_b.matrix);
  else
    report.refused = !delete_rows_without_q(tools_, store_, gone.matrix, gone_b.matrix, r.p, options.block_cols);
  const bool lent = options.updated.rows > 0 || options.updated.cols > 0;
  if (!report.refused || !lent || store_.nrhs > 0) return;
  const dense::OnDevice<B, T> updated(queue(), options.updated);
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
      queue().copy(store_.triangle(), r.columns(0, n), Part::upper);
      queue().gemm(Op::transpose, Op::none, T(1), store_.q(), physical, T(0), r.columns(n, nrhs));
    }
    store_.reserve_b(nrhs);
    store_.nrhs = nrhs;
    if (physical.rows > 0) queue().copy(physical, store_.b(), Part::all);
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
Matrix<double> Updated<B, T>::residual_norms() {
  tools_.scratch.reset();
  const Index nrhs = store_.nrhs;
  if (store_.has_q) {
    const Mat rest = tools_.scratch.template matrix<T>(store_.order.extent(), nrhs);
    if (rest.rows > 0) queue().copy(store_.b(), rest, Part::all);
    const Mat d = tools_.scratch.template matrix<T>(k(), nrhs);
    if (d.rows > 0) queue().copy(store_.d(), d, Part::all);
    return dense::general_residual_norms<B, T>(queue(), store_.q(), d, rest);
  }
  Matrix<double> norms = Matrix<double>::host(nrhs, 1);
  queue().download(store_.residual_squares.data, norms.data(), nrhs);
  for (Index j = 0; j < nrhs; ++j) norms.data()[j] = std::sqrt(std::max(norms.data()[j], 0.0));
  return norms;
}

template <class B, class T>
void Updated<B, T>::refactor(MatrixView<const T> a) {
  using qrane::detail::check;
  dense::check_view("A", a);
  settle_refusals();
  check(a.rows == store_.m && a.cols == store_.n, ErrorCode::invalid_argument,
        "refactor takes the present shape, ", store_.m, " x ", store_.n, "; got ", a.rows, " x ", a.cols);
  tools_.scratch.reset();
  const dense::OnDevice<B, T> input(queue(), a);
  if (!store_.has_q && store_.nrhs > 0) attach({}, {});
  factor_anew(tools_, store_, input.matrix, logical_b(tools_, store_));
}

}  // namespace qrane::update
