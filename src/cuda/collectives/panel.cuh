// SPDX-License-Identifier: Apache-2.0
// Householder QR of one panel by one CTA, the panel in registers.
//
// Thread t holds whole rows t, t + Threads, ... of the panel (Rows of them, NB values each). A column step costs one
// block reduction and one barrier. With x the tail of the pivot column (below pivot row p), alpha = a_pj, all
//     s_c = sum_{i > p} x_i a_ic            c = j .. NB-1
// are reduced at once; s_j = ||x||^2 gives, as LAPACK's larfg does,
//     beta = -sign(alpha) sqrt(alpha^2 + s_j),  tau = (beta - alpha) / beta,  v = [1; x / (alpha - beta)]
// and v^T a_c = a_pc + s_c / (alpha - beta) is the update's coefficient for the columns at the right.
//
// The registers rotate: at every step the pivot column is in position 0, the update writes column c to position c - 1,
// and the finished column goes to the window's last position, so a step is one loop body with static register indexes.
// The window is NB wide for the first eight columns and shrinks by eight finished columns at a time:
//
//     positions   0                 NB-1            at the end column c is in position
//     before      0 1 2 3 ... ... 30 31                 NB - 8 (c / 8 + 1) + c % 8
//     8 columns   8 9 10 ... | 0 1 ... 7
//     16 columns  16 17 .. | 8 .. 15 | 0 .. 7
//
// Columns are scaled to a largest magnitude near 1 by exact powers of two, so sums of squares neither overflow nor
// lose what matters. A column whose remainder is below `negligible` (squared) in that scale gets no reflector: its
// tail is dropped, which is far below a rounding error of the column.
//
// Cost: about 2.5 rows NB^2 flops, and rows NB^2 on the tensor cores for T. Sums are formed in a fixed order.
#pragma once

#include "cuda/collectives/tile.cuh"
#include "cuda/collectives/tile_mma.cuh"

namespace qrane::backend::cuda {

template <class T>
inline constexpr T negligible = sizeof(T) == 4 ? T(1e-30) : T(1e-280);

/// Columns in registers, of which `lanes` adjacent lanes hold parts, each scaled to a largest magnitude near 1 by
/// 2^-exponent.
template <int lanes, class T, int C, int R>
__device__ __forceinline__ void scale_columns(T (&a)[C][R], int (&exponent)[C]) {
#pragma unroll
  for (int slot = 0; slot < C; ++slot) {
    int most = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) most = max(most, magnitude(a[slot][r]));
#pragma unroll
    for (int width = 1; width < lanes; width *= 2) most = max(most, __shfl_xor_sync(full_warp, most, width));
    exponent[slot] = scale_exponent<T>(most);
    const T scale = Bits<T>::power_of_two(-exponent[slot]);
#pragma unroll
    for (int r = 0; r < R; ++r) a[slot][r] *= scale;
  }
}

/// Static shared memory: at most 13 KiB.
template <class T, int NB, int Warps>
struct PanelShared {
  alignas(16) T partial[2][Warps][NB];  // per warp: its part of every position's sum; two steps in flight
  alignas(16) T pivot_row[2][NB];
  alignas(16) T factor[Warps][NB];  // update coefficients, one copy per warp
  alignas(16) T gram[NB][NB];       // gram[j][i] = v_i^T v_j for i < j
  T tau[NB];
  int pivot[NB];           // local row of reflector j's 1; past the last row where there is none
  int largest[Warps][NB];  // per warp: largest magnitudes of its rows
  int exponent[NB];        // column c was scaled by 2^-exponent[c]
};

/// Combines values of lanes and leaves in every lane the total of position lane % butterfly_span<N>: a butterfly that
/// halves the number of positions at each stage. `value(c)` is this lane's value for position c < N, N = 8, 16, 24, 32.
template <int N>
inline constexpr int butterfly_span = N > 16 ? 32 : N;

template <class T, int N, class Value, class Combine>
__device__ T butterfly(Value value, Combine combine) {
  constexpr int groups = butterfly_span<N> / 8;
  const int lane = threadIdx.x % warp_size;
  T u[groups];
#pragma unroll
  for (int g = 0; g < groups; ++g) {  // eight positions at a time keeps the live registers few
    u[g] = T(0);
    if (8 * g >= N) continue;
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
  for (int width = butterfly_span<N>; width < warp_size; width *= 2) {
    u[0] = combine(u[0], __shfl_xor_sync(full_warp, u[0], width));
  }
  return u[0];
}

/// 1 / sqrt(x) and 1 / x to about an ulp, without the branches for x that a scaled column cannot give.
inline __device__ double reciprocal_root(double x) { return rsqrt(x); }
inline __device__ float reciprocal_root(float x) {
  const float r = rsqrtf(x);
  return fmaf(0.5f * r, fmaf(-x * r, r, 1.0f), r);
}
inline __device__ double reciprocal(double x) { return 1.0 / x; }
inline __device__ float reciprocal(float x) {
  const float r = __fdividef(1.0f, x);
  return fmaf(r, fmaf(-x, r, 1.0f), r);
}

/// The rows of a panel that one thread holds, and the steps of its factorization; all threads of the CTA call each
/// member function together.
template <class T, int NB, int Rows, int Threads>
struct PanelTile {
  static constexpr int warps = Threads / warp_size;
  static constexpr int rows = Rows * Threads;
  using Shared = PanelShared<T, NB, warps>;

  T a[Rows][NB];
  Shared& shared;
  int lane = threadIdx.x % warp_size;
  int warp = threadIdx.x / warp_size;

  __device__ explicit PanelTile(Shared& s) : shared(s) {}

  static __device__ int row(int k) { return static_cast<int>(threadIdx.x) + k * Threads; }

  /// The column in `position` once all columns are finished.
  static __device__ constexpr int finished_column(int position) { return NB - 8 - position / 8 * 8 + position % 8; }

  /// Scales every column to a largest magnitude near 1.
  __device__ void scale_columns() {
    const int mine = butterfly<int, NB>(
        [&](int c) {
          T most = abs(a[0][c]);
#pragma unroll
          for (int k = 1; k < Rows; ++k) most = fmax(most, static_cast<T>(abs(a[k][c])));
          return magnitude(most);
        },
        [](int x, int y) { return max(x, y); });
    if (lane < NB) shared.largest[warp][lane] = mine;
    __syncthreads();
    if (threadIdx.x < NB) {
      int most = shared.largest[0][threadIdx.x];
#pragma unroll
      for (int w = 1; w < warps; ++w) most = max(most, shared.largest[w][threadIdx.x]);
      shared.exponent[threadIdx.x] = scale_exponent<T>(most);
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < NB; ++c) {
      const T scale = Bits<T>::power_of_two(-shared.exponent[c]);
#pragma unroll
      for (int k = 0; k < Rows; ++k) a[k][c] *= scale;
    }
  }

  /// Step j, its columns in positions 0 .. Window - 1, with pivot row p; `usable` when p is a row of the block.
  template <int Window>
  __device__ void step(int j, int p, bool usable) {
    const int buffer = j & 1;
    const T sum = butterfly<T, Window>(
        [&](int c) {
          T s = T(0);
#pragma unroll
          for (int k = 0; k < Rows; ++k) s = fma(row(k) > p ? a[k][0] : T(0), a[k][c], s);
          return s;
        },
        [](T x, T y) { return x + y; });
    if (lane < Window) shared.partial[buffer][warp][lane] = sum;
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      if (row(k) == p) {
#pragma unroll
        for (int c = 0; c < Window; ++c) shared.pivot_row[buffer][c] = a[k][c];
      }
    }
    __syncthreads();

    const int position = lane % butterfly_span<Window>;
    const T alpha = shared.pivot_row[buffer][0], pivot = shared.pivot_row[buffer][position];
    T tail = shared.partial[buffer][0][position];
#pragma unroll
    for (int w = 1; w < warps; ++w) tail += shared.partial[buffer][w][position];
    const T tail_squares = __shfl_sync(full_warp, tail, 0);
    const T squares = fma(alpha, alpha, tail_squares);
    const T root = reciprocal_root(squares);
    const T norm = squares * root;
    const T unscale = Bits<T>::power_of_two(shared.exponent[j]);

    // Comparisons are written so that NaN makes a reflector of NaN rather than none.
    const bool reflects = usable && !(tail_squares == T(0)) && !(squares < negligible<T>);
    T beta = alpha, tau = T(0), inverse = T(0), factor = T(0);
    if (reflects) {
      beta = -copysign(norm, alpha);
      tau = fma(abs(alpha), root, T(1));  // (beta - alpha) / beta
      inverse = copysign(reciprocal(abs(alpha) + norm), alpha);
      if (position > 0 && position < NB - j) factor = -tau * fma(tail, inverse, pivot);
    }
    if (lane < Window) shared.factor[warp][lane] = factor;
    if (threadIdx.x == 0) {
      shared.tau[j] = tau;
      shared.pivot[j] = reflects ? p : rows;
    }
    __syncwarp();
    rotate<Window>(p, beta, inverse, unscale);
  }

  /// Applies the reflector to the columns at its right and moves every column of the window one position on.
  template <int Window>
  __device__ void rotate(int p, T beta, T inverse, T unscale) {
    T v[Rows], finished[Rows];
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const bool below = row(k) > p, at = row(k) == p;
      v[k] = below ? a[k][0] * inverse : (at ? T(1) : T(0));
      finished[k] = below ? v[k] : (at ? beta : a[k][0]) * unscale;
    }
#pragma unroll
    for (int c = 1; c < Window; ++c) {
      const T f = shared.factor[warp][c];
#pragma unroll
      for (int k = 0; k < Rows; ++k) a[k][c - 1] = fma(f, v[k], a[k][c]);
    }
#pragma unroll
    for (int k = 0; k < Rows; ++k) a[k][Window - 1] = finished[k];
  }

  /// Moves every column of the window one position on.
  template <int Window>
  __device__ void turn() {
#pragma unroll
    for (int k = 0; k < Rows; ++k) {
      const T first = a[k][0];
#pragma unroll
      for (int c = 1; c < Window; ++c) a[k][c - 1] = a[k][c];
      a[k][Window - 1] = first;
    }
  }

  /// All steps of a panel of `cols` columns in a block of `block_rows` rows.
  template <int Window = NB>
  __device__ void factor(int cols, int block_rows, int p = 0) {
    constexpr int first = NB - Window;
#pragma unroll 1
    for (int j = first; j < first + 8; ++j) {
      if (j >= cols) {
        turn<Window>();
        continue;
      }
      const bool usable = p < block_rows;
      step<Window>(j, p, usable);
      p += usable;
    }
    if constexpr (Window > 8) {
      if (first + 8 < cols) factor<Window - 8>(cols, block_rows, p);
    }
  }

  /// U = striu(V^T V) into shared.gram by tensor cores, the finished columns going through shared memory. The warps'
  /// parts, each over its own range of rows, are added in their order. `s_v` has NB * (rows + slack) elements.
  __device__ void gram(int cols, T* s_v) {
    constexpr int parts = NB / 8, pairs = (parts + 1) / 2;
    const VTile<T> v{s_v, rows + VTile<T>::slack};
    __syncthreads();  // shared.pivot
#pragma unroll
    for (int position = 0; position < NB; ++position) {
      const int c = finished_column(position);
      const int pivot = c < cols ? shared.pivot[c] : rows;
      T* s_column = v.column(c);
#pragma unroll
      for (int k = 0; k < Rows; ++k) s_column[row(k)] = row(k) > pivot ? a[k][position] : T(row(k) == pivot ? 1 : 0);
    }
    __syncthreads();

    T sums[pairs][parts][4] = {};
    for (int r = warp * (rows / warps); r < (warp + 1) * (rows / warps); r += 8) {
      T b[2 * pairs][2] = {};
#pragma unroll
      for (int n = 0; n < parts; ++n) load_pair(b[n], v.column(8 * n + lane / 4) + r + 2 * (lane % 4));
#pragma unroll
      for (int m = 0; m < pairs; ++m) {
        const T d[4] = {b[2 * m][0], b[2 * m][1], b[2 * m + 1][0], b[2 * m + 1][1]};
        const auto left = TileMma<T>::prepare(d);
#pragma unroll
        for (int n = 2 * m; n < parts; ++n) TileMma<T>::multiply(sums[m][n], left, b[n]);
      }
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < pairs; ++m) {
#pragma unroll
      for (int n = 2 * m; n < parts; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int i = 16 * m + lane / 4 + e / 2 * 8, j = 8 * n + lane % 4 * 2 + e % 2;
          if (i < NB) s_v[(warp * NB + j) * NB + i] = sums[m][n][e];
        }
      }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < NB * NB; e += Threads) {
      const int i = e % NB, j = e / NB;
      if (i >= j) continue;
      T sum = s_v[e];
      for (int w = 1; w < warps; ++w) sum += s_v[w * NB * NB + e];
      shared.gram[j][i] = sum;
    }
    __syncthreads();
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
