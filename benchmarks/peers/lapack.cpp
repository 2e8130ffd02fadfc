// SPDX-License-Identifier: Apache-2.0
// Peers of the LAPACK that is installed (OpenBLAS's where that is it), with the threads that OPENBLAS_NUM_THREADS
// names: `lapack`, geqrf then orgqr; `lapack-gesdd`, the thin SVD; `lapack-gels`, least
// squares; `lapack-svd`, robust PCA. Copies of A and the
// allocation of workspace are not timed.
#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "common/frames_file.hpp"
#include "common/host_rates.hpp"
#include "common/seeded_matrix.hpp"
#include "peers/serve.hpp"

#if __has_include(<openblas_config.h>)
extern "C" char* openblas_get_config(void);
#endif

namespace qrane::bench {
namespace {

using Size = lapack_int;

Size geqrf(Size m, Size n, float* a, float* tau, float* work, Size size) {
  return LAPACKE_sgeqrf_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work, size);
}
Size geqrf(Size m, Size n, double* a, double* tau, double* work, Size size) {
  return LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work, size);
}
Size orgqr(Size m, Size cols, Size k, float* a, const float* tau, float* work, Size size) {
  return LAPACKE_sorgqr_work(LAPACK_COL_MAJOR, m, cols, k, a, m, tau, work, size);
}
Size orgqr(Size m, Size cols, Size k, double* a, const double* tau, double* work, Size size) {
  return LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, m, cols, k, a, m, tau, work, size);
}
Size gesdd(Size m, Size n, float* a, float* s, float* u, float* vt, float* work, Size size, Size* integers) {
  return LAPACKE_sgesdd_work(LAPACK_COL_MAJOR, 'S', m, n, a, m, s, u, m, vt, std::min(m, n), work, size, integers);
}
Size gesdd(Size m, Size n, double* a, double* s, double* u, double* vt, double* work, Size size, Size* integers) {
  return LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'S', m, n, a, m, s, u, m, vt, std::min(m, n), work, size, integers);
}
Size gels(Size m, Size n, Size rhs, float* a, float* b, float* work, Size size) {
  return LAPACKE_sgels_work(LAPACK_COL_MAJOR, 'N', m, n, rhs, a, m, b, std::max(m, n), work, size);
}
Size gels(Size m, Size n, Size rhs, double* a, double* b, double* work, Size size) {
  return LAPACKE_dgels_work(LAPACK_COL_MAJOR, 'N', m, n, rhs, a, m, b, std::max(m, n), work, size);
}

/// C := A B, A m x n, B n x n.
void product(Size m, Size n, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, n, 1, a, m, b, n, 0, c, m);
}
void product(Size m, Size n, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, n, 1, a, m, b, n, 0, c, m);
}

template <class T>
std::unique_ptr<T[]> numbers(std::int64_t count) {
  return std::unique_ptr<T[]>(new T[static_cast<std::size_t>(count)]);
}

template <class Function>
double milliseconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  if (function() != 0) throw std::runtime_error("LAPACK found no result");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
PeerSamples measure_qr(const PeerRequest& request) {
  const auto m = static_cast<Size>(request.rows), n = static_cast<Size>(request.cols), k = std::min(m, n);
  const Size q_cols = request.form_q == 2 ? m : k;
  const auto a = numbers<T>(request.rows * std::max(n, q_cols)), tau = numbers<T>(k);
  T best_factor = 0, best_form = 0;
  geqrf(m, n, a.get(), tau.get(), &best_factor, -1);
  orgqr(m, q_cols, k, a.get(), tau.get(), &best_form, -1);
  const auto size = static_cast<Size>(std::max(best_factor, best_form));
  const auto work = numbers<T>(size);

  PeerSamples samples;
  repeat(request, [&](bool timed) {
    fill_seeded(a.get(), m, n, request.seed, request.condition);
    const double factor = milliseconds([&] { return geqrf(m, n, a.get(), tau.get(), work.get(), size); });
    if (timed) samples.factor_ms.push_back(factor);
    if (request.form_q == 0) return;
    const double form_q = milliseconds([&] { return orgqr(m, q_cols, k, a.get(), tau.get(), work.get(), size); });
    if (timed) samples.form_q_ms.push_back(form_q);
  });
  return samples;
}

template <class T>
PeerSamples measure_svd(const PeerRequest& request) {
  const auto m = static_cast<Size>(request.rows), n = static_cast<Size>(request.cols), k = std::min(m, n);
  const auto a = numbers<T>(request.rows * request.cols), u = numbers<T>(request.rows * k), vt = numbers<T>(n * k);
  const auto s = numbers<T>(k);
  const auto integers = numbers<Size>(8 * k);
  T best = 0;
  gesdd(m, n, a.get(), s.get(), u.get(), vt.get(), &best, -1, integers.get());
  const auto size = static_cast<Size>(best);
  const auto work = numbers<T>(size);

  PeerSamples samples;
  repeat(request, [&](bool timed) {
    fill_seeded(a.get(), m, n, request.seed, request.condition);
    const double elapsed = milliseconds(
        [&] { return gesdd(m, n, a.get(), s.get(), u.get(), vt.get(), work.get(), size, integers.get()); });
    if (timed) samples.total_ms.push_back(elapsed);
  });
  return samples;
}

template <class T>
PeerSamples measure_gels(const PeerRequest& request) {
  const auto m = static_cast<Size>(request.rows), n = static_cast<Size>(request.cols);
  const auto rhs = static_cast<Size>(request.rhs);
  const auto a = numbers<T>(request.rows * request.cols), b = numbers<T>(std::max(request.rows, request.cols) * rhs);
  T best = 0;
  gels(m, n, rhs, a.get(), b.get(), &best, -1);
  const auto size = static_cast<Size>(best);
  const auto work = numbers<T>(size);

  PeerSamples samples;
  repeat(request, [&](bool timed) {
    fill_seeded(a.get(), m, n, request.seed, request.condition);
    fill_seeded(b.get(), request.rows, request.rhs, request.seed + 1, 1);
    const double elapsed = milliseconds([&] { return gels(m, n, rhs, a.get(), b.get(), work.get(), size); });
    if (timed) samples.total_ms.push_back(elapsed);
  });
  return samples;
}

/// An iteration of robust PCA by inexact ALM with a full SVD of X (the CAQR paper's Table II on its processor).
template <class T>
PeerSamples measure_rpca(const PeerRequest& request) {
  const auto m = static_cast<Size>(request.rows), n = static_cast<Size>(request.cols);
  const std::int64_t count = request.rows * request.cols;
  const auto whole = numbers<T>(count), x = numbers<T>(count), low_rank = numbers<T>(count), sparse = numbers<T>(count),
             y = numbers<T>(count), u = numbers<T>(count), vt = numbers<T>(std::int64_t{n} * n), s = numbers<T>(n);
  const auto integers = numbers<Size>(8 * std::int64_t{n});
  const std::vector<T> frames = read_frames<T>(request.path, request.rows, request.cols);
  std::copy(frames.begin(), frames.end(), whole.get());
  T best = 0;
  gesdd(m, n, x.get(), s.get(), u.get(), vt.get(), &best, -1, integers.get());
  const auto size = static_cast<Size>(best);
  const auto work = numbers<T>(size);
  double square = 0;
  for (std::int64_t k = 0; k < count; ++k) square += static_cast<double>(whole[k]) * static_cast<double>(whole[k]);
  const double lambda = 1 / std::sqrt(static_cast<double>(std::max(m, n)));

  double mu = 1.25 / std::sqrt(square);
  std::fill_n(sparse.get(), count, T(0));
  std::fill_n(y.get(), count, T(0));
  PeerSamples samples;
  repeat(request, [&](bool timed) {  // one iteration after the other, each a sample
    const double elapsed = milliseconds([&] {
      const T inverse = static_cast<T>(1 / mu), threshold = static_cast<T>(lambda / mu);
#pragma omp parallel for schedule(static)
      for (std::int64_t k = 0; k < count; ++k) x[k] = whole[k] - sparse[k] + y[k] * inverse;
      const Size status = gesdd(m, n, x.get(), s.get(), u.get(), vt.get(), work.get(), size, integers.get());
      for (Size k = 0; k < n; ++k)
        for (Size j = 0; j < n; ++j) vt[k + std::int64_t{j} * n] *= std::max(s[k] - inverse, T(0));
      product(m, n, u.get(), vt.get(), low_rank.get());
#pragma omp parallel for schedule(static)
      for (std::int64_t k = 0; k < count; ++k) {
        const T rest = whole[k] - low_rank[k] + y[k] * inverse;
        sparse[k] = std::copysign(std::max(std::abs(rest) - threshold, T(0)), rest);
        y[k] += static_cast<T>(mu) * (whole[k] - low_rank[k] - sparse[k]);
      }
      return status;
    });
    mu *= 1.5;
    if (timed) samples.total_ms.push_back(elapsed);
  });
  return samples;
}

/// Seconds of one run: the canonical flops at a quarter of the GEMM rate, and at what narrow matrices were seen to
/// reach where more than a factorization is asked for.
double estimated_seconds(const PeerRequest& request) {
  static const Rates rates = measure_host_rates("f64");
  const double m = static_cast<double>(std::max(request.rows, request.cols));
  const double n = static_cast<double>(std::min(request.rows, request.cols));
  const double precision = request.precision == "f32" ? 2 : 1;
  const double share = request.task != "qr" && n <= 512 ? 0.04 : 0.25;
  const double flops = request.task == "svd" || request.task == "rpca" ? 6 : request.form_q ? 4 : 2;
  return flops * m * n * n / (share * precision * rates.gemm_gflops) * 1e-9;
}

template <class T>
PeerSamples measure(const PeerRequest& request) {
  if (request.rows > std::numeric_limits<Size>::max() || request.cols > std::numeric_limits<Size>::max())
    throw std::runtime_error("this LAPACK takes 32-bit sizes only");
  const double seconds = estimated_seconds(request);
  if (seconds > request.max_seconds)
    throw std::runtime_error("one run would take about " + std::to_string(static_cast<int>(std::ceil(seconds))) + " s");
  if (request.task == "qr" && request.peer == "lapack") return measure_qr<T>(request);
  if (request.task == "svd" && request.peer == "lapack-gesdd") return measure_svd<T>(request);
  if (request.task == "gels" && request.peer == "lapack-gels") return measure_gels<T>(request);
  if (request.task == "rpca" && request.peer == "lapack-svd") return measure_rpca<T>(request);
  throw std::runtime_error("no peer '" + request.peer + "' for the task '" + request.task + "' here");
}

std::string version() {
#if __has_include(<openblas_config.h>)
  return openblas_get_config();
#else
  lapack_int major = 0, minor = 0, patch = 0;
  LAPACKE_ilaver(&major, &minor, &patch);
  return "LAPACK " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
#endif
}

std::string rates(const std::string& precision) {
  const Rates measured = measure_host_rates(precision);
  return "gemm_gflops=" + join_numbers({measured.gemm_gflops}) + " copy_gbytes=" + join_numbers({measured.copy_gbytes});
}

}  // namespace
}  // namespace qrane::bench

int main() {
  using namespace qrane::bench;
  return serve({[] {
                  return "qr=lapack svd=lapack-gesdd gels=lapack-gels rpca=lapack-svd version=" +
                         without_blanks(version());
                },
                rates,
                [](const PeerRequest& request) {
                  return request.precision == "f32" ? measure<float>(request) : measure<double>(request);
                }});
}
