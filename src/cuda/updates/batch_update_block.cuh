// SPDX-License-Identifier: Apache-2.0
// What the kernels of batch_update.cu and batch_update_rows_out.cu share: a block per matrix, where things lie in its
// shared memory, R in and out of it, and the launch.
#pragma once

#include <type_traits>

#include "cuda/collectives/warp.cuh"
#include "cuda/updates/batch_update.cuh"
#include "vocabulary/updates.hpp"

namespace qrane::backend::cuda {
namespace changes {

inline constexpr int most_cols = 64, most_carried = 8, most_threads = 256;

/// Where things lie in shared memory.
template <class T>
struct Space {
  T* r;        // n x n by rows
  T* turns;    // per row of R: a reflector (P + 1), or P rotations
  T* unscale;  // n
  T *w, *c;    // n x P by rows, where rows go
  T* l;        // P x P by rows, likewise
  T* sums;     // P per warp, likewise
  T* s;        // m x P by columns, likewise
  T* q;        // m x n by columns, likewise where Q is small; else null
  int ld, m, n;

  static __host__ __device__ int ld_of(int n) { return n | 1; }
  static __host__ __device__ std::size_t elements(int m, int n, int P, bool rows_out, bool with_q = false) {
    const std::size_t shared = static_cast<std::size_t>(n * ld_of(n) + (n & 1) + n * 2 * P + n);
    const std::size_t beside =
        rows_out ? static_cast<std::size_t>(2 * n * P + P * P + most_threads / 32 * P + m * P) : 0;
    return shared + beside + (with_q ? static_cast<std::size_t>(m) * static_cast<std::size_t>(n) : 0);
  }
  /// Whether Q is read from global memory once.
  static __host__ __device__ bool holds_q(int m, int n, int P) {
    constexpr std::size_t most = 26 * 1024;  // eight blocks on a multiprocessor
    return sizeof(T) * elements(m, n, P, true, true) <= most;
  }
  __device__ Space(unsigned char* shared, int m_, int n_, int P) : ld(ld_of(n_)), m(m_), n(n_) {
    r = reinterpret_cast<T*>(shared);
    turns = r + n * ld + (n & 1);  // rotations are pairs
    unscale = turns + n * 2 * P;
    w = unscale + n;
    c = w + n * P;
    l = c + n * P;
    sums = l + P * P;
    s = sums + most_threads / 32 * P;
    q = holds_q(m, n, P) ? s + m * P : nullptr;
  }
};

template <class T>
__device__ T* of_batch(const DeviceMatrix<Cuda, T>& a) {
  return a.data + blockIdx.x * a.stride;
}

/// R by rows without columns [gone, gone + p), zeros below; whether anything in it is extreme.
template <class T>
__device__ bool load_r(const DeviceMatrix<Cuda, T>& r, const Space<T>& s, int gone, int p) {
  const T* g_r = of_batch(r);
  const int warps = static_cast<int>(blockDim.x) / 32;
  bool extreme = false;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < s.n; i += 32)
#pragma unroll 4
    for (int j = threadIdx.x / 32; j < s.n - p; j += warps) {
      const int from = j < gone ? j : j + p;
      const T x = i <= from ? __ldg(g_r + i + from * r.ld) : T(0);
      extreme |= is_extreme(x);
      s.r[i * s.ld + j] = x;
    }
  return extreme;
}

/// Columns of R, and of the p rows u, scaled to a largest magnitude near 1.
template <class T>
__device__ void scale_columns(const Space<T>& s, int cols, const T* g_u, std::int64_t u_ld, int p) {
#pragma unroll 1
  for (int j = threadIdx.x; j < cols; j += blockDim.x) {
    int largest = 0;
    for (int i = 0; i < s.n; ++i) largest = max(largest, magnitude(s.r[i * s.ld + j]));
    for (int i = 0; i < p; ++i) largest = max(largest, magnitude(g_u[i + j * u_ld]));
    const int e = scale_exponent<T>(largest);
    for (int i = 0; i < s.n; ++i) s.r[i * s.ld + j] *= Bits<T>::power_of_two(-e);
    s.unscale[j] = Bits<T>::power_of_two(e);
  }
}

template <class T>
__device__ void store_r(const DeviceMatrix<Cuda, T>& r, const Space<T>& s) {
  T* g_r = of_batch(r);
  const int cols = static_cast<int>(r.cols), warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < cols; i += 32)
#pragma unroll 2
    for (int j = threadIdx.x / 32; j < cols; j += warps)
      if (i <= j) g_r[i + j * r.ld] = s.r[i * s.ld + j] * s.unscale[j];
}

/// A row of Q as it is, zeros outside of it.
template <class T>
struct RowOfQ {
  const T* g_row;
  std::int64_t ld;
  int n;
  bool there;
  __device__ T operator[](int k) const { return there && k < n ? __ldg(g_row + k * ld) : T(0); }
};

/// Thread map: a block per matrix. Dynamic shared memory: Space::elements. Change::apply<C, P>(task, space).
template <class T, int C, int P, class Change>
__global__ void __launch_bounds__(most_threads, P <= most_carried / 2 ? 3 : 2)
    batch_update_kernel(const std::int32_t* condition, BatchUpdate<Cuda, T> task) {
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char shared[];
  const Space<T> s(shared, static_cast<int>(task.q.rows), static_cast<int>(task.r.cols), P);
#pragma unroll 1
  for (int j = threadIdx.x; j < s.n; j += blockDim.x) s.unscale[j] = 1;
  Change::template apply<C, P>(task, s);
}

template <class T, int C, int P, class Change>
void run(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  const int m = static_cast<int>(task.q.rows), n = static_cast<int>(task.r.cols);
  const std::size_t bytes =
      sizeof(T) * Space<T>::elements(m, n, P, Change::completes, Change::completes && Space<T>::holds_q(m, n, P));
  const int threads = m <= 64 ? 64 : m <= 128 ? 128 : most_threads;
  const auto kernel = batch_update_kernel<T, C, P, Change>;
  allow_shared_memory(kernel, bytes, "cudaFuncSetAttribute of batch_update");
  kernel<<<static_cast<unsigned>(task.r.count), threads, bytes, launch.stream>>>(launch.condition, task);
  check_launch("batch_update kernel");
}

/// C: columns of R to a lane. P: what the chain carries along.
template <class Change, class T>
void run(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  const auto of_width = [&](auto c) {
    if (task.p <= most_carried / 2)
      run<T, c.value, most_carried / 2, Change>(launch, task);
    else
      run<T, c.value, most_carried, Change>(launch, task);
  };
  if (task.r.cols <= 32)
    of_width(std::integral_constant<int, 1>{});
  else
    of_width(std::integral_constant<int, 2>{});
}

}  // namespace changes

/// Rows that go: batch_update_rows_out.cu.
template <class T>
void launch_batch_rows_out(const Launch& launch, const BatchUpdate<Cuda, T>& task);

}  // namespace qrane::backend::cuda
