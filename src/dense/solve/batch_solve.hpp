// SPDX-License-Identifier: Apache-2.0
// Least squares for every matrix of a batch, each judged on its own conditioning.
//
// All right-hand sides are projected and all triangles solved in a few launches. Then R goes to the host, where every
// matrix is looked at as one alone would be (dense/solve/rank.hpp): a condition estimate, and column pivoting of those
// that leave a doubt. The few that are rank-deficient, and all where A has fewer rows than columns, are solved again
// there. With tolerance 0 every R is taken at its word and nothing goes to the host.
#pragma once

#include <cmath>

#include "dense/batch_io.hpp"

namespace qrane::dense {

/// The first k rows of Q_bᵀ b_b for every matrix; `y`, m rows each, is destroyed.
template <class B, class T>
void project_batch(Factorization<B, T>& f, const backend::DeviceMatrix<B, T>& y,
                   const backend::DeviceMatrix<B, T>& projected) {
  using namespace backend;
  if (f.plan().q == QForm::thin) {
    gemm(f.queue(), Op::transpose, Op::none, T(1), f.q(), y, T(0), projected);
    return;
  }
  f.apply(Op::transpose, y);
  copy(f.queue(), y.block(0, 0, f.k(), y.cols), projected, Part::all);
}

/// The ranks of all matrices; solves again on the host what `x` does not have right.
template <class B, class T>
std::vector<Index> judge_batch(Factorization<B, T>& f, const backend::DeviceMatrix<B, T>& projected,
                               const backend::DeviceMatrix<B, T>& x, const SolveOptions& options, double tolerance) {
  const Index m = f.plan().rows, n = f.plan().cols, k = f.k(), count = f.plan().count;
  TemporaryBatch<B, T> r(f.queue(), k, n, count);
  copy(f.queue(), f.r_source(), r.matrices, backend::Part::upper);
  const HostMatrix all = to_host_matrix<B, T>(f.queue(), r.memory.matrix);
  std::vector<Index> ranks;
  for (Index i = 0; i < count; ++i) {
    HostMatrix triangle(k, n);
    for (Index c = 0; c < n; ++c)
      for (Index row = 0; row < k; ++row) triangle(row, c) = all(row, i * n + c);
    // as RankView::decide: NaN spreads by itself, and only a doubtful condition calls for pivoting
    const double condition = triangle_condition(triangle);
    const bool sure = std::isnan(condition) || condition * tolerance * 10 < 1;
    if (sure && m >= n) {
      ranks.push_back(k);
      continue;
    }
    const PivotedQR pivoted = pivoted_qr(std::move(triangle));
    ranks.push_back(sure ? k : numerical_rank(pivoted, tolerance));
    detail::check(!options.refuse_deficient || ranks.back() == k, ErrorCode::rank_deficient, "matrix ", i,
                  " of the batch has rank ", ranks.back(), " of ", k, " at relative tolerance ", tolerance);
    if (m >= n && ranks.back() == k) continue;
    const HostMatrix host = solve_deficient(pivoted, ranks.back(), to_host_matrix<B, T>(f.queue(), projected.matrix(i)),
                                            options.least_norm);
    const Matrix<T> host_x = from_host_matrix<T>(host);
    load<B, T>(f.queue(), host_x.view(), x.matrix(i));
  }
  return ranks;
}

/// x_b := the solution of A_b x_b = b_b, nrhs columns each; returns the ranks, none with tolerance 0.
template <class B, class T>
std::vector<Index> solve_batch(Factorization<B, T>& f, const BatchView<const T>& b, const BatchView<T>& x,
                               const SolveOptions& options) {
  using namespace backend;
  const Index m = f.plan().rows, n = f.plan().cols, k = f.k(), count = f.plan().count, nrhs = b.first.cols;
  const double tolerance = tolerance_or_default<T>(options.relative_tolerance, m, n);
  if (count == 0 || nrhs == 0) return {};
  TemporaryBatch<B, T> y(f.queue(), m, nrhs, count), projected(f.queue(), k, nrhs, count),
      solution(f.queue(), n, nrhs, count);
  load_batch<B, T>(f.queue(), b, y.matrices);
  project_batch(f, y.matrices, projected.matrices);
  if (m >= n) {
    copy(f.queue(), projected.matrices, solution.matrices, Part::all);
    trsm(f.queue(), backend::Side::left, Triangle::upper, Op::none, Diagonal::non_unit, T(1),
         f.r_source().block(0, 0, k, k), solution.matrices);
  }
  std::vector<Index> ranks;
  if (m < n || tolerance > 0) ranks = judge_batch(f, projected.matrices, solution.matrices, options, tolerance);
  store_batch<B, T>(f.queue(), solution.matrices, x);
  f.queue().synchronize();
  return ranks;
}

}  // namespace qrane::dense
