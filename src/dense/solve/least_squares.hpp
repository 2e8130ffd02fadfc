// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖: from the Gram matrix where that is proven good enough (gram_least_squares.hpp), else by QR of A, or
// for wide A of Aᵀ = Q R, where x = Q [R^-T b; 0] has the least norm. A and b are read where they lie, if that is
// column-major device memory.
#pragma once

#include <qrane/least_squares.hpp>

#include <algorithm>

#include "dense/kept.hpp"
#include "dense/solve/consume.hpp"
#include "dense/solve/gram_least_squares.hpp"

namespace qrane::dense {

/// ‖A x - b‖_2 of every column by one pass over A, where the backend has it; negative where a square left double's
/// range.
template <class B, class T>
Matrix<double> fused_residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                                    const backend::DeviceMatrix<B, T>& x,
                                    const backend::DeviceMatrix<B, T>& b) {
  Matrix<double> norms = Matrix<double>::host(b.cols, 1);
  const Index scratch_bytes = least_squares_scratch_bytes(queue, 8), result_bytes = (b.cols * 8 + 255) / 256 * 256;
  const Buffer<B> memory(queue, result_bytes + scratch_bytes);
  const backend::Scratch<B> scratch{memory.template as<std::byte>(result_bytes), scratch_bytes};
  residual_squares(queue, a, x, b, memory.template as<double>(), scratch);
  queue.download(memory.template as<double>(), norms.data(), b.cols);
  for (Index c = 0; c < b.cols; ++c) {
    const double square = norms.data()[c];
    norms.data()[c] = square > 1e-290 && square < 1e290 ? std::sqrt(square) : -1;
  }
  return norms;
}

/// ‖A x - b‖_2 of every column, r holding b on entry.
template <class B, class T>
Matrix<double> general_residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                                      const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& r) {
  using backend::Op;
  Matrix<double> norms = Matrix<double>::host(r.cols, 1);
  if (a.cols > 0) gemm(queue, Op::none, Op::none, T(-1), a, x, T(1), r);
  const Index scratch_bytes = Index{1} << 20;
  const Buffer<B> memory(queue, r.cols * 8 + 256 + scratch_bytes);
  const backend::Scratch<B> scratch{memory.template as<std::byte>((r.cols * 8 + 255) / 256 * 256), scratch_bytes};
  const auto sums = memory.template as<double>();
  const auto measure = [&](const backend::DeviceMatrix<B, T>& a) {
    for (Index c = 0; c < a.cols; ++c) sum_squares(queue, a.columns(c, 1), sums + c, scratch);
    queue.download(sums, norms.data(), a.cols);
  };
  if (r.cols == 0) return norms;
  measure(r);
  const double largest = *std::max_element(norms.data(), norms.data() + r.cols);
  double scale = 1;
  if (!(largest < 1e290) || largest < 1e-290) {  // squares near an end of double's range: again, scaled to about 1
    max_abs(queue, r, sums, scratch);
    double most = 0;
    queue.download(sums, &most, 1);
    if (most > 0 && std::isfinite(most)) {
      scale = std::ldexp(1.0, std::clamp(-std::ilogb(most), -1000, sizeof(T) == 4 ? 100 : 1000));
      Temporary<B, T> identity(queue, r.cols, r.cols), scaled(queue, r.rows, r.cols);
      fill(queue, identity.matrix, T(0), static_cast<T>(scale));
      gemm(queue, Op::none, Op::none, T(1), r, identity.matrix, T(0), scaled.matrix);
      measure(scaled.matrix);
      queue.synchronize();
    }
  }
  for (Index c = 0; c < r.cols; ++c) norms.data()[c] = std::sqrt(norms.data()[c]) / scale;
  return norms;
}

/// ‖A x - b‖_2 of every column.
template <class B, class T>
Matrix<double> residual_norms(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a,
                              const backend::DeviceMatrix<B, T>& x, const backend::DeviceMatrix<B, T>& b) {
  constexpr Index most_rhs = 16, most_cols = 1024;  // past that products are faster
  const Index widest = std::min<Index>(most_cols, queue.limits(T{}).max_residual_columns);
  if (widest > 0 && a.cols <= widest && a.rows > 0 && b.cols > 0 && b.cols <= most_rhs) {
    Matrix<double> norms = fused_residual_norms<B, T>(queue, a, x, b);
    if (std::all_of(norms.data(), norms.data() + b.cols, [](double norm) { return norm >= 0; })) return norms;
  }
  const Temporary<B, T> residual(queue, b.rows, b.cols);
  copy(queue, b, residual.matrix, backend::Part::all);
  Matrix<double> norms = general_residual_norms<B, T>(queue, a, x, residual.matrix);
  queue.synchronize();
  return norms;
}

/// x of least norm from a factorization of Aᵀ (n x m, n > m).
template <class B, class T>
Solution<T> solve_transposed(Factorization<B, T>& f, RankView<B, T>& rank, const backend::DeviceMatrix<B, T>& b,
                             const SolveOptions& options, Memory where) {
  using namespace backend;
  const Index n = f.plan().rows, m = f.plan().cols;
  const double tolerance = options.tolerance >= 0 ? options.tolerance : default_tolerance<T>(m, n);
  Solution<T> out;
  out.full = m;
  out.condition = rank.condition;
  Temporary<B, T> x(f.queue(), n, b.cols);
  fill(f.queue(), x.matrix, T(0), T(0));
  const DeviceMatrix<B, T> top = x.matrix.block(0, 0, m, b.cols);
  out.rank = rank.decide(tolerance);
  refuse_deficient(options, out.rank, out.full, tolerance, out.condition);
  if (out.deficient()) {  // Rᵀ w = b, rank-deficient, on the host
    HostMatrix lower(m, m);
    for (Index j = 0; j < m; ++j)
      for (Index i = j; i < m; ++i) lower(i, j) = rank.r()(j, i);
    const Matrix<T> w = from_host_matrix<T>(solve_deficient(pivoted_qr(std::move(lower)), out.rank,
                                                            to_host_matrix<B, T>(f.queue(), b), options.least_norm));
    load<B, T>(f.queue(), w.view(), top);
  } else {
    copy(f.queue(), b, top, Part::all);
    solve_triangle(f, Op::transpose, top);
  }
  lift(f, x.matrix);
  out.x = export_matrix<B, T>(f.queue(), x.matrix, where);
  f.queue().synchronize();
  return out;
}

/// A view in column-major device memory: where it is, or copied there.
template <class B, class T>
struct OnDevice {
  Temporary<B, T> copy;
  backend::DeviceMatrix<B, T> matrix;

  OnDevice(typename B::Queue& queue, const MatrixView<const T>& v) : OnDevice(queue, v, stays(v)) {}

 private:
  static bool stays(const MatrixView<const T>& v) { return is_resident<B>(v) && v.layout == Layout::column_major; }
  OnDevice(typename B::Queue& queue, const MatrixView<const T>& v, bool there)
      : copy(queue, there ? 0 : v.rows, there ? 0 : v.cols), matrix(there ? as_device<B>(v) : copy.matrix) {
    if (!there) load<B, T>(queue, v, copy.matrix);
  }
};

/// QR of a tall A, then x. Where Q comes out explicit from Cholesky QR it is the faster way to Qᵀ b too.
template <class B, class T>
Solution<T> solve_tall(typename B::Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept,
                       const backend::DeviceMatrix<B, T>& a, MatrixView<const T> b,
                       const LeastSquaresOptions& options) {
  Options wish;
  wish.algorithm = options.algorithm;
  if (sizeof(T) == 8 && options.algorithm == Algorithm::automatic) {
    wish.q = QForm::thin;
    const Plan thin = plan::make_plan(profile, a.rows, a.cols, 1, sizeof(T), wish);
    if (thin.algorithm != Algorithm::cholesky_qr) wish.q = QForm::implicit;
  }
  auto f = kept.template factorization<T>(queue, profile, a.rows, a.cols, wish);
  f->run(a);
  RankView<B, T> rank(*f);
  Solution<T> out = solve<B, T>(*f, rank, profile, b, options.solve, b.memory);
  f.keep();
  return out;
}

/// The Gram matrix's way, for the shapes it is good for and where nobody asks for another.
template <class B, class T>
std::optional<LeastSquaresResult<T>> try_gram(typename B::Queue& queue, const plan::DeviceProfile& profile,
                                              Kept<B>& kept, const backend::DeviceMatrix<B, T>& a,
                                              const backend::DeviceMatrix<B, T>& b, const LeastSquaresOptions& options,
                                              Memory where) {
  constexpr Index most_rhs = 32;  // each four are one more pass over A
  const Index n = a.cols, widest = std::min(profile.limits.max_solve_gram, profile.limits.max_cholesky);
  if (sizeof(T) == 4 && options.algorithm == Algorithm::automatic && n > 0 && n <= widest && a.rows >= 2 * n &&
      b.cols > 0 && b.cols <= most_rhs)
    return gram_least_squares<B, T>(queue, profile, kept, a, b, options.solve, where);
  return std::nullopt;
}

template <class B, class T>
LeastSquaresResult<T> least_squares(typename B::Queue& queue, const plan::DeviceProfile& profile, Kept<B>& kept,
                                    MatrixView<const T> a, MatrixView<const T> b, const LeastSquaresOptions& options) {
  check_view("A", a);
  check_view("b", b);
  detail::check(b.rows == a.rows, ErrorCode::invalid_argument, "b has ", b.rows, " rows, but A has ", a.rows);
  const Index m = a.rows, n = a.cols;
  const OnDevice<B, T> matrix(queue, a), right(queue, b);
  if (options.check_finite) {
    check_finite<B, T>(queue, "A", matrix.matrix);
    check_finite<B, T>(queue, "b", right.matrix);
  }
  LeastSquaresResult<T> out;
  if (m >= n) {
    if (auto solved = try_gram<B, T>(queue, profile, kept, matrix.matrix, right.matrix, options, b.memory)) {
      solved->from_gram = true;
      return std::move(*solved);
    }
    out.solution = solve_tall<B, T>(queue, profile, kept, matrix.matrix, b, options);
  } else {
    Options wish;
    wish.algorithm = options.algorithm;
    const Temporary<B, T> transposed(queue, n, m);
    transpose(queue, matrix.matrix, transposed.matrix);
    auto f = kept.template factorization<T>(queue, profile, n, m, wish);
    f->run(transposed.matrix);
    RankView<B, T> rank(*f);
    out.solution = solve_transposed<B, T>(*f, rank, right.matrix, options.solve, b.memory);
    f.keep();
  }
  const OnDevice<B, T> x(queue, std::as_const(out.solution.x).view());
  out.residual_norms = residual_norms<B, T>(queue, matrix.matrix, x.matrix, right.matrix);
  return out;
}

}  // namespace qrane::dense
