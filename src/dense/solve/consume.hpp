// SPDX-License-Identifier: Apache-2.0
// What a factorization is good for: least squares with a rank report, condition, determinant, bases.
//
// F is what holds the factors: a Factorization, or an updated one (src/update/updated.hpp). It has queue(), plan(),
// k(), r_source(), and overloads of project() and multiply_q() beside it.
#pragma once

#include <cmath>
#include <limits>

#include "dense/solve/rank.hpp"

namespace qrane::dense {

/// When the stable way follows a Gram matrix that was refused: `queued` behind it, under its flag, so that nothing is
/// waited for; or in finish(), after a look at the flag.
enum class Fallback { queued, in_finish };

/// x (n x nrhs) with op(R11) x = y for the leading k x k triangle, in place in y's first k rows.
template <class B, class T, class F>
void solve_triangle(F& f, backend::Op op, const backend::DeviceMatrix<B, T>& y) {
  const Index k = f.k();
  trsm(f.queue(), backend::Side::left, backend::Triangle::upper, op, backend::Diagonal::non_unit, T(1),
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
    gemm(f.queue(), Op::transpose, Op::none, T(1), f.q(), b, T(0), small);
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

/// The solution x of R x = y, y = Qᵀb being k x nrhs on the device (destroyed), as far as R's rank allows.
template <class B, class T, class F>
Solution<T> solve_projected(F& f, RankView<B, T>& rank, const plan::DeviceProfile& profile,
                            const backend::DeviceMatrix<B, T>& y, const SolveOptions& options, Memory where) {
  using namespace backend;
  const Index m = f.plan().rows, n = f.plan().cols, k = f.k();
  const double tolerance = tolerance_or_default<T>(options.relative_tolerance, m, n);
  Solution<T> out;
  out.full = k;
  out.condition = rank.condition;
  out.rank = rank.decide(tolerance);
  refuse_deficient(options, out.rank, out.full, tolerance, out.condition);
  if (out.deficient() && rank.on_device()) {
    out.x = solve_pivoted<B, T>(f.queue(), profile, rank.device_pivot(), out.rank, y, options.least_norm, where);
    return out;
  }
  Temporary<B, T> x(f.queue(), n, y.cols);
  if (out.deficient()) {
    const HostMatrix host =
        solve_deficient(rank.pivot(), out.rank, to_host_matrix<B, T>(f.queue(), y), options.least_norm);
    Matrix<T> host_x = from_host_matrix<T>(host);
    load<B, T>(f.queue(), host_x.view(), x.matrix);
  } else if (m < n) {
    solve_least_norm<B, T>(f.queue(), profile, f.r_source(), y, x.matrix);
  } else {
    copy(f.queue(), y, x.matrix, Part::all);
    solve_triangle<B, T>(f, Op::none, x.matrix);
  }
  out.x = export_matrix<B, T>(f.queue(), x.matrix, where);
  f.queue().synchronize();
  return out;
}

/// Least-squares (least-norm for m < n) solution of A x = b from a factorization of A.
template <class B, class T, class F>
Solution<T> solve(F& f, RankView<B, T>& rank, const plan::DeviceProfile& profile, MatrixView<const T> b,
                  const SolveOptions& options, Memory where) {
  const Index m = f.plan().rows;
  check_view("b", b);
  detail::check(b.rows == m, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", m);
  Temporary<B, T> y(f.queue(), m, b.cols), small(f.queue(), f.k(), b.cols);
  load<B, T>(f.queue(), b, y.matrix);
  return solve_projected<B, T>(f, rank, profile, project(f, y.matrix, small.matrix), options, where);
}

/// det A = det Q det R: every reflector with tau != 0 is a reflection.
template <class B, class T>
Determinant determinant(Factorization<B, T>& f, RankView<B, T>& rank) {
  detail::check(f.plan().rows == f.plan().cols, ErrorCode::invalid_argument,
                "the determinant needs a square matrix, got ", f.plan().rows, " x ", f.plan().cols);
  detail::check(f.keeps_reflectors(), ErrorCode::unavailable,
                "the determinant's sign needs reflectors; factor with QForm::implicit or lapack");
  Determinant d;
  for (T tau : f.taus())
    if (tau != T(0)) d.sign = -d.sign;
  const HostMatrix& triangle = rank.r();
  for (Index j = 0; j < triangle.cols; ++j) {
    const double r = triangle(j, j);
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
    gemm(f.queue(), Op::none, Op::none, T(1), f.q(), s.matrix, T(0), out);
    f.queue().synchronize();
    return;
  }
  fill(f.queue(), out, T(0), T(0));
  load<B, T>(f.queue(), small.view(), out.block(0, 0, small.rows(), small.cols()));
  lift(f, out);
}

/// Orthonormal basis of the range: Q times the leading columns of the pivoted R's own Q.
template <class B, class T, class F>
Matrix<T> range_basis(F& f, RankView<B, T>& rank, double tolerance, Memory where) {
  const Index r = rank.decide(tolerance);
  Temporary<B, T> out(f.queue(), f.plan().rows, r);
  multiply_q(f, from_host_matrix<T>(leading_q(rank.pivot(), r)), out.matrix);
  Matrix<T> result = export_matrix<B, T>(f.queue(), out.matrix, where);
  f.queue().synchronize();
  return result;
}

/// Orthonormal basis of the null space: the last right singular vectors of R.
template <class B, class T, class F>
Matrix<T> null_space_basis(F& f, RankView<B, T>& rank, double tolerance, Memory where) {
  const Index n = f.plan().cols;
  const Index r = rank.decide(tolerance);
  // a square problem, so that all n right singular vectors come out
  HostMatrix square(n, n);
  const HostMatrix& triangle = rank.r();
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < std::min(n, triangle.rows); ++i) square(i, j) = triangle(i, j);
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
