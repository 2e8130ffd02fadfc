// SPDX-License-Identifier: Apache-2.0
// Peers for robust PCA, the CAQR paper's Table II: the same iteration (inexact ALM: Lin, Chen, Ma, 2010, algorithm 5)
// with other ways to the singular value threshold of X, m x n, all but the first on this device:
//   cusolver-svd  a full SVD of X: cusolverDnXgesvd, then U f(S) V^T
//   blas2-qr      X = Q R by kernels/blas2.cu, the SVD of R on the host by LAPACK, as in the paper, then Q (U f(S) V^T)
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "common/seeded_matrix.hpp"
#include "kernels/blas2.hpp"
#include "kernels/rpca_steps.hpp"
#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

constexpr int iterations = 10;  // of one sample

lapack_int gesdd(lapack_int n, float* a, float* s, float* u, float* vt) {
  return LAPACKE_sgesdd(LAPACK_COL_MAJOR, 'S', n, n, a, n, s, u, n, vt, n);
}
lapack_int gesdd(lapack_int n, double* a, double* s, double* u, double* vt) {
  return LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', n, n, a, n, s, u, n, vt, n);
}
void scale_columns(CudaSession& s, std::int64_t m, std::int64_t n, const float* u, const float* by, float* out) {
  check(cublasSdgmm_64(s.blas, CUBLAS_SIDE_RIGHT, m, n, u, m, by, 1, out, m), "dgmm");
}
void scale_columns(CudaSession& s, std::int64_t m, std::int64_t n, const double* u, const double* by, double* out) {
  check(cublasDdgmm_64(s.blas, CUBLAS_SIDE_RIGHT, m, n, u, m, by, 1, out, m), "dgmm");
}
double norm(CudaSession& s, std::int64_t count, const float* x) {
  float result = 0;
  check(cublasSnrm2_64(s.blas, count, x, 1, &result), "nrm2");
  return result;
}
double norm(CudaSession& s, std::int64_t count, const double* x) {
  double result = 0;
  check(cublasDnrm2_64(s.blas, count, x, 1, &result), "nrm2");
  return result;
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

template <class T>
class Blas2Threshold {
 public:
  Blas2Threshold(CudaSession& session, std::int64_t m, std::int64_t n)
      : session_(session),
        m_(m),
        n_(n),
        qr_(m, static_cast<int>(n), session.stream),
        r_(n * n),
        u_(n * n),
        vt_(n * n),
        product_(n * n),
        s_(n) {}

  void run(T* x, double threshold, T* low_rank) {
    qr_.factor(x);
    const std::size_t row = static_cast<std::size_t>(n_) * sizeof(T), pitch = static_cast<std::size_t>(m_) * sizeof(T);
    check(cudaMemcpy2DAsync(r_.data(), row, x, pitch, row, n_, cudaMemcpyDeviceToHost, session_.stream), "R");
    check(cudaStreamSynchronize(session_.stream), "R to the host");
    for (std::int64_t j = 0; j < n_; ++j)
      for (std::int64_t i = j + 1; i < n_; ++i) r_[i + j * n_] = 0;
    if (gesdd(static_cast<lapack_int>(n_), r_.data(), s_.data(), u_.data(), vt_.data()) != 0)
      throw std::runtime_error("the SVD did not converge");
    std::fill(product_.begin(), product_.end(), T(0));
    for (std::int64_t j = 0; j < n_; ++j)
      for (std::int64_t k = 0; k < n_ && s_[k] > threshold; ++k) {
        const T factor = static_cast<T>(s_[k] - threshold) * vt_[k + j * n_];
        for (std::int64_t i = 0; i < n_; ++i) product_[i + j * n_] += u_[i + k * n_] * factor;
      }
    check(cudaMemsetAsync(low_rank, 0, pitch * static_cast<std::size_t>(n_), session_.stream), "cudaMemsetAsync");
    check(cudaMemcpy2DAsync(low_rank, pitch, product_.data(), row, row, n_, cudaMemcpyHostToDevice, session_.stream),
          "U f(S) V^T");
    qr_.apply_q(x, low_rank);
  }

 private:
  CudaSession& session_;
  std::int64_t m_, n_;
  Blas2Qr<T> qr_;
  std::vector<T> r_, u_, vt_, product_, s_;
};

template <class T, class Threshold>
PeerSamples iterate(CudaSession& session, const PeerRequest& request, Threshold&& threshold) {
  const std::int64_t m = request.rows, n = request.cols, count = m * n;
  std::vector<T> frames(static_cast<std::size_t>(count));
  fill_synthetic_frames(frames.data(), m, n);
  DeviceArray<T> whole(count), x(count), low_rank(count), sparse(count), y(count);
  check(cudaMemcpy(whole.get(), frames.data(), frames.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  const double size = norm(session, count, whole.get()), lambda = 1 / std::sqrt(static_cast<double>(std::max(m, n)));

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
        gap = norm(session, count, low_rank.get()) / size;  // the test that ends the iteration waits for it
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
  if (request.peer == "blas2-qr")
    return iterate<T>(session, request, Blas2Threshold<T>(session, request.rows, request.cols));
  throw std::runtime_error("no peer '" + request.peer + "' here");
}

}  // namespace

PeerSamples measure_rpca(CudaSession& session, const PeerRequest& request) {
  return request.precision == "f32" ? measure<float>(session, request) : measure<double>(session, request);
}

}  // namespace qrane::bench
