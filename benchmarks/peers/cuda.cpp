// SPDX-License-Identifier: Apache-2.0
// Peers on an NVIDIA GPU, timed by device events; uploads, copies of A and workspace are not timed. The tasks are in
// cuda_qr.cpp, cuda_svd.cpp and cuda_gels.cpp; here are this device's rates: a square GEMM, and a copy inside device
// memory.
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

/// GFLOP/s of an 8192 GEMM: the best of five, since a ceiling is asked for.
template <class T>
double gemm_gflops(CudaSession& session) {
  const std::int64_t n = 8192;
  DeviceArray<T> a(n * n), b(n * n), c(n * n);
  fill_on_device(a.get(), n, n, 1, 1);
  fill_on_device(b.get(), n, n, 2, 1);
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 6; ++run) {
    const double elapsed = session.milliseconds(
        [&] { gemm(session, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, a.get(), n, b.get(), n, c.get(), n); });
    if (run > 0) best = std::min(best, elapsed);
  }
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / best * 1e-6;
}

double copy_gbytes(CudaSession& session) {
  const std::int64_t bytes = std::int64_t{2} << 30;
  DeviceArray<char> from(bytes), to(bytes);
  check(cudaMemsetAsync(from.get(), 1, static_cast<std::size_t>(bytes), session.stream), "cudaMemset");
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 6; ++run) {
    const double elapsed = session.milliseconds([&] { session.copy_on_device(to.get(), from.get(), bytes); });
    if (run > 0) best = std::min(best, elapsed);
  }
  return 2.0 * static_cast<double>(bytes) / best * 1e-6;
}

std::string hello() {
  int runtime = 0, driver = 0, solver[3] = {};
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  for (int part = 0; part < 3; ++part)
    check(cusolverGetProperty(static_cast<libraryPropertyType>(part), &solver[part]), "cusolverGetProperty");
  return "qr=cusolver,cublas-cholqr2 rivals=blas2,hybrid rpca=cusolver-svd "
         "batched=cublas-geqrf-batched,cusolver-loop svd=cusolver-gesvd,cusolver-gesvdj,cusolver-gesvda "
         "gels=cusolver-qr,cusolver-gels "
         "version=cuSOLVER_" +
         std::to_string(solver[0]) + "." + std::to_string(solver[1]) + "." + std::to_string(solver[2]) + "_CUDA_" +
         std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10) + "_driver_" +
         std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  if (request.task == "rivals") return measure_rival(session, request);
  if (request.task == "batched") return measure_batched(session, request);
  if (request.task == "rpca") return measure_rpca(session, request);
  if (request.task == "qr") return measure_qr(session, request);
  if (request.task == "svd") return measure_svd(session, request);
  if (request.task == "gels") return measure_gels(session, request);
  throw std::runtime_error("no task '" + request.task + "' here");
}

}  // namespace
}  // namespace qrane::bench

/// The one argument is the CUDA device's number.
int main(int argc, char** argv) {
  using namespace qrane::bench;
  try {
    CudaSession session(argc > 1 ? std::stoi(argv[1]) : 0);
    return serve({hello,
                  [&](const std::string& precision) {
                    const double gemm = precision == "f32" ? gemm_gflops<float>(session) : gemm_gflops<double>(session);
                    return "gemm_gflops=" + join_numbers({gemm}) +
                           " copy_gbytes=" + join_numbers({copy_gbytes(session)});
                  },
                  [&](const PeerRequest& request) { return measure(session, request); }});
  } catch (const std::exception& fault) {
    std::cout << "error " << fault.what() << std::endl;  // the answer to the client's hello
    return 1;
  }
}
