// SPDX-License-Identifier: Apache-2.0
// Householder QR of [R; X] by one warp, R a triangle that it carries from one chunk of rows to the next.
//
// Lane i holds row i of the head (R, or the first NB rows of a chain) and rows i, i + 32, ... of the chunk X, K of
// them. A column step is one butterfly over the lanes and no barrier of the block. With x the column's part below the
// pivot (head rows j+1 .. and all of X), alpha = the head's (j, j):
//     s_c = sum x_i a_ic,  beta = -sign(alpha) sqrt(alpha^2 + s_j),  tau = (beta - alpha) / beta,
//     v = [1; x / (alpha - beta)],  a_c -= tau (a_jc + s_c / (alpha - beta)) v
//
// Registers rotate as in panel.cuh: the pivot column is always in position 0, and a finished column goes to the end of
// the window, which shrinks by `shrink` finished columns at a time:
//
//     positions   0          NB-1           at the end column c is in position
//     before      0 1 2 3 ... 15               NB - shrink (c / shrink + 1) + c % shrink
//     4 columns   4 5 6 ... | 0 1 2 3
//     8 columns   8 9 ... | 4 5 6 7 | 0 1 2 3
//
// Columns are scaled by exact powers of two to magnitudes of at most 2^16; a chunk that exceeds them raises the scale
// (and lowers R by it), so any input is taken, and what has magnitude 1 in the chain loses no square to underflow.
//
// Cost per chunk: 2 (32 K) NB^2 flops and NB steps of about 60 instructions besides. Sums are formed in a fixed order.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/panel.cuh"

namespace qrane::backend::cuda {

/// Adds up s[0 .. N) over the lanes, halving the positions at every stage: this lane's total is that of position
/// `lane_sum_position<N>(lane)`, where that is less than N. Every position is one lane's.
template <int N, int Bit = 1, class T>
__device__ T lane_sums(const T (&s)[N]) {
  const int lane = threadIdx.x % warp_size;
  if constexpr (N == 1) {
    T total = s[0];
#pragma unroll
    for (int bit = Bit; bit < warp_size; bit *= 2) total += __shfl_xor_sync(full_warp, total, bit);
    return total;
  } else {
    constexpr int half = (N + 1) / 2;
    const bool upper = lane & Bit;
    T t[half];
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const T high = i + half < N ? s[i + half] : T(0);
      const T other = __shfl_xor_sync(full_warp, upper ? s[i] : high, Bit);
      t[i] = (upper ? high : s[i]) + other;
    }
    return lane_sums<half, 2 * Bit>(t);
  }
}

template <int N, int Bit = 1>
__device__ int lane_sum_position(int lane) {
  if constexpr (N == 1) {
    return lane < Bit ? 0 : warp_size;  // the lanes above hold the same total
  } else {
    constexpr int half = (N + 1) / 2;
    const bool upper = lane & Bit;  // which has one position less where N is odd
    const int position = lane_sum_position<half, 2 * Bit>(lane);
    return position < (upper ? N - half : half) ? position + (upper ? half : 0) : warp_size;
  }
}

/// One warp's shared memory.
template <class T, int NB, bool keep>
struct ChainShared {
  alignas(16) T sum[2][NB];    // two steps in flight
  alignas(16) T pivot[2][NB];  // the pivot row
  alignas(16) T scale[NB];     // 2^-exponent
  int exponent[NB];
  T gram[keep ? NB : 1][NB];  // gram[j][i] = v_i^T v_j for i < j
  T tau[keep ? NB : 1];
};

/// `keep`: V stays in the registers of the finished columns, its Gram matrix and tau in shared memory.
template <class T, int NB, int K, bool keep>
struct Chain {
  static constexpr int shrink = NB <= 8 ? 1 : NB <= 16 ? 4 : 8;
  static constexpr int chunk_rows = K * warp_size;
  using Shared = ChainShared<T, NB, keep>;

  T head[NB];
  T x[K][NB];
  Shared& shared;
  T* s_stage;  // chunk_rows * NB elements for the next chunk; may be null without fetch
  int lane = threadIdx.x % warp_size;

  __device__ Chain(Shared& s, T* stage) : shared(s), s_stage(stage) {
    if (lane < NB) {
      shared.exponent[lane] = 1 - Bits<T>::bias;
      shared.scale[lane] = Bits<T>::power_of_two(Bits<T>::bias - 1);
    }
    __syncwarp();
  }

  static __device__ constexpr int finished_column(int position) {
    return NB - shrink - position / shrink * shrink + position % shrink;
  }
  /// Where column c is once all are finished (the same map: it is its own inverse).
  static __device__ constexpr int finished_position(int column) { return finished_column(column); }

  /// Rows 0 .. of `g` into the head, as many as there are.
  __device__ void load_head(const T* g, std::int64_t ld, int cols, std::int64_t rows) {
#pragma unroll
    for (int c = 0; c < NB; ++c) head[c] = c < cols && lane < NB && lane < rows ? g[lane + c * ld] : T(0);
  }

  /// Rows 0 .. 32 K - 1 of `g` into X, as many as there are.
  __device__ void load(const T* g, std::int64_t ld, int cols, std::int64_t rows) {
    const int here = static_cast<int>(max(std::int64_t{0}, min(rows, std::int64_t{chunk_rows}))) - lane;
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      const T* g_column = g + lane + c * ld;
#pragma unroll
      for (int k = 0; k < K; ++k) x[k][c] = c < cols && k * warp_size < here ? g_column[k * warp_size] : T(0);
    }
  }

  /// Sends for rows 0 .. 32 K - 1 of `g`, as many as there are. Every lane fetches what it will hold itself.
  __device__ void fetch(const T* g, std::int64_t ld, int cols, std::int64_t rows) {
    __syncwarp();
    if (rows >= chunk_rows) {
#pragma unroll 1
      for (int c = 0; c < cols; ++c) {
        const T* g_column = g + lane + c * ld;
#pragma unroll
        for (int k = 0; k < K; ++k) {
          __pipeline_memcpy_async(s_stage + (c * K + k) * warp_size + lane, g_column + k * warp_size, sizeof(T));
        }
      }
    } else if (rows > 0) {
#pragma unroll 1
      for (int c = 0; c < cols; ++c) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
          const std::int64_t row = min(static_cast<std::int64_t>(lane + k * warp_size), rows - 1);
          __pipeline_memcpy_async(s_stage + (c * K + k) * warp_size + lane, g + row + c * ld, sizeof(T));
        }
      }
    }
    __pipeline_commit();
  }

  /// What fetch was sent for into X.
  __device__ void take(int cols, std::int64_t rows) {
    __pipeline_wait_prior(0);
    const int here = static_cast<int>(max(std::int64_t{0}, min(rows, std::int64_t{chunk_rows}))) - lane;
#pragma unroll
    for (int c = 0; c < NB; ++c) {
#pragma unroll
      for (int k = 0; k < K; ++k) {
        x[k][c] = c < cols && k * warp_size < here ? s_stage[(c * K + k) * warp_size + lane] : T(0);
      }
    }
  }

  /// Rows 0 .. of shared memory into X.
  __device__ void load_shared(const T* s_from, int ld, int rows) {
#pragma unroll
    for (int c = 0; c < NB; ++c) {
#pragma unroll
      for (int k = 0; k < K; ++k) x[k][c] = lane + k * warp_size < rows ? s_from[c * ld + lane + k * warp_size] : T(0);
    }
  }

  /// Brings X, and a head that is not `scaled` yet, to the chain's scale, which is raised where X exceeds it.
  __device__ void scale(bool head_scaled) {
    constexpr T most_allowed = T(65536);
    T most = T(0);
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      T column = head_scaled ? T(0) : abs(head[c]);
#pragma unroll
      for (int k = 0; k < K; ++k) column = fmax(column, static_cast<T>(abs(x[k][c])));
      most = fmax(most, column * shared.scale[c]);
    }
    if (__any_sync(full_warp, !(most <= most_allowed))) raise(head_scaled);
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      const T by = shared.scale[c];
      if (!head_scaled) head[c] *= by;
#pragma unroll
      for (int k = 0; k < K; ++k) x[k][c] *= by;
    }
  }

  __device__ void raise(bool head_scaled) {
    __syncwarp();  // all have read the scale of before
    int mine = 0;
#pragma unroll 1
    for (int c = 0; c < NB; ++c) {
      T most = T(0);
#pragma unroll
      for (int i = 0; i < NB; ++i) {
        if (i != c) continue;
        if (!head_scaled) most = abs(head[i]);
#pragma unroll
        for (int k = 0; k < K; ++k) most = fmax(most, static_cast<T>(abs(x[k][i])));
      }
      const int largest = __reduce_max_sync(full_warp, magnitude(most));
      if (lane == c) mine = largest;
    }
    int lowered = 0;
    if (lane < NB) {
      const int before = shared.exponent[lane], now = max(before, scale_exponent<T>(mine));
      lowered = min(now - before, Bits<T>::bias - 1);  // more than that takes any R below what counts
      shared.exponent[lane] = now;
      shared.scale[lane] = Bits<T>::power_of_two(-now);
    }
    if (head_scaled) {
#pragma unroll
      for (int c = 0; c < NB; ++c) head[c] *= Bits<T>::power_of_two(-__shfl_sync(full_warp, lowered, c));
    }
    __syncwarp();
  }

  template <int Window>
  __device__ void step(int j) {
    constexpr int sums = keep ? NB : Window;
    constexpr int lanes = 16 / sizeof(T);
    const int buffer = j & 1;
    const bool below = lane > j, at = lane == j;
    {
      T s[sums];
      const T first = below ? head[0] : T(0);
#pragma unroll
      for (int c = 0; c < sums; ++c) {
        s[c] = first * head[c];
#pragma unroll
        for (int k = 0; k < K; ++k) s[c] = fma(x[k][0], x[k][c], s[c]);
      }
      const T total = lane_sums(s);
      const int position = lane_sum_position<sums>(lane);
      if (position < sums) shared.sum[buffer][position] = total;
      if (at) {
#pragma unroll
        for (int c = 0; c < sums; ++c) shared.pivot[buffer][c] = head[c];
      }
    }
    __syncwarp();

    const T alpha = shared.pivot[buffer][0], tail = shared.sum[buffer][0];
    const T squares = fma(alpha, alpha, tail);
    const T root = reciprocal_root(squares);
    const T norm = squares * root;
    // written so that NaN makes a reflector of NaN rather than none
    const bool reflects = !(tail == T(0)) && !(squares < negligible<T>);
    T beta = alpha, tau = T(0), inverse = T(0);
    if (reflects) {
      beta = -copysign(norm, alpha);
      tau = fma(abs(alpha), root, T(1));
      inverse = copysign(reciprocal(abs(alpha) + norm), alpha);
    }
    if constexpr (keep) {
      constexpr int start = NB - Window;
      if (lane < NB) {
        const int column = lane >= Window ? finished_column(lane) : start + lane - (NB - j);
        if (lane >= NB - j) shared.gram[j][column] = fma(shared.sum[buffer][lane], inverse, shared.pivot[buffer][lane]);
      }
      if (lane == 0) shared.tau[j] = tau;
    }

    const T head_v = at ? T(1) : (below ? head[0] * inverse : T(0));
    const T head_finished = at ? beta : (below ? (keep ? head_v : T(0)) : head[0]);
    T v[K];
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = x[k][0] * inverse;
    Vector<T, lanes> sum, pivot;
#pragma unroll
    for (int c = 0; c < Window; ++c) {
      if (c % lanes == 0) {
        sum = *reinterpret_cast<const Vector<T, lanes>*>(&shared.sum[buffer][c]);
        pivot = *reinterpret_cast<const Vector<T, lanes>*>(&shared.pivot[buffer][c]);
      }
      if (c == 0) continue;
      T f = -tau * fma(sum.v[c % lanes], inverse, pivot.v[c % lanes]);
      if (shrink > 1 && !(c < NB - j)) f = T(0);
      head[c - 1] = fma(f, head_v, head[c]);
#pragma unroll
      for (int k = 0; k < K; ++k) x[k][c - 1] = fma(f, v[k], x[k][c]);
    }
    head[Window - 1] = head_finished;
#pragma unroll
    for (int k = 0; k < K; ++k) x[k][Window - 1] = keep ? v[k] : T(0);
  }

  template <int Window = NB>
  __device__ void factor() {
    constexpr int first = NB - Window;
    if constexpr (shrink == 1) {
      step<Window>(first);
    } else {
#pragma unroll 1
      for (int j = first; j < first + shrink; ++j) step<Window>(j);
    }
    if constexpr (Window > shrink) factor<Window - shrink>();
  }

  /// After factor without `keep`: the head's columns back in their order, a triangle.
  __device__ void order_head() {
    T ordered[NB];
#pragma unroll
    for (int c = 0; c < NB; ++c) ordered[c] = head[finished_position(c)];
#pragma unroll
    for (int c = 0; c < NB; ++c) head[c] = ordered[c];
  }

  /// R(lane, c) of an ordered head, at the matrix's own scale.
  __device__ T r(int c) const { return lane <= c ? head[c] * Bits<T>::power_of_two(shared.exponent[c]) : T(0); }
};

}  // namespace qrane::backend::cuda
