// SPDX-License-Identifier: Apache-2.0
// What a PivotedQR<T> handle holds: one implementation per backend (api/pivoted_engine.hpp).
#pragma once

#include <qrane/pivoted_qr.hpp>

namespace qrane::detail {

template <class T>
class PivotedState {
 public:
  virtual ~PivotedState() = default;
  virtual Index rows() const = 0;
  virtual Index cols() const = 0;
  virtual Index rank() = 0;
  virtual Index kept() = 0;
  virtual double absolute_tolerance() = 0;
  virtual Pivoting pivoting() const = 0;
  virtual std::vector<Index> permutation() = 0;
  virtual Matrix<T> r() = 0;
  virtual Matrix<T> q() = 0;
  virtual void apply(MatrixView<T> c, Side side, bool transpose) = 0;
  virtual Solution<T> solve(MatrixView<const T> b, const SolveOptions& options) = 0;
};

}  // namespace qrane::detail
