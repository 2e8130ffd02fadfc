// SPDX-License-Identifier: Apache-2.0
// What the QR tile kernels share: where the rows of a block lie in memory, exact power-of-two scales,
// and what is checked before a launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include <qrane/error.hpp>

#include "cuda/collectives/kernel.cuh"
#include "vocabulary/panels.hpp"

namespace qrane::backend::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned full_warp = 0xffffffffu;

/// skipped() for all threads of a block alike, though the condition may change while the launch runs: a tree that is
/// called off (dense/cholesky_qr.hpp).
__device__ inline bool block_skipped(const std::int32_t* condition) {
  if (condition == nullptr) return false;
  return __syncthreads_and(*static_cast<const volatile std::int32_t*>(condition) == 0) != 0;
}

/// The same value, but hidden from the compiler: addresses made from it are computed anew rather than kept in registers
/// since an earlier use.
__device__ inline int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
__device__ inline std::int64_t anew(std::int64_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

/// Rows of one block: contiguous, or (tree) the first `head` rows of every head, gathered one head after another.
template <bool tree>
struct BlockRows {
  std::int64_t first;  // matrix row of local row 0
  std::int64_t jump;   // tree: matrix rows skipped between two heads
  int rows;            // local rows
  int head;            // tree: rows per head
  int reciprocal;      // tree: ceil(2^16 / head); r * reciprocal >> 16 == r / head for r < 2048, head <= 32

  __device__ explicit BlockRows(const BlockTask& task)
      : first(task.row), jump(0), rows(task.rows), head(1), reciprocal(0) {
    if constexpr (tree) {
      head = task.cols > 0 ? task.cols : 1;
      jump = static_cast<std::int64_t>(task.stride) - task.cols;
      rows = task.rows * task.cols;
      reciprocal = (65535 + head) / head;
    }
  }

  /// The same rows, hidden from the compiler (tree: their addresses are costly in registers).
  __device__ BlockRows anew() const {
    BlockRows copy(*this);
    if constexpr (tree) copy.reciprocal = cuda::anew(reciprocal);
    return copy;
  }

  /// Which head local row r belongs to.
  __device__ int head_of(int r) const { return tree ? (r * reciprocal) >> 16 : 0; }

  /// Row of the matrix that local row r is.
  __device__ std::int64_t matrix_row(int r) const {
    if constexpr (tree) return first + r + head_of(r) * jump;
    return first + r;
  }

  /// Row within its head (tree), or the local row itself.
  __device__ int row_in_head(int r) const { return tree ? r - head_of(r) * head : r; }
};

template <class T>
struct Bits;

template <>
struct Bits<float> {
  static constexpr int mantissa = 23, bias = 127, mask = 0xff;
  static constexpr int key_shift = mantissa;
  static __device__ int key(float x) { return __float_as_int(x) & 0x7fffffff; }
  static __device__ float power_of_two(int e) { return __int_as_float((e + bias) << mantissa); }
};

template <>
struct Bits<double> {
  static constexpr int mantissa = 52, bias = 1023, mask = 0x7ff;
  static constexpr int key_shift = mantissa - 32;
  static __device__ int key(double x) { return __double2hiint(x) & 0x7fffffff; }
  static __device__ double power_of_two(int e) {
    return __longlong_as_double(static_cast<long long>(e + bias) << mantissa);
  }
};

/// An integer that orders magnitudes well enough to scale by: |x|'s leading 32 bits, more for Inf and NaN than for all
/// else.
template <class T>
__device__ int magnitude(T x) {
  return Bits<T>::key(x);
}

/// e such that scaling by 2^-e brings a column whose largest magnitude() is `largest` near 1, where both 2^-e and 2^e
/// are normal numbers; 0 for a column that holds an Inf.
template <class T>
__device__ int scale_exponent(int largest) {
  const int biased = largest >> Bits<T>::key_shift;
  if (biased == Bits<T>::mask) return 0;
  const int e = biased == 0 ? 1 - Bits<T>::bias : biased - Bits<T>::bias;
  return e > Bits<T>::bias - 1 ? Bits<T>::bias - 1 : e;
}

/// Lets `kernel` use `bytes` of dynamic shared memory. Asked every time (it is a host-side attribute of the current
/// device's context, and a cached answer would outlive a device reset).
template <class Kernel>
void allow_shared_memory(Kernel* kernel, std::size_t bytes, const char* name) {
  constexpr std::size_t most_static = 16 * 1024;  // what a tile kernel has besides, within the 48 KiB of any kernel
  if (bytes + most_static <= 48 * 1024) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), name);
}

/// Checks what every tile launch must satisfy; `capacity` is the tallest block that fits.
template <class T>
void check_panel(const Panel<Cuda, T>& panel, const char* kernel, std::int32_t capacity) {
  detail::check(panel.max_cols <= 32, ErrorCode::invalid_argument, kernel, ": a panel of ", panel.max_cols,
                " columns, at most 32 are possible");
  detail::check(panel.inner >= panel.max_cols, ErrorCode::invalid_argument, kernel, ": inner = ", panel.inner,
                " is less than the panel's ", panel.max_cols, " columns");
  detail::check(panel.max_rows <= capacity, ErrorCode::invalid_argument, kernel, ": a block of ", panel.max_rows,
                " rows, at most ", capacity, " are possible");
}

/// Tallest block of the tile kernels, at any panel width.
template <class T>
inline constexpr int tallest_block = sizeof(T) == 4 ? 512 : 256;

}  // namespace qrane::backend::cuda
