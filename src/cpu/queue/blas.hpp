// SPDX-License-Identifier: Apache-2.0
// BLAS by scalar type, column-major, with 64-bit sizes checked against the library's 32-bit ones.
#pragma once

#include <cblas.h>

#include <limits>

#include <qrane/error.hpp>

#include "vocabulary/memory.hpp"

namespace qrane::backend::cpu::blas {

inline int narrow_size(Index n) {
  detail::check(n <= std::numeric_limits<int>::max(), ErrorCode::invalid_argument, "BLAS takes sizes below 2^31, got ",
                n);
  return static_cast<int>(n);
}

inline CBLAS_TRANSPOSE to_cblas(Op op) { return op == Op::none ? CblasNoTrans : CblasTrans; }

inline void gemm(Op ta, Op tb, Index m, Index n, Index k, float alpha, const float* a, Index lda, const float* b,
                 Index ldb, float beta, float* c, Index ldc) {
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasColMajor, to_cblas(ta), to_cblas(tb), narrow_size(m), narrow_size(n), narrow_size(k), alpha, a,
              narrow_size(lda), b, narrow_size(ldb), beta, c, narrow_size(ldc));
}
inline void gemm(Op ta, Op tb, Index m, Index n, Index k, double alpha, const double* a, Index lda, const double* b,
                 Index ldb, double beta, double* c, Index ldc) {
  if (m == 0 || n == 0) return;
  cblas_dgemm(CblasColMajor, to_cblas(ta), to_cblas(tb), narrow_size(m), narrow_size(n), narrow_size(k), alpha, a,
              narrow_size(lda), b, narrow_size(ldb), beta, c, narrow_size(ldc));
}

inline float dot(Index n, const float* x, const float* y) { return cblas_sdot(narrow_size(n), x, 1, y, 1); }
inline double dot(Index n, const double* x, const double* y) { return cblas_ddot(narrow_size(n), x, 1, y, 1); }

/// y := A^T x
inline void gemv_t(Index m, Index n, const float* a, Index lda, const float* x, float* y) {
  cblas_sgemv(CblasColMajor, CblasTrans, narrow_size(m), narrow_size(n), 1, a, narrow_size(lda), x, 1, 0, y, 1);
}
inline void gemv_t(Index m, Index n, const double* a, Index lda, const double* x, double* y) {
  cblas_dgemv(CblasColMajor, CblasTrans, narrow_size(m), narrow_size(n), 1, a, narrow_size(lda), x, 1, 0, y, 1);
}
/// A := A + alpha x y^T
inline void ger(Index m, Index n, float alpha, const float* x, const float* y, float* a, Index lda) {
  cblas_sger(CblasColMajor, narrow_size(m), narrow_size(n), alpha, x, 1, y, 1, a, narrow_size(lda));
}
inline void ger(Index m, Index n, double alpha, const double* x, const double* y, double* a, Index lda) {
  cblas_dger(CblasColMajor, narrow_size(m), narrow_size(n), alpha, x, 1, y, 1, a, narrow_size(lda));
}

/// The upper triangle of W, n x n, := W + AᵀA, A m x n.
inline void add_gram(Index n, Index m, const double* a, Index lda, double* w) {
  cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, narrow_size(n), narrow_size(m), 1, a, narrow_size(lda), 1, w,
              narrow_size(n));
}

/// B := op(A) B with A upper triangular.
inline void trmm_upper(Op op, Index m, Index n, const float* a, Index lda, float* b, Index ldb) {
  cblas_strmm(CblasColMajor, CblasLeft, CblasUpper, to_cblas(op), CblasNonUnit, narrow_size(m), narrow_size(n), 1, a,
              narrow_size(lda), b, narrow_size(ldb));
}
inline void trmm_upper(Op op, Index m, Index n, const double* a, Index lda, double* b, Index ldb) {
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasUpper, to_cblas(op), CblasNonUnit, narrow_size(m), narrow_size(n), 1, a,
              narrow_size(lda), b, narrow_size(ldb));
}

template <class T>
void trsm(Side side, Triangle triangle, Op op, Diagonal diagonal, Index m, Index n, T alpha, const T* a, Index lda,
          T* b, Index ldb) {
  if (m == 0 || n == 0) return;
  const auto s = side == Side::left ? CblasLeft : CblasRight;
  const auto u = triangle == Triangle::upper ? CblasUpper : CblasLower;
  const auto d = diagonal == Diagonal::unit ? CblasUnit : CblasNonUnit;
  if constexpr (sizeof(T) == 4) {
    cblas_strsm(CblasColMajor, s, u, to_cblas(op), d, narrow_size(m), narrow_size(n), alpha, a, narrow_size(lda), b,
                narrow_size(ldb));
  } else {
    cblas_dtrsm(CblasColMajor, s, u, to_cblas(op), d, narrow_size(m), narrow_size(n), alpha, a, narrow_size(lda), b,
                narrow_size(ldb));
  }
}

/// While any lives, BLAS calls of the process use one thread each: our own loops are the parallel ones.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;
};

}  // namespace qrane::backend::cpu::blas
