// SPDX-License-Identifier: Apache-2.0
// What the CUDA peers share: checked calls, event timing, and the two scalars' names.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/fill.hpp"

namespace qrane::bench {

inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
}
inline void check(cusolverStatus_t status, const char* what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": cuSOLVER status " + std::to_string(static_cast<int>(status)));
}

template <class T>
constexpr cudaDataType cuda_type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

/// Handles of one stream, and a pair of events around timed work on it.
class CudaSession {
 public:
  explicit CudaSession(int device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
    check(cublasCreate(&blas), "cublasCreate");
    check(cublasSetStream(blas, stream), "cublasSetStream");
    check(cusolverDnCreate(&solver), "cusolverDnCreate");
    check(cusolverDnSetStream(solver, stream), "cusolverDnSetStream");
    check(cusolverDnCreateParams(&params), "cusolverDnCreateParams");
  }

  /// Device time between the first and the last work that `function` puts on the stream.
  template <class Function>
  double milliseconds(Function&& function) {
    check(cudaEventRecord(start_, stream), "cudaEventRecord");
    function();
    check(cudaEventRecord(stop_, stream), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, start_, stop_), "cudaEventElapsedTime");
    return elapsed;
  }

  template <class T>
  void copy_on_device(T* to, const T* from, std::int64_t count) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
  }

  int read_info(const int* info) {
    int value = 0;
    check(cudaMemcpyAsync(&value, info, sizeof value, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return value;
  }

  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

/// C := alpha op(A) op(B) + beta C with 64-bit sizes.
inline void gemm(CudaSession& session, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                 std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                 std::int64_t ldc) {
  const float one = 1, zero = 0;
  check(cublasSgemm_64(session.blas, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc), "cublasSgemm");
}
inline void gemm(CudaSession& session, cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                 std::int64_t k, const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double* c,
                 std::int64_t ldc) {
  const double one = 1, zero = 0;
  check(cublasDgemm_64(session.blas, op_a, op_b, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc), "cublasDgemm");
}

/// B := A^-1 B for an upper triangular n x n A and `rhs` columns of B.
inline void solve_upper(CudaSession& session, int n, int rhs, const float* a, int lda, float* b, int ldb) {
  const float one = 1;
  check(cublasStrsm(session.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, rhs,
                    &one, a, lda, b, ldb),
        "cublasStrsm");
}
inline void solve_upper(CudaSession& session, int n, int rhs, const double* a, int lda, double* b, int ldb) {
  const double one = 1;
  check(cublasDtrsm(session.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, rhs,
                    &one, a, lda, b, ldb),
        "cublasDtrsm");
}

/// C := A B, A upper triangular, all n x n.
inline void multiply_upper(CudaSession& session, int n, const float* a, const float* b, float* c) {
  const float one = 1;
  check(cublasStrmm(session.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, n,
                    &one, a, n, b, n, c, n),
        "cublasStrmm");
}
inline void multiply_upper(CudaSession& session, int n, const double* a, const double* b, double* c) {
  const double one = 1;
  check(cublasDtrmm(session.blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, n,
                    &one, a, n, b, n, c, n),
        "cublasDtrmm");
}

}  // namespace qrane::bench
