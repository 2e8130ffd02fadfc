// SPDX-License-Identifier: Apache-2.0
// One pass per column j over the trailing columns does what BLAS2 does in three: it applies the reflector of column
// j - 1 (a rank-1 update whose weights are known), and with the updated column j as x sums x^T a_k for every later
// column (the matrix-vector product of the next reflector, which differs from x only in its first element). A second,
// small launch adds the CTAs' sums in a fixed order and turns them into the next weights:
//     alpha = -sign(x_1) ||x||,  v = (x - alpha e_1) / (x_1 - alpha),  w_k = tau (x^T a_k - alpha a_jk) / (x_1 - alpha)
//
//              j-1 j  ...        thread t of a CTA owns rows t, t + 256, t + 512, ... of a tile of 1024 rows, and
//            | v   x  a a a |    walks over the columns, four at a time; sums of a warp lie in shared memory, one row
//            of
//     1024 { |     x  a a a |    sums a warp: 8 cols elements, at most 64 KiB.
//
// To apply Q the same pass runs from the last reflector to the first, with v and x both read from the factored matrix.
#include "kernels/blas2.hpp"

#include <algorithm>

namespace qrane::bench {
namespace {

constexpr int threads = 256, warps = threads / 32, rows_each = 4, tile_rows = threads * rows_each, group = 4;
constexpr int max_cols = 1024, max_ctas = 4 * 132;

template <class T>
struct Pass {
  T* v;  ///< reflectors: the factored part; the matrix itself while it is factored
  T* c;  ///< what is updated
  std::int64_t rows;
  int pending;       ///< reflector that is applied, or -1
  int next;          ///< column whose reflector is prepared, or -1
  int first, last;   ///< columns of c that are updated
  const T* weights;  ///< by column of c
  const T* head;     ///< while factoring: 1 / (x_1 - alpha) and alpha of `pending`
  T* partial;        ///< sums: column - first, then CTA
};

__device__ __forceinline__ float warp_sum(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}
__device__ __forceinline__ double warp_sum(double x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

/// Element i of reflector j of a factored matrix.
template <class T>
__device__ T reflector(const T* v, std::int64_t rows, std::int64_t i, int j) {
  return j < 0 || i < j || i >= rows ? T(0) : i == j ? T(1) : v[i + j * rows];
}

/// Adds the warp's sum of each s[g] to sums[g]: for four columns lanes halve the columns they keep before they halve
/// the lanes, six exchanges instead of twenty.
template <class T>
__device__ __forceinline__ void add_warp_sums(const T (&s)[1], T* sums) {
  const T sum = warp_sum(s[0]);
  if (threadIdx.x % 32 == 0) sums[0] += sum;
}
template <class T>
__device__ __forceinline__ void add_warp_sums(const T (&s)[4], T* sums) {
  const int lane = threadIdx.x % 32;
  const bool high = lane & 16, odd = lane & 8;
  const T first = (high ? s[2] : s[0]) + __shfl_xor_sync(0xffffffffu, high ? s[0] : s[2], 16);
  const T second = (high ? s[3] : s[1]) + __shfl_xor_sync(0xffffffffu, high ? s[1] : s[3], 16);
  T sum = (odd ? second : first) + __shfl_xor_sync(0xffffffffu, odd ? first : second, 8);
  for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane % 8 == 0) sums[2 * high + odd] += sum;
}

/// The thread's rows of columns k .. k + G - 1.
template <int G, class T>
__device__ __forceinline__ void load_columns(const Pass<T>& p, std::int64_t row, int k, T (&c)[G][rows_each]) {
  for (int g = 0; g < G; ++g)
    for (int q = 0; q < rows_each; ++q) {
      const std::int64_t i = row + q * threads;
      c[g][q] = i < p.rows ? p.c[i + (k + g) * p.rows] : T(0);
    }
}

/// Applies the pending reflector to them, stores them, and adds x^T c_k to the warp's sums.
template <int G, class T>
__device__ __forceinline__ void update_columns(const Pass<T>& p, std::int64_t row, int k, const T (&v)[rows_each],
                                               const T (&x)[rows_each], T (&c)[G][rows_each], T* sums) {
  T s[G];
  for (int g = 0; g < G; ++g) {
    const T w = p.pending >= 0 ? p.weights[k + g] : T(0);
    s[g] = 0;
    for (int q = 0; q < rows_each; ++q) {
      c[g][q] -= v[q] * w;
      s[g] += x[q] * c[g][q];
      const std::int64_t i = row + q * threads;
      if (p.pending >= 0 && i < p.rows) p.c[i + (k + g) * p.rows] = c[g][q];
    }
  }
  add_warp_sums(s, sums + k - p.first);
}

/// All columns of the tile, four at a time; the next four are on their way while four are updated.
template <class T>
__device__ __forceinline__ void update_tile(const Pass<T>& p, std::int64_t row, const T (&v)[rows_each],
                                            const T (&x)[rows_each], T* sums) {
  int k = p.first;
  if (k + group <= p.last) {
    T c[group][rows_each], next[group][rows_each];
    load_columns(p, row, k, c);
    for (; k + 2 * group <= p.last; k += group) {
      load_columns(p, row, k + group, next);
      update_columns(p, row, k, v, x, c, sums);
      for (int g = 0; g < group; ++g)
        for (int q = 0; q < rows_each; ++q) c[g][q] = next[g][q];
    }
    update_columns(p, row, k, v, x, c, sums);
    k += group;
  }
  for (; k < p.last; ++k) {
    T c[1][rows_each];
    load_columns(p, row, k, c);
    update_columns(p, row, k, v, x, c, sums);
  }
}

template <bool factoring, class T>
__global__ void __launch_bounds__(threads) pass_kernel(Pass<T> p) {
  extern __shared__ __align__(16) char memory[];
  const int cols = p.last - p.first;
  T* all_sums = reinterpret_cast<T*>(memory);
  T* sums = all_sums + threadIdx.x / 32 * cols;
  for (int k = threadIdx.x; k < warps * cols; k += threads) all_sums[k] = 0;
  __syncthreads();
  const std::int64_t top = p.pending < 0 ? p.next : p.next < 0 ? p.pending : min(p.pending, p.next);
  const T inverse = factoring && p.pending >= 0 ? p.head[0] : T(0);
  for (std::int64_t tile = top + blockIdx.x * static_cast<std::int64_t>(tile_rows); tile < p.rows;
       tile += gridDim.x * static_cast<std::int64_t>(tile_rows)) {
    const std::int64_t row = tile + threadIdx.x;
    T v[rows_each], x[rows_each];
    for (int q = 0; q < rows_each; ++q) {
      const std::int64_t i = row + q * threads;
      if (factoring && p.pending >= 0 && i < p.rows) {  // the reflector takes its final form on the way
        T& place = p.v[i + p.pending * p.rows];
        v[q] = i == p.pending ? T(1) : place * inverse;
        place = i == p.pending ? p.head[1] : v[q];
      } else {
        v[q] = factoring ? T(0) : reflector(p.v, p.rows, i, p.pending);
      }
      if (factoring)
        x[q] = p.next >= 0 && i >= p.next && i < p.rows
                   ? p.c[i + p.next * p.rows] - (p.pending >= 0 ? v[q] * p.weights[p.next] : T(0))
                   : T(0);
      else
        x[q] = reflector(p.v, p.rows, i, p.next);
    }
    update_tile(p, row, v, x, sums);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < cols; k += threads) {
    T sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += all_sums[warp * cols + k];
    p.partial[static_cast<std::int64_t>(k) * gridDim.x + blockIdx.x] = sum;
  }
}

template <class T>
__device__ T sum_of_ctas(const T* partial, int ctas) {
  T sum = 0;
  for (int i = threadIdx.x % 32; i < ctas; i += 32) sum += partial[i];
  return warp_sum(sum);
}

/// A warp a column: the sums of the CTAs, then the weights of the reflector of column p.next.
template <bool factoring, class T>
__global__ void __launch_bounds__(threads) weights_kernel(Pass<T> p, int ctas, T* weights, T* head, T* tau) {
  const int k = p.first + blockIdx.x * warps + threadIdx.x / 32;
  if (k >= p.last) return;
  const T sum = sum_of_ctas(p.partial + static_cast<std::int64_t>(k - p.first) * ctas, ctas);
  if (!factoring) {
    if (threadIdx.x % 32 == 0) weights[k] = tau[p.next] * sum;
    return;
  }
  const T square = sum_of_ctas(p.partial + static_cast<std::int64_t>(p.next - p.first) * ctas, ctas);
  if (threadIdx.x % 32 != 0) return;
  const T first = p.c[p.next + p.next * p.rows];
  const T alpha = first < 0 ? sqrt(square) : -sqrt(square);
  const bool none = square == 0;
  const T inverse = none ? T(0) : 1 / (first - alpha), factor = none ? T(0) : (alpha - first) / alpha;
  if (k == p.next) {
    head[0] = inverse;
    head[1] = alpha;
    tau[k] = factor;
  }
  weights[k] = factor * (sum - alpha * p.c[p.next + k * p.rows]) * inverse;
}

template <class T>
__global__ void set_identity(T* q, std::int64_t rows, int cols) {
  const std::int64_t count = rows * cols, stride = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; k < count; k += stride)
    q[k] = k % rows == k / rows ? T(1) : T(0);
}

unsigned ctas_for(std::int64_t rows) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((rows + tile_rows - 1) / tile_rows, 1, max_ctas));
}

template <bool factoring, class T>
void run_pass(const Pass<T>& p, std::int64_t height, cudaStream_t stream) {
  const std::size_t bytes = sizeof(T) * warps * static_cast<std::size_t>(p.last - p.first);
  check(cudaFuncSetAttribute(pass_kernel<factoring, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(sizeof(T)) * warps * max_cols),
        "cudaFuncSetAttribute");
  pass_kernel<factoring, T><<<ctas_for(height), threads, bytes, stream>>>(p);
}

}  // namespace

template <class T>
Blas2Qr<T>::Blas2Qr(std::int64_t rows, int cols, cudaStream_t stream)
    : rows_(rows),
      cols_(cols),
      stream_(stream),
      ctas_(static_cast<int>(ctas_for(rows))),
      partial_(static_cast<std::size_t>(cols) * static_cast<std::size_t>(ctas_)),
      weights_(static_cast<std::size_t>(cols)),
      tau_(static_cast<std::size_t>(cols)),
      head_(2) {
  if (rows < cols || cols > max_cols) throw std::runtime_error("takes m >= n and n <= 1024");
}

template <class T>
void Blas2Qr<T>::factor(T* a) {
  for (int j = 0; j <= cols_; ++j) {
    const int next = j < cols_ ? j : -1;
    const Pass<T> p{a, a, rows_, j - 1, next, j, cols_, weights_.get(), head_.get(), partial_.get()};
    const std::int64_t height = rows_ - std::max(j - 1, 0);
    run_pass<true>(p, height, stream_);
    if (next < 0) break;
    const auto blocks = static_cast<unsigned>((cols_ - j + warps - 1) / warps);
    weights_kernel<true><<<blocks, threads, 0, stream_>>>(p, static_cast<int>(ctas_for(height)), weights_.get(),
                                                          head_.get(), tau_.get());
  }
  check(cudaGetLastError(), "Blas2Qr::factor");
}

template <class T>
void Blas2Qr<T>::multiply_by_q(const T* a, T* c, bool triangular) {
  T* reflectors = const_cast<T*>(a);  // only read where nothing is factored
  for (int j = cols_ - 1; j >= -1; --j) {
    // below an upper triangle reflector j meets columns j and later alone
    const int pending = j + 1 < cols_ ? j + 1 : -1, first = triangular ? std::max(j, 0) : 0;
    const Pass<T> p{reflectors, c, rows_, pending, j, first, cols_, weights_.get(), head_.get(), partial_.get()};
    const std::int64_t height = rows_ - std::max(j, 0);
    run_pass<false>(p, height, stream_);
    if (j < 0) break;
    const auto blocks = static_cast<unsigned>((cols_ - first + warps - 1) / warps);
    weights_kernel<false><<<blocks, threads, 0, stream_>>>(p, static_cast<int>(ctas_for(height)), weights_.get(),
                                                           head_.get(), tau_.get());
  }
  check(cudaGetLastError(), "Blas2Qr::apply_q");
}

template <class T>
void Blas2Qr<T>::form_q(const T* a, T* q) {
  set_identity<<<4 * 132, threads, 0, stream_>>>(q, rows_, cols_);
  // a column takes no part before its own reflector: its weight of the one before is nothing
  check(cudaMemsetAsync(weights_.get(), 0, static_cast<std::size_t>(cols_) * sizeof(T), stream_), "cudaMemsetAsync");
  multiply_by_q(a, q, true);
}

template <class T>
void Blas2Qr<T>::apply_q(const T* a, T* c) {
  multiply_by_q(a, c, false);
}

template class Blas2Qr<float>;
template class Blas2Qr<double>;

}  // namespace qrane::bench
