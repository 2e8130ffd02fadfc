// SPDX-License-Identifier: Apache-2.0
// Peer `lapack`: geqrf, then orgqr, of the LAPACK that is installed (OpenBLAS's where that is it), with the threads
// that OPENBLAS_NUM_THREADS names. The copy of A and the allocation of workspace are not timed.
#include <lapacke.h>

#include <chrono>
#include <limits>
#include <memory>

#include "common/host_rates.hpp"
#include "common/seeded_matrix.hpp"
#include "peers/serve.hpp"

#if __has_include(<openblas_config.h>)
extern "C" char* openblas_get_config(void);
#endif

namespace qrane::bench {
namespace {

lapack_int geqrf(lapack_int m, lapack_int n, float* a, float* tau, float* work, lapack_int size) {
  return LAPACKE_sgeqrf_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work, size);
}
lapack_int geqrf(lapack_int m, lapack_int n, double* a, double* tau, double* work, lapack_int size) {
  return LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, m, n, a, m, tau, work, size);
}
lapack_int orgqr(lapack_int m, lapack_int k, float* a, const float* tau, float* work, lapack_int size) {
  return LAPACKE_sorgqr_work(LAPACK_COL_MAJOR, m, k, k, a, m, tau, work, size);
}
lapack_int orgqr(lapack_int m, lapack_int k, double* a, const double* tau, double* work, lapack_int size) {
  return LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, m, k, k, a, m, tau, work, size);
}

template <class Function>
double milliseconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  if (function() != 0) throw std::runtime_error("LAPACK refused an argument");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
PeerSamples measure(const PeerRequest& request) {
  if (request.rows > std::numeric_limits<lapack_int>::max() || request.cols > std::numeric_limits<lapack_int>::max())
    throw std::runtime_error("this LAPACK takes 32-bit sizes only");
  const auto m = static_cast<lapack_int>(request.rows), n = static_cast<lapack_int>(request.cols);
  const lapack_int k = std::min(m, n);
  const std::int64_t count = request.rows * request.cols;
  std::unique_ptr<T[]> a(new T[count]), tau(new T[k]);
  T best_factor = 0, best_form = 0;
  geqrf(m, n, a.get(), tau.get(), &best_factor, -1);
  orgqr(m, k, a.get(), tau.get(), &best_form, -1);
  const auto size = static_cast<lapack_int>(std::max(best_factor, best_form));
  std::unique_ptr<T[]> work(new T[size]);

  PeerSamples samples;
  for (int run = -1; run < request.repeats; ++run) {  // run -1 is the warm-up
    fill_seeded(a.get(), count, request.seed);
    const double factor = milliseconds([&] { return geqrf(m, n, a.get(), tau.get(), work.get(), size); });
    const double form_q = milliseconds([&] { return orgqr(m, k, a.get(), tau.get(), work.get(), size); });
    if (run < 0) continue;
    samples.factor_ms.push_back(factor);
    samples.form_q_ms.push_back(form_q);
  }
  return samples;
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
  return serve({[] { return "peers=lapack version=" + without_blanks(version()); }, rates,
                [](const PeerRequest& request) {
                  if (request.peer != "lapack") throw std::runtime_error("no peer '" + request.peer + "' here");
                  return request.precision == "f32" ? measure<float>(request) : measure<double>(request);
                }});
}
