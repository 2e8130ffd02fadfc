// SPDX-License-Identifier: Apache-2.0
// A factorization that can be updated (update/updated.hpp) behind a handle.
#pragma once

#include <optional>
#include <utility>

#include "api/factor_state.hpp"
#include "api/updates.hpp"
#include "update/batch.hpp"
#include "update/full_q/updated_whole.hpp"

namespace qrane::detail {

/// Core: update::Updated, or UpdatedWhole, which has all of Q.
template <class B, class T, class Core>
class UpdatedStateOf final : public FactorState<UpdatableState<T>, B, T, Core> {
  using State = FactorState<UpdatableState<T>, B, T, Core>;
  using State::f_, State::rank_, State::where_, State::check_q, State::view, State::relative, State::finish;

 public:
  using typename State::Mat;
  static constexpr bool whole = std::is_same_v<Core, update::UpdatedWhole<B, T>>;

  template <class F>
  UpdatedStateOf(F&& f, const plan::DeviceProfile& profile, Memory where)
      : State(profile, where, std::forward<F>(f), profile) {}

  UpdateReport update(const update::UpdateRequest<T>& request) override {
    if (!timed_) {
      UpdateReport report = f_.update(request);
      rank_.reset();
      return report;
    }
    f_.queue().synchronize();
    const auto begin = f_.queue().record();
    UpdateReport report = f_.update(request);
    rank_.reset();
    const auto end = f_.queue().record();
    report.measured_ms = f_.queue().elapsed_ms(begin, end);
    return report;
  }
  UpdateReport plan_update(Change change, Index k, Index p, const UpdateOptions& options, bool with_updated) override {
    return f_.plan_update({change, k, p, {}, {}, {}, options, {}, {}, {}, with_updated});
  }
  double drift(MatrixView<const T> a) override { return f_.drift(a); }
  void time_updates(bool on) override {
    timed_ = on;
    if constexpr (!whole) f_.time_stages(on);
  }
  Index refused_updates() override {
    if constexpr (whole)
      return 0;
    else
      return f_.refused_updates();
  }

  void attach(MatrixView<const T> b, MatrixView<const T> a) override {
    f_.attach(b, a);
    rank_.reset();
  }
  Solution<T> solve_attached(const SolveOptions& options) override {
    check_attached();
    return solve_d(options);
  }
  Matrix<T> projected() override {
    check_attached();
    return finish(f_.d());
  }
  /// With a rank-deficient R the part of d that R x does not reach counts, too.
  std::vector<double> residual_norms() override {
    check_attached();
    std::vector<double> norms = f_.residual_norms();
    if (f_.k() == 0 || view().decide(relative(-1)) == f_.k()) return norms;
    const Solution<T> x = solve_d({});
    const dense::Temporary<B, T> rest(f_.queue(), f_.k(), f_.d().cols), r(f_.queue(), f_.k(), f_.plan().cols);
    const dense::OnDevice<B, T> solution(f_.queue(), x.x.view());
    copy(f_.queue(), f_.d(), rest.matrix, backend::Part::all);
    copy(f_.queue(), f_.r_source(), r.matrix, backend::Part::upper);
    const std::vector<double> more =
        dense::general_residual_norms<B, T>(f_.queue(), r.matrix, solution.matrix, rest.matrix);
    for (std::size_t j = 0; j < norms.size(); ++j) norms[j] = std::hypot(norms[j], more[j]);
    return norms;
  }

  void refactor(MatrixView<const T> a) override {
    f_.refactor(a);
    rank_.reset();
    where_ = a.memory;
  }
  std::unique_ptr<UpdatableState<T>> updatable() override { return nullptr; }

  Matrix<T> r(Columns columns) override {
    const Index rows = columns == Columns::full ? f_.plan().rows : f_.k();
    dense::Temporary<B, T> out(f_.queue(), rows, f_.plan().cols);
    write_r(out.matrix);
    return finish(out.matrix);
  }
  Matrix<T> q(Columns columns) override {
    check_q();
    check(whole || columns == Columns::thin, ErrorCode::unavailable,
          "full Q needs reflectors; factor with QForm::implicit, lapack or full, not ", to_string(f_.plan().q));
    dense::Temporary<B, T> out(f_.queue(), f_.plan().rows, columns == Columns::thin ? f_.k() : f_.plan().rows);
    f_.form(out.matrix);
    return finish(out.matrix);
  }
  void r_into(MatrixView<T> out) override {
    dense::write_into<B, T>(f_.queue(), out, f_.k(), f_.plan().cols, "R", [&](const Mat& target) { write_r(target); });
  }
  void q_into(MatrixView<T> out) override {
    check_q();
    dense::write_into<B, T>(f_.queue(), out, f_.plan().rows, f_.k(), "the thin Q",
                            [&](const Mat& target) { f_.form(target); });
  }
  void apply(MatrixView<T> c, Side side, bool transpose) override {
    dense::check_view("c", c);
    if constexpr (whole)
      this->apply_to(c, side, transpose);
    else
      this->refuse_application();
  }

  Determinant determinant() override {
    check(f_.plan().rows == f_.plan().cols, ErrorCode::invalid_argument, "the determinant needs a square matrix, got ",
          f_.plan().rows, " x ", f_.plan().cols);
    if constexpr (whole) {
      if (!f_.changed() && f_.plan().q != QForm::full) return dense::determinant(f_.base(), view());
    }
    throw Error(ErrorCode::unavailable,
                "the determinant's sign needs reflectors; factor with QForm::implicit or lapack");
  }
  Reflectors<T> reflectors() override {
    if constexpr (whole) {
      if (!f_.changed() && f_.plan().q == QForm::lapack) {
        const Mat tau = f_.base().tau_row();
        return {finish(f_.base().v()), finish(Mat{tau.data, tau.cols, 1, std::max<Index>(tau.cols, 1), 0, 1})};
      }
    }
    check(f_.plan().q != QForm::lapack, ErrorCode::unavailable,
          "an updated factorization has no LAPACK-shaped reflectors: its Q is a product of several");
    throw Error(ErrorCode::unavailable,
                concat("LAPACK-shaped reflectors need QForm::lapack; this factorization has ", to_string(f_.plan().q)));
  }
  bool fell_back() override { return false; }
  Stage stage() override { return Stage::planned; }

 private:
  void check_attached() const {
    check(f_.attached(), ErrorCode::unavailable,
          "no right-hand sides are attached: UpdatableQR::attach(b) comes first");
  }
  Solution<T> solve_d(const SolveOptions& options) {
    const dense::Temporary<B, T> y(f_.queue(), f_.k(), f_.d().cols);
    if (f_.k() > 0) copy(f_.queue(), f_.d(), y.matrix, backend::Part::all);
    return dense::solve_projected<B, T>(f_, view(), f_.profile(), y.matrix, options, where_);
  }
  void write_r(const Mat& target) {
    const Index k = f_.k();
    if (target.cols == 0) return;
    if (k > 0) copy(f_.queue(), f_.r_source(), target.block(0, 0, k, target.cols), backend::Part::upper);
    if (target.rows > k) fill(f_.queue(), target.block(k, 0, target.rows - k, target.cols), T(0), T(0));
  }

  bool timed_ = false;
};

template <class B, class T>
std::unique_ptr<UpdatableState<T>> Updates<B, T>::take(dense::Factorization<B, T>& f,
                                                       const plan::DeviceProfile& profile, Memory where) {
  using update::Updated, update::UpdatedWhole;
  if (f.plan().q == QForm::thin || f.plan().q == QForm::none)
    return std::make_unique<UpdatedStateOf<B, T, Updated<B, T>>>(f, profile, where);
  // reflectors stay where they are, with a new owner
  const auto shared = std::make_shared<dense::Factorization<B, T>>(std::move(f));
  try {
    return std::make_unique<UpdatedStateOf<B, T, UpdatedWhole<B, T>>>(shared, profile, where);
  } catch (...) {
    f = std::move(*shared);
    throw;
  }
}

template <class B, class T>
BatchUpdateReport Updates<B, T>::update(std::shared_ptr<update::BatchUpdates<B, T>>& updates,
                                        dense::Factorization<B, T>& f, const plan::DeviceProfile& profile,
                                        const update::BatchUpdateRequest<T>& request) {
  if (!updates) updates = std::make_shared<update::BatchUpdates<B, T>>(f.queue(), profile);
  return updates->update(f, request);
}

}  // namespace qrane::detail
