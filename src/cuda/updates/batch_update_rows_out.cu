// SPDX-License-Identifier: Apache-2.0
// The updates of batch_update.cu where rows go, with the p directions that complete Q:
//
//     W = Q(gone, :)^T,  S = E - Q W,  C = Q^T S,  S -= Q C,  W += C,  S = Z L by Gram and Schmidt
//
// E are the unit vectors of the rows that go. A column of S that has become short (its row carries a rank) is
// orthogonalized again, by itself, until it keeps its length; one that vanishes is replaced by the unit vector that Q
// and Z reach the least, with no entry in L. About 12 m n p flops.
#include "cuda/queue/launch.hpp"
#include "cuda/updates/batch_update_block.cuh"
#include "vocabulary/updates.hpp"

namespace qrane::backend::cuda {
namespace changes {
namespace {

/// Sums over the block of P numbers of every thread, in all of them.
template <class T, int P>
__device__ void block_sums(const Space<T>& s, T (&x)[P]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const T mine = sum_slot_of_lane(x);
  __syncthreads();
  if (lane < P) s.sums[warp * P + lane] = mine;
  __syncthreads();
#pragma unroll
  for (int l = 0; l < P; ++l) {
    x[l] = 0;
    for (int v = 0; v < static_cast<int>(blockDim.x) / 32; ++v) x[l] += s.sums[v * P + l];
  }
}

/// c := Q^T S, or column `only` of it and zeros. Ends with a barrier.
template <class T, int P, bool one = false>
__device__ void project(const Space<T>& s, const T* q, std::int64_t ld, int only = 0) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();
#pragma unroll 1
  for (int k = warp; k < s.n; k += static_cast<int>(blockDim.x) / 32) {
    T sum[P] = {};
#pragma unroll 2
    for (int i = lane; i < s.m; i += 32) {
      const T x = q[i + k * ld];
      if constexpr (one) {
        sum[0] = fma(x, s.s[only * s.m + i], sum[0]);
      } else {
#pragma unroll
        for (int l = 0; l < P; ++l) sum[l] = fma(x, s.s[l * s.m + i], sum[l]);
      }
    }
    if constexpr (one) {
      const T alone = warp_sum(sum[0]);
      if (lane < P) s.c[k * P + lane] = lane == only ? alone : T(0);
      continue;
    }
    const T mine = sum_slot_of_lane(sum);
    if (lane < P) s.c[k * P + lane] = mine;
  }
  __syncthreads();
}

/// S -= Q x, x n x P by rows, or column `only` of it; each thread its rows of S.
template <class T, int P, bool one = false>
__device__ void subtract(const Space<T>& s, const T* q, std::int64_t ld, const T* s_x, int only = 0) {
#pragma unroll 1
  for (int i = threadIdx.x; i < s.m; i += blockDim.x) {
    T sum[P] = {};
#pragma unroll 4
    for (int k = 0; k < s.n; ++k) {
      const T x = q[i + k * ld];
#pragma unroll
      for (int l = 0; l < (one ? 1 : P); ++l) sum[l] = fma(x, s_x[k * P + (one ? only : l)], sum[l]);
    }
#pragma unroll
    for (int l = 0; l < (one ? 1 : P); ++l) s.s[(one ? only : l) * s.m + i] -= sum[l];
  }
}

/// Length of column l of S.
template <class T, int P>
__device__ T length(const Space<T>& s, int l) {
  T sum[P] = {};
#pragma unroll 1
  for (int i = threadIdx.x; i < s.m; i += blockDim.x) sum[0] = fma(s.s[l * s.m + i], s.s[l * s.m + i], sum[0]);
  block_sums<T, P>(s, sum);
  return sqrt(sum[0]);
}

template <class T>
__device__ void scale_column(const Space<T>& s, int l, T factor) {
#pragma unroll 1
  for (int i = threadIdx.x; i < s.m; i += blockDim.x) s.s[l * s.m + i] *= factor;
}

/// The row of [Q z_0 .. z_(l-1)] that is the shortest.
template <class T, int P>
__device__ __noinline__ int least_row(Space<T> s, const T* q, std::int64_t ld, int l) {
  __shared__ T s_least[most_threads];
  __shared__ int s_row[most_threads];
  T least = T(1e30);
  int row = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < s.m; i += blockDim.x) {
    T sum = 0;
    for (int k = 0; k < s.n; ++k) sum = fma(q[i + k * ld], q[i + k * ld], sum);
    for (int z = 0; z < l; ++z) sum = fma(s.s[z * s.m + i], s.s[z * s.m + i], sum);
    if (sum < least) least = sum, row = i;
  }
  s_least[threadIdx.x] = least, s_row[threadIdx.x] = row;
  __syncthreads();
  least = s_least[0], row = s_row[0];
  for (int t = 1; t < static_cast<int>(blockDim.x); ++t)
    if (s_least[t] < least) least = s_least[t], row = s_row[t];
  __syncthreads();
  return row;
}

/// Column l of S, which has become short: a unit vector orthogonal to Q and z_0 .. z_(l-1), what it is of S in W and L.
/// Rare, and kept apart: a kernel that every block goes through once takes as long as its instructions take to arrive.
template <class T, int P>
__device__ __noinline__ void orthogonalize(Space<T> s, const T* q, std::int64_t ld, int l, T norm) {
  constexpr T epsilon = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  const T vanished = 10 * static_cast<T>(s.n + 10) * epsilon;
  T scale = 1;  // of what is in column l
  bool fresh = false;
  for (int round = 0; round < 8; ++round) {
    if (!fresh && !(norm * scale > vanished)) {  // nothing of it is left outside of Q's range
      const int row = least_row<T, P>(s, q, ld, l);
#pragma unroll 1
      for (int i = threadIdx.x; i < s.m; i += blockDim.x) s.s[l * s.m + i] = T(i == row);
      fresh = true;
      norm = 1;
    }
    scale_column(s, l, T(1) / norm);
    scale *= norm;
    project<T, P, true>(s, q, ld, l);
    T dots[P] = {};
#pragma unroll 1
    for (int i = threadIdx.x; i < s.m; i += blockDim.x)
#pragma unroll
      for (int z = 0; z < P; ++z)
        if (z < l) dots[z] = fma(s.s[z * s.m + i], s.s[l * s.m + i], dots[z]);
    block_sums<T, P>(s, dots);
    subtract<T, P, true>(s, q, ld, s.c, l);
#pragma unroll 1
    for (int i = threadIdx.x; i < s.m; i += blockDim.x)
#pragma unroll
      for (int z = 0; z < P; ++z)
        if (z < l) s.s[l * s.m + i] = fma(-dots[z], s.s[z * s.m + i], s.s[l * s.m + i]);
    if (!fresh) {
#pragma unroll 1
      for (int k = threadIdx.x; k < s.n; k += blockDim.x) s.w[k * P + l] = fma(scale, s.c[k * P + l], s.w[k * P + l]);
      if (threadIdx.x == 0)
#pragma unroll
        for (int z = 0; z < P; ++z)
          if (z < l) s.l[z * P + l] = fma(scale, dots[z], s.l[z * P + l]);
    }
    norm = length<T, P>(s, l);
    if (norm >= T(0.5)) break;
  }
  scale_column(s, l, T(1) / norm);
  if (threadIdx.x == 0) s.l[l * P + l] = fresh ? T(0) : scale * norm;
  __syncthreads();
}

template <class T, int P>
__device__ void complete(const Space<T>& s, const T* q, std::int64_t ld, int first, int p) {
  constexpr T short_squared = T(0.01);
#pragma unroll 1
  for (int e = threadIdx.x; e < s.n * P; e += blockDim.x) {
    const int l = e % P, k = e / P;
    s.w[e] = l < p ? q[first + l + k * ld] : T(0);
  }
#pragma unroll 1
  for (int e = threadIdx.x; e < P * P; e += blockDim.x) s.l[e] = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < s.m; i += blockDim.x)
#pragma unroll
    for (int l = 0; l < P; ++l) s.s[l * s.m + i] = T(l < p && i == first + l);
  __syncthreads();
#pragma unroll 1
  for (int round = 0; round < 2; ++round) {
    subtract<T, P>(s, q, ld, round == 0 ? s.w : s.c);
    if (round == 0) project<T, P>(s, q, ld);
  }
#pragma unroll 1
  for (int e = threadIdx.x; e < s.n * P; e += blockDim.x) s.w[e] += s.c[e];
#pragma unroll 1
  for (int l = 0; l < p; ++l) {
    // the products of column l with those from it on; a short one is mended first, and then they are found again
    T dots[P], norm = 0;
    for (int again = 0; again < 2; ++again) {
#pragma unroll
      for (int b = 0; b < P; ++b) dots[b] = 0;
#pragma unroll 1
      for (int i = threadIdx.x; i < s.m; i += blockDim.x) {
        const T x = s.s[l * s.m + i];
#pragma unroll
        for (int b = 0; b < P; ++b)
          if (b >= l) dots[b] = fma(x, s.s[b * s.m + i], dots[b]);
      }
      block_sums<T, P>(s, dots);
      T square = 0;
#pragma unroll
      for (int b = 0; b < P; ++b) square = b == l ? dots[b] : square;
      if (again == 1) {
        norm = 1;
      } else if (square >= short_squared) {
        norm = sqrt(square);
        if (threadIdx.x == 0) s.l[l * P + l] = norm;
        break;
      } else {
        orthogonalize<T, P>(s, q, ld, l, sqrt(square));
      }
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < s.m; i += blockDim.x) {
      const T z = s.s[l * s.m + i] / norm;
      s.s[l * s.m + i] = z;
#pragma unroll
      for (int b = 0; b < P; ++b)
        if (b > l) s.s[b * s.m + i] = fma(-dots[b] / norm, z, s.s[b * s.m + i]);
    }
    if (threadIdx.x == 0)
#pragma unroll
      for (int b = 0; b < P; ++b)
        if (b > l) s.l[l * P + b] = dots[b] / norm;
  }
  __syncthreads();
}

struct RowsOut {
  static constexpr bool completes = true;

  template <int C, int P, class T>
  static __device__ void apply(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
    const int n = s.n, first = static_cast<int>(task.k), p = static_cast<int>(task.p);
    const T* q = of_batch(task.q);
    std::int64_t ld = task.q.ld;
    load_r(task.r, s, n, 0);
    if (s.q != nullptr) {
#pragma unroll 1
      for (int i = threadIdx.x; i < s.m; i += blockDim.x)
#pragma unroll 8
        for (int k = 0; k < n; ++k) s.q[i + k * s.m] = __ldg(q + i + k * ld);
      q = s.q;
      ld = s.m;
      __syncthreads();
    }
    complete<T, P>(s, q, ld, first, p);
    const auto turns = reinterpret_cast<Rotation<T>*>(s.turns);
    if (threadIdx.x < 32) rows_out_chain<T, C, P>(s.r, s.ld, n, p, s.w, s.l, turns);
    __syncthreads();
    store_r(task.r_after, s);
    T* g_out = of_batch(task.q_after);
#pragma unroll 1
    for (int i = threadIdx.x; i < task.q_after.rows; i += blockDim.x) {
      const int from = i < first ? i : i + p;
      T carry[P];
#pragma unroll
      for (int l = 0; l < P; ++l) carry[l] = s.s[l * s.m + from];
#pragma unroll 4
      for (int k = n - 1; k >= 0; --k) {
        T x = q[from + k * ld];
#pragma unroll
        for (int l = 0; l < P; ++l) {
          if (l >= p) break;
          const Rotation<T> turn = turns[k * P + l];
          const T z = carry[l];
          carry[l] = turn.c * z + turn.s * x;
          x = turn.c * x - turn.s * z;
        }
        g_out[i + k * task.q_after.ld] = x;
      }
    }
  }
};

}  // namespace
}  // namespace changes

template <class T>
void launch_batch_rows_out(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  changes::run<changes::RowsOut>(launch, task);
}

template void launch_batch_rows_out(const Launch&, const BatchUpdate<Cuda, float>&);
template void launch_batch_rows_out(const Launch&, const BatchUpdate<Cuda, double>&);

}  // namespace qrane::backend::cuda
