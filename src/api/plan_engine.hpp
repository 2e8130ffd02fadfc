// SPDX-License-Identifier: Apache-2.0
// What a backend puts behind SvdPlan<T> and LeastSquaresPlan<T>.
#pragma once

#include "api/plan_state.hpp"
#include "dense/solve/least_squares.hpp"
#include "dense/solve/svd.hpp"

namespace qrane::detail {

template <class B, class T>
class SvdPlanStateOf final : public SvdPlanState<T> {
 public:
  SvdPlanStateOf(const typename B::Queue& queue, const plan::DeviceProfile& profile, Index rows, Index cols,
                 const SvdOptions& options)
      : check_finite_(options.check_finite), work_(queue, profile, rows, cols, options, dense::Fallback::queued) {}
  Index rows() const override { return work_.rows(); }
  Index cols() const override { return work_.cols(); }
  const Plan& plan() const override { return work_.plan(); }
  std::int64_t workspace_bytes() override { return work_.workspace_bytes(); }
  bool on_device() const override { return work_.on_device(); }
  void execute(MatrixView<const T> a, MatrixView<T> s, MatrixView<T> u, MatrixView<T> vt) override {
    executed_ = false;
    work_.execute(a, s, u, vt, check_finite_);
    executed_ = true;
  }
  bool finish() override {
    check(executed_, ErrorCode::invalid_argument, "SvdPlan::finish() before execute()");
    return work_.finish();
  }

 private:
  bool check_finite_, executed_ = false;
  dense::SvdWork<B, T> work_;
};

template <class B, class T>
class LeastSquaresPlanStateOf final : public LeastSquaresPlanState<T> {
 public:
  LeastSquaresPlanStateOf(const typename B::Queue& queue, const plan::DeviceProfile& profile, Index rows, Index cols,
                          Index nrhs, const LeastSquaresOptions& options)
      : options_(options), work_(queue, profile, rows, cols, nrhs, options.algorithm, dense::Fallback::queued) {}
  Index rows() const override { return work_.rows(); }
  Index cols() const override { return work_.cols(); }
  Index rhs_cols() const override { return work_.rhs_cols(); }
  const Plan& plan() const override { return work_.plan(); }
  std::int64_t workspace_bytes() override { return work_.workspace_bytes(); }
  void execute(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x) override {
    executed_ = false;
    work_.execute(a, b, x, options_.check_finite, false);
    executed_ = true;
  }
  Solution<T> finish() override {
    check(executed_, ErrorCode::invalid_argument, "LeastSquaresPlan::finish() before execute()");
    return work_.finish(options_.solve);
  }

 private:
  LeastSquaresOptions options_;
  bool executed_ = false;
  dense::LeastSquaresWork<B, T> work_;
};

}  // namespace qrane::detail
