// SPDX-License-Identifier: Apache-2.0
// A factorization with the whole Q (QForm::full, implicit, lapack) that can be updated: as Updated, which keeps R alone
// or a thin Q. Right-hand sides are kept as they are; Qᵀb is computed when somebody asks.
#pragma once

#include "update/choice/request.hpp"
#include "update/drift.hpp"
#include "update/full_q/full_q.hpp"
#include "update/full_q/q_by_steps.hpp"
#include "update/updated.hpp"

namespace qrane::update {

template <class B, class T>
class UpdatedWhole {
 public:
  using Mat = DeviceMatrix<B, T>;
  using Request = UpdateRequest<T>;

  /// Takes f over where it keeps reflectors, copies its factors where Q is explicit.
  UpdatedWhole(std::shared_ptr<dense::Factorization<B, T>> f, const plan::DeviceProfile& profile)
      : plan_(f->plan()), tools_(f->queue(), profile), store_(f->queue(), true) {
    qrane::detail::check(plan_.count == 1, ErrorCode::unavailable, "updates take one matrix, not a batch of ",
                         plan_.count);
    adopt(std::move(f));
  }

  typename B::Queue& queue() { return tools_.queue; }
  const Plan& plan() const { return plan_; }
  Index k() const { return store_.positions(); }
  Mat r_source() const { return store_.triangle(); }
  const plan::DeviceProfile& profile() const { return tools_.profile; }
  /// Whether something else than the factorization it began with is there.
  bool changed() const { return changed_; }
  dense::Factorization<B, T>& base() { return *base_; }

  UpdateReport update(const Request& request);
  UpdateReport plan_update(const Request& request) {
    check_place(request, subject());
    return planner_.plan(tools_.profile, request, subject());
  }

  /// The first out.cols columns of Q.
  void form(const Mat& out) {
    if (out.rows > 0 && out.cols > 0) q_->columns(out);
  }
  void apply(Op op, const Mat& c) { q_->apply(op, c); }

  void attach(MatrixView<const T> b, MatrixView<const T>) {
    using qrane::detail::check;
    dense::check_view("b", b);
    check(b.cols == 0 || b.rows == store_.m, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ",
          store_.m);
    if (b.cols > 0) {
      RightSides sides = right_sides(b.rows, b.cols);
      dense::load<B, T>(queue(), b, sides.matrix);
      b_ = std::move(sides);
    } else {
      b_ = {};
    }
    attached_ = b.cols > 0;
    d_ = {};
  }
  bool attached() const { return attached_; }
  /// The first rows of Qᵀb.
  Mat d() { return all_of_d().block(0, 0, k(), b_.matrix.cols); }
  std::vector<double> residual_norms() {
    const Mat rest = all_of_d().block(k(), 0, store_.m - k(), b_.matrix.cols);
    return dense::general_residual_norms<B, T>(queue(), {}, {}, rest);
  }

  void refactor(MatrixView<const T> a) {
    using qrane::detail::check;
    dense::check_view("A", a);
    check(a.rows == store_.m && a.cols == store_.n, ErrorCode::invalid_argument, "refactor takes the present shape, ",
          store_.m, " x ", store_.n, "; got ", a.rows, " x ", a.cols);
    factor_anew(a);
  }

  /// In units of decision 9; see drift.hpp.
  double drift(MatrixView<const T> a);

 private:
  Subject subject() const {
    return {store_.m, store_.n, attached_ ? b_.matrix.cols : 0, plan_.q, q_ ? q_->added_steps() : 0};
  }
  struct RightSides {
    Buffer<B> memory;
    Mat matrix;
  };
  RightSides right_sides(Index rows, Index cols) {
    RightSides out{Buffer<B>(queue(), bytes_of(std::max<Index>(rows, 1), std::max<Index>(cols, 1), 1, sizeof(T))), {}};
    out.matrix = {out.memory.template as<T>(), rows, cols, std::max<Index>(rows, 1), 0, 1};
    return out;
  }
  Mat all_of_d() {
    if (d_.matrix.cols == 0 && attached_) {
      RightSides d = right_sides(store_.m, b_.matrix.cols);
      if (store_.m > 0) copy(queue(), b_.matrix, d.matrix, Part::all);
      q_->apply(Op::transpose, d.matrix);
      d_ = std::move(d);
    }
    return d_.matrix;
  }
  /// b with rows e before row k, or without p rows.
  RightSides changed_b(const Request& r, const Mat& e) {
    const Index m = store_.m, k = r.k, in = r.change == Change::insert_rows ? r.p : 0, nrhs = b_.matrix.cols;
    const Index out = r.change == Change::delete_rows ? r.p : 0;
    RightSides next = right_sides(m + in - out, nrhs);
    if (k > 0) copy(queue(), b_.matrix.block(0, 0, k, nrhs), next.matrix.block(0, 0, k, nrhs), Part::all);
    if (in > 0) copy(queue(), e, next.matrix.block(k, 0, in, nrhs), Part::all);
    if (m > k + out)
      copy(queue(), b_.matrix.block(k + out, 0, m - k - out, nrhs), next.matrix.block(k + in, 0, m - k - out, nrhs),
           Part::all);
    return next;
  }

  /// f's factors are the present ones.
  void adopt(std::shared_ptr<dense::Factorization<B, T>> f) {
    const Index m = f->plan().rows, n = f->plan().cols, s = std::min(m, n);
    const Mat r = store_.next_r(s, n);
    if (s > 0) copy(queue(), f->r_source(), r, Part::upper);
    const bool explicit_q = plan_.q == QForm::full;
    std::unique_ptr<WholeQ<B, T>> q;
    const RowOrder before = store_.order;
    const Index rows_before = store_.m;
    try {
      store_.order = RowOrder(m);
      store_.m = m;
      if (explicit_q)
        q = std::make_unique<FullQ<B, T>>(tools_, store_, f->q());
      else
        q = std::make_unique<QBySteps<B, T>>(tools_, store_, f);
    } catch (...) {
      store_.order = before;
      store_.m = rows_before;
      throw;
    }
    q_ = std::move(q);
    if (!explicit_q) spare_ = std::exchange(base_, std::move(f));
    store_.take_r(r);
    store_.n = n;
    settle();
  }
  void factor_anew(MatrixView<const T> a) {
    const dense::OnDevice<B, T> input(queue(), a);
    factor_anew(input.matrix);
  }
  void factor_anew(const Mat& a) {
    if (plan_.q == QForm::full)
      refill(a);
    else
      replace(a);
    d_ = {};
    changed_ = true;
  }
  /// R and the explicit Q where they are, or in larger memory.
  void refill(const Mat& a) {
    const Index m = a.rows, n = a.cols;
    const Mat r = store_.next_r(std::min(m, n), n);
    auto& f = tools_.factorization(m, n, QForm::full, dense::Results::delivered);
    f.deliver_to(r, static_cast<FullQ<B, T>&>(*q_).renew(m));
    f.run(a);
    store_.order = RowOrder(m);
    store_.m = m;
    store_.n = n;
    store_.take_r(r);
    settle();
  }
  /// Reflectors of another factorization.
  void replace(const Mat& a) {
    const auto fits = [&](const dense::Factorization<B, T>& f) {
      return f.plan().rows == a.rows && f.plan().cols == a.cols;
    };
    auto f = std::move(spare_);
    if (!f || f.use_count() > 1 || !fits(*f)) {
      f.reset();
      Options options;
      options.q = plan_.q;
      f = std::make_shared<dense::Factorization<B, T>>(
          queue(), plan::make_plan(tools_.profile, a.rows, a.cols, 1, sizeof(T), options));
    }
    f->run(a);
    adopt(std::move(f));
  }
  /// An implicit Q of more than a few times the numbers of its reflectors is made of reflectors again: those of the
  /// lent matrix, or of Q R. Where there is no memory for that it stays as it is.
  void condense_when_grown(MatrixView<const T> lent) {
    constexpr Index most_times = 3;
    const Index m = store_.m, n = store_.n;
    if (plan_.q == QForm::full || m == 0 || n == 0 || q_->elements() <= most_times * m * (n + 1)) return;
    try {
      if (lent.rows > 0) return factor_anew(lent);
      const dense::Temporary<B, T> a(queue(), m, n);
      fill(queue(), a.matrix, T(0), T(0));
      copy(queue(), r_source(), a.matrix.block(0, 0, k(), n), Part::upper);
      q_->apply(Op::none, a.matrix);
      factor_anew(a.matrix);
    } catch (const Error& fault) {
      if (fault.code() != ErrorCode::out_of_memory) throw;
      tools_.release();
    }
  }
  void settle() {
    plan_.rows = store_.m;
    plan_.cols = store_.n;
    plan_.flops = plan::qr_flops(static_cast<double>(store_.m), static_cast<double>(store_.n));
  }
  void run(const Request& request, bool trailing, const Mat& u, const Mat& v);

  Plan plan_;
  Tools<B, T> tools_;
  Store<B, T> store_;
  std::unique_ptr<WholeQ<B, T>> q_;
  std::shared_ptr<dense::Factorization<B, T>> base_, spare_;  // the one before, where factoring anew replaced it
  Planner planner_;
  Index since_drift_ = 0;  // updates since it was measured
  bool changed_ = false, attached_ = false;
  RightSides b_, d_;
};

template <class B, class T>
UpdateReport UpdatedWhole<B, T>::update(const Request& request) {
  using qrane::detail::check;
  check_request(request, subject());
  UpdateReport report = planner_.plan(tools_.profile, request, subject());
  if (shape_of(request, subject()).changes_nothing()) return report;
  const dense::OnDevice<B, T> u(queue(), request.u), v(queue(), request.v), e(queue(), request.e);
  if (request.options.check_finite) {
    dense::check_finite<B, T>(queue(), "u", u.matrix);
    dense::check_finite<B, T>(queue(), "v", v.matrix);
    dense::check_finite<B, T>(queue(), "e", e.matrix);
  }
  tools_.trim();
  tools_.scratch.reset();
  RightSides b;
  const bool rows = request.change == Change::insert_rows || request.change == Change::delete_rows;
  if (attached_ && rows) b = changed_b(request, e.matrix);
  try {
    if (report.method == UpdateMethod::refactor)
      factor_anew(request.updated);
    else
      run(request, report.method == UpdateMethod::trailing, u.matrix, v.matrix);
  } catch (...) {
    tools_.release();
    throw;
  }
  if (attached_ && rows) b_ = std::move(b);
  d_ = {};
  changed_ = true;
  settle();
  condense_when_grown(request.updated);
  refresh_when_due(*this, request.options, request.updated, since_drift_, true, report);
  return report;
}

template <class B, class T>
void UpdatedWhole<B, T>::run(const Request& r, bool trailing, const Mat& u, const Mat& v) {
  const Whole<B, T> whole{tools_, store_, *q_};
  const Index block = r.options.block_cols;
  switch (r.change) {
    case Change::insert_rows: return insert_rows(whole, r.k, u, block);
    case Change::delete_rows: return delete_rows(whole, r.k, r.p, block);
    case Change::insert_columns: return insert_columns(whole, r.k, u, block, trailing);
    case Change::delete_columns: return delete_columns(whole, r.k, r.p, block, trailing);
    case Change::rank_k: return rank_k_update(whole, u, v, block);
  }
}

/// y is m x nrhs, destroyed.
template <class B, class T>
DeviceMatrix<B, T> project(UpdatedWhole<B, T>& f, const DeviceMatrix<B, T>& y, const DeviceMatrix<B, T>&) {
  if (y.cols > 0 && y.rows > 0) f.apply(Op::transpose, y);
  return y.block(0, 0, f.k(), y.cols);
}

/// out := Q small.
template <class B, class T>
void multiply_q(UpdatedWhole<B, T>& f, const Matrix<T>& small, const DeviceMatrix<B, T>& out) {
  if (out.rows == 0 || out.cols == 0) return;
  fill(f.queue(), out, T(0), T(0));
  dense::load<B, T>(f.queue(), small.view(), out.block(0, 0, small.rows(), small.cols()));
  f.apply(Op::none, out);
}

template <class B, class T>
double UpdatedWhole<B, T>::drift(MatrixView<const T> a) {
  check_lent_matrix(a, store_.m, store_.n);
  const bool lent = a.rows > 0 && a.cols > 0;
  if (store_.m == 0) return 0;
  const auto forward = [&](const Mat& x, const Mat& y) {
    copy(queue(), x, y, Part::all);
    q_->apply(Op::none, y);
  };
  const auto backward = [&](const Mat& y, const Mat& x) {
    q_->apply(Op::transpose, y);
    copy(queue(), y.block(0, 0, x.rows, x.cols), x, Part::all);
  };
  // of m columns, and so in units of an m x m problem
  double worst = orthogonality_drift<B, T>(queue(), store_.m, store_.m, forward, backward) *
                 (drift_unit<T>(store_.m, store_.n) / drift_unit<T>(store_.m, store_.m));
  if (lent) {
    const dense::OnDevice<B, T> matrix(queue(), a);
    worst = detail::worse(residual_drift<B, T>(queue(), matrix.matrix, r_source(), backward), worst);
  }
  return worst / drift_unit<T>(store_.m, store_.n);
}

}  // namespace qrane::update
