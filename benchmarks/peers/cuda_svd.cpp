// SPDX-License-Identifier: Apache-2.0
// Peers for the thin SVD of a tall matrix, U, S and V by cuSOLVER's three drivers (those that PyTorch offers):
//   cusolver-gesvd   cusolverDnXgesvd: bidiagonalization, after a QR where A is tall
//   cusolver-gesvdj  cusolverDn[SD]gesvdj: Jacobi, default tolerance
//   cusolver-gesvda  cusolverDn[SD]gesvdaStridedBatched, a batch of one: by the Gram matrix, for tall matrices
#include <algorithm>
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

struct JacobiOptions {
  gesvdjInfo_t info = nullptr;
  JacobiOptions() { check(cusolverDnCreateGesvdjInfo(&info), "cusolverDnCreateGesvdjInfo"); }
  ~JacobiOptions() { cusolverDnDestroyGesvdjInfo(info); }
};

constexpr auto vectors = CUSOLVER_EIG_MODE_VECTOR;

int gesvdj_size(CudaSession& s, int m, int n, const float* a, const float* sv, const float* u, const float* v,
                gesvdjInfo_t options) {
  int size = 0;
  check(cusolverDnSgesvdj_bufferSize(s.solver, vectors, 1, m, n, a, m, sv, u, m, v, n, &size, options), "gesvdj size");
  return size;
}
int gesvdj_size(CudaSession& s, int m, int n, const double* a, const double* sv, const double* u, const double* v,
                gesvdjInfo_t options) {
  int size = 0;
  check(cusolverDnDgesvdj_bufferSize(s.solver, vectors, 1, m, n, a, m, sv, u, m, v, n, &size, options), "gesvdj size");
  return size;
}
void gesvdj(CudaSession& s, int m, int n, float* a, float* sv, float* u, float* v, float* work, int size, int* info,
            gesvdjInfo_t options) {
  check(cusolverDnSgesvdj(s.solver, vectors, 1, m, n, a, m, sv, u, m, v, n, work, size, info, options), "gesvdj");
}
void gesvdj(CudaSession& s, int m, int n, double* a, double* sv, double* u, double* v, double* work, int size,
            int* info, gesvdjInfo_t options) {
  check(cusolverDnDgesvdj(s.solver, vectors, 1, m, n, a, m, sv, u, m, v, n, work, size, info, options), "gesvdj");
}

int gesvda_size(CudaSession& s, int m, int n, const float* a, const float* sv, const float* u, const float* v) {
  int size = 0;
  check(cusolverDnSgesvdaStridedBatched_bufferSize(s.solver, vectors, n, m, n, a, m, std::int64_t{m} * n, sv, n, u, m,
                                                   std::int64_t{m} * n, v, n, std::int64_t{n} * n, &size, 1),
        "gesvda size");
  return size;
}
int gesvda_size(CudaSession& s, int m, int n, const double* a, const double* sv, const double* u, const double* v) {
  int size = 0;
  check(cusolverDnDgesvdaStridedBatched_bufferSize(s.solver, vectors, n, m, n, a, m, std::int64_t{m} * n, sv, n, u, m,
                                                   std::int64_t{m} * n, v, n, std::int64_t{n} * n, &size, 1),
        "gesvda size");
  return size;
}
void gesvda(CudaSession& s, int m, int n, const float* a, float* sv, float* u, float* v, float* work, int size,
            int* info) {
  double residual = 0;
  check(cusolverDnSgesvdaStridedBatched(s.solver, vectors, n, m, n, a, m, std::int64_t{m} * n, sv, n, u, m,
                                        std::int64_t{m} * n, v, n, std::int64_t{n} * n, work, size, info, &residual, 1),
        "gesvda");
}
void gesvda(CudaSession& s, int m, int n, const double* a, double* sv, double* u, double* v, double* work, int size,
            int* info) {
  double residual = 0;
  check(cusolverDnDgesvdaStridedBatched(s.solver, vectors, n, m, n, a, m, std::int64_t{m} * n, sv, n, u, m,
                                        std::int64_t{m} * n, v, n, std::int64_t{n} * n, work, size, info, &residual, 1),
        "gesvda");
}

/// A, its copy that a driver may overwrite, and the results.
template <class T>
class SvdPeer {
 public:
  SvdPeer(CudaSession& session, const PeerRequest& request)
      : session_(session),
        request_(request),
        m_(request.rows),
        n_(request.cols),
        a_(m_ * n_),
        work_a_(m_ * n_),
        u_(m_ * n_),
        v_(n_ * n_),
        s_(n_),
        info_(1) {
    fill_on_device(a_.get(), m_, n_, request.seed, request.condition);
  }

  PeerSamples gesvd() {
    std::size_t device_bytes = 0, host_bytes = 0;
    check(cusolverDnXgesvd_bufferSize(session_.solver, session_.params, 'S', 'S', m_, n_, cuda_type<T>, work_a_.get(),
                                      m_, cuda_type<T>, s_.get(), cuda_type<T>, u_.get(), m_, cuda_type<T>, v_.get(),
                                      n_, cuda_type<T>, &device_bytes, &host_bytes),
          "cusolverDnXgesvd_bufferSize");
    DeviceArray<char> workspace(device_bytes);
    std::vector<char> host_workspace(host_bytes);
    return time([&] {
      check(
          cusolverDnXgesvd(session_.solver, session_.params, 'S', 'S', m_, n_, cuda_type<T>, work_a_.get(), m_,
                           cuda_type<T>, s_.get(), cuda_type<T>, u_.get(), m_, cuda_type<T>, v_.get(), n_, cuda_type<T>,
                           workspace.get(), device_bytes, host_workspace.data(), host_bytes, info_.get()),
          "cusolverDnXgesvd");
    });
  }

  PeerSamples jacobi() {
    JacobiOptions options;
    const int m = static_cast<int>(m_), n = static_cast<int>(n_);
    const int size = gesvdj_size(session_, m, n, work_a_.get(), s_.get(), u_.get(), v_.get(), options.info);
    DeviceArray<T> work(size);
    return time([&] {
      gesvdj(session_, m, n, work_a_.get(), s_.get(), u_.get(), v_.get(), work.get(), size, info_.get(), options.info);
    });
  }

  PeerSamples approximate() {
    const int m = static_cast<int>(m_), n = static_cast<int>(n_);
    const int size = gesvda_size(session_, m, n, work_a_.get(), s_.get(), u_.get(), v_.get());
    DeviceArray<T> work(size);
    return time(
        [&] { gesvda(session_, m, n, work_a_.get(), s_.get(), u_.get(), v_.get(), work.get(), size, info_.get()); });
  }

 private:
  template <class Function>
  PeerSamples time(Function&& function) {
    PeerSamples samples;
    repeat(request_, [&](bool timed) {
      session_.copy_on_device(work_a_.get(), a_.get(), m_ * n_);
      const double elapsed = session_.milliseconds(function);
      if (session_.read_info(info_.get()) != 0) throw std::runtime_error("the SVD did not converge");
      if (timed) samples.total_ms.push_back(elapsed);
    });
    return samples;
  }

  CudaSession& session_;
  const PeerRequest& request_;
  std::int64_t m_, n_;
  DeviceArray<T> a_, work_a_, u_, v_, s_;
  DeviceArray<int> info_;
};

template <class T>
PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  if (request.rows < request.cols) throw std::runtime_error("takes matrices with at least as many rows as columns");
  if (request.rows > std::numeric_limits<int>::max()) throw std::runtime_error("takes 32-bit sizes only");
  SvdPeer<T> peer(session, request);
  if (request.peer == "cusolver-gesvd") return peer.gesvd();
  if (request.peer == "cusolver-gesvdj") return peer.jacobi();
  if (request.peer == "cusolver-gesvda") return peer.approximate();
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace

PeerSamples measure_svd(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
