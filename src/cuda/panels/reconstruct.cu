// SPDX-License-Identifier: Apache-2.0
// Householder vectors from an orthonormal panel (vocabulary/panels.hpp names the paper): one block per
// matrix of order b <= 64.
//
//   1. LU without pivoting of Q1 - S in shared memory. S_j = -sign of the pivot as it then stands, so every
//      pivot is at least 1 in magnitude; one barrier per column.
//   2. U^-1 and T = -U S L^-T: both solve x M = y for many rows y against one triangle (x U = e_i, and
//      x Lᵀ = -(U S)_i), one warp per row, a lane per column (two from 33 on), no barriers.
//
// About 4 b^3 / 3 flops per matrix; bound by the latency of 2 b steps.
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/panels.hpp"
#include "cuda/collectives/kernel.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 1024;
constexpr int warps = threads / 32;

/// Matrix k of a batch.
template <class T>
__device__ DeviceMatrix<Cuda, T> nth(const DeviceMatrix<Cuda, T>& a, Index k) {
  return {a.data + k * a.stride, a.rows, a.cols, a.ld, 0, 1};
}

/// Solves x M = y for the row y that the warp's lanes hold (column lane + 32 h in x[h]); element (k, j) of M is
/// m[k * row_step + j * col_step], upper triangular with the diagonal's reciprocals given (ones when it is unit).
template <class T, int H>
__device__ void solve_row(T (&x)[H], const T* m, int row_step, int col_step, const T* reciprocals, int first, int b) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < H; ++h)
#pragma unroll 4
    for (int k = max(32 * h, first); k < min(b, 32 * h + 32); ++k) {
      const T pivot = __shfl_sync(0xffffffffu, x[h], k % 32) * (reciprocals != nullptr ? reciprocals[k] : T(1));
      if (lane == k % 32) x[h] = pivot;
#pragma unroll
      for (int g = h; g < H; ++g) {
        const int j = lane + 32 * g;
        if (j > k && j < b) x[g] -= pivot * m[k * row_step + j * col_step];
      }
    }
}

template <class T, int H>
__device__ void store_row(const DeviceMatrix<Cuda, T>& out, const T (&x)[H], int row, int b) {
#pragma unroll
  for (int h = 0; h < H; ++h) {
    const int j = threadIdx.x % 32 + 32 * h;
    if (j < b) out.data[row + j * out.ld] = j >= row ? x[h] : T(0);
  }
}

/// LU of Q1 - S in place: L below the diagonal, U above it, the pivots on it. One warp per row; the diagonal is
/// written by its row's warp alone, one step after the others have read it.
template <class T>
__device__ void factor_lu(T* a, T* sign, T* reciprocals, int b, int ld) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int p = 0; p < b; ++p) {
    const T old = a[p * ld + p], s = old >= T(0) ? T(-1) : T(1), reciprocal = T(1) / (old - s);
    for (int i = p + 1 + warp; i < b; i += warps) {
      const T l = a[i * ld + p] * reciprocal;
      __syncwarp();
      for (int j = p + 1 + lane; j < b; j += 32) a[i * ld + j] -= l * a[p * ld + j];
      if (lane == 0) a[i * ld + p] = l;
    }
    if (threadIdx.x == 0) sign[p] = s, reciprocals[p] = reciprocal;
    __syncthreads();
  }
  for (int p = threadIdx.x; p < b; p += threads) a[p * ld + p] -= sign[p];
  __syncthreads();
}

/// Thread map: a warp per row, a lane per column. Shared memory: b (b + 1) + 2 b scalars.
template <class T, int H>
__global__ void __launch_bounds__(threads)
    reconstruct_kernel(const std::int32_t* condition, Reconstruct<Cuda, T> task) {
  if (skipped(condition)) return;
  extern __shared__ unsigned char shared[];
  const int b = static_cast<int>(task.q1.rows), ld = b + 1;
  T* const a = reinterpret_cast<T*>(shared);  // row-major: element (i, j) at i * ld + j
  T* const sign = a + b * ld;
  T* const reciprocals = sign + b;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (Index k = blockIdx.x; k < task.q1.count; k += gridDim.x) {
    const auto q1 = nth(task.q1, k), r = nth(task.r, k), panel = nth(task.panel, k);
    for (int j = warp; j < b; j += warps)
      for (int i = lane; i < b; i += 32) a[i * ld + j] = q1.data[i + j * q1.ld];
    __syncthreads();
    factor_lu(a, sign, reciprocals, b, ld);
    for (int row = warp; row < b; row += warps) {
      T x[H];
#pragma unroll
      for (int h = 0; h < H; ++h) x[h] = lane + 32 * h == row ? T(1) : T(0);
      solve_row<T, H>(x, a, ld, 1, reciprocals, row, b);
      store_row(nth(task.u_inverse, k), x, row, b);
#pragma unroll
      for (int h = 0; h < H; ++h) {
        const int j = lane + 32 * h;
        x[h] = j >= row && j < b ? -a[row * ld + j] * sign[j] : T(0);
      }
      solve_row<T, H>(x, a, 1, ld, nullptr, row, b);
      store_row(nth(task.t, k), x, row, b);
    }
    for (int j = warp; j < b; j += warps)
      for (int i = lane; i < b; i += 32)
        panel.data[i + j * panel.ld] = i <= j ? sign[i] * r.data[i + j * r.ld] : a[i * ld + j];
    __syncthreads();
  }
}

}  // namespace

template <class T>
void reconstruct(const Queue& queue, const Reconstruct<Cuda, T>& task) {
  const Launch launch(queue);
  const Index b = task.q1.rows;
  detail::check(b <= max_reconstruct, ErrorCode::invalid_argument, "reconstruct of ", b,
                " columns: this backend takes up to ", max_reconstruct);
  if (b == 0 || task.q1.count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<Index>(task.q1.count, 1 << 20));
  const auto bytes = static_cast<std::size_t>((b * (b + 1) + 2 * b) * Index(sizeof(T)));
  auto* kernel = b <= 32 ? reconstruct_kernel<T, 1> : reconstruct_kernel<T, 2>;
  kernel<<<blocks, threads, bytes, launch.stream>>>(launch.condition, task);
  check_launch("reconstruct kernel");
}

template void reconstruct(const Queue&, const Reconstruct<Cuda, float>&);
template void reconstruct(const Queue&, const Reconstruct<Cuda, double>&);

}  // namespace qrane::backend::cuda
