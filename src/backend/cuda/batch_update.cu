// SPDX-License-Identifier: Apache-2.0
// Updates of many small factorizations (BatchUpdate in backend/batch_update.hpp), one block each: R in shared memory by
// rows, where one warp finds the chain of small transforms (batch_update.cuh), and then Q, a row a thread, with the p
// numbers that the chain carries along in registers. Q is read and written once; where rows go three times more, for the
// p directions that complete it:
//
//     W = Q(gone, :)^T,  S = E - Q W,  C = Q^T S,  S -= Q C,  W += C,  S = Z L by Gram and Schmidt
//
// E are the unit vectors of the rows that go. A column of S that has become short (its row carries a rank) is
// orthogonalized again, by itself, until it keeps its length; one that vanishes is replaced by the unit vector that Q and
// Z reach the least, with no entry in L. About 4 m n p flops, 12 m n p where rows go.
#include "backend/cuda/batch_update.hpp"

#include "backend/cuda/batch_update.cuh"
#include "backend/cuda/warp.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int most_cols = 64, most_carried = 8, most_threads = 256;
constexpr std::size_t most_bytes = 110 * 1024;  // two blocks on a multiprocessor

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
    const std::size_t beside = rows_out ? static_cast<std::size_t>(2 * n * P + P * P + most_threads / 32 * P + m * P) : 0;
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

template <class T, int C, int P>
__device__ void rows_in(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
  const int n = s.n, first = static_cast<int>(task.k), p = static_cast<int>(task.p);
  const T* g_u = of_batch(task.rows);
  bool extreme = load_r(task.r, s, n, 0);
  T u[C][P] = {};
  if (threadIdx.x < 32) {
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int l = 0; l < P; ++l) {
        const int j = static_cast<int>(threadIdx.x) + 32 * c;
        if (l < p && j < n) u[c][l] = g_u[l + j * task.rows.ld];
        extreme |= is_extreme(u[c][l]);
      }
  }
  if (__syncthreads_or(extreme)) {
    scale_columns(s, n, g_u, task.rows.ld, p);
    __syncthreads();
  }
  if (threadIdx.x < 32) {
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int l = 0; l < P; ++l) {
        const int j = static_cast<int>(threadIdx.x) + 32 * c;
        if (j < n) u[c][l] /= s.unscale[j];
      }
    rows_in_chain<T, C, P>(s.r, s.ld, n, u, s.turns);
  }
  __syncthreads();
  store_r(task.r_after, s);
  const T* g_q = of_batch(task.q);
  T* g_out = of_batch(task.q_after);
#pragma unroll 1
  for (int i = threadIdx.x; i < task.q_after.rows && task.q.cols > 0; i += blockDim.x) {
    const int row = i - first;  // of those that come in
    const RowOfQ<T> q{g_q + (row < 0 ? i : i - p), task.q.ld, n, row < 0 || row >= p};
    T carry[P];
#pragma unroll
    for (int l = 0; l < P; ++l) carry[l] = l == row ? T(1) : T(0);
#pragma unroll 8
    for (int k = 0; k < n; ++k) {
      const T* s_h = s.turns + k * (P + 1);
      T x = q[k], sum = x;
#pragma unroll
      for (int l = 0; l < P; ++l) sum = fma(s_h[1 + l], carry[l], sum);
      sum *= s_h[0];
      g_out[i + k * task.q_after.ld] = x - sum;
#pragma unroll
      for (int l = 0; l < P; ++l) carry[l] = fma(-sum, s_h[1 + l], carry[l]);
    }
  }
}

template <class T, int C, int P>
__device__ void columns_out(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
  const int n = s.n, first = static_cast<int>(task.k), p = static_cast<int>(task.p), cols = n - p;
  if (__syncthreads_or(load_r(task.r, s, first, p))) {
    scale_columns<T>(s, cols, nullptr, 0, 0);
    __syncthreads();
  }
  if (threadIdx.x < 32) columns_out_chain<T, C, P>(s.r, s.ld, n, cols, first, s.turns);
  __syncthreads();
  store_r(task.r_after, s);
  const T* g_q = of_batch(task.q);
  T* g_out = of_batch(task.q_after);
#pragma unroll 1
  for (int i = threadIdx.x; i < task.q.rows && task.q.cols > 0; i += blockDim.x) {
    const RowOfQ<T> q{g_q + i, task.q.ld, n, true};
    for (int k = 0; k < first; ++k) g_out[i + k * task.q_after.ld] = q[k];
    T x = q[first], carry[P];
#pragma unroll
    for (int l = 0; l < P; ++l) carry[l] = q[first + 1 + l];
#pragma unroll 4
    for (int k = first; k < cols; ++k) {
      const T* s_h = s.turns + k * (P + 1);
      const T next = q[k + 1 + P];
      T sum = x;
#pragma unroll
      for (int l = 0; l < P; ++l) sum = fma(s_h[1 + l], carry[l], sum);
      sum *= s_h[0];
      g_out[i + k * task.q_after.ld] = x - sum;
      x = fma(-sum, s_h[1], carry[0]);
#pragma unroll
      for (int l = 0; l + 1 < P; ++l) carry[l] = fma(-sum, s_h[2 + l], carry[l + 1]);
      carry[P - 1] = next;
    }
  }
}

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

/// Column l of S, which has become short: a unit vector orthogonal to Q and z_0 .. z_(l-1), what it is of S in W and L. Rare,
/// and kept apart: a kernel that every block goes through once takes as long as its instructions take to arrive.
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

template <class T, int C, int P>
__device__ void rows_out(const BatchUpdate<Cuda, T>& task, const Space<T>& s) {
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

/// Thread map: a block per matrix. Dynamic shared memory: Space::elements.
template <class T, int C, int P, typename BatchUpdate<Cuda, T>::Change change>
__global__ void __launch_bounds__(most_threads, P <= most_carried / 2 ? 3 : 2)
    batch_update_kernel(const std::int32_t* condition, BatchUpdate<Cuda, T> task) {
  using Change = typename BatchUpdate<Cuda, T>::Change;
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char shared[];
  const Space<T> s(shared, static_cast<int>(task.q.rows), static_cast<int>(task.r.cols), P);
#pragma unroll 1
  for (int j = threadIdx.x; j < s.n; j += blockDim.x) s.unscale[j] = 1;
  if constexpr (change == Change::rows_in)
    rows_in<T, C, P>(task, s);
  else if constexpr (change == Change::columns_out)
    columns_out<T, C, P>(task, s);
  else
    rows_out<T, C, P>(task, s);
}

template <class T, int C, int P, typename BatchUpdate<Cuda, T>::Change change>
void run(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  constexpr bool rows_out = change == BatchUpdate<Cuda, T>::Change::rows_out;
  const int m = static_cast<int>(task.q.rows), n = static_cast<int>(task.r.cols);
  const std::size_t bytes = sizeof(T) * Space<T>::elements(m, n, P, rows_out, rows_out && Space<T>::holds_q(m, n, P));
  const int threads = m <= 64 ? 64 : m <= 128 ? 128 : most_threads;
  const auto kernel = batch_update_kernel<T, C, P, change>;
  allow_shared_memory(kernel, bytes, "cudaFuncSetAttribute of batch_update");
  kernel<<<static_cast<unsigned>(task.r.count), threads, bytes, launch.stream>>>(launch.condition, task);
  check_launch("batch_update kernel");
}

template <class T, int C, int P>
void run(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  using Change = typename BatchUpdate<Cuda, T>::Change;
  switch (task.change) {
    case Change::rows_in: return run<T, C, P, Change::rows_in>(launch, task);
    case Change::rows_out: return run<T, C, P, Change::rows_out>(launch, task);
    default: return run<T, C, P, Change::columns_out>(launch, task);
  }
}

template <class T, int C>
void run(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  if (task.p <= most_carried / 2)
    run<T, C, most_carried / 2>(launch, task);
  else
    run<T, C, most_carried>(launch, task);
}

}  // namespace

template <class T>
bool takes_batch_update(Index m, Index n, Index p) {
  if (n > most_cols || p > most_carried || n < 1 || m > (1 << 14)) return false;
  const int carried = p <= most_carried / 2 ? most_carried / 2 : most_carried;
  return sizeof(T) * Space<T>::elements(static_cast<int>(m), static_cast<int>(n), carried, true) <= most_bytes;
}

template <class T>
void launch_batch_update(const Launch& launch, const BatchUpdate<Cuda, T>& task) {
  detail::check(takes_batch_update<T>(task.q.cols > 0 ? task.q.rows : 0, task.r.cols, task.p), ErrorCode::invalid_argument,
                "batch_update: ", task.p, " rows or columns of matrices of ", task.q.rows, " x ", task.r.cols,
                " are beyond its limits");
  if (task.p == 0 || task.r.count == 0 || task.r_after.cols == 0) return;
  if (task.r.cols <= 32)
    run<T, 1>(launch, task);
  else
    run<T, 2>(launch, task);
}

template bool takes_batch_update<float>(Index, Index, Index);
template bool takes_batch_update<double>(Index, Index, Index);
template void launch_batch_update(const Launch&, const BatchUpdate<Cuda, float>&);
template void launch_batch_update(const Launch&, const BatchUpdate<Cuda, double>&);

}  // namespace qrane::backend::cuda
