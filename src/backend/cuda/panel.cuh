// SPDX-License-Identifier: Apache-2.0
// Householder QR of one panel by one CTA, the panel in registers.
//
// Thread t holds whole rows t, t + Threads, ... of the panel (Rows of them, NB values each). A column step costs one
// block reduction and one barrier. With x the tail of the pivot column (below pivot row p), alpha = a_pj, all
//     s_c = sum_{i > p} x_i a_ic            c = 0 .. NB-1
// are reduced at once; s_j = ||x||^2 gives, as LAPACK's larfg does,
//     beta = -sign(alpha) sqrt(alpha^2 + s_j),  tau = (beta - alpha) / beta,  v = [1; x / (alpha - beta)]
// and v^T a_c = a_pc + s_c / (alpha - beta). For columns right of j that is the update's coefficient; for columns left
// of j, which hold earlier reflectors, it is the Gram entry v_c^T v_j from which T is built at the end.
//
// The registers rotate: at every step the pivot column is in position 0, and the update writes column c to position
// c - 1, the finished column to position NB - 1. So the step is one loop body with static register indexes.
//
// Columns are scaled to a largest magnitude near 1 by exact powers of two, so sums of squares neither overflow nor
// lose what matters. A column whose remainder is below `negligible` (squared) in that scale gets no reflector: its
// tail is dropped, which is far below a rounding error of the column.
//
// Cost: rows * NB * cols * 4 flops. Sums are formed in a fixed order.
#pragma once

#include "backend/cuda/tile.cuh"

namespace qrane::backend::cuda {

template <class T>
inline constexpr T negligible = sizeof(T) == 4 ? T(1e-30) : T(1e-280);

template <class T, int NB, int Warps>
struct PanelShared {
  alignas(16) T partial[2][Warps][NB];  // per warp: its part of every column's sum; two steps in flight
  alignas(16) T pivot_row[2][NB];
  alignas(16) T factor[Warps][NB];      // update coefficients, one copy per warp
  alignas(16) T gram[NB][NB];           // gram[j][i] = v_i^T v_j for i < j, else 0
  alignas(16) T tau[NB];
  int exponent[NB];                     // column c was scaled by 2^-exponent[c]
};

/// Combines values of lanes and leaves in every lane the total of position lane % NB: a butterfly that halves the
/// number of positions at each stage (NB - 1 shuffles, and one more for each doubling from NB to 32 lanes).
/// `value(c)` is this lane's value for position c; `combine` is associative up to rounding.
template <class T, int NB, class Value, class Combine>
__device__ T butterfly(Value value, Combine combine) {
  constexpr int groups = NB / 8;
  const int lane = threadIdx.x % warp_size;
  T u[groups];
#pragma unroll
  for (int g = 0; g < groups; ++g) {  // eight positions at a time keeps the live registers few
    T s[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) s[c] = value(8 * g + c);
#pragma unroll
    for (int width = 4; width >= 1; width /= 2) {
      const bool upper = lane & width;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const T other = __shfl_xor_sync(full_warp, upper ? s[i] : s[i + width], width);
        s[i] = combine(upper ? s[i + width] : s[i], other);
      }
    }
    u[g] = s[0];
  }
#pragma unroll
  for (int width = groups / 2; width >= 1; width /= 2) {
    const bool upper = lane & (8 * width);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const T other = __shfl_xor_sync(full_warp, upper ? u[i] : u[i + width], 8 * width);
      u[i] = combine(upper ? u[i + width] : u[i], other);
    }
  }
#pragma unroll
  for (int width = NB; width < warp_size; width *= 2) {
    u[0] = combine(u[0], __shfl_xor_sync(full_warp, u[0], width));
  }
  return u[0];
}

/// The rows of a panel that one thread holds, and the steps of its factorization; all threads of the CTA call each
/// member function together.
template <class T, int NB, int Rows, int Threads>
struct PanelTile {
  static constexpr int warps = Threads / warp_size;
  using Shared = PanelShared<T, NB, warps>;

  T a[Rows][NB];
  Shared& shared;
  int lane = threadIdx.x % warp_size;
  int warp = threadIdx.x / warp_size;

  __device__ explicit PanelTile(Shared& s) : shared(s) {}

  static __device__ int row(int k) { return static_cast<int>(threadIdx.x) + k * Threads; }

  /// Scales every column to a largest magnitude near 1.
  __device__ void scale_columns() {
    const T mine = butterfly<T, NB>(
        [&](int c) {
          T most = abs(a[0][c]);
#pragma unroll
          for (int k = 1; k < Rows; ++k) most = larger(most, static_cast<T>(abs(a[k][c])));
          return most == most ? most : T(0);
        },
        [](T x, T y) { return larger(x, y); });
    if (lane < NB) shared.partial[0][warp][lane] = mine;
    __syncthreads();
    if (threadIdx.x < NB) {
      T most = shared.partial[0][0][threadIdx.x];
#pragma unroll
      for (int w = 1; w < warps; ++w) most = larger(most, shared.partial[0][w][threadIdx.x]);
      shared.exponent[threadIdx.x] = scale_exponent(most);
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      const T scale = Bits<T>::power_of_two(-shared.exponent[c]);
#pragma unroll
      for (int k = 0; k < Rows; ++k) a[k][c] *= scale;
    }
  }

  /// What one column step decided; equal in all threads.
  struct Step {
    bool reflects;  // a reflector was made
    bool dropped;   // the column was dropped: the next one takes its pivot row
  };

  /// Step j of the factorization with pivot row p; `usable` when p is a row of the block. `drop_tolerance` < 0: never.
  __device__ Step step(int j, int p, bool usable, double drop_tolerance) {
    const int buffer = j & 1;
    const T sum = butterfly<T, NB>(
        [&](int c) {
          T s = row(0) > p ? a[0][0] * a[0][c] : T(0);
#pragma unroll
          for (int k = 1; k < Rows; ++k) s = fma(row(k) > p ? a[k][0] : T(0), a[k][c], s);
          return s;
        },
        [](T x, T y) { return x + y; });
    if (lane < NB) shared.partial[buffer][warp][lane] = sum;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      if (row(k) == p) {
#pragma unroll
        for (int c = 0; c < NB; ++c) shared.pivot_row[buffer][c] = a[k][c];
      }
    }
    __syncthreads();

    const int position = lane % NB;
    T tail = shared.partial[buffer][0][position];
#pragma unroll
    for (int w = 1; w < warps; ++w) tail += shared.partial[buffer][w][position];
    const T pivot = shared.pivot_row[buffer][position];
    const T alpha = __shfl_sync(full_warp, pivot, 0);
    const T tail_squares = __shfl_sync(full_warp, tail, 0);
    const T squares = fma(alpha, alpha, tail_squares);
    const T norm = sqrt(squares);
    const int exponent = shared.exponent[j];
    const T unscale = Bits<T>::power_of_two(exponent);

    // Comparisons are written so that NaN makes a reflector of NaN rather than none.
    const bool dropped = usable && drop_tolerance >= 0 &&
                         static_cast<double>(norm) * static_cast<double>(unscale) <= drop_tolerance;
    const bool reflects = usable && !dropped && !(tail_squares == T(0)) && !(squares < negligible<T>);
    T beta = dropped ? T(0) : alpha, tau = T(0), inverse = T(0), product = T(0);
    if (reflects) {
      beta = -copysign(norm, alpha);
      tau = (beta - alpha) / beta;
      inverse = T(1) / (alpha - beta);
      product = fma(tail, inverse, pivot);
    }
    const bool to_update = position > 0 && position < NB - j;
    if (lane < NB) shared.factor[warp][lane] = reflects && to_update ? -tau * product : T(0);
    if (warp == 0 && lane < NB) {
      const int column = (position + j) % NB;
      shared.gram[j][column] = reflects && column < j ? product : T(0);
      if (lane == 0) shared.tau[j] = tau;
    }
    __syncwarp();
    rotate(p, beta, inverse, unscale);
    return {reflects, dropped};
  }

  /// Applies the reflector to the columns at its right and moves every column one position on.
  __device__ void rotate(int p, T beta, T inverse, T unscale) {
    T v[Rows], finished[Rows];
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const bool below = row(k) > p, at = row(k) == p;
      v[k] = below ? a[k][0] * inverse : (at ? T(1) : T(0));
      finished[k] = below ? v[k] : (at ? beta : a[k][0]) * unscale;
    }
#pragma unroll
    for (int c = 1; c < NB; ++c) {
      const T f = shared.factor[warp][c];
#pragma unroll
      for (int k = 0; k < Rows; ++k) a[k][c - 1] = fma(f, v[k], a[k][c]);
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) a[k][NB - 1] = finished[k];
  }
};

/// T of the compact WY form from the Gram matrix U = striu(V^T V) and tau, by one warp: T = (I + diag(tau) U)^-1
/// diag(tau), lane l solving for column l; zero tau makes zero rows and columns. Writes the cols x cols square.
template <class T, int NB, int Warps>
__device__ void build_t(const PanelShared<T, NB, Warps>& shared, T* t, int ld, int cols) {
  const int column = threadIdx.x % warp_size;
  T sums[NB];
#pragma unroll
  for (int i = 0; i < NB; ++i) sums[i] = T(0);
#pragma unroll
  for (int k = NB - 1; k >= 0; --k) {
    if (k < cols) {
      const T tau = shared.tau[k];
      const T value = k == column ? tau : (k < column ? -tau * sums[k] : T(0));
      if (column < cols) t[k + static_cast<std::int64_t>(column) * ld] = value;
#pragma unroll
      for (int i = 0; i < k; ++i) sums[i] = fma(shared.gram[k][i], value, sums[i]);
    }
  }
}

}  // namespace qrane::backend::cuda
