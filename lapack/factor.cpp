// SPDX-License-Identifier: Apache-2.0
// QR and LQ factorizations into LAPACK's reflectors. The LQ factorization of A is the QR factorization of Aᵀ, with the
// same tau and the reflectors in rows.
#include <lapacke.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include <qrane/pivoted_qr.hpp>

#include <lapack/names.hpp>

namespace qrane::lapack {
namespace {

/// A := R and the reflectors; tau.
template <class T>
void factor(const Context& context, MatrixView<T> a, T* tau) {
  const Reflectors<T> out = reflectors(qr(context, a, Options{.q = QForm::lapack}));
  context.copy(out.packed, a);
  std::copy_n(out.tau.data(), out.tau.rows(), tau);
}

/// The upper triangular factor of k reflectors in the columns of v, m x k.
template <class T>
void larft(Index m, Index k, const T* v, Index ldv, const T* tau, T* t, Index ldt) {
  const auto size = [](Index i) { return static_cast<lapack_int>(i); };
  if constexpr (std::is_same_v<T, float>)
    LAPACKE_slarft_work(LAPACK_COL_MAJOR, 'F', 'C', size(m), size(k), v, size(ldv), tau, t, size(ldt));
  else
    LAPACKE_dlarft_work(LAPACK_COL_MAJOR, 'F', 'C', size(m), size(k), v, size(ldv), tau, t, size(ldt));
}

/// A := R and the reflectors; T's blocks, nb columns each, beside one another in rows 0 .. nb-1 of t.
template <class T>
void factor_with_t(const Context& context, Index m, Index n, Index nb, T* a, Index lda, T* t, Index ldt) {
  const Index k = std::min(m, n);
  std::vector<T> tau(static_cast<std::size_t>(k));
  factor(context, matrix(a, m, n, lda), tau.data());
  for (Index j = 0; j < k; j += nb)
    larft(m - j, std::min(nb, k - j), a + j * (lda + 1), lda, tau.data() + j, t + j * ldt, ldt);
}

template <class T, class I>
bool geqrf(const Call& call, const I* m, const I* n, T* a, const I* lda, T* tau, T* work, const I* lwork, I* info) {
  if (std::min(*m, *n) <= 0 || *lda < *m || *lwork < *n || !call.worthwhile(Work::factor, *m, *n)) return false;
  factor(call.context(), matrix(a, *m, *n, *lda), tau);
  work[0] = static_cast<T>(*n);
  *info = 0;
  return true;
}

template <class T, class I>
bool geqr2(const Call& call, const I* m, const I* n, T* a, const I* lda, T* tau, T*, I* info) {
  if (std::min(*m, *n) <= 0 || *lda < *m || !call.worthwhile(Work::factor, *m, *n)) return false;
  factor(call.context(), matrix(a, *m, *n, *lda), tau);
  *info = 0;
  return true;
}

template <class T, class I>
bool gelqf(const Call& call, const I* m, const I* n, T* a, const I* lda, T* tau, T* work, const I* lwork, I* info) {
  if (std::min(*m, *n) <= 0 || *lda < *m || *lwork < *m || !call.worthwhile(Work::factor, *n, *m)) return false;
  factor(call.context(), transposed(a, *m, *n, *lda), tau);
  work[0] = static_cast<T>(*m);
  *info = 0;
  return true;
}

template <class T, class I>
bool geqrt(const Call& call, const I* m, const I* n, const I* nb, T* a, const I* lda, T* t, const I* ldt, T*, I* info) {
  const I k = std::min(*m, *n);
  if (k <= 0 || *nb < 1 || *nb > k || *lda < *m || *ldt < *nb || !call.worthwhile(Work::factor, *m, *n)) return false;
  factor_with_t<T>(call.context(), *m, *n, *nb, a, *lda, t, *ldt);
  *info = 0;
  return true;
}

/// How geqr describes its T: one row block, so that LAPACK's gemqr reads it as what geqrt returns.
///
///     t[0] length of t    t[1] rows of a row block: m    t[2] columns of a block of T    t[5] ... T
///
/// Blocks of T are as wide as LAPACK would make them, since callers size gemqr's workspace by that.
template <class T, class I>
bool geqr(const Call& call, const I* m, const I* n, T* a, const I* lda, T* t, const I* tsize, T* work, const I* lwork,
          I* info) {
  constexpr Index head = 5;
  const Index k = std::min(*m, *n);
  if (k <= 0 || *lda < *m || *tsize < *n + head || *lwork < *n || !call.worthwhile(Work::factor, *m, *n)) return false;
  T asked[head] = {}, asked_work = 0;
  const I query = -1;
  call.next(m, n, a, lda, asked, &query, &asked_work, &query, info);
  Index nb = std::min(static_cast<Index>(asked[2]), k);
  if (*info != 0 || nb < 1) return false;
  if (*tsize < nb * *n + head || *lwork < nb * *n) nb = 1;
  t[0] = static_cast<T>(nb * *n + head);
  t[1] = static_cast<T>(*m);
  t[2] = static_cast<T>(nb);
  factor_with_t<T>(call.context(), *m, *n, nb, a, *lda, t + head, nb);
  work[0] = static_cast<T>(nb * *n);
  return true;
}

/// The size of its workspace is a formula of its own, so it is asked for.
template <class T, class I>
bool getsqrhrt(const Call& call, const I* m, const I* n, const I* mb1, const I* nb1, const I* nb2, T* a, const I* lda,
               T* t, const I* ldt, T* work, const I* lwork, I* info) {
  if (*n <= 0 || *m < *n || *mb1 <= *n || *nb1 < 1 || *nb2 < 1 || *lda < *m || *ldt < std::min(*nb2, *n) ||
      *lwork < 1 || !call.worthwhile(Work::factor, *m, *n))
    return false;
  T needed = 0;
  const I query = -1;
  call.next(m, n, mb1, nb1, nb2, a, lda, t, ldt, &needed, &query, info);
  if (*info != 0 || static_cast<T>(*lwork) < needed) return false;
  factor_with_t<T>(call.context(), *m, *n, std::min(*nb2, *n), a, *lda, t, *ldt);
  work[0] = needed;
  return true;
}

/// Pivots from qrane, then the reflectors of the permuted matrix: by blocks, where LAPACK's geqp3 does half of its work
/// column by column.
template <class T, class I>
bool geqp3(const Call& call, const I* m, const I* n, T* a, const I* lda, I* jpvt, T* tau, T* work, const I* lwork,
           I* info) {
  if (std::min(*m, *n) <= 0 || *lda < *m || *lwork < 3 * *n + 1) return false;
  if (std::any_of(jpvt, jpvt + *n, [](I fixed) { return fixed != 0; })) return false;
  if (!call.worthwhile(Work::pivot, *m, *n)) return false;
  const auto view = matrix(a, *m, *n, *lda);
  const std::vector<Index> order = pivoted_qr(call.context(), view, {.q = QForm::none}).permutation();
  Matrix<T> permuted = Matrix<T>::host(*m, *n);
  for (Index j = 0; j < *n; ++j) std::copy_n(a + order[static_cast<std::size_t>(j)] * *lda, *m, &permuted(0, j));
  factor(call.context(), permuted.view(), tau);
  call.context().copy(permuted, view);
  std::transform(order.begin(), order.end(), jpvt, [](Index j) { return static_cast<I>(j + 1); });
  work[0] = static_cast<T>(3 * *n + 1);
  *info = 0;
  return true;
}

}  // namespace

QRANE_LAPACK(geqrf, (const I* m, const I* n, T* a, const I* lda, T* tau, T* work, const I* lwork, I* info),
             (m, n, a, lda, tau, work, lwork, info))
QRANE_LAPACK(geqr2, (const I* m, const I* n, T* a, const I* lda, T* tau, T* work, I* info),
             (m, n, a, lda, tau, work, info))
QRANE_LAPACK(gelqf, (const I* m, const I* n, T* a, const I* lda, T* tau, T* work, const I* lwork, I* info),
             (m, n, a, lda, tau, work, lwork, info))
QRANE_LAPACK(geqrt, (const I* m, const I* n, const I* nb, T* a, const I* lda, T* t, const I* ldt, T* work, I* info),
             (m, n, nb, a, lda, t, ldt, work, info))
QRANE_LAPACK(geqr, (const I* m, const I* n, T* a, const I* lda, T* t, const I* tsize, T* work, const I* lwork, I* info),
             (m, n, a, lda, t, tsize, work, lwork, info))
QRANE_LAPACK(getsqrhrt,
             (const I* m, const I* n, const I* mb1, const I* nb1, const I* nb2, T* a, const I* lda, T* t, const I* ldt,
              T* work, const I* lwork, I* info),
             (m, n, mb1, nb1, nb2, a, lda, t, ldt, work, lwork, info))
QRANE_LAPACK(geqp3, (const I* m, const I* n, T* a, const I* lda, I* jpvt, T* tau, T* work, const I* lwork, I* info),
             (m, n, a, lda, jpvt, tau, work, lwork, info))

}  // namespace qrane::lapack
