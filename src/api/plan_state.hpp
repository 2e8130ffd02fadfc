// SPDX-License-Identifier: Apache-2.0
// What the handles SvdPlan<T> and LeastSquaresPlan<T> hold: one implementation per backend (plan_engine.hpp).
#pragma once

#include <qrane/least_squares.hpp>
#include <qrane/svd.hpp>

namespace qrane::detail {

template <class T>
class SvdPlanState {
 public:
  virtual ~SvdPlanState() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  virtual const Plan& plan() const = 0;
  virtual std::int64_t workspace_bytes() = 0;
  virtual bool on_device() const = 0;
  virtual void execute(MatrixView<const T> a, MatrixView<T> s, MatrixView<T> u, MatrixView<T> vt) = 0;
  virtual bool finish() = 0;
};

template <class T>
class LeastSquaresPlanState {
 public:
  virtual ~LeastSquaresPlanState() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  virtual Index rhs_cols() const = 0;
  virtual const Plan& plan() const = 0;
  virtual std::int64_t workspace_bytes() = 0;
  virtual void execute(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x) = 0;
  virtual Solution<T> finish() = 0;
};

}  // namespace qrane::detail
