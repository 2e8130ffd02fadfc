// SPDX-License-Identifier: Apache-2.0
// A pivoted factorization behind a handle.
#pragma once

#include <utility>

#include "api/pivoted_state.hpp"
#include "dense/pivoted_qr.hpp"

namespace qrane::detail {

template <class B, class T>
class PivotedStateOf final : public PivotedState<T> {
 public:
  PivotedStateOf(typename B::Queue queue, const plan::DeviceProfile& profile, MatrixView<const T> a,
                 const PivotOptions& options)
      : where_(a.memory), f_(std::move(queue), profile, a.rows, a.cols, options) {
    f_.run(a);
  }

  Index rows() const override { return f_.rows(); }
  Index cols() const override { return f_.cols(); }
  Index rank() override { return f_.rank(); }
  Index kept() override { return f_.kept(); }
  double absolute_tolerance() override { return f_.absolute_tolerance(); }
  Pivoting pivoting() const override { return f_.pivoting(); }
  std::vector<Index> permutation() override { return {f_.columns().begin(), f_.columns().end()}; }

  Matrix<T> r() override {
    dense::Temporary<B, T> out(f_.queue(), f_.kept(), f_.cols());
    f_.r(out.matrix);
    return finish(out.matrix);
  }
  Matrix<T> q() override {
    dense::Temporary<B, T> out(f_.queue(), f_.rows(), f_.kept());
    f_.q(out.matrix);
    return finish(out.matrix);
  }
  void apply(MatrixView<T> c, Side side, bool transpose) override {
    dense::check_view("c", c);
    check((side == Side::left ? c.rows : c.cols) == rows(), ErrorCode::invalid_argument, "c is ", c.rows, " x ", c.cols,
          ", but Q is ", rows(), " x ", rows(), " and is applied from the ", side == Side::left ? "left" : "right");
    dense::apply_to_view<B, T>(f_.queue(), c, side == Side::right, transpose,
                               [&](backend::Op op, const auto& matrix) { f_.apply(op, matrix); });
  }
  Solution<T> solve(MatrixView<const T> b, const SolveOptions& options) override { return f_.solve(b, options); }

 private:
  Matrix<T> finish(const backend::DeviceMatrix<B, T>& a) {
    Matrix<T> out = dense::export_matrix<B, T>(f_.queue(), a, where_);
    f_.queue().synchronize();
    return out;
  }

  Memory where_;
  dense::PivotedFactorization<B, T> f_;
};

}  // namespace qrane::detail
