// SPDX-License-Identifier: Apache-2.0
#include "common/host_rates.hpp"

#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>

#include "common/seeded_matrix.hpp"

namespace qrane::bench {
namespace {

void gemm(int n, const float* a, const float* b, float* c) {
  cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
}
void gemm(int n, const double* a, const double* b, double* c) {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
}

/// Fastest of five runs after one untimed: a ceiling is what the machine can do.
template <class Function>
double best_seconds(Function&& function) {
  function();
  double best = 1e300;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    function();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

template <class T>
double gemm_gflops() {
  const int n = 2048;
  const std::int64_t count = static_cast<std::int64_t>(n) * n;
  std::unique_ptr<T[]> a(new T[count]), b(new T[count]), c(new T[count]);
  fill_seeded(a.get(), count, 1);
  fill_seeded(b.get(), count, 2);
  return 2.0 * n * n * n / best_seconds([&] { gemm(n, a.get(), b.get(), c.get()); }) * 1e-9;
}

double copy_gbytes() {
  const std::int64_t bytes = std::int64_t{256} << 20;  // far beyond any cache
  const std::int64_t piece = std::int64_t{1} << 20;
  std::unique_ptr<char[]> from(new char[bytes]), to(new char[bytes]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < bytes; i += piece) std::memset(from.get() + i, 1, piece);
  const double seconds = best_seconds([&] {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < bytes; i += piece) std::memcpy(to.get() + i, from.get() + i, piece);
  });
  return 2.0 * static_cast<double>(bytes) / seconds * 1e-9;
}

}  // namespace

Rates measure_host_rates(const std::string& precision) {
  return {precision == "f32" ? gemm_gflops<float>() : gemm_gflops<double>(), copy_gbytes(),
          "BLAS GEMM at 2048 and memcpy of 256 MiB by all threads"};
}

}  // namespace qrane::bench
