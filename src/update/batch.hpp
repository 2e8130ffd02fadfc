// SPDX-License-Identifier: Apache-2.0
// Rows and columns of all matrices of a batch that come and go at once, R and thin Q or R alone. The matrices are small
// and many, so every update is a batched factorization of small data and a batched product, whose latencies the batch
// shares:
//
//     rows in       [R; U] = P R~                       Q~ = [Q P_1; P_2]
//     columns out   R without them = P R~               Q~ = Q P
//     rows out      Q without them = P S, R~ = S R      Q~ = P: orthonormal whatever the rows carried
//     R alone       W = R^-T Uᵀ, LᵀL = I - WᵀW, and the Qᵀ that takes [W; L] to [I; 0] takes [R; 0] to [U; R~]:
//     LINPACK's
//                   way. A matrix whose I - WᵀW is not positive definite to working accuracy stays as it was.
//
// Each matrix's result depends on that matrix alone. Source: Hammarling, Lucas (2008), sections 2 and 3; Dongarra and
// others, LINPACK Users' Guide (1979), chapter 10. Where a backend has `batch_update` (or for rows out of R alone
// `update_rows`), few rows or columns of small matrices are one launch.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "dense/batch_io.hpp"
#include "update/choice/request.hpp"
#include "update/no_q/rows.hpp"
#include "vocabulary/updates.hpp"

namespace qrane::update {

using backend::takes_batch_update;

template <class B, class T>
class BatchUpdates {
 public:
  using F = dense::Factorization<B, T>;
  using Mat = backend::DeviceMatrix<B, T>;
  using Request = BatchUpdateRequest<T>;

  BatchUpdates(const typename B::Queue& queue, const plan::DeviceProfile& profile) : queue_(queue), profile_(profile) {}

  /// f becomes the factorizations of the changed matrices; as it was where this throws.
  BatchUpdateReport update(F& f, const Request& r) {
    const Plan& plan = f.plan();
    check(plan, r);
    BatchUpdateReport report;
    static_cast<UpdateReport&>(report) = planned(plan, r);
    if (r.p == 0) return report;
    if (kept_.size() > most_kept) kept_.clear();
    const Staged block(queue_, r.block, r.options.check_finite);
    F next = r.change == Change::insert_rows      ? insert_rows(f, r.k, block.matrices)
             : r.change == Change::delete_columns ? delete_columns(f, r.k, r.p)
             : plan.q == QForm::thin              ? delete_rows(f, r.k, r.p)
                                                  : delete_rows(f, block.matrices, report.refused_matrices);
    report.refused = !report.refused_matrices.empty();
    std::swap(f, next);
    if (spare_.size() >= most_kept) spare_.clear();
    spare_.insert_or_assign({next.plan().rows, next.plan().cols}, std::move(next));
    return report;
  }

 private:
  using Part = backend::Part;
  using Batch = dense::TemporaryBatch<B, T>;
  static constexpr std::size_t most_kept = 4;

  /// Of the matrices with the rows u (p x n each) before row k.
  F insert_rows(F& f, Index k, const Mat& u) {
    const Index m = f.plan().rows, n = f.plan().cols, p = u.rows, s = f.k();
    F out = shaped(f, m + p, n);
    if (empty(out) || in_one_launch(f, Change::insert_rows, k, p, u, out)) return out;
    const Batch stack(queue_, s + p, n, f.plan().count);
    if (s > 0) copy(queue_, f.r_source(), stack.matrices.block(0, 0, s, n), Part::upper);
    copy(queue_, u, stack.matrices.block(s, 0, p, n), Part::all);
    F& small = factored(stack.matrices, f.plan().q);
    copy(queue_, small.r_source(), out.r_source(), Part::upper);
    if (f.plan().q == QForm::thin) {
      const Mat q = out.q(), top = small.q().block(0, 0, s, q.cols);
      multiply(f.q().block(0, 0, k, s), top, q.block(0, 0, k, q.cols));
      multiply(f.q().block(k, 0, m - k, s), top, q.block(k + p, 0, m - k, q.cols));
      copy(queue_, small.q().block(s, 0, p, q.cols), q.block(k, 0, p, q.cols), Part::all);
    }
    return out;
  }

  /// Without columns k .. k+p-1.
  F delete_columns(F& f, Index k, Index p) {
    const Index n = f.plan().cols, s = f.k(), count = f.plan().count;
    F out = shaped(f, f.plan().rows, n - p);
    if (empty(out) || in_one_launch(f, Change::delete_columns, k, p, {}, out)) return out;
    const Batch r(queue_, s, n, count), kept(queue_, s, n - p, count);
    copy(queue_, f.r_source(), r.matrices, Part::upper);
    if (k > 0) copy(queue_, r.matrices.columns(0, k), kept.matrices.columns(0, k), Part::all);
    if (n > k + p) copy(queue_, r.matrices.columns(k + p, n - k - p), kept.matrices.columns(k, n - k - p), Part::all);
    F& small = factored(kept.matrices, f.plan().q);
    copy(queue_, small.r_source(), out.r_source(), Part::upper);
    if (f.plan().q == QForm::thin) multiply(f.q(), small.q(), out.q());
    return out;
  }

  /// Without rows k .. k+p-1, thin Q.
  F delete_rows(F& f, Index k, Index p) {
    const Index m = f.plan().rows, n = f.plan().cols, s = f.k(), count = f.plan().count;
    F out = shaped(f, m - p, n);
    if (empty(out) || in_one_launch(f, Change::delete_rows, k, p, {}, out)) return out;
    const Batch kept(queue_, m - p, s, count), r(queue_, s, n, count), factor(queue_, out.k(), s, count),
        product(queue_, out.k(), n, count);
    if (k > 0) copy(queue_, f.q().block(0, 0, k, s), kept.matrices.block(0, 0, k, s), Part::all);
    if (m > k + p)
      copy(queue_, f.q().block(k + p, 0, m - k - p, s), kept.matrices.block(k, 0, m - k - p, s), Part::all);
    F& small = factored(kept.matrices, QForm::thin);
    copy(queue_, f.r_source(), r.matrices, Part::upper);
    copy(queue_, small.r_source(), factor.matrices, Part::upper);
    multiply(factor.matrices, r.matrices, product.matrices);
    copy(queue_, product.matrices, out.r_source(), Part::upper);
    copy(queue_, small.q(), out.q(), Part::all);
    return out;
  }

  /// Without the rows u (p x n each), R alone and m >= n; `refused`: the matrices that keep their rows. Waits.
  F delete_rows(F& f, const Mat& u, std::vector<Index>& refused) {
    using backend::Op;
    const Index n = f.plan().cols, p = u.rows, count = f.plan().count;
    F out = shaped(f, std::max(f.plan().rows - p, n), n);
    if (empty(out)) return out;
    if (takes_update_rows(f, p) && f.plan().rows - p >= n) {
      copy(queue_, f.r_source(), out.r_source(), Part::upper);
      const dense::Buffer<B> counters(queue_, count * 4);
      const auto counter = counters.template as<std::int32_t>();
      fill(queue_, backend::DeviceMatrix<B, float>{counters.template as<float>(), count, 1, count, 0, 1}, 0.0F, 0.0F);
      remove_in_one_launch(out, u, counter);
      std::vector<std::int32_t> counts(static_cast<std::size_t>(count));
      queue_.download(counter, counts.data(), count);
      for (Index i = 0; i < count; ++i)
        if (counts[static_cast<std::size_t>(i)] != 0) refused.push_back(i);
      return out;
    }
    const Batch w(queue_, n, p, count), gram(queue_, p, p, count), g(queue_, n + p, p, count),
        r(queue_, n + p, n, count), rest(queue_, n, n, count);
    transpose(queue_, u, w.matrices);
    trsm(queue_, backend::Side::left, backend::Triangle::upper, Op::transpose, backend::Diagonal::non_unit, T(1),
         f.r_source(), w.matrices);
    fill(queue_, gram.matrices, T(0), T(1));
    gemm(queue_, Op::transpose, Op::none, T(-1), w.matrices, w.matrices, T(1), gram.matrices);
    copy(queue_, w.matrices, g.matrices.block(0, 0, n, p), Part::all);
    refused = take_roots(gram.memory.matrix, p, n, f.plan().rows - p >= n);
    copy(queue_, gram.matrices, g.matrices.block(n, 0, p, p), Part::upper);
    for (const Index i : refused) {  // [0; I] leaves R alone
      fill(queue_, g.matrices.matrix(i).block(0, 0, n, p), T(0), T(0));
      fill(queue_, g.matrices.matrix(i).block(n, 0, p, p), T(0), T(1));
    }
    copy(queue_, f.r_source(), r.matrices.block(0, 0, n, n), Part::upper);
    fill(queue_, r.matrices.block(n, 0, p, n), T(0), T(0));
    F& turn = factored(g.matrices, QForm::implicit);
    turn.apply(Op::transpose, r.matrices);
    copy(queue_, r.matrices.block(p, 0, n, n), rest.matrices, Part::all);
    copy(queue_, factored(rest.matrices, QForm::none).r_source(), out.r_source(), Part::upper);
    for (const Index i : refused) copy(queue_, f.r_source().matrix(i), out.r_source().matrix(i), Part::upper);
    return out;
  }

  /// The user's blocks on the device, where they lie or copied.
  struct Staged {
    dense::TemporaryBatch<B, T> copy;
    Mat matrices;

    Staged(typename B::Queue& queue, const BatchView<const T>& blocks, bool check_finite)
        : copy(queue, dense::is_direct<B>(blocks) ? 0 : blocks.first.rows, blocks.first.cols, blocks.count),
          matrices(copy.matrices) {
      if (dense::is_direct<B>(blocks)) {
        matrices = dense::as_device_batch<B>(blocks);
      } else {
        dense::load_batch<B, T>(queue, blocks, matrices);
      }
      if (!check_finite) return;
      for (Index b = 0; b < blocks.count; ++b)
        dense::check_finite<B, T>(queue, qrane::detail::concat("block ", b).c_str(), matrices.matrix(b));
    }
  };

  void check(const Plan& plan, const Request& r) const {
    using qrane::detail::check;
    constexpr auto bad = ErrorCode::invalid_argument;
    const UpdateOptions& o = r.options;
    check(plan.q == QForm::thin || plan.q == QForm::none, ErrorCode::unavailable,
          "batches are updated with QForm::thin or none, not ", to_string(plan.q));
    check(o.method == UpdateMethod::automatic, ErrorCode::unavailable,
          "updates of batches have one method, and take no ", to_string(o.method));
    UpdateRequest<T> one{r.change, r.k, r.p};
    check_place(one, {plan.rows, plan.cols, 0, plan.q});
    dense::check_batch("the block", r.block);
    const bool needs_block =
        r.change == Change::insert_rows || (r.change == Change::delete_rows && plan.q == QForm::none && r.p > 0);
    if (!needs_block) return;
    const MatrixView<const T>& first = r.block.first;
    check(r.block.count == plan.count && first.rows == r.p && first.cols == plan.cols, bad,
          r.change == Change::insert_rows ? "u" : "removed", " is a batch of ", r.block.count, " of ", first.rows,
          " x ", first.cols, " where ", plan.count, " of ", r.p, " x ", plan.cols, " are needed");
    check(r.change == Change::insert_rows || plan.rows >= plan.cols, ErrorCode::unavailable,
          "rows leave R alone only where A has as many rows as columns, and these are ", plan.rows, " x ", plan.cols);
  }
  /// What it will be; the prices of the last shape are kept, since finding them takes as long as a small update.
  const UpdateReport& planned(const Plan& plan, const Request& r) {
    UpdateShape shape;
    shape.change = r.change;
    shape.form = plan.q;
    shape.rows = plan.rows;
    shape.cols = plan.cols;
    shape.k = r.k;
    shape.p = r.p;
    shape.count = plan.count;
    shape.scalar_bytes = sizeof(T);
    if (report_.method == UpdateMethod::orthogonal && shape == planned_) return report_;
    report_.change = r.change;
    report_.rows = plan.rows;
    report_.cols = plan.cols;
    report_.k = r.k;
    report_.p = r.p;
    report_.method = UpdateMethod::orthogonal;
    report_.candidates = candidates(profile_, shape);
    planned_ = shape;
    return report_;
  }

  static bool empty(const F& f) { return f.plan().count == 0 || f.k() == 0; }

  /// `out` of f in one launch, where the backend has that and the matrices are small enough.
  bool in_one_launch(F& f, Change change, Index k, Index p, const Mat& u, F& out) {
    using Task = backend::BatchUpdate<B, T>;
    const Plan &before = f.plan(), &after = out.plan();
    const bool thin = before.q == QForm::thin;
    if (before.rows < before.cols || after.rows < after.cols ||
        !takes_batch_update(queue_, thin ? before.rows : 0, before.cols, p, T{}))
      return false;
    Task task;
    task.change = change == Change::insert_rows   ? Task::Change::rows_in
                  : change == Change::delete_rows ? Task::Change::rows_out
                                                  : Task::Change::columns_out;
    task.k = k;
    task.p = p;
    task.r = f.r_source();
    task.rows = u;
    task.r_after = out.r_source();
    if (thin) task.q = f.q(), task.q_after = out.q();
    batch_update(queue_, task);
    return true;
  }

  /// Whether a kernel takes few rows out of R alone.
  bool takes_update_rows(const F& f, Index p) {
    constexpr Index most_rows = 8;
    return p <= most_rows && f.plan().cols > 0 && f.plan().cols <= queue_.limits(T{}).max_update_cols;
  }
  void remove_in_one_launch(F& f, const Mat& u, typename B::template Pointer<std::int32_t> refused) {
    backend::RowUpdate<B, T> task;
    task.r = f.r_source();
    task.rows_out = u;
    task.refused = refused;
    update_rows(queue_, task);
  }

  /// Memory for a factorization of the same form of other matrices: what was given up for this shape, or new.
  F shaped(const F& f, Index rows, Index cols) {
    if (const auto found = spare_.find({rows, cols}); found != spare_.end()) {
      F out = std::move(found->second);
      spare_.erase(found);
      return out;
    }
    Options options;
    options.q = f.plan().q;
    return F(queue_, plan::make_plan(profile_, rows, cols, f.plan().count, sizeof(T), options));
  }
  /// Kept for the next batch of this shape; its results hold until then.
  F& factored(const Mat& a, QForm q) {
    auto& kept = kept_[{a.rows, a.cols, a.count, q}];
    if (!kept) {
      Options options;
      options.q = q;
      kept = std::make_unique<F>(queue_, plan::make_plan(profile_, a.rows, a.cols, a.count, sizeof(T), options));
    }
    kept->run(a);
    return *kept;
  }
  void multiply(const Mat& a, const Mat& b, const Mat& c) {
    if (c.rows == 0 || c.cols == 0) return;
    gemm(queue_, backend::Op::none, backend::Op::none, T(1), a, b, T(0), c);
  }

  /// Every p x p matrix G := its Cholesky factor, on the host in double; those not positive definite are returned. What
  /// W's rounding may be of I - WᵀW is n u. Without as many rows as columns left, none is.
  std::vector<Index> take_roots(const Mat& all, Index p, Index n, bool possible) {
    Matrix<T> host = Matrix<T>::host(p, all.cols);
    dense::store<B, T>(queue_, all, host.view());
    const double least = backend::RowUpdate<B, T>::least_left(n + p);
    std::vector<Index> refused;
    std::vector<double> l(static_cast<std::size_t>(p * p));
    const auto at = [&](Index i, Index j) -> double& { return l[static_cast<std::size_t>(i + j * p)]; };
    for (Index b = 0; b < all.cols / p; ++b) {
      bool definite = possible;
      for (Index j = 0; j < p && definite; ++j) {
        for (Index i = 0; i <= j; ++i) {
          double sum = static_cast<double>(host(i, b * p + j));
          for (Index k = 0; k < i; ++k) sum -= at(k, i) * at(k, j);
          if (i < j)
            at(i, j) = sum / at(i, i);
          else if (sum > least)
            at(j, j) = std::sqrt(sum);
          else
            definite = false;  // NaN is none either
        }
      }
      if (!definite) refused.push_back(b);
      for (Index j = 0; j < p; ++j)
        for (Index i = 0; i < p; ++i) host(i, b * p + j) = definite && i <= j ? static_cast<T>(at(i, j)) : T(0);
    }
    dense::load<B, T>(queue_, std::as_const(host).view(), all);
    return refused;
  }

  typename B::Queue queue_;
  plan::DeviceProfile profile_;
  std::map<std::tuple<Index, Index, Index, QForm>, std::unique_ptr<F>> kept_;
  std::map<std::pair<Index, Index>, F> spare_;
  UpdateShape planned_;
  UpdateReport report_;
};

}  // namespace qrane::update
