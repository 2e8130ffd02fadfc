// SPDX-License-Identifier: Apache-2.0
// Least squares. Drivers that leave a factorization in A (gels, gelst, getsls) have it and the solution from qrane. The
// drivers that find the rank (gelsd, gelss, gelsy) get from qrane a problem of n rows instead of m,
//
//     [ A  B ] = Q [ R  C ]     min ‖A x - b‖ = min ‖R x - c‖, and sqrt(‖R x - c‖² + ‖e‖²) is the residual's norm
//                  [    E ]
//
// and solve that underneath: singular values, rank and pivots of R are those of A. Q is not kept.
//
// LAPACK scales matrices whose elements are all tiny, or huge; those are left to it.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <lapack/names.hpp>

namespace qrane::lapack {
namespace {

/// Whether LAPACK would solve with these numbers as they are: the largest is within its limits; `zero` passes, too.
template <class T>
bool in_range(MatrixView<const T> a, bool zero) {
  T largest = 0;
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) {
      const T x = std::abs(a.data[i + j * a.ld]);
      if (!(x <= largest)) largest = x;  // NaN stays
    }
  const T small = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  return (zero && largest == 0) || (largest >= small && largest <= 1 / small);
}

/// x := R⁻¹ x or R⁻ᵀ x, n x nrhs.
template <class T>
void solve_triangle(bool transpose, const Matrix<T>& r, MatrixView<T> x) {
  const auto size = [](Index i) { return static_cast<int>(i); };
  const CBLAS_TRANSPOSE op = transpose ? CblasTrans : CblasNoTrans;
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasColMajor, CblasLeft, CblasUpper, op, CblasNonUnit, size(x.rows), size(x.cols), 1, r.data(),
                size(r.ld()), x.data, size(x.ld));
  else
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, op, CblasNonUnit, size(x.rows), size(x.cols), 1, r.data(),
                size(r.ld()), x.data, size(x.ld));
}

/// A or Aᵀ, whichever has as many rows as columns or more, is factored; the other one's least-norm problem has the same
/// factors.
template <class T, class I>
bool gels(const Call& call, const char* trans, const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b,
          const I* ldb, T* work, const I* lwork, I* info) {
  const bool transpose = is(trans, 'T'), tall = *m >= *n, overdetermined = tall != transpose;
  const Index rows = std::max(*m, *n), k = std::min(*m, *n), others = *nrhs;
  if ((!transpose && !is(trans, 'N')) || std::min(k, others) <= 0 || *lda < *m || *ldb < rows ||
      *lwork < k + std::max(k, others) || !call.worthwhile(Work::factor, rows, k))
    return false;
  const Context& context = call.context();
  const MatrixView<T> target = tall ? matrix(a, *m, *n, *lda) : transposed(a, *m, *n, *lda);
  const auto right = matrix(b, overdetermined ? rows : k, others, *ldb);
  const auto f = qr(context, target, Options{.q = QForm::lapack});
  const Matrix<T> r = f.r();
  if (!in_range<T>(r.view(), false) || !in_range<T>(right, true)) return false;

  const auto x = matrix(b, rows, others, *ldb);
  const auto top = matrix(b, k, others, *ldb);
  context.copy(reflectors(f).packed, target);
  work[0] = static_cast<T>(k + std::max(k, others));
  *info = 0;
  while (*info < k && r(*info, *info) != 0) ++*info;
  *info = *info < k ? *info + 1 : 0;
  if (overdetermined) f.apply_qt(x);
  if (*info != 0) return true;
  solve_triangle(!overdetermined, r, top);
  if (overdetermined) return true;
  for (Index j = 0; j < others; ++j) std::fill(b + k + j * *ldb, b + rows + j * *ldb, T(0));
  f.apply_q(x);
  return true;
}

/// What gelsd, gelss and gelsy have in common.
template <class T>
struct Problem {
  Index m, n, nrhs;
  T* a;
  Index lda;
  T* b;
  Index ldb;

  bool valid() const { return std::min({m, n, nrhs}) > 0 && lda >= m && ldb >= std::max(m, n); }

  /// A (n x n) := R, B := [C; E; 0] for A with as many rows as columns or more; false: out of range, nothing changed.
  bool reduce(const Context& context) const {
    Matrix<T> ab = Matrix<T>::host(m, n + nrhs);
    for (Index j = 0; j < n; ++j) std::copy_n(a + j * lda, m, &ab(0, j));
    for (Index j = 0; j < nrhs; ++j) std::copy_n(b + j * ldb, m, &ab(0, n + j));
    const Matrix<T> r = qr(context, ab, {.q = QForm::none}).r();
    const auto part = [&](Index col, Index cols) {
      return MatrixView<const T>(r.data() + col * r.ld(), r.rows(), cols, r.ld());
    };
    if (!in_range<T>(part(0, n), false) || !in_range<T>(part(n, nrhs), true)) return false;
    for (Index j = 0; j < n; ++j) std::copy_n(&r(0, j), n, a + j * lda);
    for (Index j = 0; j < nrhs; ++j) {
      std::copy_n(&r(0, n + j), r.rows(), b + j * ldb);
      std::fill(b + r.rows() + j * ldb, b + m + j * ldb, T(0));
    }
    return true;
  }
  /// More right-hand sides than columns cost more beside A than by products with its Q.
  bool worthwhile(const Call& call) const {
    return m >= n && call.worthwhile(nrhs > n ? Work::factor : Work::reduce, m, n + nrhs);
  }
};

/// `solve(order, lwork)` calls the driver underneath for the n x n problem. One that is given less workspace than that
/// asks for is left to it as it is, since its least workspace is a formula of its own.
template <class T, class I, class Solve>
bool solve_reduced(const Call& call, const Problem<T>& p, const I* lwork, T* work, const I* info, Solve&& solve) {
  const I order = static_cast<I>(p.n), query = -1;
  if (*lwork < 1) return false;
  solve(&order, &query);
  if (*info != 0 || static_cast<T>(*lwork) < work[0] || !p.reduce(call.context())) return false;
  solve(&order, lwork);
  return true;
}

template <class T, class I>
bool gelsd(const Call& call, const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, T* s,
           const T* rcond, I* rank, T* work, const I* lwork, I* iwork, I* info) {
  const Problem<T> p{*m, *n, *nrhs, a, *lda, b, *ldb};
  if (!p.valid() || !p.worthwhile(call)) return false;
  return solve_reduced<T, I>(call, p, lwork, work, info, [&](const I* order, const I* size) {
    call.next(order, order, nrhs, a, lda, b, ldb, s, rcond, rank, work, size, iwork, info);
  });
}

template <class T, class I>
bool gelss(const Call& call, const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, T* s,
           const T* rcond, I* rank, T* work, const I* lwork, I* info) {
  const Problem<T> p{*m, *n, *nrhs, a, *lda, b, *ldb};
  if (!p.valid() || !p.worthwhile(call)) return false;
  return solve_reduced<T, I>(call, p, lwork, work, info, [&](const I* order, const I* size) {
    call.next(order, order, nrhs, a, lda, b, ldb, s, rcond, rank, work, size, info);
  });
}

template <class T, class I>
bool gelsy(const Call& call, const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, I* jpvt,
           const T* rcond, I* rank, T* work, const I* lwork, I* info) {
  const Problem<T> p{*m, *n, *nrhs, a, *lda, b, *ldb};
  if (!p.valid() || !p.worthwhile(call)) return false;
  return solve_reduced<T, I>(call, p, lwork, work, info, [&](const I* order, const I* size) {
    call.next(order, order, nrhs, a, lda, b, ldb, jpvt, rcond, rank, work, size, info);
  });
}

}  // namespace

#define QRANE_LAPACK_GELS(name)                                                                                      \
  QRANE_LAPACK_AS(name, gels,                                                                                        \
                  (const char* trans, const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, \
                   T* work, const I* lwork, I* info),                                                                \
                  (trans, m, n, nrhs, a, lda, b, ldb, work, lwork, info))
// They differ in what they leave in A beside R: the reflectors of geqrf, of geqrt (the same) or of geqr (unspecified).
QRANE_LAPACK_GELS(gels)
QRANE_LAPACK_GELS(gelst)
QRANE_LAPACK_GELS(getsls)
#undef QRANE_LAPACK_GELS
QRANE_LAPACK(gelsd,
             (const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, T* s, const T* rcond,
              I* rank, T* work, const I* lwork, I* iwork, I* info),
             (m, n, nrhs, a, lda, b, ldb, s, rcond, rank, work, lwork, iwork, info))
QRANE_LAPACK(gelss,
             (const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, T* s, const T* rcond,
              I* rank, T* work, const I* lwork, I* info),
             (m, n, nrhs, a, lda, b, ldb, s, rcond, rank, work, lwork, info))
QRANE_LAPACK(gelsy,
             (const I* m, const I* n, const I* nrhs, T* a, const I* lda, T* b, const I* ldb, I* jpvt, const T* rcond,
              I* rank, T* work, const I* lwork, I* info),
             (m, n, nrhs, a, lda, b, ldb, jpvt, rcond, rank, work, lwork, info))

}  // namespace qrane::lapack
