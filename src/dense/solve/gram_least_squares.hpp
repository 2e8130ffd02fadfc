// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for a tall `float` A by its Gram matrix in double, with a proof or a way back.
//
//     G = AᵀA = RᵀR,  W = R^-1,  x = W Wᵀ (Aᵀ b),  all of it in double, x rounded once
//
// A's digits are float's, eps = 2^-24. The normal equations in double lose kappa² 2^-53 of x, a Householder
// factorization in float kappa 2^-24: below kappa = 2^29 the former is the more accurate. The guard of Cholesky QR
// (guarded_cholesky in vocabulary/guard.hpp) bounds kappa of the column-scaled A from above on the device and sees A
// alone: a consistent system does not trip it. The limit 2e8 on a bound that is 3 to 8 times kappa lets in what float
// data can mean at all (kappa to about 1 / eps); float's own loss in the worst direction is total there. Double data
// has no wider arithmetic to do this in, and goes through Q. Where R may have lost rank to the tolerance it is pivoted
// on the device, in double, and the solution made from its leading columns and Qᵀ b = R^-T Aᵀ b. The host waits once
// for the verdict, the norms and (where asked for) x, else once more. Cost: A is read three times (Gram matrix, Aᵀ b,
// residual), n (n + 1) m flops.
#pragma once

#include <bit>
#include <optional>

#include <qrane/least_squares.hpp>

#include "dense/solve/rank.hpp"

namespace qrane::dense {

using backend::least_squares_scratch_bytes;

constexpr double guard_limit = 2e8;

/// Memory of one solution, in one piece; what the host reads comes first.
template <class B, class T>
struct GramLeastSquares {
  typename B::template Pointer<double> facts{};  // condition, spread, the guard's bound, nrhs squared residuals, and in
                                                 // the place of one more double the guard's flag
  typename B::template Pointer<std::int32_t> failed{};
  backend::DeviceMatrix<B, double> gram, r, inverse, y;
  backend::Scratch<B> scratch;

  static constexpr Index first_square = 3;
  Index facts_count = 0;

  GramLeastSquares() = default;
  GramLeastSquares(Carver<B>& carver, typename B::Queue& queue, Index rows, Index cols, Index nrhs)
      : facts_count(first_square + nrhs + 1) {
    facts = carver.template take<double>(facts_count);
    failed = cast_pointer<std::int32_t>(facts + (facts_count - 1));
    gram = carver.template matrix<double>(cols, cols);
    r = carver.template matrix<double>(cols, cols);
    inverse = carver.template matrix<double>(cols, cols);
    y = carver.template matrix<double>(cols, nrhs);
    constexpr Index most_scratch = Index{64} << 20;
    scratch.bytes = std::max<Index>(std::min<Index>(most_scratch, 16 * rows * cols), 32 * cols * 8) + 65536;
    scratch.bytes = std::max(scratch.bytes, least_squares_scratch_bytes(queue, cols));
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }
};

/// R, W, Qᵀ b and x queued, and with `residuals` ‖b - A x‖²; nothing is waited for.
template <class B, class T>
void queue_gram_solution(typename B::Queue& queue, const GramLeastSquares<B, T>& work,
                         const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& b,
                         const backend::DeviceMatrix<B, T>& x, bool residuals) {
  set_flags(queue, work.failed, 1, 0);
  gram(queue, a, work.gram, work.scratch);
  backend::GuardedCholesky<B, T> cholesky;
  cholesky.gram = work.gram;
  cholesky.r = work.r;
  cholesky.inverse = work.inverse;
  cholesky.failed = work.failed;
  cholesky.condition = work.facts + 2;
  cholesky.limit = guard_limit;
  cholesky.rounding = 0x1p-53;
  guarded_cholesky(queue, cholesky);
  backend::GramSolve<B, T> solve;
  solve.a = a;
  solve.b = b;
  solve.r = work.r;
  solve.inverse = work.inverse;
  solve.x = x;
  solve.y = work.y;
  solve.facts = work.facts;
  solve_gram(queue, solve, work.scratch);
  if (residuals) residual_squares(queue, a, x, b, work.facts + work.first_square, work.scratch);
}

/// What the host learns of a queued solution; waits. A deficient one is replaced as the options ask. Nothing where A is
/// too ill-conditioned for this way: x is of no meaning.
template <class B, class T>
std::optional<Solution<T>> finish_gram_solution(typename B::Queue& queue, const plan::DeviceProfile& profile,
                                                const GramLeastSquares<B, T>& work,
                                                const backend::DeviceMatrix<B, T>& a,
                                                const backend::DeviceMatrix<B, T>& b,
                                                const backend::DeviceMatrix<B, T>& x, const SolveOptions& options,
                                                bool residuals) {
  const Index m = a.rows, n = a.cols;
  std::vector<double> facts(static_cast<std::size_t>(work.facts_count));
  queue.download(work.facts, facts.data(), work.facts_count);
  if (static_cast<std::int32_t>(std::bit_cast<std::int64_t>(facts.back())) != 0) return std::nullopt;
  Solution<T> out;
  out.rank = out.full = n;
  out.condition = facts[0];
  const double tolerance = tolerance_or_default<T>(options.relative_tolerance, m, n);
  if (!(facts[1] * tolerance < 1)) {  // a bound, not an estimate: below that no pivoted look is needed
    PivotedMatrix<B, double> pivoted(queue, n, n, n, false);
    copy(queue, work.r, pivoted.a(), backend::Part::upper);
    pivoted.run(tolerance, false);
    out.rank = pivoted.rank();
    refuse_deficient(options, out.rank, n, tolerance, facts[0]);
    if (out.deficient()) {
      plan::DeviceProfile wide = profile;
      wide.limits = queue.limits(double{});
      const Matrix<double> wide_x =
          solve_pivoted<B, double>(queue, wide, pivoted, out.rank, work.y, options.least_norm, Memory::device);
      narrow(queue, as_device<B>(wide_x.view()), x, backend::Part::all);
      if (residuals) {
        residual_squares(queue, a, x, b, work.facts + work.first_square, work.scratch);
        queue.download(work.facts, facts.data(), work.facts_count);
      }
    }
  }
  out.from_gram = true;
  for (Index c = 0; residuals && c < b.cols; ++c)
    out.residual_norms.push_back(std::sqrt(facts[static_cast<std::size_t>(work.first_square + c)]));
  return out;
}

}  // namespace qrane::dense
