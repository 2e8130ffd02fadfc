// SPDX-License-Identifier: Apache-2.0
// What a factorization is good for: least squares with a rank report, condition, determinant, bases.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "dense/factorization.hpp"

namespace qrane::dense {

template <class T>
double default_tolerance(Index rows, Index cols) {
  return static_cast<double>(std::max<Index>({rows, cols, 1})) * static_cast<double>(std::numeric_limits<T>::epsilon());
}

/// R as seen from the host, computed once per factorization and only when asked for.
struct RankView {
  HostMatrix r;          // k x n
  double condition = 1;  // of its leading k x k triangle
  std::optional<PivotedQR> pivoted;

  PivotedQR& pivot() {
    if (!pivoted) pivoted = pivoted_qr(r);
    return *pivoted;
  }
};

template <class B, class T>
RankView rank_view(Factorization<B, T>& f) {
  RankView v;
  v.r = to_host_matrix<B, T>(f.queue(), f.r_source());
  for (Index j = 0; j < v.r.cols; ++j)
    for (Index i = j + 1; i < v.r.rows; ++i) v.r(i, j) = 0;
  v.condition = triangle_condition(v.r);
  return v;
}

/// Rank of the triangle; the pivoted look is taken only where the condition leaves a doubt.
inline Index decide_rank(RankView& v, double relative_tolerance) {
  const Index k = std::min(v.r.rows, v.r.cols);
  if (std::isnan(v.condition)) return k;  // NaN spreads by itself; a rank would be a guess
  // the estimator may be low by a small factor; a pivoted diagonal ratio is at most n times the condition
  if (v.condition * relative_tolerance * 10 < 1) return k;
  return numerical_rank(v.pivot(), relative_tolerance);
}

/// Device memory that a consumer needs for a moment.
template <class B, class T>
struct Temporary {
  Buffer<B> memory;
  backend::DeviceMatrix<B, T> matrix;

  Temporary(const typename B::Queue& queue, Index rows, Index cols)
      : memory(queue, std::max<Index>(rows, 1) * cols * static_cast<Index>(sizeof(T))),
        matrix{memory.template as<T>(), rows, cols, std::max<Index>(rows, 1), 0, 1} {}
};

/// x (n x nrhs) with op(R11) x = y for the leading k x k triangle, in place in y's first k rows.
template <class B, class T>
void solve_triangle(Factorization<B, T>& f, backend::Op op, const backend::DeviceMatrix<B, T>& y) {
  const Index k = f.k();
  f.queue().trsm(backend::Side::left, backend::Triangle::upper, op, backend::Diagonal::non_unit, T(1),
                 f.r_source().block(0, 0, k, k), y);
}

/// Qᵀ b: the first k rows of the result are what a solve needs. b is destroyed when Q is implicit.
template <class B, class T>
backend::DeviceMatrix<B, T> project(Factorization<B, T>& f, const backend::DeviceMatrix<B, T>& b,
                                    const backend::DeviceMatrix<B, T>& small) {
  using backend::Op;
  detail::check(f.plan().q != QForm::none, ErrorCode::unavailable,
                "this needs Q, but the factorization was made with QForm::none");
  if (f.plan().q == QForm::thin) {
    f.queue().gemm(Op::transpose, Op::none, T(1), f.q(), b, T(0), small);
    return small;
  }
  f.apply(Op::transpose, b);
  return b.block(0, 0, f.k(), b.cols);
}

/// x := Q [z; 0], x already holding z in its first k rows and zeros below.
template <class B, class T>
void lift(Factorization<B, T>& f, const backend::DeviceMatrix<B, T>& x) {
  f.apply(backend::Op::none, x);
}

/// The least-norm x of R x = y for the wide R of a factored m x n matrix, m < n: Rᵀ = Z S, x = Z S^-T y.
template <class B, class T>
void solve_wide(Factorization<B, T>& f, const plan::DeviceProfile& profile, const backend::DeviceMatrix<B, T>& y,
                const backend::DeviceMatrix<B, T>& x) {
  using namespace backend;
  const Index m = f.plan().rows, n = f.plan().cols;
  Options options;
  Factorization<B, T> z(f.queue(), plan::make_plan(profile, n, m, 1, sizeof(T), options));
  Temporary<B, T> r(f.queue(), m, n), transposed(f.queue(), n, m);
  f.queue().copy(f.r_source(), r.matrix, Part::upper);
  f.queue().transpose(r.matrix, transposed.matrix);
  z.run(transposed.matrix);
  f.queue().fill(x, T(0), T(0));
  f.queue().copy(y, x.block(0, 0, m, x.cols), Part::all);
  solve_triangle(z, Op::transpose, x.block(0, 0, m, x.cols));
  lift(z, x);
  f.queue().synchronize();
}

/// Least-squares (least-norm for m < n) solution of A x = b from a factorization of A.
template <class B, class T>
Solution<T> solve(Factorization<B, T>& f, RankView& rank, const plan::DeviceProfile& profile, MatrixView<const T> b,
                  const SolveOptions& options, Memory where) {
  using namespace backend;
  const Index m = f.plan().rows, n = f.plan().cols, k = f.k();
  check_view("b", b);
  detail::check(b.rows == m, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", m);
  const double tolerance = options.tolerance >= 0 ? options.tolerance : default_tolerance<T>(m, n);
  Solution<T> out;
  out.full = k;
  out.condition = rank.condition;
  out.rank = decide_rank(rank, tolerance);
  detail::check(!options.refuse_deficient || !out.deficient(), ErrorCode::rank_deficient, "A has rank ", out.rank,
                " of ", k, " at relative tolerance ", tolerance, ", condition estimate ", out.condition);
  Temporary<B, T> y(f.queue(), m, b.cols), small(f.queue(), k, b.cols), x(f.queue(), n, b.cols);
  load<B, T>(f.queue(), b, y.matrix);
  const DeviceMatrix<B, T> projected = project(f, y.matrix, small.matrix);
  if (out.deficient()) {
    const HostMatrix host =
        solve_deficient(rank.pivot(), out.rank, to_host_matrix<B, T>(f.queue(), projected), options.least_norm);
    Matrix<T> host_x = from_host_matrix<T>(host);
    load<B, T>(f.queue(), host_x.view(), x.matrix);
  } else if (m < n) {
    solve_wide(f, profile, projected, x.matrix);
  } else {
    f.queue().copy(projected, x.matrix, Part::all);
    solve_triangle(f, Op::none, x.matrix);
  }
  out.x = export_matrix<B, T>(f.queue(), x.matrix, where);
  f.queue().synchronize();
  return out;
}

/// det A = det Q det R: every reflector with tau != 0 is a reflection.
template <class B, class T>
Determinant determinant(Factorization<B, T>& f, const RankView& rank) {
  detail::check(f.plan().rows == f.plan().cols, ErrorCode::invalid_argument,
                "the determinant needs a square matrix, got ", f.plan().rows, " x ", f.plan().cols);
  detail::check(f.keeps_reflectors(), ErrorCode::unavailable,
                "the determinant's sign needs reflectors; factor with QForm::implicit or lapack");
  Determinant d;
  for (T tau : f.taus())
    if (tau != T(0)) d.sign = -d.sign;
  for (Index j = 0; j < rank.r.cols; ++j) {
    const double r = rank.r(j, j);
    if (r == 0) return {0, -std::numeric_limits<double>::infinity()};
    if (r < 0) d.sign = -d.sign;
    d.log_magnitude += std::log(std::abs(r));
  }
  if (std::isnan(d.log_magnitude)) d.sign = d.log_magnitude;
  return d;
}

/// Q times the k x c matrix `small`, on the device.
template <class B, class T>
void multiply_q(Factorization<B, T>& f, const Matrix<T>& small, const backend::DeviceMatrix<B, T>& out) {
  using backend::Op;
  detail::check(f.plan().q != QForm::none, ErrorCode::unavailable,
                "this needs Q, but the factorization was made with QForm::none");
  if (f.plan().q == QForm::thin) {
    Temporary<B, T> s(f.queue(), small.rows(), small.cols());
    load<B, T>(f.queue(), small.view(), s.matrix);
    f.queue().gemm(Op::none, Op::none, T(1), f.q(), s.matrix, T(0), out);
    f.queue().synchronize();
    return;
  }
  f.queue().fill(out, T(0), T(0));
  load<B, T>(f.queue(), small.view(), out.block(0, 0, small.rows(), small.cols()));
  lift(f, out);
}

/// Orthonormal basis of the range: Q times the leading columns of the pivoted R's own Q.
template <class B, class T>
Matrix<T> range_basis(Factorization<B, T>& f, RankView& rank, double tolerance, Memory where) {
  const Index r = decide_rank(rank, tolerance);
  Temporary<B, T> out(f.queue(), f.plan().rows, r);
  multiply_q(f, from_host_matrix<T>(leading_q(rank.pivot(), r)), out.matrix);
  Matrix<T> result = export_matrix<B, T>(f.queue(), out.matrix, where);
  f.queue().synchronize();
  return result;
}

/// Orthonormal basis of the null space: the last right singular vectors of R.
template <class B, class T>
Matrix<T> null_space_basis(Factorization<B, T>& f, RankView& rank, double tolerance, Memory where) {
  const Index n = f.plan().cols;
  const Index r = decide_rank(rank, tolerance);
  // a square problem, so that all n right singular vectors come out
  HostMatrix square(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < std::min(n, rank.r.rows); ++i) square(i, j) = rank.r(i, j);
  const HostSvd svd = host_svd(std::move(square), true);
  HostMatrix basis(n, n - r);
  for (Index c = 0; c < n - r; ++c)
    for (Index i = 0; i < n; ++i) basis(i, c) = svd.vt(r + c, i);
  Matrix<T> host = from_host_matrix<T>(basis);
  if (where == Memory::host) return host;
  Temporary<B, T> staged(f.queue(), n, n - r);
  load<B, T>(f.queue(), host.view(), staged.matrix);
  Matrix<T> result = export_matrix<B, T>(f.queue(), staged.matrix, where);
  f.queue().synchronize();
  return result;
}

}  // namespace qrane::dense
