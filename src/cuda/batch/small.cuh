// SPDX-License-Identifier: Apache-2.0
// Small matrices in the registers of one warp: how a batch's matrices are laid over its lanes, and how they come from
// and go to global memory.
//
// A warp holds 32 / (L * NCL) matrices at a time. Within one, lane (part, cl) of L x NCL holds, of the columns
// cl, cl + NCL, ... (C of them, one per "slot"), every L-th chunk of 16 bytes:
//
//     rows      0-3   4-7   8-11  12-15        L = 2, float: chunk q of part p is rows 4 (q L + p) .. + 3,
//     part       0     1     0      1          register q * 4 + e
//
// so a column needs log2(L) shuffles to be summed, a pivot column is read by all lanes as a broadcast from shared
// memory, and which registers are finished is known when the code is compiled.
#pragma once

#include "cuda/collectives/panel.cuh"

namespace qrane::backend::cuda {

/// 16 bytes of a column.
template <class T>
inline constexpr int chunk_rows = 16 / static_cast<int>(sizeof(T));
template <class T>
using Chunk = Vector<T, chunk_rows<T>>;

template <class T, int R_, int L_, int NCL_, int C_>
struct SmallShape {
  using Scalar = T;
  static constexpr int R = R_, L = L_, NCL = NCL_, C = C_;
  static constexpr int rows = R * L, cols = NCL * C;  // largest matrix
  static constexpr int lanes = L * NCL, matrices = 32 / lanes;
  static constexpr int V = chunk_rows<T>, chunks = R / V;
  static_assert(R % V == 0 && lanes <= 32);
};

/// Elements between columns in shared memory: an odd multiple of L chunks (L up to 4), so that the eight lanes that are
/// served together touch all banks.
template <class Shape>
__host__ __device__ constexpr int small_ld(int rows) {
  constexpr int unit = Shape::V * (Shape::L < 8 ? Shape::L : 8);
  return ((rows + unit - 1) / unit | 1) * unit;
}

inline __device__ void copy_async_16(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(global));
}
template <int bytes>
__device__ void copy_async(void* shared, const void* global) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(global), "n"(bytes));
}
inline __device__ void wait_async() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// t / d for t < 2^16 by a multiplication: `magic` is ceil(2^32 / d); d = 1 has none.
struct FastDivide {
  unsigned divisor, magic;
  __host__ __device__ explicit FastDivide(unsigned d) : divisor(d), magic(d > 1 ? 0xffffffffu / d + 1 : 0) {}
  __device__ unsigned quotient(unsigned t) const { return divisor > 1 ? __umulhi(t, magic) : t; }
};

/// Where one matrix of a batch begins: by a stride, or by a table of addresses.
template <class T>
__device__ T* matrix_at(const DeviceMatrix<Cuda, T>& a, T* const* table, Index index) {
  return table != nullptr ? table[index] : a.data + index * a.stride;
}

/// One warp copies a rows x cols matrix to shared memory (asynchronously), or back. `whole`: 16 bytes at a time.
template <class T>
__device__ void stage_in(T* s, int s_ld, const T* g, std::int64_t ld, int rows, int cols, bool whole) {
  constexpr int V = chunk_rows<T>;
  const int lane = threadIdx.x % warp_size;
  const int step = whole ? rows / V : rows;
  const FastDivide divide(static_cast<unsigned>(step));
  for (int t = lane; t < step * cols; t += warp_size) {
    const int c = static_cast<int>(divide.quotient(static_cast<unsigned>(t))), i = t - c * step;
    if (whole)
      copy_async_16(s + c * s_ld + i * V, g + c * ld + i * V);
    else
      copy_async<sizeof(T)>(s + c * s_ld + i, g + c * ld + i);
  }
}
template <class T>
__device__ void stage_out(const T* s, int s_ld, T* g, std::int64_t ld, int rows, int cols, bool whole) {
  constexpr int V = chunk_rows<T>;
  const int lane = threadIdx.x % warp_size;
  const int step = whole ? rows / V : rows;
  const FastDivide divide(static_cast<unsigned>(step));
  for (int t = lane; t < step * cols; t += warp_size) {
    const int c = static_cast<int>(divide.quotient(static_cast<unsigned>(t))), i = t - c * step;
    if (whole)
      *reinterpret_cast<Chunk<T>*>(g + c * ld + i * V) = *reinterpret_cast<const Chunk<T>*>(s + c * s_ld + i * V);
    else
      g[c * ld + i] = s[c * s_ld + i];
  }
}

/// The columns that a lane holds of one matrix.
template <class Shape>
struct SmallTile {
  using T = typename Shape::Scalar;
  static constexpr int R = Shape::R, L = Shape::L, NCL = Shape::NCL, C = Shape::C, V = Shape::V;

  T a[C][R];
  int part = threadIdx.x % L;
  int cl = threadIdx.x / L % NCL;
  int group = threadIdx.x % warp_size / Shape::lanes;

  __device__ int column(int slot) const { return cl + NCL * slot; }
  __device__ int chunk(int q) const { return q * L + part; }
  __device__ int row(int r) const { return chunk(r / V) * V + r % V; }

  /// From shared memory; zero outside of rows x cols (`rows` may end within a chunk: the rest of it is read as zero).
  __device__ void load(const T* s, int s_ld, int rows, int cols) {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      const T* s_column = s + column(slot) * s_ld;
#pragma unroll
      for (int q = 0; q < Shape::chunks; ++q) {
        const int first = chunk(q) * V;
        Chunk<T> x{};
        if (column(slot) < cols && first < rows) x = *reinterpret_cast<const Chunk<T>*>(s_column + first);
#pragma unroll
        for (int e = 0; e < V; ++e) a[slot][q * V + e] = first + e < rows ? x.v[e] : T(0);
      }
    }
  }

  __device__ void store(T* s, int s_ld, int rows, int cols) const {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      T* s_column = s + column(slot) * s_ld;
#pragma unroll
      for (int q = 0; q < Shape::chunks; ++q) {
        Chunk<T> x;
#pragma unroll
        for (int e = 0; e < V; ++e) x.v[e] = a[slot][q * V + e];
        if (column(slot) < cols && chunk(q) * V < rows) *reinterpret_cast<Chunk<T>*>(s_column + chunk(q) * V) = x;
      }
    }
  }

  /// Sum over the parts of a column, in every part; the order is fixed.
  static __device__ T sum_parts(T x) {
#pragma unroll
    for (int width = 1; width < L; width *= 2) x += __shfl_xor_sync(full_warp, x, width);
    return x;
  }
};

constexpr int small_warps = 4;  // of a CTA

/// Whether the matrices can be moved 16 bytes at a time.
template <class T>
bool moves_whole(const DeviceMatrix<Cuda, T>& a, const void* table) {
  return table == nullptr && a.rows % chunk_rows<T> == 0 && is_aligned<chunk_rows<T>>(a);
}

/// launch(shape) with the smallest shape that holds m x n; false when there is none. Of the ways to lay a matrix over a
/// warp these were the fastest on an H200 for both scalars, or within 8% of it (100,000 of 64 x 16 in float: 0.333 ms,
/// others 0.375 to 0.442).
template <class T, class Launcher>
bool with_shape(Index m, Index n, Launcher launch) {
  if (n <= 8) {
    if (m <= 8) return launch(SmallShape<T, 8, 1, 4, 2>{});
    if (m <= 32) return launch(SmallShape<T, 16, 2, 4, 2>{});
    if (m <= 128) return launch(SmallShape<T, 32, 4, 4, 2>{});
  } else if (n <= 16) {
    if (m <= 16) return launch(SmallShape<T, 16, 1, 8, 2>{});
    if (m <= 32) return launch(SmallShape<T, 16, 2, 8, 2>{});
    if (m <= 64) return launch(SmallShape<T, 32, 2, 8, 2>{});
    if (m <= 128) return launch(SmallShape<T, 32, 4, 8, 2>{});
  } else if (n <= 32) {
    if (m <= 32) return launch(SmallShape<T, 32, 1, 16, 2>{});
    if (m <= 64) return launch(SmallShape<T, 32, 2, 16, 2>{});
  }
  return false;
}

}  // namespace qrane::backend::cuda
