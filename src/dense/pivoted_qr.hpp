// SPDX-License-Identifier: Apache-2.0
// A P = Q R of any shape. With more rows than columns A = Q1 R1 comes first, by whatever qr() would take for the form
// of Q asked for, then R1 P = Q2 R on the triangle, so that Q = Q1 diag(Q2, I); else A itself is pivoted
// (pivoted_matrix.hpp). Cost: that of qr() and 8 n^3 / 3 flops of the triangle, of which A sees nothing.
#pragma once

#include <optional>

#include <qrane/pivoted_qr.hpp>

#include "dense/solve/consume.hpp"

namespace qrane::dense {

template <class B, class T>
class PivotedFactorization {
 public:
  using Queue = typename B::Queue;
  using Mat = backend::DeviceMatrix<B, T>;

  PivotedFactorization(Queue queue, const plan::DeviceProfile& profile, Index rows, Index cols, const PivotOptions& o)
      : queue_(std::move(queue)), profile_(profile), options_(o), rows_(rows), cols_(cols) {
    using detail::check;
    check(o.q != QForm::lapack && o.q != QForm::full, ErrorCode::invalid_argument,
          "pivoted_qr keeps Q as implicit, thin or none, not ", to_string(o.q));
    const Index k = std::min(rows, cols), steps = o.max_rank < 0 ? k : std::min(k, o.max_rank);
    options_.relative_tolerance = tolerance_or_default<T>(o.relative_tolerance, rows, cols);
    if (options_.pivoting == Pivoting::automatic)
      options_.pivoting = k > widest_exact_pivoting ? Pivoting::randomized : Pivoting::exact;
    if (rows > cols) {
      Options wish;
      wish.q = o.q;
      first_.emplace(queue_, plan::make_plan(profile, rows, cols, 1, sizeof(T), wish));
    }
    small_.emplace(queue_, k, cols, steps, options_.pivoting == Pivoting::randomized);
  }

  void run(MatrixView<const T> a) {
    if (!first_) {
      load<B, T>(queue_, a, small_->a());
      if (options_.check_finite) check_finite<B, T>(queue_, "A", small_->a());
    } else {
      factor_first(a);
      copy(queue_, first_->r_source(), small_->a(), backend::Part::upper);
    }
    small_->run(options_.relative_tolerance, options_.truncate);
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index rank() { return std::min(small_->rank(), kept()); }
  Index kept() { return small_->kept(); }
  Pivoting pivoting() const { return options_.pivoting; }
  double absolute_tolerance() { return options_.relative_tolerance * small_->first_diagonal(); }
  const std::vector<std::int32_t>& columns() { return small_->columns(); }
  Queue& queue() { return queue_; }

  void r(const Mat& out) { copy(queue_, small_->packed().block(0, 0, out.rows, out.cols), out, backend::Part::upper); }

  /// out, m x kept := the leading columns of Q.
  void q(const Mat& out) {
    need_q();
    fill(queue_, out, T(0), T(1));
    if (first_ && options_.q == QForm::thin) {
      Temporary<B, T> inner(queue_, cols_, out.cols);
      fill(queue_, inner.matrix, T(0), T(1));
      small_->apply(backend::Op::none, inner.matrix);
      gemm(queue_, backend::Op::none, backend::Op::none, T(1), first_->q(), inner.matrix, T(0), out);
      queue_.synchronize();
      return;
    }
    small_->apply(backend::Op::none, out.block(0, 0, small_->a().rows, out.cols));
    if (first_) first_->apply(backend::Op::none, out);
  }

  /// C := op(Q) C with the m x m Q.
  void apply(backend::Op op, const Mat& c) {
    detail::check(options_.q == QForm::implicit, ErrorCode::unavailable,
                  "applying Q needs reflectors; factor with QForm::implicit, not ", to_string(options_.q));
    const Mat top = c.block(0, 0, small_->a().rows, c.cols);
    if (op == backend::Op::none) small_->apply(op, top);
    if (first_) first_->apply(op, c);
    if (op == backend::Op::transpose) small_->apply(op, top);
  }

  Solution<T> solve(MatrixView<const T> b, const SolveOptions& options) {
    using backend::Op;
    check_view("b", b);
    detail::check(b.rows == rows_, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", rows_);
    need_q();
    const double tolerance = options.relative_tolerance >= 0 ? options.relative_tolerance : options_.relative_tolerance;
    Solution<T> out;
    out.full = std::min(rows_, cols_);
    out.rank = small_->rank_at(tolerance);
    out.condition = condition();
    refuse_deficient(options, out.rank, out.full, tolerance, out.condition);
    Temporary<B, T> right(queue_, rows_, b.cols), inner(queue_, cols_, b.cols);
    load<B, T>(queue_, b, right.matrix);
    Mat y = right.matrix.block(0, 0, small_->a().rows, b.cols);
    if (first_ && options_.q == QForm::thin) {
      gemm(queue_, Op::transpose, Op::none, T(1), first_->q(), right.matrix, T(0), inner.matrix);
      y = inner.matrix;
    } else if (first_) {
      first_->apply(Op::transpose, right.matrix);
    }
    out.x = solve_pivoted<B, T>(queue_, profile_, *small_, out.rank, y, options.least_norm, b.memory);
    queue_.synchronize();
    return out;
  }

 private:
  void need_q() const {
    detail::check(options_.q != QForm::none, ErrorCode::unavailable,
                  "this needs Q, but the factorization was made with QForm::none");
  }

  void factor_first(MatrixView<const T> a) {
    if (is_resident<B>(a) && a.layout == Layout::column_major) {
      const Mat matrix = as_device<B>(a);
      if (options_.check_finite) check_finite<B, T>(queue_, "A", matrix);
      first_->run(matrix);
      return;
    }
    Temporary<B, T> matrix(queue_, rows_, cols_);
    load<B, T>(queue_, a, matrix.matrix);
    if (options_.check_finite) check_finite<B, T>(queue_, "A", matrix.matrix);
    first_->run(matrix.matrix);
    queue_.synchronize();
  }

  double condition() {
    const Index k = std::min(rows_, cols_);
    if (kept() < k) return std::numeric_limits<double>::infinity();
    return triangle_facts<B, T>(queue_, small_->packed().block(0, 0, k, k)).condition;
  }

  Queue queue_;
  plan::DeviceProfile profile_;
  PivotOptions options_;
  Index rows_, cols_;
  std::optional<Factorization<B, T>> first_;
  std::optional<PivotedMatrix<B, T>> small_;
};

}  // namespace qrane::dense
