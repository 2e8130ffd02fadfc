// SPDX-License-Identifier: Apache-2.0
// The kernel of pivoted_factor.cu, which says how it goes.
#pragma once

#include "cuda/collectives/kernel.cuh"
#include "vocabulary/panels.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int most_blocks = 256;
constexpr int reserved_bytes = 8192;  // static shared memory, rounded up

/// Squared norm below which a column whose largest element was 1 counts as zero.
template <class T>
constexpr double negligible = sizeof(T) == 4 ? 0x1p-200 : 0x1p-1000;

/// What a block tells the others of its best column; sizes are those of the scaled column.
struct alignas(16) Offer {
  unsigned long long key;  // 0: it has none left
  double norm;
  double beta, scale;  // the reflector takes x to beta e_1 with v = [1; scale * x]
  double tau;
  int position, column, exponent;
};

template <class T>
struct Task {
  DeviceMatrix<Cuda, T> a, packed;
  std::int32_t* columns;
  T* inverse_tau;
  std::int32_t* rank;
  double tolerance;
  bool truncate;
  int steps, columns_per_block, lanes;  // lanes that share a column
  bool in_shared, v_in_shared;
  int* flags = nullptr;
  Offer* offers = nullptr;
  T* offered = nullptr;  // [parity][block][m]
};

/// Leading dimension in shared memory: four columns that eight lanes each walk along lie in different banks.
__host__ __device__ constexpr Index padded(Index rows) { return (rows + 23) / 32 * 32 + 8; }

/// This block's columns: column l of it is column blockIdx.x + l * gridDim.x of A.
template <class T>
struct Share {
  T* data;
  Index ld, rows;
  T* v;
  double* squares;  // squared norms of what is left of the scaled columns
  int* exponents;
  int* positions;
  int count;

  __device__ T* column(int l) const { return data + l * ld; }
};

/// square * 4^exponent as an integer that orders like it; what is not finite comes last, zeros just before.
__device__ unsigned long long order_key(double square, int exponent) {
  if (!(square > 0) || !isfinite(square)) return square == 0 ? 2 : 1;
  return (static_cast<unsigned long long>(__double_as_longlong(square)) >> 3) +
         (static_cast<unsigned long long>(2 * exponent + 5000) << 49);
}

__device__ double warp_sum(double x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

/// True in the one lane of a warp that has the largest key, ties to the smallest position; in none where all keys are
/// 0.
__device__ bool is_best(unsigned long long key, int position) {
  const unsigned high = static_cast<unsigned>(key >> 32), most = __reduce_max_sync(0xffffffffu, high);
  const unsigned low = high == most ? static_cast<unsigned>(key) : 0u, most_low = __reduce_max_sync(0xffffffffu, low);
  const bool tied = key != 0 && high == most && low == most_low;
  const unsigned place = tied ? static_cast<unsigned>(position) : 0xffffffffu;
  return __reduce_min_sync(0xffffffffu, place) == place && tied;
}

/// Scales and measures the columns; positions are those in A.
template <class T>
__device__ void load(const Task<T>& task, const Share<T>& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int l = warp; l < s.count; l += warps) {
    const Index c = blockIdx.x + Index(l) * gridDim.x;
    const T* source = task.a.data + c * task.a.ld;
    T* target = s.column(l);
    T most = 0;
    for (Index i = lane; i < s.rows; i += 32) {
      const T x = fabs(source[i]);
      most = x > most || x != x ? x : most;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      const T other = __shfl_xor_sync(0xffffffffu, most, d);
      most = other > most || other != other ? other : most;
    }
    const int exponent = most > 0 && isfinite(most) ? ilogb(most) : 0;
    double sum = 0;
    for (Index i = lane; i < s.rows; i += 32) {
      const T x = scalbn(source[i], -exponent);
      target[i] = x;
      sum = fma(static_cast<double>(x), static_cast<double>(x), sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      s.squares[l] = sum;
      s.exponents[l] = exponent;
      s.positions[l] = static_cast<int>(c);
    }
  }
  __syncthreads();
}

/// The reflector of column l from row j down.
template <class T>
__device__ Offer make_offer(const Share<T>& s, int l, unsigned long long key, int j) {
  Offer o{key,           sqrt(s.squares[l]), 0, 0, 0, s.positions[l], static_cast<int>(blockIdx.x + l * gridDim.x),
          s.exponents[l]};
  if (s.squares[l] <= negligible<T>) {
    o.norm = 0;  // tau = 0 and v = e_1
    return o;
  }
  const double diagonal = static_cast<double>(s.column(l)[j]);
  o.beta = diagonal >= 0 ? -o.norm : o.norm;  // NaN goes either way
  o.scale = 1 / (diagonal - o.beta);
  o.tau = (o.beta - diagonal) / o.beta;
  return o;
}

/// The best column of this block that has not been taken before step j, in shared memory.
template <class T>
__device__ void own_best(const Share<T>& s, int j, Offer& best) {
  if (threadIdx.x < 32) {
    unsigned long long key = 0;
    int position = 0x7fffffff, local = 0;
    for (int l = threadIdx.x; l < s.count; l += 32) {
      if (s.positions[l] < j) continue;
      const unsigned long long k = order_key(s.squares[l], s.exponents[l]);
      if (k > key || (k == key && s.positions[l] < position)) key = k, position = s.positions[l], local = l;
    }
    const bool mine = is_best(key, position);
    if (mine) best = make_offer(s, local, key, j);
    if (!__any_sync(0xffffffffu, mine) && threadIdx.x == 0) best = Offer{0, 0, 0, 0, 0, 0x7fffffff, 0, 0};
  }
  __syncthreads();
}

__device__ void set_flag(int* flag, int value) {
  asm volatile("st.release.gpu.b32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ int get_flag(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// Offers this block's best and returns the best of all in its place.
template <class T>
__device__ void exchange(const Task<T>& task, const Share<T>& s, int j, Offer& best) {
  __shared__ Offer s_offers[warps];
  const int parity = j % 2, blocks = gridDim.x, lane = threadIdx.x % 32;
  Offer* offers = task.offers + parity * blocks;
  if (best.key != 0) {
    const T* column = s.column(best.column / blocks);
    T* offered = task.offered + (parity * blocks + blockIdx.x) * s.rows;
    for (Index i = j + threadIdx.x; i < s.rows; i += threads) offered[i] = column[i];
  }
  if (threadIdx.x < sizeof(Offer) / 16)
    reinterpret_cast<int4*>(offers + blockIdx.x)[threadIdx.x] = reinterpret_cast<const int4*>(&best)[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    set_flag(task.flags + blockIdx.x, j + 1);
  }
  const int rounds = (blocks + 31) / 32, b = threadIdx.x;  // blocks <= threads
  if (b / 32 < rounds) {
    Offer o;
    o.key = 0;
    o.position = 0x7fffffff;
    if (b < blocks) {
      while (get_flag(task.flags + b) <= j) {
      }
#pragma unroll
      for (int k = 0; k < static_cast<int>(sizeof(Offer) / 16); ++k)
        reinterpret_cast<int4*>(&o)[k] = __ldcg(reinterpret_cast<const int4*>(offers + b) + k);
    }
    const bool mine = is_best(o.key, o.position);
    if (mine) s_offers[b / 32] = o;
    if (!__any_sync(0xffffffffu, mine) && lane == 0) s_offers[b / 32].key = 0;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const unsigned long long key = lane < rounds ? s_offers[lane].key : 0;
    if (is_best(key, lane < rounds ? s_offers[lane].position : 0x7fffffff)) best = s_offers[lane];
  }
  __syncthreads();
}

/// s.v := the reflector's vector, from row j; the owner of the column stores it there too.
template <class T>
__device__ void spread(const Task<T>& task, const Share<T>& s, const Offer& o, int j) {
  const int blocks = gridDim.x, owner = o.column % blocks;
  const bool mine = owner == static_cast<int>(blockIdx.x);
  T* column = s.column(mine ? o.column / blocks : 0);
  const T* offered = task.offered + ((j % 2) * Index(blocks) + owner) * s.rows;
  for (Index i = j + threadIdx.x; i < s.rows; i += threads) {
    const T x = mine ? column[i] : __ldcg(offered + i);
    const T v = i == j ? T(1) : static_cast<T>(static_cast<double>(x) * o.scale);
    s.v[i] = v;
    if (mine) column[i] = i == j ? static_cast<T>(o.beta) : v;
  }
}

/// The sum over the lanes that share a column, in all of them; `sums` has a place for each warp.
template <class Sum>
__device__ Sum shared_sum(Sum x, int lanes, Sum* sums) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    if (d < lanes) x += __shfl_xor_sync(0xffffffffu, x, d);
  if (lanes <= 32) return x;
  const int warp = threadIdx.x / 32, first = threadIdx.x / lanes * (lanes / 32);
  if (threadIdx.x % 32 == 0) sums[warp] = x;
  __syncthreads();
  Sum sum = 0;
  for (int w = 0; w < lanes / 32; ++w) sum += sums[first + w];
  return sum;
}

/// This block's columns that are left: reflected, row j done, what is below it measured.
template <class T>
__device__ void reflect(const Task<T>& task, const Share<T>& s, T tau, int j) {
  __shared__ T s_dots[2][warps];
  __shared__ double s_squares[2][warps];
  const int lanes = task.lanes, team = threadIdx.x / lanes, lane = threadIdx.x % lanes, teams = threads / lanes;
  for (int l0 = 0, parity = 0; l0 < s.count; l0 += teams, parity ^= 1) {
    const int l = l0 + team;
    const bool active = l < s.count && s.positions[l] > j;
    T* column = s.column(active ? l : 0);
    T dot = 0;
    if (active) {
#pragma unroll 4
      for (Index i = j + lane; i < s.rows; i += lanes) dot = fma(s.v[i], column[i], dot);
    }
    const T w = shared_sum(dot, lanes, s_dots[parity]) * tau;
    double square = 0;
    if (active) {
#pragma unroll 4
      for (Index i = j + lane; i < s.rows; i += lanes) {
        const T x = fma(-w, s.v[i], column[i]);
        column[i] = x;
        square = i > j ? fma(static_cast<double>(x), static_cast<double>(x), square) : square;
      }
    }
    square = shared_sum(square, lanes, s_squares[parity]);
    if (active && lane == 0) s.squares[l] = square;
  }
}

/// Columns to their places, with their own scale.
template <class T>
__device__ void store(const Task<T>& task, const Share<T>& s, int steps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int l = warp; l < s.count; l += warps) {
    const int position = s.positions[l], exponent = s.exponents[l];
    const Index in_scale = position < steps ? position + 1 : s.rows;  // reflectors have none
    const T* column = s.column(l);
    T* target = task.packed.data + position * task.packed.ld;
    for (Index i = lane; i < s.rows; i += 32) target[i] = i < in_scale ? scalbn(column[i], exponent) : column[i];
    if (lane == 0) task.columns[position] = static_cast<int>(blockIdx.x + l * gridDim.x);
  }
}

template <class T>
__global__ void __launch_bounds__(threads, 1) pivoted_factor_kernel(const std::int32_t* condition, Task<T> task) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int most = task.columns_per_block, blocks = gridDim.x, n = static_cast<int>(task.a.cols);
  Share<T> s;
  s.rows = task.a.rows;
  s.count = (n - static_cast<int>(blockIdx.x) + blocks - 1) / blocks;
  s.squares = shared;
  s.exponents = reinterpret_cast<int*>(shared + most);
  s.positions = s.exponents + most;
  T* space = reinterpret_cast<T*>(shared + 2 * most);
  s.v = task.v_in_shared ? space : task.offered + (2 * blocks + Index(blockIdx.x)) * s.rows;
  if (task.v_in_shared) space += s.rows;
  s.data = task.in_shared ? space : task.a.data + blockIdx.x * task.a.ld;
  s.ld = task.in_shared ? padded(s.rows) : blocks * task.a.ld;
  load(task, s);
  __shared__ Offer s_best;
  int rank = -1, j = 0, first_exponent = 0;
  double first_norm = 0;
  for (; j < task.steps; ++j) {
    own_best(s, j, s_best);
    if (blocks > 1) exchange(task, s, j, s_best);
    const Offer chosen = s_best;
    if (j == 0) first_norm = chosen.norm, first_exponent = chosen.exponent;
    if (rank < 0 && scalbn(chosen.norm, chosen.exponent - first_exponent) <= task.tolerance * first_norm) rank = j;
    if (rank >= 0 && task.truncate) break;
    const T tau = static_cast<T>(chosen.tau);
    spread(task, s, chosen, j);
    if (blockIdx.x == 0 && threadIdx.x == 0) task.inverse_tau[j] = tau == T(0) ? T(0x1p60) : 1 / tau;
    for (int l = threadIdx.x; l < s.count; l += threads) {
      if (static_cast<int>(blockIdx.x + l * blocks) == chosen.column)
        s.positions[l] = j;
      else if (s.positions[l] == j)
        s.positions[l] = chosen.position;
    }
    __syncthreads();
    if (tau != T(0)) reflect(task, s, tau, j);
    __syncthreads();
  }
  store(task, s, j);
  if (blockIdx.x == 0 && threadIdx.x == 0) *task.rank = rank < 0 ? j : rank;
}

}  // namespace
}  // namespace qrane::backend::cuda
