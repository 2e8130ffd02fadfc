// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for a tall `float` A by its Gram matrix in double, with a proof or a way back.
//
//     G = AᵀA = RᵀR,  W = R^-1,  x = W Wᵀ (Aᵀ b),  all of it in double, x rounded once
//
// A's digits are float's, eps = 2^-24. The normal equations in double lose kappa² 2^-53 of x, a Householder factorization
// in float kappa 2^-24: below kappa = 2^29 the former is the more accurate. The guard of Cholesky QR (guarded_cholesky in
// backend/kernels.hpp) bounds kappa of the column-scaled A from above on the device and sees A alone: a consistent system
// does not trip it. The limit 1e8 keeps the loss under 1e-2 of the worst direction, where float's own is total.
// Double data has no wider arithmetic to do this in, and goes through Q.
// The host waits once, for the verdict, the norms and (where asked for) x.
// Cost: A is read three times (Gram matrix, Aᵀ b, residual), n (n + 1) m flops.
#pragma once

#include <array>
#include <optional>

#include <qrane/least_squares.hpp>

#include "dense/rank.hpp"

namespace qrane::dense {

template <class B, class T>
concept HasGramSolve = requires(typename B::Queue& queue, const backend::GramSolve<B, T>& task,
                                const backend::Scratch<B>& scratch) {
  queue.solve_gram(task, scratch);
  queue.max_solve_gram();
};

/// Memory of one solution, in one piece; what the host reads comes first.
template <class B, class T>
struct GramLeastSquares {
  typename B::template Pointer<double> facts{};  // condition, spread, the guard's bound, then nrhs squared residuals
  typename B::template Pointer<std::int32_t> failed{};
  backend::DeviceMatrix<B, double> gram, r, inverse;
  backend::Scratch<B> scratch;

  static constexpr Index first_square = 3;

  GramLeastSquares(Carver<B>& carver, typename B::Queue& queue, Index rows, Index cols, Index nrhs) {
    facts = carver.template take<double>(first_square + nrhs);
    failed = carver.template take<std::int32_t>(8);
    gram = carver.template matrix<double>(cols, cols);
    r = carver.template matrix<double>(cols, cols);
    inverse = carver.template matrix<double>(cols, cols);
    constexpr Index most_scratch = Index{64} << 20;
    scratch.bytes = std::max<Index>(std::min<Index>(most_scratch, 16 * rows * cols), 32 * cols * 8) + 65536;
    if constexpr (HasGramSolve<B, T>)
      scratch.bytes = std::max(scratch.bytes, Index{queue.least_squares_scratch_bytes(cols)});
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }
};

/// R on the device, in double, has full rank to the tolerance: pivoted there.
template <class B>
bool triangle_has_full_rank(typename B::Queue& queue, const backend::DeviceMatrix<B, double>& r, double tolerance) {
  PivotedMatrix<B, double> pivoted(queue, r.rows, r.cols, r.rows, false);
  queue.copy(r, pivoted.a(), backend::Part::upper);
  pivoted.run(tolerance, false);
  return pivoted.rank() == r.cols;
}

/// Nothing where A is too ill-conditioned, or has lost rank to the tolerance, for this way. a, b: device, column-major.
template <class B, class T>
std::optional<LeastSquaresResult<T>> gram_least_squares(typename B::Queue& queue,
                                                        const backend::DeviceMatrix<B, T>& a,
                                                        const backend::DeviceMatrix<B, T>& b,
                                                        const SolveOptions& options, Memory where)
  requires HasGramSolve<B, T>
{
  const Index m = a.rows, n = a.cols, nrhs = b.cols;
  Carver<B> sizes;
  const GramLeastSquares<B, T> counted(sizes, queue, m, n, nrhs);
  const Buffer<B> memory(queue, sizes.used());
  Carver<B> carver(memory.template as<std::byte>());
  const GramLeastSquares<B, T> work(carver, queue, m, n, nrhs);
  Matrix<T> x = device_matrix<B, T>(queue, n, nrhs);
  const backend::DeviceMatrix<B, T> device_x = as_device<B>(x.view());

  queue.fill(backend::DeviceMatrix<B, T>{cast_pointer<T>(work.failed), 1, 1, 1, 0, 1}, T(0), T(0));
  queue.gram(a, work.gram, work.scratch);
  backend::GuardedCholesky<B, T> cholesky;
  cholesky.gram = work.gram;
  cholesky.r = work.r;
  cholesky.inverse = work.inverse;
  cholesky.failed = work.failed;
  cholesky.condition = work.facts + 2;
  cholesky.limit = 1e8;
  cholesky.rounding = 0x1p-53;
  queue.guarded_cholesky(cholesky);
  backend::GramSolve<B, T> solve;
  solve.a = a;
  solve.b = b;
  solve.r = work.r;
  solve.inverse = work.inverse;
  solve.x = device_x;
  solve.facts = work.facts;
  queue.solve_gram(solve, work.scratch);
  queue.residual_squares(a, device_x, b, work.facts + work.first_square, work.scratch);

  std::vector<double> facts(static_cast<std::size_t>(work.first_square + nrhs));
  std::int32_t failed = 0;
  queue.download(work.failed, &failed, 1);
  if (failed != 0) return std::nullopt;
  queue.download(work.facts, facts.data(), work.first_square + nrhs);
  const double tolerance = options.tolerance >= 0 ? options.tolerance : default_tolerance<T>(m, n);
  // facts[1] is a bound, not an estimate: below 1 / tolerance no pivoted look is needed
  if (!(facts[1] * tolerance < 1) && !triangle_has_full_rank<B>(queue, work.r, tolerance)) return std::nullopt;

  LeastSquaresResult<T> out;
  out.solution.rank = out.solution.full = n;
  out.solution.condition = facts[0];
  out.residual_norms = Matrix<double>::host(nrhs, 1);
  for (Index c = 0; c < nrhs; ++c)
    out.residual_norms.data()[c] = std::sqrt(facts[static_cast<std::size_t>(work.first_square + c)]);
  out.solution.x = where == Memory::host ? export_matrix<B, T>(queue, device_x, where) : std::move(x);
  return out;
}

}  // namespace qrane::dense
