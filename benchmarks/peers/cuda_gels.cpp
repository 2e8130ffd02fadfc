// SPDX-License-Identifier: Apache-2.0
// Peers for min ||A x - b||, A tall and of full rank:
//   cusolver-qr    geqrf, ormqr, trsm: what PyTorch's lstsq does on CUDA
//   cusolver-gels  cusolverDn[SS|DD]gels, the driver of its own
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

int ormqr_size(CudaSession& s, int m, int rhs, int n, const float* a, const float* tau, const float* b) {
  int size = 0;
  check(cusolverDnSormqr_bufferSize(s.solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, rhs, n, a, m, tau, b, m, &size),
        "ormqr size");
  return size;
}
int ormqr_size(CudaSession& s, int m, int rhs, int n, const double* a, const double* tau, const double* b) {
  int size = 0;
  check(cusolverDnDormqr_bufferSize(s.solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, rhs, n, a, m, tau, b, m, &size),
        "ormqr size");
  return size;
}
void ormqr(CudaSession& s, int m, int rhs, int n, const float* a, const float* tau, float* b, float* work, int size,
           int* info) {
  check(cusolverDnSormqr(s.solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, rhs, n, a, m, tau, b, m, work, size, info),
        "ormqr");
}
void ormqr(CudaSession& s, int m, int rhs, int n, const double* a, const double* tau, double* b, double* work, int size,
           int* info) {
  check(cusolverDnDormqr(s.solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, m, rhs, n, a, m, tau, b, m, work, size, info),
        "ormqr");
}

std::size_t gels_bytes(CudaSession& s, int m, int n, int rhs, float* a, float* b, float* x) {
  std::size_t bytes = 0;
  check(cusolverDnSSgels_bufferSize(s.solver, m, n, rhs, a, m, b, m, x, n, nullptr, &bytes), "gels size");
  return bytes;
}
std::size_t gels_bytes(CudaSession& s, int m, int n, int rhs, double* a, double* b, double* x) {
  std::size_t bytes = 0;
  check(cusolverDnDDgels_bufferSize(s.solver, m, n, rhs, a, m, b, m, x, n, nullptr, &bytes), "gels size");
  return bytes;
}
void gels(CudaSession& s, int m, int n, int rhs, float* a, float* b, float* x, char* work, std::size_t bytes,
          int* info) {
  cusolver_int_t iterations = 0;
  check(cusolverDnSSgels(s.solver, m, n, rhs, a, m, b, m, x, n, work, bytes, &iterations, info), "gels");
}
void gels(CudaSession& s, int m, int n, int rhs, double* a, double* b, double* x, char* work, std::size_t bytes,
          int* info) {
  cusolver_int_t iterations = 0;
  check(cusolverDnDDgels(s.solver, m, n, rhs, a, m, b, m, x, n, work, bytes, &iterations, info), "gels");
}

/// A and b, and the copies that are overwritten.
template <class T>
class GelsPeer {
 public:
  GelsPeer(CudaSession& session, const PeerRequest& request)
      : session_(session),
        request_(request),
        m_(static_cast<int>(request.rows)),
        n_(static_cast<int>(request.cols)),
        rhs_(static_cast<int>(request.rhs)),
        a_(request.rows * request.cols),
        work_a_(request.rows * request.cols),
        b_(request.rows * request.rhs),
        work_b_(request.rows * request.rhs),
        x_(request.cols * request.rhs),
        tau_(request.cols),
        info_(1) {
    fill_on_device(a_.get(), m_, n_, request.seed, request.condition);
    fill_on_device(b_.get(), m_, rhs_, request.seed + 1, 1);
  }

  PeerSamples by_qr() {
    std::size_t device_bytes = 0, host_bytes = 0;
    check(cusolverDnXgeqrf_bufferSize(session_.solver, session_.params, m_, n_, cuda_type<T>, work_a_.get(), m_,
                                      cuda_type<T>, tau_.get(), cuda_type<T>, &device_bytes, &host_bytes),
          "cusolverDnXgeqrf_bufferSize");
    const int apply_size = ormqr_size(session_, m_, rhs_, n_, work_a_.get(), tau_.get(), work_b_.get());
    DeviceArray<char> workspace(device_bytes);
    DeviceArray<T> apply_workspace(apply_size);
    std::vector<char> host_workspace(host_bytes);
    return time([&] {
      check(cusolverDnXgeqrf(session_.solver, session_.params, m_, n_, cuda_type<T>, work_a_.get(), m_, cuda_type<T>,
                             tau_.get(), cuda_type<T>, workspace.get(), device_bytes, host_workspace.data(), host_bytes,
                             info_.get()),
            "cusolverDnXgeqrf");
      ormqr(session_, m_, rhs_, n_, work_a_.get(), tau_.get(), work_b_.get(), apply_workspace.get(), apply_size,
            info_.get());
      solve_upper(session_, n_, rhs_, work_a_.get(), m_, work_b_.get(), m_);
    });
  }

  PeerSamples by_gels() {
    const std::size_t bytes = gels_bytes(session_, m_, n_, rhs_, work_a_.get(), work_b_.get(), x_.get());
    DeviceArray<char> workspace(bytes);
    return time([&] {
      gels(session_, m_, n_, rhs_, work_a_.get(), work_b_.get(), x_.get(), workspace.get(), bytes, info_.get());
    });
  }

 private:
  template <class Function>
  PeerSamples time(Function&& function) {
    PeerSamples samples;
    repeat(request_, [&](bool timed) {
      session_.copy_on_device(work_a_.get(), a_.get(), std::int64_t{m_} * n_);
      session_.copy_on_device(work_b_.get(), b_.get(), std::int64_t{m_} * rhs_);
      const double elapsed = session_.milliseconds(function);
      if (session_.read_info(info_.get()) != 0) throw std::runtime_error("cuSOLVER found no solution");
      if (timed) samples.total_ms.push_back(elapsed);
    });
    return samples;
  }

  CudaSession& session_;
  const PeerRequest& request_;
  int m_, n_, rhs_;
  DeviceArray<T> a_, work_a_, b_, work_b_, x_, tau_;
  DeviceArray<int> info_;
};

template <class T>
PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  if (request.rows < request.cols) throw std::runtime_error("takes matrices with at least as many rows as columns");
  if (request.rows > std::numeric_limits<int>::max()) throw std::runtime_error("takes 32-bit sizes only");
  GelsPeer<T> peer(session, request);
  if (request.peer == "cusolver-qr") return peer.by_qr();
  if (request.peer == "cusolver-gels") return peer.by_gels();
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace

PeerSamples measure_gels(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
