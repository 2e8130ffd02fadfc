// SPDX-License-Identifier: Apache-2.0
// The measures of Andrew and Dingle's tables 3 to 5, of an updated factorization, by products in double on the host:
//
//   forward         ‖x - x^‖_2 / ‖x‖_2: the solution from the updated factorization against that of a full one
//   orthogonality   ‖QᵀQ - I‖_2
//   backward        ‖Q R - A‖_2 / ‖A‖_2
//
// 2-norms by power iteration, from below to a few percent. And decision 9's measures of the same factors beside them.
#include <cblas.h>

#include "common/seeded_matrix.hpp"
#include "suites/update_cases.hpp"

namespace qrane::bench {
namespace {

using Doubles = std::vector<double>;

template <class T>
Doubles widened(const Matrix<T>& a) {
  Doubles out(static_cast<std::size_t>(a.rows() * a.cols()));
#pragma omp parallel for schedule(static)
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i) out[static_cast<std::size_t>(i + j * a.rows())] = static_cast<double>(a(i, j));
  return out;
}

double norm_of(const Doubles& x) { return cblas_dnrm2(static_cast<int>(x.size()), x.data(), 1); }

/// Largest singular value of E, rows x cols, by power iteration on EᵀE.
double two_norm(const Doubles& e, Index rows, Index cols) {
  const int m = static_cast<int>(rows), n = static_cast<int>(cols);
  if (m == 0 || n == 0) return 0;
  Doubles x(static_cast<std::size_t>(cols)), y(static_cast<std::size_t>(rows));
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = uniform_at(99, j);
  double norm = 0;
  for (int step = 0; step < 30; ++step) {
    const double length = norm_of(x);
    if (length == 0) return 0;
    for (double& value : x) value /= length;
    cblas_dgemv(CblasColMajor, CblasNoTrans, m, n, 1, e.data(), m, x.data(), 1, 0, y.data(), 1);
    norm = norm_of(y);
    cblas_dgemv(CblasColMajor, CblasTrans, m, n, 1, e.data(), m, y.data(), 1, 0, x.data(), 1);
  }
  return norm;
}

/// ‖QᵀQ - I‖_2, Q m x k.
double loss_of_orthogonality(const Doubles& q, Index m, Index k) {
  Doubles gram(static_cast<std::size_t>(k * k));
  const int rows = static_cast<int>(m), cols = static_cast<int>(k);
  cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, cols, rows, 1, q.data(), rows, 0, gram.data(), cols);
  for (Index j = 0; j < k; ++j) {
    gram[static_cast<std::size_t>(j + j * k)] -= 1;
    for (Index i = 0; i < j; ++i) gram[static_cast<std::size_t>(j + i * k)] = gram[static_cast<std::size_t>(i + j * k)];
  }
  return two_norm(gram, k, k);
}

/// ‖Q R - A‖_2 / ‖A‖_2, `norm` = ‖A‖_2; A is overwritten.
double backward_error(const Doubles& q, const Doubles& r, Doubles& a, double norm, Index m, Index k, Index n) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
              1, q.data(), static_cast<int>(m), r.data(), static_cast<int>(k), -1, a.data(), static_cast<int>(m));
  return two_norm(a, m, n) / norm;
}

template <class T>
double distance(const Matrix<T>& x, const Matrix<T>& reference) {
  Doubles gap = widened(reference);
  const double norm = norm_of(gap);
  for (Index i = 0; i < x.rows(); ++i) gap[static_cast<std::size_t>(i)] -= static_cast<double>(x(i, 0));
  return norm_of(gap) / norm;
}

}  // namespace

template <class T>
void UpdateCases<T>::measure_accuracy(const UpdateShape& update, UpdateCase& result) {
  const Context& context = session_.context();
  factored(update);
  const UpdatedMatrix<T> matrix(session_, update, a_, b_);
  Options options;
  options.q = update.form;
  const Matrix<T> x = context.to_host(qr<T>(context, matrix.after(), options).solve(matrix.b_after()).x);
  const Matrix<T> after = context.to_host(matrix.after());
  const Doubles a_after = widened(after);
  const double norm = two_norm(a_after, after.rows(), after.cols());
  for (const UpdateWay way : update.ways) {
    note(update, to_string(way));
    UpdateTime one;
    one.method = to_string(way);
    try {
      const UpdateSubject<T> by = subject(update, way);
      UpdatableQR<T>& f = by.f;
      refresh(f);
      const UpdateReport said = by.forward(matrix);
      one.ran = by.paper == nullptr ? to_string(said.method) : one.method;
      const Matrix<T> q = context.to_host(f.q()), r = context.to_host(f.r());
      const Doubles wide_q = widened(q), wide_r = widened(r);
      Doubles wide_a = a_after;
      one.accuracy = {{"forward", distance(context.to_host(f.solve().x), x)},
                      {"orthogonality", loss_of_orthogonality(wide_q, q.rows(), q.cols())},
                      {"backward", backward_error(wide_q, wide_r, wide_a, norm, q.rows(), q.cols(), r.cols())}};
      one.errors = check_factors<T>(after.view(), q.view(), r.view(), {2e9});
      matrix.back(f);
      refresh(f);
      if (!one.errors.good()) {
        result.outcome = Outcome::failed;
        result.reason = "an error measure of " + one.method + " is above 30";
      }
    } catch (const Error& fault) {
      if (fault.code() == ErrorCode::device) throw;
      one.reason = fault.what();
    }
    result.times.push_back(one);
  }
  if (result.times.front().accuracy.empty()) {
    result.outcome = Outcome::left_out;
    result.reason = result.times.front().reason;
  }
}

template void UpdateCases<float>::measure_accuracy(const UpdateShape&, UpdateCase&);
template void UpdateCases<double>::measure_accuracy(const UpdateShape&, UpdateCase&);

}  // namespace qrane::bench
