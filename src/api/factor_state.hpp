// SPDX-License-Identifier: Apache-2.0
// What the states of a QR and of an UpdatableQR answer alike: solves, rank and bases, from R and products with Q.
#pragma once

#include <optional>
#include <utility>

#include "api/state.hpp"
#include "dense/solve/consume.hpp"

namespace qrane::detail {

/// Base: BatchState<T> or UpdatableState<T>. Core: the factorization; it has queue(), plan(), k(), r_source(), and
/// where Q can be applied apply().
template <class Base, class B, class T, class Core>
class FactorState : public Base {
 public:
  using Mat = backend::DeviceMatrix<B, T>;

  const Plan& plan() const final { return f_.plan(); }
  Solution<T> solve(MatrixView<const T> b, const SolveOptions& options) final {
    check_q();
    return dense::solve<B, T>(f_, view(), profile_, b, options, b.memory);
  }
  double condition() final { return view().condition; }
  RankReport rank(double relative_tolerance) final {
    RankReport report;
    report.full = f_.k();
    report.condition = view().condition;
    report.rank = view().numerical_rank(relative(relative_tolerance), &report.absolute_tolerance);
    return report;
  }
  Matrix<T> range_basis(double relative_tolerance) final {
    check_q();
    return dense::range_basis<B, T>(f_, view(), relative(relative_tolerance), where_);
  }
  Matrix<T> null_space_basis(double relative_tolerance) final {
    return dense::null_space_basis<B, T>(f_, view(), relative(relative_tolerance), where_);
  }

 protected:
  template <class... Args>
  FactorState(plan::DeviceProfile profile, Memory where, Args&&... core)
      : profile_(std::move(profile)), where_(where), f_(std::forward<Args>(core)...) {}

  void check_q() const {
    check(f_.plan().q != QForm::none, ErrorCode::unavailable,
          "Q was not kept: the factorization was made with QForm::none");
  }
  [[noreturn]] void refuse_application() const {
    throw Error(ErrorCode::unavailable, concat("applying Q needs reflectors; factor with QForm::implicit, lapack or "
                                               "full, not ",
                                               to_string(f_.plan().q)));
  }
  void apply_to(const MatrixView<T>& c, Side side, bool transpose) {
    const Index m = f_.plan().rows;
    check((side == Side::left ? c.rows : c.cols) == m, ErrorCode::invalid_argument, "c is ", c.rows, " x ", c.cols,
          ", but Q is ", m, " x ", m, " and is applied from the ", side == Side::left ? "left" : "right");
    dense::apply_to_view<B, T>(f_.queue(), c, side == Side::right, transpose,
                               [&](backend::Op op, const Mat& matrix) { f_.apply(op, matrix); });
  }
  double relative(double tolerance) const {
    return dense::tolerance_or_default<T>(tolerance, f_.plan().rows, f_.plan().cols);
  }
  /// R's condition and rank, until R changes.
  dense::RankView<B, T>& view() {
    check(f_.plan().count == 1, ErrorCode::invalid_argument, "rank and solve take one matrix, not a batch");
    if (!rank_) rank_.emplace(f_);
    return *rank_;
  }
  Matrix<T> finish(const Mat& a) {
    Matrix<T> out = dense::export_matrix<B, T>(f_.queue(), a, where_);
    f_.queue().synchronize();
    return out;
  }

  plan::DeviceProfile profile_;
  Memory where_;
  Core f_;
  std::optional<dense::RankView<B, T>> rank_;
};

}  // namespace qrane::detail
