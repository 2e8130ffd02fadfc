// SPDX-License-Identifier: Apache-2.0
// CPU backend: the small SVD by LAPACK (gesdd of R, gesvd when that does not converge; syev of a Gram matrix) and the
// product of its factors. A guess is not needed.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <qrane/error.hpp>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

using Wide = DeviceMatrix<Cpu, double>;
using Values = std::vector<double>;

double& at(const Wide& a, Index i, Index j) { return a.data[i + j * a.ld]; }
std::size_t place(Index i, Index j, Index n) { return static_cast<std::size_t>(i + j * n); }

/// u, v and sigma of the n x n matrix `a`, column-major.
struct Factors {
  Values u, sigma, v;
};

Factors of_triangle(const Values& a, Index n) {
  const auto size = static_cast<lapack_int>(n);
  Factors f{Values(a.size()), Values(static_cast<std::size_t>(n)), Values(a.size())};
  Values copy = a, vt(a.size());
  lapack_int info = LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'A', size, size, copy.data(), size, f.sigma.data(), f.u.data(),
                                   size, vt.data(), size);
  if (info != 0) {
    copy = a;
    Values superdiagonal(static_cast<std::size_t>(n));
    info = LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'A', 'A', size, size, copy.data(), size, f.sigma.data(), f.u.data(), size,
                          vt.data(), size, superdiagonal.data());
  }
  detail::check(info == 0, ErrorCode::not_converged, "the SVD of a ", n, " x ", n,
                " factor did not converge (LAPACK info ", info, ")");
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) f.v[place(i, j, n)] = vt[place(j, i, n)];
  return f;
}

Factors of_gram(Values a, Index n) {
  const auto size = static_cast<lapack_int>(n);
  Values lambda(static_cast<std::size_t>(n));
  const lapack_int info = LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', size, a.data(), size, lambda.data());
  detail::check(info == 0, ErrorCode::not_converged, "the eigenvalues of a ", n, " x ", n,
                " Gram matrix did not converge (LAPACK info ", info, ")");
  Factors f{{}, Values(static_cast<std::size_t>(n)), Values(a.size())};
  for (Index j = 0; j < n; ++j) {  // largest first
    f.sigma[static_cast<std::size_t>(j)] = std::sqrt(std::max(lambda[static_cast<std::size_t>(n - 1 - j)], 0.0));
    std::copy_n(a.begin() + (n - 1 - j) * n, n, f.v.begin() + j * n);
  }
  return f;
}

void store(const Values& from, const Wide& to) {
  for (Index j = 0; j < to.cols; ++j)
    for (Index i = 0; i < to.rows; ++i) at(to, i, j) = from[place(i, j, to.rows)];
}

void form_product(const SmallSvd<Cpu>& task) {
  using Product = SmallSvd<Cpu>::Product;
  const Index n = task.r.rows;
  for (Index j = 0; task.product != Product::none && j < n; ++j)
    for (Index i = 0; i < n; ++i) at(task.result, i, j) = 0;
  for (Index k = 0; k < n; ++k) {
    const double sigma = task.sigma[k];
    if (task.product == Product::whiten) {
      for (Index i = 0; i < n; ++i) at(task.result, i, k) = at(task.v, i, k) / sigma;
    } else if (task.product == Product::threshold && !(sigma <= task.threshold)) {
      for (Index j = 0; j < n; ++j) {
        const double weight = (1 - task.threshold / sigma) * at(task.v, j, k);
        for (Index i = 0; i < n; ++i) at(task.result, i, j) += at(task.v, i, k) * weight;
      }
    }
  }
}

}  // namespace

void small_svd(const Queue& queue, const SmallSvd<Cpu>& task) {
  const Index n = task.r.rows;
  if (queue.skip() || n == 0) return;
  // its bits must not depend on what other contexts do to the library's threads, which are the process's
  constexpr Index widest_alone = 512;
  std::optional<blas::SingleThread> single;
  if (n <= widest_alone) single.emplace();
  Values a(place(0, n, n));
  double most = 0;
  bool finite = true;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      a[place(i, j, n)] = at(task.r, i, j);
      most = std::max(most, std::abs(at(task.r, i, j)));
      finite = finite && std::isfinite(at(task.r, i, j));
    }
  Factors f;
  if (finite) {
    const double scale = most > 0 ? std::ldexp(1.0, task.gram ? std::ilogb(most) / 2 : std::ilogb(most)) : 1.0;
    for (double& x : a) x = task.gram ? x / scale / scale : x / scale;
    f = task.gram ? of_gram(std::move(a), n) : of_triangle(a, n);
    for (double& s : f.sigma) s *= scale;
  } else {
    const Values poison(a.size(), std::numeric_limits<double>::quiet_NaN());
    f = {poison, Values(static_cast<std::size_t>(n), poison[0]), poison};
  }
  store(f.v, task.v);
  if (task.u.data) store(f.u, task.u);
  std::copy(f.sigma.begin(), f.sigma.end(), task.sigma);
  if (task.failed && !(f.sigma.front() < task.most_condition * f.sigma.back())) *task.failed = 1;
  form_product(task);
}

}  // namespace qrane::backend::cpu
