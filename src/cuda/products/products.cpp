// SPDX-License-Identifier: Apache-2.0
// Library products of the CUDA queue. gram and multiply_wide go to the fused kernels (gram.cu,
// multiply_wide.cu) as far as those reach; wider matrices go through DGEMM in column blocks, so that only
// what lies on or above the diagonal's blocks is computed, float ones in chunks of rows widened in scratch.
#include <algorithm>

#include "cuda/basic.hpp"
#include "cuda/products/products.hpp"
#include "cuda/queue/state.hpp"
#include "cuda/reach.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr Index column_block = 512;

using Matrix64 = Mat<double>;

cublasOperation_t operation(Op op) { return op == Op::none ? CUBLAS_OP_N : CUBLAS_OP_T; }

void refuse_condition(const Launch& launch, const char* name) {
  detail::check(launch.condition == nullptr, ErrorCode::invalid_argument, name,
                " is a library product and takes no condition");
}

std::int64_t leading(Index ld) { return std::max<Index>(ld, 1); }

/// Stride of an operand of a batch; one matrix serves all.
template <class T>
long long stride(const DeviceMatrix<Cuda, T>& a) {
  return a.count == 1 ? 0 : a.stride;
}

template <class T>
void cublas_gemm(cublasHandle_t handle, Op op_a, Op op_b, T alpha, const DeviceMatrix<Cuda, T>& a,
                 const DeviceMatrix<Cuda, T>& b, T beta, const DeviceMatrix<Cuda, T>& c) {
  const Index k = op_a == Op::none ? a.cols : a.rows;
  const cublasOperation_t ta = operation(op_a), tb = operation(op_b);
  const std::int64_t lda = leading(a.ld), ldb = leading(b.ld), ldc = leading(c.ld);
  if constexpr (sizeof(T) == 4) {
    if (c.count == 1) {
      check_cublas(
          cublasSgemm_64(handle, ta, tb, c.rows, c.cols, k, &alpha, a.data, lda, b.data, ldb, &beta, c.data, ldc),
          "cublasSgemm");
    } else {
      check_cublas(cublasSgemmStridedBatched_64(handle, ta, tb, c.rows, c.cols, k, &alpha, a.data, lda, stride(a),
                                                b.data, ldb, stride(b), &beta, c.data, ldc, c.stride, c.count),
                   "cublasSgemmStridedBatched");
    }
  } else {
    if (c.count == 1) {
      check_cublas(
          cublasDgemm_64(handle, ta, tb, c.rows, c.cols, k, &alpha, a.data, lda, b.data, ldb, &beta, c.data, ldc),
          "cublasDgemm");
    } else {
      check_cublas(cublasDgemmStridedBatched_64(handle, ta, tb, c.rows, c.cols, k, &alpha, a.data, lda, stride(a),
                                                b.data, ldb, stride(b), &beta, c.data, ldc, c.stride, c.count),
                   "cublasDgemmStridedBatched");
    }
  }
}

/// W := Aᵀ A + beta W on and above the diagonal's blocks.
void blocked_gram(cublasHandle_t handle, const Matrix64& a, double beta, const Matrix64& w) {
  for (Index j = 0; j < a.cols; j += column_block) {
    const Index cols = std::min(column_block, a.cols - j);
    cublas_gemm(handle, Op::transpose, Op::none, 1.0, a.columns(0, j + cols), a.columns(j, cols), beta,
                w.block(0, j, j + cols, cols));
  }
}

/// Q := A W for upper triangular W with zeros below; Q and A apart.
void blocked_multiply(cublasHandle_t handle, const Matrix64& a, const Matrix64& w, const Matrix64& q) {
  for (Index j = 0; j < a.cols; j += column_block) {
    const Index cols = std::min(column_block, a.cols - j);
    cublas_gemm(handle, Op::none, Op::none, 1.0, a.columns(0, j + cols), w.block(0, j, j + cols, cols), 0.0,
                q.columns(j, cols));
  }
}

/// Rows of an n-column chunk of which `copies` in double fit the scratch.
Index chunk_rows(const Scratch<Cuda>& scratch, Index rows, Index cols, Index copies, const char* name) {
  const Index most = scratch.bytes / (8 * cols * copies);
  detail::check(most >= 1, ErrorCode::invalid_argument, name, " of ", cols, " columns needs ", 8 * cols * copies,
                " bytes of scratch or more, got ", scratch.bytes);
  return most >= rows ? rows : (most >= 64 ? most / 64 * 64 : most);
}

}  // namespace

template <class T>
void gemm(const Queue& queue, Op op_a, Op op_b, T alpha, const Mat<T>& a, const Mat<T>& b, T beta, const Mat<T>& c) {
  const Launch launch(queue);
  refuse_condition(launch, "gemm");
  if (c.rows == 0 || c.cols == 0 || c.count == 0) return;
  cublas_gemm(queue.library(), op_a, op_b, alpha, a, b, beta, c);
}

template <class T>
void trsm(const Queue& queue, Side side, Triangle triangle, Op op, Diagonal diagonal, T alpha, const Mat<T>& a,
          const Mat<T>& b) {
  const Launch launch(queue);
  refuse_condition(launch, "trsm");
  if (b.rows == 0 || b.cols == 0) return;
  // one launch for all: the library takes no strided batch of triangles
  if (b.count > 1 && a.count == b.count && side == Side::left && triangle == Triangle::upper && op == Op::none &&
      diagonal == Diagonal::non_unit && launch_solve_upper(launch, alpha, a, b))
    return;
  const cublasSideMode_t s = side == Side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const cublasFillMode_t fill = triangle == Triangle::upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cublasDiagType_t d = diagonal == Diagonal::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  for (Index k = 0; k < b.count; ++k) {
    const T* const pa = a.data + k * stride(a);
    T* const pb = b.data + k * b.stride;
    if constexpr (sizeof(T) == 4) {
      check_cublas(cublasStrsm_64(queue.library(), s, fill, operation(op), d, b.rows, b.cols, &alpha, pa, leading(a.ld),
                                  pb, leading(b.ld)),
                   "cublasStrsm");
    } else {
      check_cublas(cublasDtrsm_64(queue.library(), s, fill, operation(op), d, b.rows, b.cols, &alpha, pa, leading(a.ld),
                                  pb, leading(b.ld)),
                   "cublasDtrsm");
    }
  }
}

template <class T>
void gram(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  if (a.cols == 0) return;
  if (a.cols <= max_fused_gram) return launch_gram(launch, a, w, scratch);
  refuse_condition(launch, "gram of a wide matrix");
  if constexpr (sizeof(T) == 8) {
    blocked_gram(queue.library(), a, 0.0, w);
  } else {
    const Index chunk = std::max<Index>(chunk_rows(scratch, a.rows, a.cols, 1, "gram"), 1);
    for (Index i = 0; i == 0 || i < a.rows; i += chunk) {
      const Index rows = std::min(chunk, a.rows - i);
      const Matrix64 wide{reinterpret_cast<double*>(scratch.data), rows, a.cols, leading(rows), 0, 1};
      widen(queue, a.block(i, 0, rows, a.cols), wide);
      blocked_gram(queue.library(), wide, i == 0 ? 0.0 : 1.0, w);
    }
  }
}

template <class T>
void multiply_wide(const Queue& queue, const Mat<T>& a, const Mat<double>& w, const Mat<T>& q,
                   const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  if (a.rows == 0 || a.cols == 0) return;
  const bool in_place = a.data == q.data;
  // On an H200 DGEMM, which computes the zeros too, is still the faster for double beyond 64 columns.
  const bool prefer_library = sizeof(T) == 8 && a.cols > 64 && !in_place && launch.condition == nullptr;
  if (a.cols <= max_fused_multiply() && !prefer_library) return launch_multiply_wide(launch, a, w, q);
  refuse_condition(launch, "multiply_wide of a wide matrix");
  if (sizeof(T) == 8 && !in_place) {
    if constexpr (sizeof(T) == 8) blocked_multiply(queue.library(), a, w, q);
    return;
  }
  const Index copies = sizeof(T) == 4 ? 2 : 1;  // of A, and for float of Q
  const Index chunk = chunk_rows(scratch, a.rows, a.cols, copies, "multiply_wide");
  auto* const data = reinterpret_cast<double*>(scratch.data);
  for (Index i = 0; i < a.rows; i += chunk) {
    const Index rows = std::min(chunk, a.rows - i);
    const Matrix64 wide{data, rows, a.cols, rows, 0, 1};
    widen(queue, a.block(i, 0, rows, a.cols), wide);
    if constexpr (sizeof(T) == 8) {
      blocked_multiply(queue.library(), wide, w, q.block(i, 0, rows, a.cols));
    } else {
      const Matrix64 product{data + rows * a.cols, rows, a.cols, rows, 0, 1};
      blocked_multiply(queue.library(), wide, w, product);
      narrow(queue, product, q.block(i, 0, rows, a.cols), Part::all);
    }
  }
}

#define QRANE_INSTANTIATE(T)                                                                       \
  template void gemm(const Queue&, Op, Op, T, const Mat<T>&, const Mat<T>&, T, const Mat<T>&);     \
  template void trsm(const Queue&, Side, Triangle, Op, Diagonal, T, const Mat<T>&, const Mat<T>&); \
  template void gram(const Queue&, const Mat<T>&, const Mat<double>&, const Scratch<Cuda>&);       \
  template void multiply_wide(const Queue&, const Mat<T>&, const Mat<double>&, const Mat<T>&, const Scratch<Cuda>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
