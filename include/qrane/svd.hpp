// SPDX-License-Identifier: Apache-2.0
// Singular value decomposition through QR: A = Q R, R = U_R S V^T, U = Q U_R (Anderson et al. 2011, section VI).
#pragma once

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

struct SvdOptions {
  bool vectors = true;                         ///< U and V^T, else singular values alone
  Algorithm algorithm = Algorithm::automatic;  ///< of that QR; automatic may take A's Gram matrix instead
  bool check_finite = false;                   ///< refuse NaN and Inf, naming the first (waits for the device)
};

/// A = U diag(s) V^T with k = min(m, n); where A lives (s too).
template <class T>
struct Svd {
  Matrix<T> u;   ///< m x k
  Matrix<T> s;   ///< k x 1, nonincreasing
  Matrix<T> vt;  ///< k x n
};

template <class T>
QRANE_API Svd<T> svd(const Context& context, std::type_identity_t<MatrixView<const T>> a,
                     const SvdOptions& options = {});

/// Thin SVD of A, m x n, which is only read (LAPACK name: gesdd). QR first, or for well-conditioned `float` data
/// the Gram matrix in double; a wide A goes through its transpose. On CUDA, to 224 columns, nothing passes through the
/// host. Throws as qr(), and Error{not_converged} when LAPACK's SVD of R does not converge, where it is LAPACK's.
template <MatrixLike A>
Svd<ScalarOf<A>> svd(const Context& context, const A& a, const SvdOptions& options = {}) {
  return svd<ScalarOf<A>>(context, as_view(a), options);
}

namespace detail {
template <class T>
class QRANE_API SvdPlanState;
}  // namespace detail

/// The SVD of many matrices of one shape: what svd() decides and allocates for each call is decided and allocated once.
/// Move-only.
///
///   SvdPlan<float> plan(context, m, n);
///   plan.execute(a, s, u, vt);  // as often as you like
///   plan.finish();              // before the results are used
template <class T>
class QRANE_API SvdPlan {
 public:
  /// Plans for m x n matrices; takes no device memory. Throws Error{invalid_argument}, Error{unavailable}.
  SvdPlan(const Context& context, Index rows, Index cols, const SvdOptions& options = {});
  SvdPlan(SvdPlan&&) noexcept;
  SvdPlan& operator=(SvdPlan&&) noexcept;
  ~SvdPlan();

  Index rows() const;
  Index cols() const;
  /// The plan of the QR that the SVD goes through.
  const Plan& qr_plan() const;
  /// Device memory that the first execute() takes and the plan keeps.
  std::int64_t workspace_bytes() const;
  /// Whether all of it runs on the device. Else the SVD of the small factor runs on the host: execute() then waits for
  /// it, and cannot be captured.
  bool on_device() const;

  /// The SVD of A: s is min(m, n) x 1, u is m x min(m, n), vt is min(m, n) x n; without vectors u and vt are left out.
  /// With column-major matrices in device memory it only queues work, and after the first call it allocates nothing: a
  /// CUDA graph can capture it. Other matrices go through copies. Throws Error{invalid_argument} for other shapes,
  /// Error{not_finite} with check_finite (which waits), Error{out_of_memory} at the first call.
  void execute(MatrixView<const T> a, MatrixView<T> s, MatrixView<T> u = {}, MatrixView<T> vt = {});
  /// Waits, and completes s, u and vt of the last execute(): they are as svd() gives them. A matrix so close to
  /// singular that the device's SVD of R does not give orthonormal U and V takes LAPACK's on the host here; then the
  /// result is true. Throws Error{not_converged}.
  bool finish();

 private:
  std::unique_ptr<detail::SvdPlanState<T>> state_;
};

/// The rank by singular values s (k x 1, nonincreasing, host memory), by the rule of solution.hpp, and their condition
/// number.
template <class T>
QRANE_API RankReport numerical_rank(std::type_identity_t<MatrixView<const T>> s, double relative_tolerance = -1);
template <MatrixLike S>
RankReport numerical_rank(const S& s, double relative_tolerance = -1) {
  return numerical_rank<ScalarOf<S>>(as_view(s), relative_tolerance);
}

}  // namespace qrane
