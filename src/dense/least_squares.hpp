// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖: QR of A, or for wide A of Aᵀ = Q R, where x = Q [R^-T b; 0] has the least norm.
#pragma once

#include <qrane/least_squares.hpp>

#include <algorithm>

#include "dense/consume.hpp"

namespace qrane::dense {

/// ‖A x - b‖_2 of every column, r holding b on entry.
template <class B, class T>
Matrix<double> residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                              const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& r) {
  using backend::Op;
  Matrix<double> norms = Matrix<double>::host(r.cols, 1);
  if (a.cols > 0) queue.gemm(Op::none, Op::none, T(-1), a, x, T(1), r);
  const Index scratch_bytes = Index{1} << 20;
  const Buffer<B> memory(queue, r.cols * 8 + 256 + scratch_bytes);
  const backend::Scratch<B> scratch{memory.template as<std::byte>((r.cols * 8 + 255) / 256 * 256), scratch_bytes};
  const auto sums = memory.template as<double>();
  const auto measure = [&](const backend::DeviceMatrix<B, T>& a) {
    for (Index c = 0; c < a.cols; ++c) queue.sum_squares(a.columns(c, 1), sums + c, scratch);
    queue.download(sums, norms.data(), a.cols);
  };
  if (r.cols == 0) return norms;
  measure(r);
  const double largest = *std::max_element(norms.data(), norms.data() + r.cols);
  double scale = 1;
  if (!(largest < 1e290) || largest < 1e-290) {  // squares near an end of double's range: again, scaled to about 1
    queue.max_abs(r, sums, scratch);
    double most = 0;
    queue.download(sums, &most, 1);
    if (most > 0 && std::isfinite(most)) {
      scale = std::ldexp(1.0, std::clamp(-std::ilogb(most), -1000, sizeof(T) == 4 ? 100 : 1000));
      Temporary<B, T> identity(queue, r.cols, r.cols), scaled(queue, r.rows, r.cols);
      queue.fill(identity.matrix, T(0), static_cast<T>(scale));
      queue.gemm(Op::none, Op::none, T(1), r, identity.matrix, T(0), scaled.matrix);
      measure(scaled.matrix);
      queue.synchronize();
    }
  }
  for (Index c = 0; c < r.cols; ++c) norms.data()[c] = std::sqrt(norms.data()[c]) / scale;
  return norms;
}

/// x of least norm from a factorization of Aᵀ (n x m, n > m).
template <class B, class T>
Solution<T> solve_transposed(Factorization<B, T>& f, RankView& rank, const backend::DeviceMatrix<B, T>& b,
                             const SolveOptions& options, Memory where) {
  using namespace backend;
  const Index n = f.plan().rows, m = f.plan().cols;
  const double tolerance = options.tolerance >= 0 ? options.tolerance : default_tolerance<T>(m, n);
  Solution<T> out;
  out.full = m;
  out.condition = rank.condition;
  Temporary<B, T> x(f.queue(), n, b.cols);
  f.queue().fill(x.matrix, T(0), T(0));
  const DeviceMatrix<B, T> top = x.matrix.block(0, 0, m, b.cols);
  out.rank = decide_rank(rank, tolerance);
  detail::check(!options.refuse_deficient || !out.deficient(), ErrorCode::rank_deficient, "A has rank ", out.rank,
                " of ", m, " at relative tolerance ", tolerance, ", condition estimate ", out.condition);
  if (out.deficient()) {  // Rᵀ w = b, rank-deficient, on the host
    HostMatrix lower(m, m);
    for (Index j = 0; j < m; ++j)
      for (Index i = j; i < m; ++i) lower(i, j) = rank.r(j, i);
    const Matrix<T> w = from_host_matrix<T>(solve_deficient(pivoted_qr(std::move(lower)), out.rank,
                                                            to_host_matrix<B, T>(f.queue(), b), options.least_norm));
    load<B, T>(f.queue(), w.view(), top);
  } else {
    f.queue().copy(b, top, Part::all);
    solve_triangle(f, Op::transpose, top);
  }
  lift(f, x.matrix);
  out.x = export_matrix<B, T>(f.queue(), x.matrix, where);
  f.queue().synchronize();
  return out;
}

template <class B, class T>
LeastSquaresResult<T> least_squares(typename B::Queue& queue, const plan::DeviceProfile& profile, MatrixView<const T> a,
                                    MatrixView<const T> b, const LeastSquaresOptions& options) {
  using namespace backend;
  check_view("A", a);
  check_view("b", b);
  detail::check(b.rows == a.rows, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", a.rows);
  const Index m = a.rows, n = a.cols;
  Temporary<B, T> matrix(queue, m, n), right(queue, m, b.cols), x(queue, n, b.cols);
  load<B, T>(queue, a, matrix.matrix);
  load<B, T>(queue, b, right.matrix);
  if (options.check_finite) {
    check_finite<B, T>(queue, "A", matrix.matrix);
    check_finite<B, T>(queue, "b", right.matrix);
  }
  Options wish;
  wish.algorithm = options.algorithm;
  LeastSquaresResult<T> out;
  if (m >= n) {
    Factorization<B, T> f(queue, plan::make_plan(profile, m, n, 1, sizeof(T), wish));
    f.run(matrix.matrix);
    RankView rank = rank_view(f);
    out.solution = solve<B, T>(f, rank, profile, b, options.solve, b.memory);
  } else {
    Temporary<B, T> transposed(queue, n, m);
    queue.transpose(matrix.matrix, transposed.matrix);
    Factorization<B, T> f(queue, plan::make_plan(profile, n, m, 1, sizeof(T), wish));
    f.run(transposed.matrix);
    RankView rank = rank_view(f);
    out.solution = solve_transposed<B, T>(f, rank, right.matrix, options.solve, b.memory);
  }
  load<B, T>(queue, std::as_const(out.solution.x).view(), x.matrix);
  out.residual_norms = residual_norms<B, T>(queue, matrix.matrix, x.matrix, right.matrix);
  return out;
}

}  // namespace qrane::dense
