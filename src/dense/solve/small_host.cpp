// SPDX-License-Identifier: Apache-2.0
#include "dense/solve/small_host.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <qrane/error.hpp>

#include "cpu/queue/blas.hpp"

namespace qrane::dense {

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

double largest(const HostMatrix& a) {
  double most = 0;
  for (double x : a.data) most = std::max(most, std::abs(x));
  return most;
}

/// Scales by a power of two so that the largest element is near 1; returns the factor applied.
double normalize(HostMatrix& a) {
  const double most = largest(a);
  if (!(most > 0) || !std::isfinite(most)) return 1;
  const double factor = std::ldexp(1.0, std::clamp(-std::ilogb(most), -1000, 1000));
  for (double& x : a.data) x *= factor;
  return factor;
}

double norm2(const double* x, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

/// Householder vector of x (length n): x[0] becomes beta, the tail v; returns tau.
double reflector(double* x, Index n) {
  const double tail = n > 1 ? norm2(x + 1, n - 1) : 0;
  if (tail == 0) return 0;
  const double alpha = x[0];
  const double beta = -std::copysign(std::hypot(alpha, tail), alpha);
  for (Index i = 1; i < n; ++i) x[i] /= alpha - beta;
  x[0] = beta;
  return (beta - alpha) / beta;
}

/// y := (I - tau v v^T) y, v = [1; tail].
void reflect(const double* v, double tau, double* y, Index n) {
  if (tau == 0) return;
  double sum = y[0];
  for (Index i = 1; i < n; ++i) sum += v[i] * y[i];
  y[0] -= tau * sum;
  for (Index i = 1; i < n; ++i) y[i] -= tau * sum * v[i];
}

/// Unpivoted QR of a, packed, with tau.
std::vector<double> plain_qr(HostMatrix& a) {
  std::vector<double> tau(static_cast<std::size_t>(std::min(a.rows, a.cols)));
  for (Index j = 0; j < static_cast<Index>(tau.size()); ++j) {
    tau[static_cast<std::size_t>(j)] = reflector(a.column(j) + j, a.rows - j);
    for (Index k = j + 1; k < a.cols; ++k)
      reflect(a.column(j) + j, tau[static_cast<std::size_t>(j)], a.column(k) + j, a.rows - j);
  }
  return tau;
}

}  // namespace

bool has_nan_or_inf(const HostMatrix& a) {
  return std::any_of(a.data.begin(), a.data.end(), [](double x) { return !std::isfinite(x); });
}

double triangle_condition(const HostMatrix& r) {
  const Index n = std::min(r.rows, r.cols);
  if (n == 0) return 1;
  HostMatrix t(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) t(i, j) = r(i, j);
  if (has_nan_or_inf(t)) return nan_value;
  normalize(t);
  for (Index j = 0; j < n; ++j)
    if (t(j, j) == 0) return std::numeric_limits<double>::infinity();
  double reciprocal = 0;
  LAPACKE_dtrcon(LAPACK_COL_MAJOR, '1', 'U', 'N', static_cast<lapack_int>(n), t.data.data(), static_cast<lapack_int>(n),
                 &reciprocal);
  return reciprocal > 0 ? 1 / reciprocal : std::numeric_limits<double>::infinity();
}

PivotedQR pivoted_qr(HostMatrix a) {
  PivotedQR f;
  f.scale = normalize(a);
  const Index m = a.rows, n = a.cols, k = std::min(m, n);
  f.columns.resize(static_cast<std::size_t>(n));
  std::iota(f.columns.begin(), f.columns.end(), Index{0});
  f.tau.assign(static_cast<std::size_t>(k), 0.0);
  std::vector<double> norms(static_cast<std::size_t>(n)), exact(static_cast<std::size_t>(n));
  for (Index j = 0; j < n; ++j) norms[j] = exact[j] = norm2(a.column(j), m);
  for (Index j = 0; j < k; ++j) {
    const Index best = std::max_element(norms.begin() + j, norms.end()) - norms.begin();
    if (best != j) {
      std::swap_ranges(a.column(j), a.column(j) + m, a.column(best));
      std::swap(f.columns[j], f.columns[best]);
      std::swap(norms[j], norms[best]);
      std::swap(exact[j], exact[best]);
    }
    f.tau[j] = reflector(a.column(j) + j, m - j);
    for (Index c = j + 1; c < n; ++c) {
      reflect(a.column(j) + j, f.tau[j], a.column(c) + j, m - j);
      // downdate the norm; recompute where cancellation has eaten its digits (Drmač, Bujanović 2008)
      const double ratio = norms[c] > 0 ? std::abs(a(j, c)) / norms[c] : 0;
      const double left = std::max(0.0, (1 - ratio) * (1 + ratio));
      const double lost =
          left * (norms[c] / (exact[c] > 0 ? exact[c] : 1)) * (norms[c] / (exact[c] > 0 ? exact[c] : 1));
      norms[c] = lost < 1e-8 ? (exact[c] = norm2(a.column(c) + j + 1, m - j - 1)) : norms[c] * std::sqrt(left);
    }
  }
  f.packed = std::move(a);
  return f;
}

Index numerical_rank(const PivotedQR& f, double relative_tolerance, double* absolute_tolerance) {
  const Index k = static_cast<Index>(f.tau.size());
  const double first = k > 0 ? std::abs(f.packed(0, 0)) : 0;
  if (absolute_tolerance) *absolute_tolerance = relative_tolerance * first / f.scale;
  Index rank = 0;
  while (rank < k && std::abs(f.packed(rank, rank)) > relative_tolerance * first) ++rank;
  return rank;
}

HostMatrix leading_q(const PivotedQR& f, Index count) {
  HostMatrix q(f.packed.rows, count);
  for (Index c = 0; c < count; ++c) {
    q(c, c) = 1;
    for (Index j = std::min<Index>(c, static_cast<Index>(f.tau.size()) - 1); j >= 0; --j)
      reflect(f.packed.data.data() + j + j * f.packed.rows, f.tau[j], q.column(c) + j, f.packed.rows - j);
  }
  return q;
}

HostMatrix solve_deficient(const PivotedQR& f, Index rank, const HostMatrix& b, bool least_norm) {
  const Index m = f.packed.rows, n = f.packed.cols;
  HostMatrix x(n, b.cols);
  // [R11 R12]ᵀ = Z [Lᵀ; 0], so that the least-norm solution is P Z [L^-1 y; 0]
  HostMatrix z(n, rank);
  std::vector<double> z_tau;
  if (least_norm && rank < n) {
    for (Index i = 0; i < rank; ++i)
      for (Index j = i; j < n; ++j) z(j, i) = f.packed(i, j);
    z_tau = plain_qr(z);
  }
  std::vector<double> y(static_cast<std::size_t>(std::max(m, n)));
  for (Index c = 0; c < b.cols; ++c) {
    std::fill(y.begin(), y.end(), 0.0);
    for (Index i = 0; i < m; ++i) y[i] = b(i, c) * f.scale;
    for (Index j = 0; j < static_cast<Index>(f.tau.size()); ++j)
      reflect(f.packed.data.data() + j + j * m, f.tau[j], y.data() + j, m - j);
    std::fill(y.begin() + rank, y.end(), 0.0);
    if (z_tau.empty()) {
      for (Index i = rank - 1; i >= 0; --i) {
        for (Index j = i + 1; j < rank; ++j) y[i] -= f.packed(i, j) * y[j];
        y[i] /= f.packed(i, i);
      }
    } else {
      for (Index i = 0; i < rank; ++i) {  // Lᵀ is upper: row i of L is column i of z
        for (Index j = 0; j < i; ++j) y[i] -= z(j, i) * y[j];
        y[i] /= z(i, i);
      }
      for (Index j = rank - 1; j >= 0; --j) reflect(z.column(j) + j, z_tau[j], y.data() + j, n - j);
    }
    for (Index j = 0; j < n; ++j) x(f.columns[j], c) = y[j];
  }
  return x;
}

HostSvd host_svd(HostMatrix a, bool vectors) {
  const Index m = a.rows, n = a.cols, k = std::min(m, n);
  HostSvd r;
  r.s.assign(static_cast<std::size_t>(k), 0.0);
  if (vectors) {
    r.u = HostMatrix(m, k);
    r.vt = HostMatrix(k, n);
  }
  if (k == 0) return r;
  std::optional<backend::cpu::blas::SingleThread> single;  // a small one has the same bits beside other contexts
  if (k <= 512) single.emplace();
  if (has_nan_or_inf(a)) {
    std::fill(r.s.begin(), r.s.end(), nan_value);
    std::fill(r.u.data.begin(), r.u.data.end(), nan_value);
    std::fill(r.vt.data.begin(), r.vt.data.end(), nan_value);
    return r;
  }
  const double scale = normalize(a);
  const HostMatrix kept = a;
  const auto size = [](Index i) { return static_cast<lapack_int>(i); };
  double unused = 0;
  double* u = vectors ? r.u.data.data() : &unused;
  double* vt = vectors ? r.vt.data.data() : &unused;
  const char job = vectors ? 'S' : 'N';
  const lapack_int ldu = size(vectors ? m : 1), ldvt = size(vectors ? k : 1);
  lapack_int info =
      LAPACKE_dgesdd(LAPACK_COL_MAJOR, job, size(m), size(n), a.data.data(), size(m), r.s.data(), u, ldu, vt, ldvt);
  if (info != 0) {
    a = kept;
    std::vector<double> superdiagonal(static_cast<std::size_t>(k));
    info = LAPACKE_dgesvd(LAPACK_COL_MAJOR, job, job, size(m), size(n), a.data.data(), size(m), r.s.data(), u, ldu, vt,
                          ldvt, superdiagonal.data());
  }
  detail::check(info == 0, ErrorCode::not_converged, "the SVD of a ", m, " x ", n,
                " factor did not converge (LAPACK info ", info, ")");
  for (double& s : r.s) s /= scale;
  return r;
}

}  // namespace qrane::dense
