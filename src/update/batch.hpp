// SPDX-License-Identifier: Apache-2.0
// Rows and columns of all matrices of a batch that come and go at once, R and thin Q or R alone. The matrices are small and
// many, so every update is a batched factorization of small data and a batched product, whose latencies the batch shares:
//
//     rows in       [R; U] = P R~                       Q~ = [Q P_1; P_2]
//     columns out   R without them = P R~               Q~ = Q P
//     rows out      Q without them = P S, R~ = S R      Q~ = P: orthonormal whatever the rows carried
//     R alone       W = R^-T Uᵀ, LᵀL = I - WᵀW, and the Qᵀ that takes [W; L] to [I; 0] takes [R; 0] to [U; R~]: LINPACK's
//                   way. A matrix whose I - WᵀW is not positive definite to working accuracy stays as it was.
//
// Each matrix's result depends on that matrix alone. Source: Hammarling, Lucas (2008), sections 2 and 3; Dongarra and
// others, LINPACK Users' Guide (1979), chapter 10.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "dense/batch_io.hpp"

namespace qrane::update {

template <class B, class T>
class BatchUpdates {
 public:
  using F = dense::Factorization<B, T>;
  using Mat = backend::DeviceMatrix<B, T>;

  BatchUpdates(const typename B::Queue& queue, const plan::DeviceProfile& profile) : queue_(queue), profile_(profile) {}

  /// Of the matrices with the rows u (p x n each) before row k.
  F insert_rows(F& f, Index k, const Mat& u) {
    const Index m = f.plan().rows, n = f.plan().cols, p = u.rows, s = f.k();
    F out = shaped(f, m + p, n);
    if (empty(out)) return out;
    const Batch stack(queue_, s + p, n, f.plan().count);
    if (s > 0) queue_.copy(f.r_source(), stack.matrices.block(0, 0, s, n), Part::upper);
    queue_.copy(u, stack.matrices.block(s, 0, p, n), Part::all);
    F& small = factored(stack.matrices, f.plan().q);
    queue_.copy(small.r_source(), out.r_source(), Part::upper);
    if (f.plan().q == QForm::thin) {
      const Mat q = out.q(), top = small.q().block(0, 0, s, q.cols);
      multiply(f.q().block(0, 0, k, s), top, q.block(0, 0, k, q.cols));
      multiply(f.q().block(k, 0, m - k, s), top, q.block(k + p, 0, m - k, q.cols));
      queue_.copy(small.q().block(s, 0, p, q.cols), q.block(k, 0, p, q.cols), Part::all);
    }
    return out;
  }

  /// Without columns k .. k+p-1.
  F delete_columns(F& f, Index k, Index p) {
    const Index n = f.plan().cols, s = f.k(), count = f.plan().count;
    F out = shaped(f, f.plan().rows, n - p);
    if (empty(out)) return out;
    const Batch r(queue_, s, n, count), kept(queue_, s, n - p, count);
    queue_.copy(f.r_source(), r.matrices, Part::upper);
    if (k > 0) queue_.copy(r.matrices.columns(0, k), kept.matrices.columns(0, k), Part::all);
    if (n > k + p) queue_.copy(r.matrices.columns(k + p, n - k - p), kept.matrices.columns(k, n - k - p), Part::all);
    F& small = factored(kept.matrices, f.plan().q);
    queue_.copy(small.r_source(), out.r_source(), Part::upper);
    if (f.plan().q == QForm::thin) multiply(f.q(), small.q(), out.q());
    return out;
  }

  /// Without rows k .. k+p-1, thin Q.
  F delete_rows(F& f, Index k, Index p) {
    const Index m = f.plan().rows, n = f.plan().cols, s = f.k(), count = f.plan().count;
    F out = shaped(f, m - p, n);
    if (empty(out)) return out;
    const Batch kept(queue_, m - p, s, count), r(queue_, s, n, count), factor(queue_, out.k(), s, count),
        product(queue_, out.k(), n, count);
    if (k > 0) queue_.copy(f.q().block(0, 0, k, s), kept.matrices.block(0, 0, k, s), Part::all);
    if (m > k + p)
      queue_.copy(f.q().block(k + p, 0, m - k - p, s), kept.matrices.block(k, 0, m - k - p, s), Part::all);
    F& small = factored(kept.matrices, QForm::thin);
    queue_.copy(f.r_source(), r.matrices, Part::upper);
    queue_.copy(small.r_source(), factor.matrices, Part::upper);
    multiply(factor.matrices, r.matrices, product.matrices);
    queue_.copy(product.matrices, out.r_source(), Part::upper);
    queue_.copy(small.q(), out.q(), Part::all);
    return out;
  }

  /// Without the rows u (p x n each), R alone and m >= n; `refused`: the matrices that keep their rows. Waits.
  F delete_rows(F& f, const Mat& u, std::vector<Index>& refused) {
    using backend::Op;
    const Index n = f.plan().cols, p = u.rows, count = f.plan().count;
    F out = shaped(f, std::max(f.plan().rows - p, n), n);
    if (empty(out)) return out;
    const Batch w(queue_, n, p, count), gram(queue_, p, p, count), g(queue_, n + p, p, count), r(queue_, n + p, n, count),
        rest(queue_, n, n, count);
    queue_.transpose(u, w.matrices);
    queue_.trsm(backend::Side::left, backend::Triangle::upper, Op::transpose, backend::Diagonal::non_unit, T(1),
                f.r_source(), w.matrices);
    queue_.fill(gram.matrices, T(0), T(1));
    queue_.gemm(Op::transpose, Op::none, T(-1), w.matrices, w.matrices, T(1), gram.matrices);
    queue_.copy(w.matrices, g.matrices.block(0, 0, n, p), Part::all);
    refused = take_roots(gram.memory.matrix, p, n);
    queue_.copy(gram.matrices, g.matrices.block(n, 0, p, p), Part::upper);
    for (const Index i : refused) {  // [0; I] leaves R alone
      queue_.fill(g.matrices.matrix(i).block(0, 0, n, p), T(0), T(0));
      queue_.fill(g.matrices.matrix(i).block(n, 0, p, p), T(0), T(1));
    }
    queue_.copy(f.r_source(), r.matrices.block(0, 0, n, n), Part::upper);
    queue_.fill(r.matrices.block(n, 0, p, n), T(0), T(0));
    F& turn = factored(g.matrices, QForm::implicit);
    turn.apply(Op::transpose, r.matrices);
    queue_.copy(r.matrices.block(p, 0, n, n), rest.matrices, Part::all);
    queue_.copy(factored(rest.matrices, QForm::none).r_source(), out.r_source(), Part::upper);
    for (const Index i : refused) queue_.copy(f.r_source().matrix(i), out.r_source().matrix(i), Part::upper);
    return out;
  }

 private:
  using Part = backend::Part;
  using Batch = dense::TemporaryBatch<B, T>;

  static bool empty(const F& f) { return f.plan().count == 0 || f.k() == 0; }

  /// Memory for a factorization of the same form of other matrices.
  F shaped(const F& f, Index rows, Index cols) {
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
    queue_.gemm(backend::Op::none, backend::Op::none, T(1), a, b, T(0), c);
  }

  /// Every p x p matrix G := its Cholesky factor, on the host in double; those not positive definite are returned. What
  /// W's rounding may be of I - WᵀW is a few n u.
  std::vector<Index> take_roots(const Mat& all, Index p, Index n) {
    Matrix<T> host = Matrix<T>::host(p, all.cols);
    dense::store<B, T>(queue_, all, host.view());
    const double least = 10 * static_cast<double>(n + p) * static_cast<double>(std::numeric_limits<T>::epsilon());
    std::vector<Index> refused;
    std::vector<double> l(static_cast<std::size_t>(p * p));
    const auto at = [&](Index i, Index j) -> double& { return l[static_cast<std::size_t>(i + j * p)]; };
    for (Index b = 0; b < all.cols / p; ++b) {
      bool definite = true;
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
};

}  // namespace qrane::update
