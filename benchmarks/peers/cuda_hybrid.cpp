// SPDX-License-Identifier: Apache-2.0
// The CAQR paper's other rival, as MAGMA does it: panels by LAPACK on the host's cores, the trailing update by cuBLAS
// on the GPU meanwhile, with a look-ahead of one panel.
//
//   host    | factor panel 0 |     wait     | factor panel 1 |      wait     | ...
//   GPU     |                | update p. 1  | update the columns behind p. 1 | update p. 2 | ...
//
// The next panel is updated first and goes to the host on a second stream while the GPU updates the rest. V travels
// back as a dense trapezoid with T: C := C - V T^T (V^T C), three products. Times end when both streams are done.
#include <lapacke.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "peers/cuda_peers.hpp"

namespace qrane::bench {
namespace {

lapack_int geqrf(lapack_int m, lapack_int n, float* a, lapack_int lda, float* tau) {
  return LAPACKE_sgeqrf(LAPACK_COL_MAJOR, m, n, a, lda, tau);
}
lapack_int geqrf(lapack_int m, lapack_int n, double* a, lapack_int lda, double* tau) {
  return LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, a, lda, tau);
}
lapack_int larft(lapack_int m, lapack_int n, const float* v, lapack_int ldv, const float* tau, float* t) {
  return LAPACKE_slarft(LAPACK_COL_MAJOR, 'F', 'C', m, n, v, ldv, tau, t, n);
}
lapack_int larft(lapack_int m, lapack_int n, const double* v, lapack_int ldv, const double* tau, double* t) {
  return LAPACKE_dlarft(LAPACK_COL_MAJOR, 'F', 'C', m, n, v, ldv, tau, t, n);
}

/// C := alpha op(A) B + beta C.
void product(cublasHandle_t blas, cublasOperation_t op, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
             const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
             std::int64_t ldc) {
  check(cublasSgemm_64(blas, op, CUBLAS_OP_N, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc), "cublasSgemm");
}
void product(cublasHandle_t blas, cublasOperation_t op, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
             const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
             std::int64_t ldc) {
  check(cublasDgemm_64(blas, op, CUBLAS_OP_N, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc), "cublasDgemm");
}

/// Host memory that the device copies from and to at full speed.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) {
    check(cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMallocHost");
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

struct Stream {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Stream() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~Stream() { cudaEventDestroy(event), cudaStreamDestroy(stream); }
};

template <class T>
class HybridQr {
 public:
  HybridQr(CudaSession& session, std::int64_t rows, std::int64_t cols, std::int64_t width)
      : session_(session),
        rows_(rows),
        cols_(cols),
        width_(std::min(width, cols)),
        panel_(rows * width_),
        host_t_(width_ * width_),
        tau_(width_),
        v_(rows * width_),
        t_(width_ * width_),
        w_(width_ * cols),
        tw_(width_ * cols) {}

  /// A := V below the diagonal, R on and above it; returns when the GPU is done.
  void factor(T* a) {
    fetch(a, 0);
    for (std::int64_t j = 0; j < cols_; j += width_) {
      const std::int64_t b = std::min(width_, cols_ - j), rest = j + b, next = std::min(width_, cols_ - rest);
      check(cudaStreamSynchronize(copy_.stream), "panel to the host");
      if (geqrf(lapack(rows_ - j), lapack(b), panel_.get(), lapack(rows_ - j), tau_.data()) != 0)
        throw std::runtime_error("LAPACK refused a panel");
      send(a, j, b);
      if (next <= 0) break;
      update(a, j, b, rest, next);
      check(cudaEventRecord(ready_.event, session_.stream), "cudaEventRecord");
      check(cudaStreamWaitEvent(copy_.stream, ready_.event), "cudaStreamWaitEvent");
      fetch(a, rest);
      update(a, j, b, rest + next, cols_ - rest - next);
    }
    check(cudaStreamSynchronize(copy_.stream), "hybrid QR");
    check(cudaStreamSynchronize(session_.stream), "hybrid QR");
  }

 private:
  static lapack_int lapack(std::int64_t size) { return static_cast<lapack_int>(size); }

  void fetch(const T* a, std::int64_t j) {
    const std::int64_t b = std::min(width_, cols_ - j), height = rows_ - j;
    check(cudaMemcpy2DAsync(panel_.get(), height * sizeof(T), a + j + j * rows_, rows_ * sizeof(T), height * sizeof(T),
                            b, cudaMemcpyDeviceToHost, copy_.stream),
          "panel to the host");
  }

  /// V and R of the panel into A, V with its unit triangle and T for the updates.
  void send(T* a, std::int64_t j, std::int64_t b) {
    const std::int64_t height = rows_ - j;
    if (larft(lapack(height), lapack(b), panel_.get(), lapack(height), tau_.data(), host_t_.get()) != 0)
      throw std::runtime_error("LAPACK refused a panel");
    check(cudaMemcpy2DAsync(a + j + j * rows_, rows_ * sizeof(T), panel_.get(), height * sizeof(T), height * sizeof(T),
                            b, cudaMemcpyHostToDevice, session_.stream),
          "panel to the device");
    check(cudaStreamSynchronize(session_.stream), "panel to the device");  // the host buffer is reused for V's triangle
    for (std::int64_t k = 0; k < b; ++k)
      for (std::int64_t i = 0; i <= k; ++i) panel_.get()[i + k * height] = i == k ? T(1) : T(0);
    for (std::int64_t k = 0; k < b; ++k)
      for (std::int64_t i = k + 1; i < b; ++i) host_t_.get()[i + k * b] = 0;
    check(cudaMemcpyAsync(t_.get(), host_t_.get(), b * b * sizeof(T), cudaMemcpyHostToDevice, session_.stream), "T");
    check(cudaMemcpy2DAsync(v_.get(), height * sizeof(T), a + j + j * rows_, rows_ * sizeof(T), height * sizeof(T), b,
                            cudaMemcpyDeviceToDevice, session_.stream),
          "V");
    check(cudaMemcpy2DAsync(v_.get(), height * sizeof(T), panel_.get(), height * sizeof(T), b * sizeof(T), b,
                            cudaMemcpyHostToDevice, session_.stream),
          "V's triangle");
    check(cudaStreamSynchronize(session_.stream), "V");  // the host buffer takes the next panel
  }

  void update(T* a, std::int64_t j, std::int64_t b, std::int64_t first, std::int64_t count) {
    if (count <= 0) return;
    T* c = a + j + first * rows_;
    const std::int64_t height = rows_ - j;
    product(session_.blas, CUBLAS_OP_T, b, count, height, 1, v_.get(), height, c, rows_, 0, w_.get(), b);
    product(session_.blas, CUBLAS_OP_T, b, count, b, 1, t_.get(), b, w_.get(), b, 0, tw_.get(), b);
    product(session_.blas, CUBLAS_OP_N, height, count, b, -1, v_.get(), height, tw_.get(), b, 1, c, rows_);
  }

  CudaSession& session_;
  std::int64_t rows_, cols_, width_;
  PinnedArray<T> panel_, host_t_;
  std::vector<T> tau_;
  DeviceArray<T> v_, t_, w_, tw_;
  Stream copy_, ready_;
};

}  // namespace

template <class T>
PeerSamples measure_hybrid(CudaSession& session, const PeerRequest& request) {
  const std::int64_t m = request.rows, n = request.cols;
  if (m < n) throw std::runtime_error("takes matrices with at least as many rows as columns");
  if (m > std::numeric_limits<lapack_int>::max()) throw std::runtime_error("this LAPACK takes 32-bit sizes only");
  DeviceArray<T> a(m * n), work(m * n);
  fill_on_device(a.get(), m, n, request.seed, request.condition);
  HybridQr<T> qr(session, m, n, 64);
  PeerSamples samples;
  repeat(request, [&](bool timed) {
    session.copy_on_device(work.get(), a.get(), m * n);
    check(cudaStreamSynchronize(session.stream), "copy of A");
    const auto start = std::chrono::steady_clock::now();
    qr.factor(work.get());
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (timed) samples.factor_ms.push_back(ms);
  });
  return samples;
}

template <class T>
void factor_by_hybrid(CudaSession& session, std::int64_t rows, std::int64_t cols, T* a) {
  HybridQr<T>(session, rows, cols, 16).factor(a);
}

template PeerSamples measure_hybrid<float>(CudaSession&, const PeerRequest&);
template PeerSamples measure_hybrid<double>(CudaSession&, const PeerRequest&);
template void factor_by_hybrid(CudaSession&, std::int64_t, std::int64_t, float*);
template void factor_by_hybrid(CudaSession&, std::int64_t, std::int64_t, double*);

}  // namespace qrane::bench
