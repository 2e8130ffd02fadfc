// SPDX-License-Identifier: Apache-2.0
// A factorization, of one matrix or a batch, behind a handle.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "api/factor_state.hpp"
#include "api/updates.hpp"
#include "dense/solve/batch_solve.hpp"
#include "dense/solve/consume.hpp"

namespace qrane::detail {

template <class B, class T>
class QRStateOf final : public FactorState<BatchState<T>, B, T, dense::Factorization<B, T>> {
  using State = FactorState<BatchState<T>, B, T, dense::Factorization<B, T>>;
  using State::f_, State::profile_, State::rank_, State::where_, State::check_q, State::view, State::finish;

 public:
  using typename State::Mat;

  QRStateOf(typename B::Queue queue, plan::DeviceProfile profile, Plan plan, const Options& options, Memory where,
            std::optional<Mat> in_place = {})
      : State(std::move(profile), where, std::move(queue), std::move(plan), in_place), options_(options) {}

  void refactor(MatrixView<const T> a) override { refactor(BatchView<const T>{a, 0, 1, nullptr}); }
  void refactor(BatchView<const T> a) override {
    const Plan& p = f_.plan();
    check(a.first.rows == p.rows && a.first.cols == p.cols && a.count == p.count, ErrorCode::invalid_argument,
          "refactor takes the planned shape, ", p.count, " of ", p.rows, " x ", p.cols, "; got ", a.count, " of ",
          a.first.rows, " x ", a.first.cols);
    rank_.reset();
    where_ = a.first.memory;
    dense::check_batch("A", a);
    if (p.expert.small && dense::has_device_table<B>(a) && !options_.check_finite &&
        a.first.layout == Layout::column_major) {
      f_.run_table(a.pointers, a.first.ld);
      return;
    }
    const Mat input = bring(a);
    if (options_.check_finite)
      for (Index b = 0; b < p.count; ++b) dense::check_finite<B, T>(f_.queue(), "A", input.matrix(b));
    f_.run(input);
  }
  /// For qr_from_reflectors.
  void restore(MatrixView<const T> packed, MatrixView<const T> tau) {
    Matrix<T> on_host = Matrix<T>::host(tau.rows, 1);
    dense::Temporary<B, T> staged(f_.queue(), tau.rows, 1);
    dense::load<B, T>(f_.queue(), tau, staged.matrix);
    dense::store<B, T>(f_.queue(), staged.matrix, on_host.view());
    f_.restore(bring({packed, 0, 1, nullptr}), on_host.data());
  }
  /// For qr_in_place: v() already holds the data.
  void factor_in_place() {
    if (options_.check_finite)
      for (Index b = 0; b < f_.plan().count; ++b) dense::check_finite<B, T>(f_.queue(), "A", f_.v().matrix(b));
    f_.run(f_.v());
  }

  Matrix<T> r(Columns columns) override {
    const Plan& p = f_.plan();
    check(columns == Columns::thin || p.count == 1, ErrorCode::invalid_argument, "a batch gives thin R only");
    const Index k = f_.k(), n = p.cols;
    if (columns == Columns::full && p.rows > k) {
      dense::Temporary<B, T> full(f_.queue(), p.rows, n);
      fill(f_.queue(), full.matrix, T(0), T(0));
      copy(f_.queue(), f_.r_source(), full.matrix.block(0, 0, k, n), backend::Part::upper);
      return finish(full.matrix);
    }
    dense::Temporary<B, T> out(f_.queue(), k, n * p.count);
    copy(f_.queue(), f_.r_source(), side_by_side(out.matrix, n), backend::Part::upper);
    return finish(out.matrix);
  }

  Matrix<T> q(Columns columns) override {
    const Plan& p = f_.plan();
    check_q();
    check(columns == Columns::thin || p.q != QForm::thin, ErrorCode::unavailable,
          "full Q needs reflectors; factor with QForm::implicit, lapack or full, not ", to_string(p.q));
    check(columns == Columns::thin || p.count == 1, ErrorCode::invalid_argument, "a batch gives thin Q only");
    const Index cols = columns == Columns::thin ? f_.k() : p.rows;
    dense::Temporary<B, T> out(f_.queue(), p.rows, cols * p.count);
    const Mat target = side_by_side(out.matrix, cols);
    write_q(target);
    return finish(out.matrix);
  }

  void r_into(MatrixView<T> out) override {
    const Plan& p = f_.plan();
    dense::write_into<B, T>(f_.queue(), out, f_.k(), p.cols, "R",
                            [&](const Mat& target) { copy(f_.queue(), f_.r_source(), target, backend::Part::upper); });
  }

  void q_into(MatrixView<T> out) override {
    const Plan& p = f_.plan();
    check_q();
    dense::write_into<B, T>(f_.queue(), out, p.rows, f_.k(), "the thin Q", [&](const Mat& target) { write_q(target); });
  }

  void apply(MatrixView<T> c, Side side, bool transpose) override {
    dense::check_view("c", c);
    check_applies();
    this->apply_to(c, side, transpose);
  }

  Determinant determinant() override { return dense::determinant(f_, view()); }
  Reflectors<T> reflectors() override {
    check_lapack();
    const Plan& p = f_.plan();
    Reflectors<T> out;
    dense::Temporary<B, T> packed(f_.queue(), p.rows, p.count == 1 ? 0 : p.cols * p.count);
    if (p.count != 1) copy(f_.queue(), f_.v(), side_by_side(packed.matrix, p.cols), backend::Part::all);
    out.packed = dense::export_matrix<B, T>(f_.queue(), p.count == 1 ? f_.v() : packed.matrix, where_);
    const Mat tau = f_.tau_row();  // contiguous: the rows are the columns of one matrix, too
    out.tau = finish({tau.data, tau.cols, p.count, std::max<Index>(tau.cols, 1), 0, 1});
    return out;
  }

  BatchUpdateReport update_batch(const update::BatchUpdateRequest<T>& request) override {
    BatchUpdateReport report = Updates<B, T>::update(updates_, f_, profile_, request);
    rank_.reset();
    staging_ = {};
    return report;
  }

  void r_into_batch(BatchView<T> out) override {
    check_shape("out", out, f_.k(), f_.plan().cols);
    dense::through_batch<B, T>(f_.queue(), out, false, [&](const Mat& target) {
      copy(f_.queue(), f_.r_source(), target, backend::Part::upper);
    });
  }
  void q_into_batch(BatchView<T> out) override {
    const Plan& p = f_.plan();
    check_q();
    check_shape("out", out, p.rows, f_.k());
    dense::through_batch<B, T>(f_.queue(), out, false, [&](const Mat& target) { write_q(target); });
  }
  void apply_batch(BatchView<T> c, bool transpose) override {
    check_applies();
    check_shape("c", c, f_.plan().rows, c.first.cols);
    dense::through_batch<B, T>(f_.queue(), c, true, [&](const Mat& target) {
      f_.apply(transpose ? backend::Op::transpose : backend::Op::none, target);
    });
  }
  void reflectors_into_batch(BatchView<T> packed, BatchView<T> tau) override {
    check_lapack();
    check_shape("tau", tau, f_.k(), 1);
    if (packed.first.data != nullptr || packed.first.buffer != nullptr || packed.pointers != nullptr) {
      check_shape("packed", packed, f_.plan().rows, f_.plan().cols);
      dense::through_batch<B, T>(f_.queue(), packed, false,
                                 [&](const Mat& target) { copy(f_.queue(), f_.v(), target, backend::Part::all); });
    }
    dense::through_batch<B, T>(f_.queue(), tau, false, [&](const Mat& target) {
      const Mat row = f_.tau_row();
      copy(f_.queue(), {row.data, row.cols, 1, std::max<Index>(row.cols, 1), row.stride, row.count}, target,
           backend::Part::all);
    });
  }
  BatchSolution<T> solve_batch(BatchView<const T> b, const SolveOptions& options) override {
    const Index n = f_.plan().cols, nrhs = b.first.cols;
    BatchSolution<T> out;
    out.full = f_.k();
    out.x = b.first.memory == Memory::host ? Matrix<T>::host(n, nrhs * f_.plan().count)
                                           : dense::device_matrix<B, T>(f_.queue(), n, nrhs * f_.plan().count);
    MatrixView<T> first = out.x.view();
    first.cols = nrhs;
    out.rank = solve_into_batch(b, {first, first.ld * nrhs, f_.plan().count, nullptr}, options);
    return out;
  }
  std::vector<Index> solve_into_batch(BatchView<const T> b, BatchView<T> x, const SolveOptions& options) override {
    check_q();
    check_shape("b", b, f_.plan().rows, b.first.cols);
    check_shape("x", x, f_.plan().cols, b.first.cols);
    return dense::solve_batch(f_, b, x, options);
  }

  bool fell_back() override { return f_.fell_back(); }
  Stage stage() override { return f_.stage(); }
  std::unique_ptr<UpdatableState<T>> updatable() override { return Updates<B, T>::take(f_, profile_, where_); }

 private:
  void check_applies() const {
    if (!f_.keeps_reflectors() && f_.plan().q != QForm::full) this->refuse_application();
  }
  /// target := the leading columns of Q.
  void write_q(const Mat& target) {
    if (f_.has_explicit_q())
      copy(f_.queue(), f_.q().columns(0, target.cols), target, backend::Part::all);
    else
      f_.form(target);
  }
  void check_lapack() const {
    check(f_.plan().q == QForm::lapack, ErrorCode::unavailable,
          "LAPACK-shaped reflectors need QForm::lapack; this factorization has ", to_string(f_.plan().q));
  }
  template <class U>
  void check_shape(const char* name, const BatchView<U>& a, Index rows, Index cols) const {
    dense::check_batch(name, a);
    check(a.count == f_.plan().count && a.first.rows == rows && a.first.cols == cols, ErrorCode::invalid_argument, name,
          " is a batch of ", a.count, " of ", a.first.rows, " x ", a.first.cols, " where ", f_.plan().count, " of ",
          rows, " x ", cols, " are needed");
  }
  Mat side_by_side(const Mat& all, Index cols) const {
    return {all.data, all.rows, cols, all.ld, all.ld * cols, f_.plan().count};
  }

  /// The batch on the device: where it is, or copied into the factorization's memory or a staging buffer.
  Mat bring(const BatchView<const T>& a) {
    const MatrixView<const T>& first = a.first;
    if (dense::is_direct<B>(a)) return dense::as_device_batch<B>(a);
    Mat target = f_.v();
    if (!f_.keeps_reflectors()) {
      if (staging_.bytes() == 0)
        staging_ = dense::Buffer<B>(f_.queue(),
                                    backend::bytes_of(std::max<Index>(first.rows, 1), first.cols, a.count, sizeof(T)));
      const Index ld = std::max<Index>(first.rows, 1);
      target = {staging_.template as<T>(), first.rows, first.cols, ld, ld * first.cols, a.count};
    }
    dense::load_batch<B, T>(f_.queue(), a, target);
    return target;
  }

  Options options_;
  std::shared_ptr<update::BatchUpdates<B, T>> updates_;
  dense::Buffer<B> staging_;
};

}  // namespace qrane::detail
