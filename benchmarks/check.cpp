// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <qrane/error.hpp>

#include "common/seeded_matrix.hpp"

namespace qrane::bench {
namespace {

using Doubles = std::vector<double>;

template <class T>
double error_unit(Index rows, Index cols) {
  return static_cast<double>(std::min(rows, cols) + 10) * std::numeric_limits<T>::epsilon() / 2;
}

/// Rows of a chunk of `cols` columns: about 32 MiB of doubles, so that products run at full speed from the cache's
/// point of view and the check of a large matrix needs little memory.
Index chunk_rows(Index rows, Index cols) {
  return std::clamp<Index>((Index{1} << 22) / std::max<Index>(cols, 1), 1, std::max<Index>(rows, 1));
}

/// Rows row .. row+count-1 of the chosen columns in double, leading dimension `count`.
template <class T>
void widen_rows(MatrixView<const T> a, Index row, Index count, const std::vector<Index>& columns, Doubles& out) {
  out.resize(static_cast<std::size_t>(count) * columns.size());
#pragma omp parallel for schedule(static)
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const T* from = a.data + row + columns[j] * a.ld;
    std::copy(from, from + count, out.begin() + static_cast<std::ptrdiff_t>(j) * count);
  }
}

std::vector<Index> all_columns(Index count) {
  std::vector<Index> columns(static_cast<std::size_t>(count));
  std::iota(columns.begin(), columns.end(), Index{0});
  return columns;
}

/// `wanted` columns evenly spread over 0 .. count-1, the first and the last among them.
std::vector<Index> spread_columns(Index count, Index wanted) {
  if (count <= wanted) return all_columns(count);
  std::vector<Index> columns;
  for (Index k = 0; k < wanted; ++k) columns.push_back(k * (count - 1) / (wanted - 1));
  return columns;
}

void multiply(CBLAS_TRANSPOSE op_a, Index m, Index n, Index k, double alpha, const double* a, Index lda,
              const double* b, Index ldb, double beta, double* c, Index ldc) {
  if (m == 0 || n == 0) return;
  cblas_dgemm(CblasColMajor, op_a, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha,
              a, static_cast<int>(lda), b, static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

void add_column_squares(const Doubles& chunk, Index rows, Doubles& sums) {
#pragma omp parallel for schedule(static)
  for (std::size_t j = 0; j < sums.size(); ++j) {
    const double* column = chunk.data() + static_cast<std::ptrdiff_t>(j) * rows;
    double sum = 0;
    for (Index i = 0; i < rows; ++i) sum += column[i] * column[i];
    sums[j] += sum;
  }
}

/// Upper triangle of G += C^T C for a chunk C of `rows` x n.
void add_gram(const Doubles& chunk, Index rows, Index n, Doubles& gram) {
  if (rows == 0 || n == 0) return;
  cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, static_cast<int>(n), static_cast<int>(rows), 1, chunk.data(),
              static_cast<int>(rows), 1, gram.data(), static_cast<int>(n));
}

double distance_to_identity(const Doubles& gram, Index n) {
  double sum = 0;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) {
      const double gap = gram[static_cast<std::size_t>(i + j * n)] - (i == j ? 1 : 0);
      sum += gap * gap * (i == j ? 1 : 2);
    }
  return std::sqrt(sum);
}

double worst_ratio(const Doubles& gaps, const Doubles& norms) {
  double worst = 0;
  for (std::size_t j = 0; j < gaps.size(); ++j) {
    if (gaps[j] == 0) continue;
    const double ratio = std::sqrt(gaps[j] / norms[j]);
    if (!(ratio <= worst)) worst = ratio;  // NaN stays
    if (std::isnan(worst)) break;
  }
  return worst;
}

/// k x probes random signs, the same ones every time.
Doubles random_signs(Index count) {
  Doubles signs(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < signs.size(); ++i) signs[i] = uniform_at(12345, i) < 0 ? -1 : 1;
  return signs;
}

/// One pass over the rows of A and Q: the residual of the chosen columns, and QᵀQ or its action on probe vectors.
template <class T>
struct FactorSums {
  Doubles gaps, norms;  // squares, by chosen column
  Doubles gram;         // k x k upper triangle, or k x probes: QᵀQ X

  FactorSums(MatrixView<const T> a, MatrixView<const T> q, const Doubles& r, const std::vector<Index>& columns,
             const Doubles& probes) {
    const Index k = q.cols, chosen = static_cast<Index>(columns.size());
    const Index probe_count = k == 0 ? 0 : static_cast<Index>(probes.size()) / k;
    const std::vector<Index> q_columns = all_columns(k);
    gaps.assign(columns.size(), 0);
    norms.assign(columns.size(), 0);
    gram.assign(static_cast<std::size_t>(probe_count ? k * probe_count : k * k), 0);
    Doubles a_chunk, q_chunk, product;
    const Index step = chunk_rows(a.rows, std::max(k, chosen));
    for (Index row = 0; row < a.rows; row += step) {
      const Index rows = std::min(step, a.rows - row);
      widen_rows(a, row, rows, columns, a_chunk);
      widen_rows(q, row, rows, q_columns, q_chunk);
      add_column_squares(a_chunk, rows, norms);
      multiply(CblasNoTrans, rows, chosen, k, -1, q_chunk.data(), rows, r.data(), k, 1, a_chunk.data(), rows);
      add_column_squares(a_chunk, rows, gaps);
      if (probe_count == 0) {
        add_gram(q_chunk, rows, k, gram);
      } else {
        product.resize(static_cast<std::size_t>(rows * probe_count));
        multiply(CblasNoTrans, rows, probe_count, k, 1, q_chunk.data(), rows, probes.data(), k, 0, product.data(),
                 rows);
        multiply(CblasTrans, k, probe_count, rows, 1, q_chunk.data(), rows, product.data(), rows, 1, gram.data(), k);
      }
    }
  }
};

/// R of A, n x n with anything below the diagonal, by Cholesky of the Gram matrix; empty where that fails.
template <class T>
Doubles r_by_gram(MatrixView<const T> a) {
  const Index n = a.cols, step = chunk_rows(a.rows, n);
  const std::vector<Index> columns = all_columns(n);
  Doubles gram(static_cast<std::size_t>(n * n), 0), chunk;
  for (Index row = 0; row < a.rows; row += step) {
    const Index rows = std::min(step, a.rows - row);
    widen_rows(a, row, rows, columns, chunk);
    add_gram(chunk, rows, n, gram);
  }
  const auto size = static_cast<int>(n);
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', size, gram.data(), size) != 0) return {};
  return gram;
}

/// The same by Householder QR of [R so far; next chunk of rows].
template <class T>
Doubles r_by_householder(MatrixView<const T> a) {
  const Index n = a.cols, step = std::max(n, chunk_rows(a.rows, n)), height = n + step;
  const std::vector<Index> columns = all_columns(n);
  Doubles r(static_cast<std::size_t>(n * n), 0), chunk, stacked, tau(static_cast<std::size_t>(n));
  for (Index row = 0; row < a.rows; row += step) {
    const Index rows = std::min(step, a.rows - row);
    widen_rows(a, row, rows, columns, chunk);
    stacked.assign(static_cast<std::size_t>(height * n), 0);
    for (Index j = 0; j < n; ++j) {
      std::copy_n(r.begin() + j * n, j + 1, stacked.begin() + j * height);
      std::copy_n(chunk.begin() + j * rows, rows, stacked.begin() + j * height + n);
    }
    if (LAPACKE_dgeqrf(LAPACK_COL_MAJOR, static_cast<int>(n + rows), static_cast<int>(n), stacked.data(),
                       static_cast<int>(height), tau.data()) != 0)
      return {};
    for (Index j = 0; j < n; ++j) std::copy_n(stacked.begin() + j * height, j + 1, r.begin() + j * n);
  }
  return r;
}

/// A = U S Vᵀ of n x n matrices; false where it fails.
bool decompose(Doubles a, Index n, Doubles& u, Doubles& vt) {
  const auto size = static_cast<int>(n);
  Doubles singular(static_cast<std::size_t>(n));
  u.resize(a.size()), vt.resize(a.size());
  return LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', size, size, a.data(), size, singular.data(), u.data(), size, vt.data(),
                        size) == 0;
}

/// W = U Vᵀ of R₂Rᵀ = U S Vᵀ; empty where that fails.
Doubles polar_factor(const Doubles& r2, const Doubles& r, Index n) {
  const auto size = static_cast<int>(n);
  Doubles p(r), w(r.size()), u, vt;
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) p[static_cast<std::size_t>(i + j * n)] = r[static_cast<std::size_t>(j + i * n)];
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, size, size, 1, r2.data(), size,
              p.data(), size);
  if (!decompose(p, n, u, vt)) return {};
  multiply(CblasNoTrans, n, n, n, 1, u.data(), n, vt.data(), n, 0, w.data(), n);
  return w;
}

/// W = Z Uᵀ, from R = U S Vᵀ and R₂V = Z T, T's diagonal made nonnegative; empty where that fails.
Doubles aligning_factor(const Doubles& r2, const Doubles& r, Index n) {
  const auto size = static_cast<int>(n);
  Doubles u, vt, z(r.size()), w(r.size()), tau(static_cast<std::size_t>(n));
  if (!decompose(r, n, u, vt)) return {};
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) z[static_cast<std::size_t>(i + j * n)] = vt[static_cast<std::size_t>(j + i * n)];
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, size, size, 1, r2.data(), size,
              z.data(), size);
  if (LAPACKE_dgeqrf(LAPACK_COL_MAJOR, size, size, z.data(), size, tau.data()) != 0) return {};
  std::vector<bool> negative;
  for (Index j = 0; j < n; ++j) negative.push_back(z[static_cast<std::size_t>(j + j * n)] < 0);
  if (LAPACKE_dorgqr(LAPACK_COL_MAJOR, size, size, size, z.data(), size, tau.data()) != 0) return {};
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i)
      if (negative[static_cast<std::size_t>(j)]) z[static_cast<std::size_t>(i + j * n)] *= -1;
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, size, size, size, 1, z.data(), size, u.data(), size, 0, w.data(),
              size);
  return w;
}

}  // namespace

template <class T>
ErrorMeasures check_factors(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                            const CheckBudget& budget) {
  const Index k = q.cols, probe_count = 16;
  const double m = static_cast<double>(a.rows), n = static_cast<double>(a.cols), kd = static_cast<double>(k);
  const bool whole = m * kd * kd + 2 * m * kd * n <= budget.flops;
  const std::vector<Index> columns = whole ? all_columns(a.cols) : spread_columns(a.cols, 64);
  const Doubles probes = whole ? Doubles{} : random_signs(k * probe_count);
  Doubles wide_r;
  widen_rows(r, 0, k, columns, wide_r);

  const FactorSums<T> sums(a, q, wide_r, columns, probes);
  const double unit = error_unit<T>(a.rows, a.cols);
  ErrorMeasures errors;
  errors.residual = worst_ratio(sums.gaps, sums.norms) / unit;
  if (whole) {
    errors.orthogonality = distance_to_identity(sums.gram, k) / unit;
    errors.how = "all columns";
  } else {
    double sum = 0;
    for (std::size_t i = 0; i < probes.size(); ++i) sum += (sums.gram[i] - probes[i]) * (sums.gram[i] - probes[i]);
    errors.orthogonality = std::sqrt(sum / static_cast<double>(probe_count)) / unit;
    errors.how = detail::concat(columns.size(), " columns, ", probe_count, " probes");
  }
  return errors;
}

bool can_check_r_alone(Index rows, Index cols, ReferenceR reference, const CheckBudget& budget) {
  const double m = static_cast<double>(rows), n = static_cast<double>(cols);
  if (cols > 512 || rows < cols) return false;
  return reference == ReferenceR::gram ? rows >= 2 * cols && m * n * n <= budget.flops : 2 * m * n * n <= budget.flops;
}

template <class T>
ErrorMeasures check_r_alone(MatrixView<const T> a, MatrixView<const T> r, ReferenceR reference) {
  const Index n = a.cols;
  const std::vector<Index> columns = all_columns(n);
  Doubles wide_r;
  ErrorMeasures errors;
  errors.how = reference == ReferenceR::gram ? "polar factor" : "aligned with Householder QR in double";
  errors.residual = std::numeric_limits<double>::quiet_NaN();
  widen_rows(r, 0, n, columns, wide_r);
  const bool finite = std::all_of(wide_r.begin(), wide_r.end(), [](double x) { return std::isfinite(x); });
  if (!finite) return errors;
  const Doubles r2 = reference == ReferenceR::gram ? r_by_gram(a) : r_by_householder(a);
  if (r2.empty()) return errors;

  const Doubles w = reference == ReferenceR::gram ? polar_factor(r2, wide_r, n) : aligning_factor(r2, wide_r, n);
  if (w.empty()) return errors;
  Doubles gap(r2.size(), 0), gaps(static_cast<std::size_t>(n), 0), norms(static_cast<std::size_t>(n), 0);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i <= j; ++i) gap[static_cast<std::size_t>(i + j * n)] = r2[static_cast<std::size_t>(i + j * n)];
  add_column_squares(gap, n, norms);
  multiply(CblasNoTrans, n, n, n, -1, w.data(), n, wide_r.data(), n, 1, gap.data(), n);
  add_column_squares(gap, n, gaps);
  errors.residual = worst_ratio(gaps, norms) / error_unit<T>(a.rows, a.cols);
  return errors;
}

template <class T>
double condition_of(MatrixView<const T> r) {
  const Index n = std::min(r.rows, r.cols);
  Doubles wide, singular(static_cast<std::size_t>(n)), none(1);
  widen_rows(r, 0, n, all_columns(n), wide);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) {
      double& x = wide[static_cast<std::size_t>(i + j * n)];
      if (i > j) x = 0;
      if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
    }
  const auto size = static_cast<int>(n);
  if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', size, size, wide.data(), size, singular.data(), none.data(), size,
                     none.data(), size) != 0)
    return std::numeric_limits<double>::quiet_NaN();
  return singular.front() / singular.back();
}

template double condition_of(MatrixView<const float>);
template double condition_of(MatrixView<const double>);
template ErrorMeasures check_factors(MatrixView<const float>, MatrixView<const float>, MatrixView<const float>,
                                     const CheckBudget&);
template ErrorMeasures check_factors(MatrixView<const double>, MatrixView<const double>, MatrixView<const double>,
                                     const CheckBudget&);
template ErrorMeasures check_r_alone(MatrixView<const float>, MatrixView<const float>, ReferenceR);
template ErrorMeasures check_r_alone(MatrixView<const double>, MatrixView<const double>, ReferenceR);

}  // namespace qrane::bench
