// SPDX-License-Identifier: Apache-2.0
// The CAQR paper's rivals as peers: `blas2` (kernels/blas2.cu), with thin Q, and `hybrid` (cuda_hybrid.cpp), without.
// Before the first measurement in a precision each factors a small matrix, whose R is compared with LAPACK's, and
// blas2's Q too; a rival that is wrong is not timed.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/blas2.hpp"
#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

lapack_int geqrf(lapack_int m, lapack_int n, double* a, double* tau) {
  return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, a, m, tau);
}

template <class T>
std::vector<double> to_host(const T* data, std::size_t count) {
  std::vector<T> host(count);
  check(cudaDeviceSynchronize(), "a rival's check");
  check(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {host.begin(), host.end()};
}

/// Largest difference of V and R from LAPACK's (both by reflectors of LAPACK's sign), over ||A||_F.
template <class T>
double gap_to_lapack(std::int64_t m, std::int64_t n, const T* a, const T* factored) {
  std::vector<double> reference = to_host(a, m * n), tau(n);
  const std::vector<double> found = to_host(factored, m * n);
  double norm = 0, gap = 0;
  for (const double x : reference) norm += x * x;
  if (geqrf(static_cast<lapack_int>(m), static_cast<lapack_int>(n), reference.data(), tau.data()) != 0) return NAN;
  for (std::size_t k = 0; k < found.size(); ++k) gap += (found[k] - reference[k]) * (found[k] - reference[k]);
  return std::sqrt(gap / norm);
}

/// ||Q R - A||_F / ||A||_F.
template <class T>
double residual_of(std::int64_t m, std::int64_t n, const T* a, const T* factored, const T* q) {
  const std::vector<double> whole = to_host(a, m * n), f = to_host(factored, m * n), basis = to_host(q, m * n);
  double gap = 0, norm = 0;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = -whole[i + j * m];
      for (std::int64_t k = 0; k <= j; ++k) sum += basis[i + k * m] * f[k + j * m];
      gap += sum * sum;
      norm += whole[i + j * m] * whole[i + j * m];
    }
  return std::sqrt(gap / norm);
}

template <class T>
void check_rival(CudaSession& session, bool hybrid) {
  const std::int64_t m = 5003, n = 67;
  const double limit = 300 * static_cast<double>(std::numeric_limits<T>::epsilon());
  DeviceArray<T> a(m * n), f(m * n), q(m * n);
  fill_on_device(a.get(), m, n, 3, 1);
  session.copy_on_device(f.get(), a.get(), m * n);
  if (hybrid) {
    factor_by_hybrid(session, m, n, f.get());
  } else {
    Blas2Qr<T> qr(m, static_cast<int>(n), session.stream);
    qr.factor(f.get());
    qr.form_q(f.get(), q.get());
    const double residual = residual_of(m, n, a.get(), f.get(), q.get());
    if (!(residual < limit)) throw std::runtime_error("its check failed: residual " + std::to_string(residual));
  }
  const double gap = gap_to_lapack(m, n, a.get(), f.get());
  if (!(gap < limit))
    throw std::runtime_error("its check failed: V and R differ from LAPACK's by " + std::to_string(gap));
}

template <class T>
PeerSamples measure_blas2(CudaSession& session, const PeerRequest& request) {
  const std::int64_t m = request.rows, n = request.cols;
  if (n > 1024) throw std::runtime_error("takes 1024 columns at most");
  Blas2Qr<T> qr(m, static_cast<int>(n), session.stream);
  DeviceArray<T> a(m * n), work(m * n), q(request.form_q ? m * n : 0);
  fill_on_device(a.get(), m, n, request.seed, request.condition);
  PeerSamples samples;
  repeat(request, [&](bool timed) {
    session.copy_on_device(work.get(), a.get(), m * n);
    const double factor = session.milliseconds([&] { qr.factor(work.get()); });
    const double form_q = request.form_q ? session.milliseconds([&] { qr.form_q(work.get(), q.get()); }) : 0;
    if (!timed) return;
    samples.factor_ms.push_back(factor);
    if (request.form_q) samples.form_q_ms.push_back(form_q);
  });
  return samples;
}

template <class T>
PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  static bool checked[2] = {false, false};
  const bool hybrid = request.peer == "hybrid";
  if (!checked[hybrid]) check_rival<T>(session, hybrid);
  checked[hybrid] = true;
  return hybrid ? measure_hybrid<T>(session, request) : measure_blas2<T>(session, request);
}

}  // namespace

PeerSamples measure_rival(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
