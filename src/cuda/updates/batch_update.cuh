// SPDX-License-Identifier: Apache-2.0
// The chains over R of batch_update.cu, by one warp: columns across its lanes, C a lane, R by rows in shared memory.
// Every lane finds the small transform of a step for itself; one leaves it in shared memory for Q.
#pragma once

#include "cuda/updates/rotation.cuh"

namespace qrane::backend::cuda {

/// I - tau [1; w] [1; w]^T, which takes [alpha; x] to [beta; 0].
template <class T, int P>
struct SmallReflector {
  T tau, beta, w[P];

  __device__ SmallReflector(T alpha, const T (&x)[P]) {
    constexpr T negligible = sizeof(T) == 4 ? T(1e-30) : T(1e-280);
    T sum = 0;
#pragma unroll
    for (int l = 0; l < P; ++l) sum = fma(x[l], x[l], sum);
    const bool reflects = !(sum <= negligible);  // NaN makes a reflector of NaN
    const T squares = fma(alpha, alpha, sum), root = rounded_inverse_root(squares), norm = squares * root;
    const T inverse = copysign(T(1) / (fabs(alpha) + norm), alpha);
    tau = reflects ? fma(fabs(alpha), root, T(1)) : T(0);
    beta = reflects ? -copysign(norm, alpha) : alpha;
#pragma unroll
    for (int l = 0; l < P; ++l) w[l] = reflects ? x[l] * inverse : T(0);
  }

  __device__ void store(T* s) const {
    s[0] = tau;
#pragma unroll
    for (int l = 0; l < P; ++l) s[1 + l] = w[l];
  }
};

/// This lane's numbers of a row of `cols`: columns lane, lane + 32, ...; zeros where it is not `there`.
template <class T, int C>
__device__ void read_row(T (&x)[C], const T* s_row, int cols, bool there = true) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    const int j = threadIdx.x % 32 + 32 * c;
    x[c] = there && j < cols ? s_row[j] : T(0);
  }
}

template <class T, int C>
__device__ void write_row(const T (&x)[C], T* s_row, int cols) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    const int j = threadIdx.x % 32 + 32 * c;
    if (j < cols) s_row[j] = x[c];
  }
}

/// One column of [y; u] by a reflector.
template <class T, int P>
__device__ void reflect(const SmallReflector<T, P>& h, T& y, T (&u)[P]) {
  T sum = y;
#pragma unroll
  for (int l = 0; l < P; ++l) sum = fma(h.w[l], u[l], sum);
  sum *= h.tau;
  y -= sum;
#pragma unroll
  for (int l = 0; l < P; ++l) u[l] = fma(-sum, h.w[l], u[l]);
}

/// Rows u come in: a reflector for every row of R.
template <class T, int C, int P>
__device__ void rows_in_chain(T* s_r, int ld, int n, T (&u)[C][P], T* s_turns) {
  const int lane = threadIdx.x % 32;
  T r[C];
  read_row(r, s_r, n);
#pragma unroll
  for (int slot = 0; slot < C; ++slot)
#pragma unroll 1
    for (int k = 32 * slot; k < min(n, 32 * slot + 32); ++k) {
      T next[C], x[P];
      read_row(next, s_r + (k + 1) * ld, n, k + 1 < n);
      const T alpha = __shfl_sync(full_warp, r[slot], k % 32);
#pragma unroll
      for (int l = 0; l < P; ++l) x[l] = __shfl_sync(full_warp, u[slot][l], k % 32);
      const SmallReflector<T, P> h(alpha, x);
#pragma unroll
      for (int c = slot; c < C; ++c) {
        if (lane + 32 * c == k) {
          r[c] = h.beta;
#pragma unroll
          for (int l = 0; l < P; ++l) u[c][l] = 0;
        } else {
          reflect(h, r[c], u[c]);
        }
      }
      write_row(r, s_r + k * ld, n);
      if (lane == 0) h.store(s_turns + k * (P + 1));
#pragma unroll
      for (int c = 0; c < C; ++c) r[c] = next[c];
    }
}

/// R (`rows` rows) has lost columns from `first` on, `cols` are left: a reflector for each of them, on its diagonal and
/// what is below.
template <class T, int C, int P>
__device__ void columns_out_chain(T* s_r, int ld, int rows, int cols, int first, T* s_turns) {
  const int lane = threadIdx.x % 32;
  T y[C], u[C][P], row[C];
  read_row(y, s_r + first * ld, cols, first < rows);
#pragma unroll
  for (int l = 0; l < P; ++l) {
    read_row(row, s_r + (first + 1 + l) * ld, cols, first + 1 + l < rows);
#pragma unroll
    for (int c = 0; c < C; ++c) u[c][l] = row[c];
  }
#pragma unroll
  for (int slot = 0; slot < C; ++slot)
#pragma unroll 1
    for (int k = max(first, 32 * slot); k < min(cols, 32 * slot + 32); ++k) {
      T x[P];
      read_row(row, s_r + (k + 1 + P) * ld, cols, k + 1 + P < rows);
      const T alpha = __shfl_sync(full_warp, y[slot], k % 32);
#pragma unroll
      for (int l = 0; l < P; ++l) x[l] = __shfl_sync(full_warp, u[slot][l], k % 32);
      const SmallReflector<T, P> h(alpha, x);
#pragma unroll
      for (int c = slot; c < C; ++c) {
        const int j = lane + 32 * c;
        if (j == k)
          y[c] = h.beta;
        else if (j > k)
          reflect(h, y[c], u[c]);
        if (j >= k && j < cols) s_r[k * ld + j] = y[c];
      }
      if (lane == 0) h.store(s_turns + k * (P + 1));
#pragma unroll
      for (int c = 0; c < C; ++c) {
        y[c] = u[c][0];
#pragma unroll
        for (int l = 0; l + 1 < P; ++l) u[c][l] = u[c][l + 1];
        u[c][P - 1] = row[c];
      }
    }
}

/// [W; L], W n x p by rows of P, L p x p upper by rows of P, is taken to [0; +-I] from the bottom up by rotations of a
/// row of W and one of L; R, zeros below it for L's rows, goes along and stays upper triangular.
template <class T, int C, int P>
__device__ void rows_out_chain(T* s_r, int ld, int n, int p, const T* s_w, const T* s_l, Rotation<T>* s_turns) {
  const int lane = threadIdx.x % 32;
  T l[P][P], carry[P][C] = {};
#pragma unroll
  for (int a = 0; a < P; ++a)
#pragma unroll
    for (int b = a; b < P; ++b) l[a][b] = b < p ? s_l[a * P + b] : T(0);
#pragma unroll 1
  for (int k = n - 1; k >= 0; --k) {
    T w[P], r[C];
#pragma unroll
    for (int a = 0; a < P; ++a) w[a] = s_w[k * P + a];
    read_row(r, s_r + k * ld, n);
#pragma unroll
    for (int a = 0; a < P; ++a) {
      if (a >= p) break;
      T h;
      const Rotation<T> turn = make_rotation(l[a][a], w[a], h);
      l[a][a] = h;
#pragma unroll
      for (int b = a + 1; b < P; ++b) {
        const T x = l[a][b];
        l[a][b] = turn.c * x + turn.s * w[b];
        w[b] = turn.c * w[b] - turn.s * x;
      }
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const T x = carry[a][c];
        carry[a][c] = turn.c * x + turn.s * r[c];
        r[c] = turn.c * r[c] - turn.s * x;
      }
      if (lane == 0) s_turns[k * P + a] = turn;
    }
    write_row(r, s_r + k * ld, n);
  }
}

}  // namespace qrane::backend::cuda
