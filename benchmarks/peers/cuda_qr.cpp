// SPDX-License-Identifier: Apache-2.0
// Peers that factor one matrix:
//   cusolver        cusolverDnXgeqrf (64-bit API), then cusolverDn[SD]orgqr for the thin Q or the full one
//   cublas-cholqr2  Cholesky QR twice (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, 2015) by cuBLAS products, the Gram
//                   matrix in A's precision and the inverse of R multiplied: fast, but no factorization for every
//                   input (it fails near cond(A) = 1/sqrt(eps))
#include <algorithm>
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

int orgqr_size(CudaSession& session, int m, int cols, int k, const float* a, const float* tau) {
  int size = 0;
  check(cusolverDnSorgqr_bufferSize(session.solver, m, cols, k, a, m, tau, &size), "cusolverDnSorgqr_bufferSize");
  return size;
}
int orgqr_size(CudaSession& session, int m, int cols, int k, const double* a, const double* tau) {
  int size = 0;
  check(cusolverDnDorgqr_bufferSize(session.solver, m, cols, k, a, m, tau, &size), "cusolverDnDorgqr_bufferSize");
  return size;
}
void orgqr(CudaSession& session, int m, int cols, int k, float* a, const float* tau, float* work, int size, int* info) {
  check(cusolverDnSorgqr(session.solver, m, cols, k, a, m, tau, work, size, info), "cusolverDnSorgqr");
}
void orgqr(CudaSession& session, int m, int cols, int k, double* a, const double* tau, double* work, int size,
           int* info) {
  check(cusolverDnDorgqr(session.solver, m, cols, k, a, m, tau, work, size, info), "cusolverDnDorgqr");
}

template <class T>
PeerSamples measure_cusolver(CudaSession& session, const PeerRequest& request) {
  const std::int64_t m = request.rows, n = request.cols, k = std::min(m, n);
  if (request.form_q != 0 && m > std::numeric_limits<int>::max())
    throw std::runtime_error("orgqr takes 32-bit sizes only");
  const std::int64_t q_cols = request.form_q == 2 ? m : k;
  DeviceArray<T> a(m * n), work_a(m * std::max(n, q_cols)), tau(k);
  DeviceArray<int> info(1);
  fill_on_device(a.get(), m, n, request.seed, request.condition);

  std::size_t device_bytes = 0, host_bytes = 0;
  check(cusolverDnXgeqrf_bufferSize(session.solver, session.params, m, n, cuda_type<T>, work_a.get(), m, cuda_type<T>,
                                    tau.get(), cuda_type<T>, &device_bytes, &host_bytes),
        "cusolverDnXgeqrf_bufferSize");
  const int form_size = request.form_q == 0 ? 0
                                            : orgqr_size(session, static_cast<int>(m), static_cast<int>(q_cols),
                                                         static_cast<int>(k), work_a.get(), tau.get());
  DeviceArray<char> workspace(device_bytes);
  DeviceArray<T> form_workspace(form_size);
  std::vector<char> host_workspace(host_bytes);

  PeerSamples samples;
  repeat(request, [&](bool timed) {
    session.copy_on_device(work_a.get(), a.get(), m * n);
    const double factor = session.milliseconds([&] {
      check(
          cusolverDnXgeqrf(session.solver, session.params, m, n, cuda_type<T>, work_a.get(), m, cuda_type<T>, tau.get(),
                           cuda_type<T>, workspace.get(), device_bytes, host_workspace.data(), host_bytes, info.get()),
          "cusolverDnXgeqrf");
    });
    if (session.read_info(info.get()) != 0) throw std::runtime_error("cuSOLVER refused an argument");
    if (timed) samples.factor_ms.push_back(factor);
    if (request.form_q == 0) return;
    const double form_q = session.milliseconds([&] {
      orgqr(session, static_cast<int>(m), static_cast<int>(q_cols), static_cast<int>(k), work_a.get(), tau.get(),
            form_workspace.get(), form_size, info.get());
    });
    if (session.read_info(info.get()) != 0) throw std::runtime_error("cuSOLVER refused an argument");
    if (timed) samples.form_q_ms.push_back(form_q);
  });
  return samples;
}

/// One Cholesky QR pass: G = A^T A = R^T R, Q = A R^-1; `inverse` holds the identity on entry.
template <class T>
struct CholeskyPass {
  CudaSession& session;
  std::int64_t m, n;
  std::size_t device_bytes = 0, host_bytes = 0;

  CholeskyPass(CudaSession& session_, std::int64_t m_, std::int64_t n_, T* r) : session(session_), m(m_), n(n_) {
    check(cusolverDnXpotrf_bufferSize(session.solver, session.params, CUBLAS_FILL_MODE_UPPER, n, cuda_type<T>, r, n,
                                      cuda_type<T>, &device_bytes, &host_bytes),
          "cusolverDnXpotrf_bufferSize");
  }

  void run(const T* a, T* q, T* r, T* inverse, char* workspace, char* host_workspace, int* info) {
    gemm(session, CUBLAS_OP_T, CUBLAS_OP_N, n, n, m, a, m, a, m, r, n);
    check(cusolverDnXpotrf(session.solver, session.params, CUBLAS_FILL_MODE_UPPER, n, cuda_type<T>, r, n, cuda_type<T>,
                           workspace, device_bytes, host_workspace, host_bytes, info),
          "cusolverDnXpotrf");
    const int size = static_cast<int>(n);
    solve_upper(session, size, size, r, size, inverse, size);
    gemm(session, CUBLAS_OP_N, CUBLAS_OP_N, m, n, n, a, m, inverse, n, q, m);
  }
};

template <class T>
PeerSamples measure_cholqr2(CudaSession& session, const PeerRequest& request) {
  const std::int64_t m = request.rows, n = request.cols;
  if (request.form_q != 1) throw std::runtime_error("makes thin Q only");
  if (m < n) throw std::runtime_error("Cholesky QR needs at least as many rows as columns");
  DeviceArray<T> a(m * n), q1(m * n), q2(m * n), r1(n * n), r2(n * n), r(n * n), identity(n * n), inverse(n * n);
  DeviceArray<int> info1(1), info2(1);
  fill_on_device(a.get(), m, n, request.seed, request.condition);
  std::vector<T> ones(static_cast<std::size_t>(n * n), T(0));
  for (std::int64_t j = 0; j < n; ++j) ones[static_cast<std::size_t>(j * n + j)] = 1;
  check(cudaMemcpy(identity.get(), ones.data(), ones.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  CholeskyPass<T> pass(session, m, n, r1.get());
  DeviceArray<char> workspace(pass.device_bytes);
  std::vector<char> host_workspace(pass.host_bytes);

  PeerSamples samples;
  repeat(request, [&](bool timed) {
    const double elapsed = session.milliseconds([&] {
      session.copy_on_device(inverse.get(), identity.get(), n * n);
      pass.run(a.get(), q1.get(), r1.get(), inverse.get(), workspace.get(), host_workspace.data(), info1.get());
      session.copy_on_device(inverse.get(), identity.get(), n * n);
      pass.run(q1.get(), q2.get(), r2.get(), inverse.get(), workspace.get(), host_workspace.data(), info2.get());
      multiply_upper(session, static_cast<int>(n), r2.get(), r1.get(), r.get());
    });
    if (session.read_info(info1.get()) != 0 || session.read_info(info2.get()) != 0)
      throw std::runtime_error("the Gram matrix is not positive definite in this precision");
    if (timed) samples.thin_q_ms.push_back(elapsed);
  });
  return samples;
}

}  // namespace

PeerSamples measure_qr(CudaSession& session, const PeerRequest& request) {
  const bool single = request.precision == "f32";
  if (request.peer == "cusolver")
    return single ? measure_cusolver<float>(session, request) : measure_cusolver<double>(session, request);
  if (request.peer == "cublas-cholqr2")
    return single ? measure_cholqr2<float>(session, request) : measure_cholqr2<double>(session, request);
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace qrane::bench
