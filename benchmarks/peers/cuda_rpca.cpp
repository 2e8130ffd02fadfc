// SPDX-License-Identifier: Apache-2.0
// A peer for robust PCA, the CAQR paper's Table II: the same iteration (inexact ALM: Lin, Chen, Ma, 2010, algorithm 5)
// with a full SVD of X, m x n: cusolverDnXgesvd, then U f(S) V^T.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "common/frames_file.hpp"
#include "kernels/rpca_steps.hpp"
#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

constexpr int iterations = 10;  // of one sample

void scale_columns(CudaSession& s, std::int64_t m, std::int64_t n, const float* u, const float* by, float* out) {
  check(cublasSdgmm_64(s.blas, CUBLAS_SIDE_RIGHT, m, n, u, m, by, 1, out, m), "dgmm");
}
void scale_columns(CudaSession& s, std::int64_t m, std::int64_t n, const double* u, const double* by, double* out) {
  check(cublasDdgmm_64(s.blas, CUBLAS_SIDE_RIGHT, m, n, u, m, by, 1, out, m), "dgmm");
}

/// L := U max(S - threshold, 0) V^T of X, which may be overwritten.
template <class T>
class SvdThreshold {
 public:
  SvdThreshold(CudaSession& session, std::int64_t m, std::int64_t n)
      : session_(session), m_(m), n_(n), u_(m * n), scaled_(m * n), vt_(n * n), s_(n), info_(1) {
    check(cusolverDnXgesvd_bufferSize(session_.solver, session_.params, 'S', 'S', m_, n_, cuda_type<T>, u_.get(), m_,
                                      cuda_type<T>, s_.get(), cuda_type<T>, u_.get(), m_, cuda_type<T>, vt_.get(), n_,
                                      cuda_type<T>, &device_bytes_, &host_bytes_),
          "cusolverDnXgesvd_bufferSize");
    workspace_ = std::make_unique<DeviceArray<char>>(device_bytes_);
    host_workspace_.resize(host_bytes_);
  }

  void run(T* x, double threshold, T* low_rank) {
    check(cusolverDnXgesvd(session_.solver, session_.params, 'S', 'S', m_, n_, cuda_type<T>, x, m_, cuda_type<T>,
                           s_.get(), cuda_type<T>, u_.get(), m_, cuda_type<T>, vt_.get(), n_, cuda_type<T>,
                           workspace_->get(), device_bytes_, host_workspace_.data(), host_bytes_, info_.get()),
          "cusolverDnXgesvd");
    if (session_.read_info(info_.get()) != 0) throw std::runtime_error("the SVD did not converge");
    shrink_values(s_.get(), threshold, static_cast<int>(n_), session_.stream);
    scale_columns(session_, m_, n_, u_.get(), s_.get(), scaled_.get());
    gemm(session_, CUBLAS_OP_N, CUBLAS_OP_N, m_, n_, n_, scaled_.get(), m_, vt_.get(), n_, low_rank, m_);
  }

 private:
  CudaSession& session_;
  std::int64_t m_, n_;
  std::size_t device_bytes_ = 0, host_bytes_ = 0;
  DeviceArray<T> u_, scaled_, vt_, s_;
  DeviceArray<int> info_;
  std::unique_ptr<DeviceArray<char>> workspace_;
  std::vector<char> host_workspace_;
};

template <class T, class Threshold>
PeerSamples iterate(CudaSession& session, const PeerRequest& request, Threshold&& threshold) {
  const std::int64_t m = request.rows, n = request.cols, count = m * n;
  const std::vector<T> frames = read_frames<T>(request.path, m, n);
  DeviceArray<T> whole(count), x(count), low_rank(count), sparse(count), y(count);
  check(cudaMemcpy(whole.get(), frames.data(), frames.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  const double size = norm(whole.get(), count, session.stream),
               lambda = 1 / std::sqrt(static_cast<double>(std::max(m, n)));

  double gap = 0;
  PeerSamples samples;
  repeat(request, [&](bool timed) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    check(cudaMemsetAsync(sparse.get(), 0, bytes, session.stream), "cudaMemset");
    check(cudaMemsetAsync(y.get(), 0, bytes, session.stream), "cudaMemset");
    double mu = 1.25 / size;
    const double elapsed = session.milliseconds([&] {
      for (int k = 0; k < iterations; ++k, mu *= 1.5) {
        form_x(whole.get(), sparse.get(), y.get(), mu, x.get(), count, session.stream);
        threshold.run(x.get(), 1 / mu, low_rank.get());
        update_parts(whole.get(), low_rank.get(), sparse.get(), y.get(), lambda, mu, count, session.stream);
        gap = norm(low_rank.get(), count, session.stream) / size;  // the test that ends the iteration waits for it
      }
    });
    if (!(gap < 1)) throw std::runtime_error("its check failed: the parts do not add up");
    if (timed) samples.total_ms.push_back(elapsed / iterations);
  });
  return samples;
}

template <class T>
PeerSamples measure(CudaSession& session, const PeerRequest& request) {
  if (request.rows < request.cols) throw std::runtime_error("takes matrices with at least as many rows as columns");
  if (request.rows > std::numeric_limits<int>::max()) throw std::runtime_error("takes 32-bit sizes only");
  if (request.peer == "cusolver-svd")
    return iterate<T>(session, request, SvdThreshold<T>(session, request.rows, request.cols));
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace

PeerSamples measure_rpca(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
