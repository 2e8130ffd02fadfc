// SPDX-License-Identifier: Apache-2.0
// min ‖A x - b‖ for many right-hand sides in one call; least norm when A is wide.
#pragma once

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

struct LeastSquaresOptions {
  SolveOptions solve{};                        ///< tolerance, and what to do about rank deficiency
  Algorithm algorithm = Algorithm::automatic;  ///< any but cholesky_qr, which keeps no reflectors
  bool check_finite = false;  ///< refuse NaN and Inf in A or b, naming the first (waits for the device)
};

template <class T>
QRANE_API Solution<T> least_squares(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                                    std::type_identity_t<MatrixView<const T>> b,
                                    const LeastSquaresOptions& options = {});

/// Solves min ‖A x - b‖_2 for A, m x n, and every column of b, m x nrhs, by QR of A, or of A^T when m < n (LAPACK name:
/// gels; rank-deficient: gelsy). A and b are only read, in host or device memory; x lives where b does.
/// A rank-deficient A shows in the result's rank, and is solved as SolveOptions ask, or refused: Error{rank_deficient}.
/// Otherwise throws as qr().
template <MatrixLike A, MatrixLike B>
Solution<ScalarOf<A>> least_squares(const Context& context, const A& a, const B& b,
                                    const LeastSquaresOptions& options = {}) {
  return least_squares<ScalarOf<A>>(context, as_view(a), as_view(b), options);
}

namespace detail {
template <class T>
class QRANE_API LeastSquaresPlanState;
}  // namespace detail

/// Least squares for many systems of one shape: what least_squares() decides and allocates for each call is decided and
/// allocated once. Move-only.
///
///   LeastSquaresPlan<double> plan(context, m, n);
///   plan.execute(a, b, x);       // as often as you like
///   auto facts = plan.finish();  // before x is used
template <class T>
class QRANE_API LeastSquaresPlan {
 public:
  /// Plans for A of m x n and b of m x nrhs; takes no device memory. Throws Error{invalid_argument},
  /// Error{unavailable}.
  LeastSquaresPlan(const Context& context, Index rows, Index cols, Index nrhs = 1,
                   const LeastSquaresOptions& options = {});
  LeastSquaresPlan(LeastSquaresPlan&&) noexcept;
  LeastSquaresPlan& operator=(LeastSquaresPlan&&) noexcept;
  ~LeastSquaresPlan();

  Index rows() const;
  Index cols() const;
  Index rhs_cols() const;
  /// The plan of the QR that is taken, or fallen back to.
  const Plan& qr_plan() const;
  /// Device memory that the first execute() takes and the plan keeps.
  std::int64_t workspace_bytes() const;

  /// x, n x nrhs, for A of full rank. With column-major matrices in device memory it only queues work, and after the
  /// first call it allocates nothing: a CUDA graph can capture it. Other matrices go through copies. Throws
  /// Error{invalid_argument} for other shapes, Error{not_finite} with check_finite (which waits), Error{out_of_memory}
  /// at the first call.
  void execute(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> x);
  /// Waits, decides the rank of the A that was executed last, and where it is deficient replaces x by what
  /// LeastSquaresOptions::solve asks for: x is as least_squares() gives it. The result has rank and condition; its own
  /// x and residual norms stay empty. Throws Error{rank_deficient} where the options refuse it.
  Solution<T> finish();

 private:
  std::unique_ptr<detail::LeastSquaresPlanState<T>> state_;
};

}  // namespace qrane
