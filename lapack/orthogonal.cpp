// SPDX-License-Identifier: Apache-2.0
// Q from LAPACK's reflectors: formed, or applied. In LQ factorizations the reflectors lie in rows and the orthogonal
// factor is the transpose of the Q that they give as columns.
#include <algorithm>
#include <vector>

#include <lapack/names.hpp>

namespace qrane::lapack {
namespace {

/// out := the leading columns of Q, of which the reflectors are the columns of v; out may be the same memory.
template <class T>
void form(const Context& context, MatrixView<const T> v, const T* tau, MatrixView<T> out) {
  const auto f = qr_from_reflectors<T>(context, v, MatrixView<const T>(tau, v.cols, 1));
  if (out.cols == v.cols) return f.q_into(out);
  Matrix<T> q = Matrix<T>::host(out.rows, out.cols);
  for (Index j = 0; j < q.cols(); ++j) {
    std::fill_n(&q(0, j), q.rows(), T(0));
    q(j, j) = 1;
  }
  f.apply_q(q.view());
  context.copy(q, out);
}

/// C := op(Q) C or C op(Q).
template <class T>
void apply(const Context& context, MatrixView<const T> v, const T* tau, MatrixView<T> c, bool left, bool transpose) {
  const auto f = qr_from_reflectors<T>(context, v, MatrixView<const T>(tau, v.cols, 1));
  const Side side = left ? Side::left : Side::right;
  transpose ? f.apply_qt(c, side) : f.apply_q(c, side);
}

template <class T, class I>
bool orgqr(const Call& call, const I* m, const I* n, const I* k, T* a, const I* lda, const T* tau, T* work,
           const I* lwork, I* info) {
  if (*k <= 0 || *n < *k || *m < *n || *lda < *m || *lwork < *n || !call.worthwhile(Work::form, *m, *n)) return false;
  form<T>(call.context(), matrix<const T>(a, *m, *k, *lda), tau, matrix(a, *m, *n, *lda));
  work[0] = static_cast<T>(*n);
  *info = 0;
  return true;
}

template <class T, class I>
bool orglq(const Call& call, const I* m, const I* n, const I* k, T* a, const I* lda, const T* tau, T* work,
           const I* lwork, I* info) {
  if (*k <= 0 || *m < *k || *n < *m || *lda < *m || *lwork < *m || !call.worthwhile(Work::form, *n, *m)) return false;
  form<T>(call.context(), transposed<const T>(a, *k, *n, *lda), tau, transposed(a, *m, *n, *lda));
  work[0] = static_cast<T>(*m);
  *info = 0;
  return true;
}

/// The arguments that ormqr, orm2r, ormlq and gemqr have in common: op(Q) from a side of C, m x n, by k reflectors.
template <class T>
struct Product {
  bool left, transpose;
  Index m, n, k, ldc;
  T* c;

  template <class I>
  Product(const char* side, const char* trans, const I* m_, const I* n_, const I* k_, T* c_, const I* ldc_)
      : left(is(side, 'L')), transpose(is(trans, 'T')), m(*m_), n(*n_), k(*k_), ldc(*ldc_), c(c_) {
    valid =
        (left || is(side, 'R')) && (transpose || is(trans, 'N')) && std::min({m, n, k}) > 0 && k <= order() && ldc >= m;
  }
  /// Rows of Q.
  Index order() const { return left ? m : n; }
  /// Columns of C, or rows where Q comes from the right: LAPACK's least workspace, too.
  Index others() const { return left ? n : m; }
  bool worthwhile(const Call& call) const { return valid && call.worthwhile(Work::apply, order(), k, others()); }
  MatrixView<T> target() const { return matrix(c, m, n, ldc); }

  bool valid;
};

template <class T, class I>
bool orm2r(const Call& call, const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a,
           const I* lda, const T* tau, T* c, const I* ldc, T*, I* info) {
  const Product<T> p(side, trans, m, n, k, c, ldc);
  if (*lda < p.order() || !p.worthwhile(call)) return false;
  apply<T>(call.context(), matrix(a, p.order(), p.k, *lda), tau, p.target(), p.left, p.transpose);
  *info = 0;
  return true;
}

template <class T, class I>
bool ormqr(const Call& call, const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a,
           const I* lda, const T* tau, T* c, const I* ldc, T* work, const I* lwork, I* info) {
  if (*lwork < Product<T>(side, trans, m, n, k, c, ldc).others() ||
      !orm2r<T, I>(call, side, trans, m, n, k, a, lda, tau, c, ldc, work, info))
    return false;
  work[0] = static_cast<T>(*lwork);
  return true;
}

template <class T, class I>
bool ormlq(const Call& call, const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a,
           const I* lda, const T* tau, T* c, const I* ldc, T* work, const I* lwork, I* info) {
  const Product<T> p(side, trans, m, n, k, c, ldc);
  if (*lda < p.k || *lwork < p.others() || !p.worthwhile(call)) return false;
  apply<T>(call.context(), transposed(a, p.k, p.order(), *lda), tau, p.target(), p.left, !p.transpose);
  work[0] = static_cast<T>(*lwork);
  *info = 0;
  return true;
}

/// Takes what geqr returns for one row block: T as geqrt has it, nb rows, with tau on the diagonals of its blocks.
template <class T, class I>
bool gemqr(const Call& call, const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a,
           const I* lda, const T* t, const I* tsize, T* c, const I* ldc, T* work, const I* lwork, I* info) {
  constexpr Index head = 5;
  const Product<T> p(side, trans, m, n, k, c, ldc);
  if (!p.valid || *lda < p.order() || *tsize < head) return false;
  const Index rows = static_cast<Index>(t[1]), nb = static_cast<Index>(t[2]);
  if (nb < 1 || *tsize < nb * p.k + head || *lwork < p.others() * nb || (rows > p.k && rows < p.order()) ||
      !p.worthwhile(call))
    return false;
  std::vector<T> tau(static_cast<std::size_t>(p.k));
  for (Index j = 0; j < p.k; ++j) tau[static_cast<std::size_t>(j)] = t[head + j * nb + j % nb];
  apply<T>(call.context(), matrix(a, p.order(), p.k, *lda), tau.data(), p.target(), p.left, p.transpose);
  work[0] = static_cast<T>(*lwork);
  *info = 0;
  return true;
}

}  // namespace

QRANE_LAPACK(orgqr,
             (const I* m, const I* n, const I* k, T* a, const I* lda, const T* tau, T* work, const I* lwork, I* info),
             (m, n, k, a, lda, tau, work, lwork, info))
QRANE_LAPACK(orglq,
             (const I* m, const I* n, const I* k, T* a, const I* lda, const T* tau, T* work, const I* lwork, I* info),
             (m, n, k, a, lda, tau, work, lwork, info))
QRANE_LAPACK(orm2r,
             (const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a, const I* lda,
              const T* tau, T* c, const I* ldc, T* work, I* info),
             (side, trans, m, n, k, a, lda, tau, c, ldc, work, info))
QRANE_LAPACK(ormqr,
             (const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a, const I* lda,
              const T* tau, T* c, const I* ldc, T* work, const I* lwork, I* info),
             (side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info))
QRANE_LAPACK(ormlq,
             (const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a, const I* lda,
              const T* tau, T* c, const I* ldc, T* work, const I* lwork, I* info),
             (side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info))
QRANE_LAPACK(gemqr,
             (const char* side, const char* trans, const I* m, const I* n, const I* k, const T* a, const I* lda,
              const T* t, const I* tsize, T* c, const I* ldc, T* work, const I* lwork, I* info),
             (side, trans, m, n, k, a, lda, t, tsize, c, ldc, work, lwork, info))

}  // namespace qrane::lapack
