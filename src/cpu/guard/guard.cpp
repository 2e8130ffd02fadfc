// SPDX-License-Identifier: Apache-2.0
// CPU backend: the guarded Cholesky factorization and Householder reconstruction.
#include <algorithm>
#include <cmath>
#include <vector>

#include <lapacke.h>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

using Wide = DeviceMatrix<Cpu, double>;

/// Below this a squared column norm may owe its leading digits to underflow in the products.
constexpr double least_diagonal = 0x1p-980;

double& at(const Wide& a, Index i, Index j) { return a.data[i + j * a.ld]; }

/// Upper Cholesky factor of the scaled Gram matrix, in place; false when a pivot is not positive.
bool factor_scaled(const Wide& g, const std::vector<double>& d) {
  const auto n = static_cast<lapack_int>(g.cols);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) at(g, i, j) /= d[static_cast<std::size_t>(i)] * d[static_cast<std::size_t>(j)];
  if (LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', n, g.data, static_cast<lapack_int>(g.ld)) != 0) return false;
  for (Index j = 0; j < n; ++j)
    if (!(at(g, j, j) > 0)) return false;  // NaN, which not every LAPACK reports
  return true;
}

/// W := R^-1 for upper triangular R, zeros below.
void invert_upper(const Wide& r, const Wide& w) {
  for (Index j = 0; j < r.cols; ++j)
    for (Index i = 0; i < r.cols; ++i) at(w, i, j) = i <= j ? at(r, i, j) : 0.0;
  LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', static_cast<lapack_int>(r.cols), w.data,
                      static_cast<lapack_int>(w.ld));
}

double frobenius_upper(const Wide& a) {
  double sum = 0;
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i <= j; ++i) sum += at(a, i, j) * at(a, i, j);
  return std::sqrt(sum);
}

/// One matrix of GuardedCholesky; returns kappa, infinity when there is none.
double guarded(const Wide& gram, double shift, const Wide& r, const Wide& w) {
  const Index n = gram.cols;
  if (n == 0) return 0;
  std::vector<double> copy(static_cast<std::size_t>(n * n));
  const Wide g{copy.data(), n, n, n, 0, 1};
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) at(g, i, j) = at(gram, i, j);
  std::vector<double> d(static_cast<std::size_t>(n));
  bool positive = true;
  for (Index j = 0; j < n; ++j) {
    d[static_cast<std::size_t>(j)] = std::sqrt(at(g, j, j));
    positive = positive && at(g, j, j) >= least_diagonal && std::isfinite(at(g, j, j));
  }
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) at(r, i, j) = at(w, i, j) = 0;
  for (Index j = 0; j < n; ++j) at(g, j, j) *= 1 + shift;
  const blas::SingleThread single;  // the same bits for any number of threads
  if (!positive || !factor_scaled(g, d)) return INFINITY;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) at(r, i, j) = at(g, i, j);
  invert_upper(r, w);
  const double kappa = frobenius_upper(r) * frobenius_upper(w);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      at(r, i, j) *= d[static_cast<std::size_t>(j)];
      at(w, i, j) /= d[static_cast<std::size_t>(i)];
    }
  return kappa;
}

}  // namespace

template <class T>
void guarded_cholesky(const Queue& queue, const GuardedCholesky<Cpu, T>& c) {
  if (queue.skip()) return;
  const double n = static_cast<double>(c.gram.cols);
  const double kappa = guarded(c.gram, c.shift, c.r, c.inverse);
  const double bound = kappa + n * c.rounding * kappa * kappa;
  const bool within = bound <= c.limit, fit = bound <= std::max(c.limit, c.fit_limit);
  *c.condition = bound;
  if (c.failed && !fit) *c.failed = 1;
  if (c.verdict) {
    c.verdict[0] = within;
    c.verdict[1] = !within;
    c.verdict[2] = !within && fit;
    c.verdict[3] = !within && !fit;
  }
}

template <class T>
void reconstruct(const Queue& queue, const Reconstruct<Cpu, T>& x) {
  if (queue.skip()) return;
  const Index n = x.q1.cols;
  std::vector<T> lu(static_cast<std::size_t>(n * n));
  std::vector<T> sign(static_cast<std::size_t>(n));
  const auto a = [&](Index i, Index j) -> T& { return lu[static_cast<std::size_t>(i + j * n)]; };
  for (Index b = 0; b < x.q1.count; ++b) {
    const T* q = x.q1.data + b * x.q1.stride;
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < n; ++i) a(i, j) = q[i + j * x.q1.ld];
    // L U = Q1 - S; |pivot| >= 1 since S takes the sign that enlarges it
    for (Index j = 0; j < n; ++j) {
      sign[static_cast<std::size_t>(j)] = a(j, j) > 0 ? T(-1) : T(1);
      a(j, j) -= sign[static_cast<std::size_t>(j)];
      for (Index i = j + 1; i < n; ++i) a(i, j) /= a(j, j);
      for (Index k = j + 1; k < n; ++k)
        for (Index i = j + 1; i < n; ++i) a(i, k) -= a(i, j) * a(j, k);
    }
    T* u_inverse = x.u_inverse.data + b * x.u_inverse.stride;
    T* t = x.t.data + b * x.t.stride;
    T* panel = x.panel.data + b * x.panel.stride;
    const T* r = x.r.data + b * x.r.stride;
    for (Index j = 0; j < n; ++j) {
      for (Index i = 0; i < n; ++i) {
        panel[i + j * x.panel.ld] = i <= j ? sign[static_cast<std::size_t>(i)] * r[i + j * x.r.ld] : a(i, j);
        u_inverse[i + j * x.u_inverse.ld] = T(0);
        t[i + j * x.t.ld] = i <= j ? -a(i, j) * sign[static_cast<std::size_t>(j)] : T(0);
      }
      u_inverse[j + j * x.u_inverse.ld] = 1 / a(j, j);
      for (Index i = j - 1; i >= 0; --i) {
        T sum = 0;
        for (Index k = i + 1; k <= j; ++k) sum += a(i, k) * u_inverse[k + j * x.u_inverse.ld];
        u_inverse[i + j * x.u_inverse.ld] = -sum / a(i, i);
      }
    }
    // T := -(U S) L^-T, columns from the last: T L^T = -U S
    for (Index j = 0; j < n; ++j)
      for (Index k = 0; k < j; ++k)
        for (Index i = 0; i <= k; ++i) t[i + j * x.t.ld] -= t[i + k * x.t.ld] * a(j, k);
  }
}

#define QRANE_INSTANTIATE(T)                                                    \
  template void guarded_cholesky(const Queue&, const GuardedCholesky<Cpu, T>&); \
  template void reconstruct(const Queue&, const Reconstruct<Cpu, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
