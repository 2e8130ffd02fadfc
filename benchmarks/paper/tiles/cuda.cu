// SPDX-License-Identifier: Apache-2.0
// One round of the sparse paper's tile tasks, one block per task, all kinds in one launch (front_tiles.hpp).
//
// Thread map: 8 warps. Apply: of W = Vᵀ C and X = Tᵀ W (32 x 32 each) a warp makes one piece of 16 x 8, of V X (rows x
// 32) pieces of 16 x 32, on the tensor cores. The next column tile of C is on its way meanwhile (cp.async). Factorize:
// warp w owns columns w, w + 8, ... of the bundle; one barrier per column, since every warp computes the column's norm
// with the products of its own columns. Shared memory, column-major, `ld` = rows + 8: eight columns' pairs of rows lie
// in different banks then.
#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/tile_mma.cuh"
#include "cuda/queue/launch.hpp"
#include "paper/cuda.hpp"
#include "paper/tiles/front_tiles.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int tile = front_tile, threads = 256, warps = threads / 32;
constexpr int small_ld = tile + 8;

template <class T>
struct Shared {
  T *v, *c[2], *t, *w, *x;
  int ld;
};

template <class T>
std::size_t shared_bytes(std::int32_t bundle) {
  return sizeof(T) * static_cast<std::size_t>(3 * tile * (bundle * tile + 8) + 3 * tile * small_ld);
}

template <class T>
__device__ Shared<T> divide(T* memory, int bundle) {
  Shared<T> s;
  s.ld = bundle * tile + 8;
  s.v = memory;
  s.c[0] = s.v + tile * s.ld;
  s.c[1] = s.c[0] + tile * s.ld;
  s.t = s.c[1] + tile * s.ld;
  s.w = s.t + tile * small_ld;
  s.x = s.w + tile * small_ld;
  return s;
}

__device__ inline void copy_16_bytes(void* s_to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(s_to))),
               "l"(from));
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
}

/// A bundle's rows of column tile `column`, one row tile below the other, asynchronously.
template <class T>
__device__ void load_column(const FrontTileRound<Cuda, T>& round, const TileFront& front, const Bundle& bundle,
                            int column, T* to, int ld) {
  constexpr int per_copy = 16 / sizeof(T), copies = tile / per_copy;
  for (int k = threadIdx.x; k < bundle.rows * tile * copies; k += threads) {
    const int i = k % copies * per_copy, j = k / copies % tile, b = k / (copies * tile);
    const std::int64_t row = std::int64_t{round.row_tiles[bundle.first_row + b]} * tile + i;
    copy_16_bytes(to + b * tile + i + j * ld,
                  round.storage + front.matrix + row + (std::int64_t{column} * tile + j) * front.ld);
  }
  commit_copies();
}

template <class T>
__device__ void store_column(const FrontTileRound<Cuda, T>& round, const TileFront& front, const Bundle& bundle,
                             int column, const T* from, int ld) {
  for (int k = threadIdx.x; k < bundle.rows * tile * tile; k += threads) {
    const int i = k % tile, j = k / tile % tile, b = k / (tile * tile);
    const std::int64_t row = std::int64_t{round.row_tiles[bundle.first_row + b]} * tile + i;
    round.storage[front.matrix + row + (std::int64_t{column} * tile + j) * front.ld] = from[b * tile + i + j * ld];
  }
}

/// V and T of a bundle: the lower tiles lie in the front, the top one's V beside T.
template <class T>
__device__ void load_v(const FrontTileRound<Cuda, T>& round, const TileFront& front, const Bundle& bundle,
                       const Shared<T>& s) {
  load_column(round, front, bundle, bundle.column, s.v, s.ld);
  const T* const vt = round.vt + std::int64_t{bundle.vt} * vt_elements;
  wait_for_copies<0>();
  __syncthreads();
  for (int k = threadIdx.x; k < tile * tile; k += threads) {
    const int i = k % tile, j = k / tile;
    s.t[i + j * small_ld] = i <= j ? vt[i + j * (tile + 1)] : T(0);
    s.v[i + j * s.ld] = i > j ? vt[i + 1 + j * (tile + 1)] : T(i == j);
  }
}

/// D (16 x 8) += A B, A(i, k) = a[k + i * lda], B(k, n) = b[k + n * ldb], `depth` a multiple of 8.
template <class T>
__device__ void multiply_transposed(T (&d)[4], const T* a, int lda, const T* b, int ldb, int depth) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  for (int k = 0; k < depth; k += 8) {
    T low[2], high[2], right[2];
    load_pair(low, a + k + 2 * q + g * lda);
    load_pair(high, a + k + 2 * q + (g + 8) * lda);
    load_pair(right, b + k + 2 * q + g * ldb);
    const T values[4] = {low[0], low[1], high[0], high[1]};
    TileMma<T>::multiply(d, TileMma<T>::prepare(values), right);
  }
}

template <class T>
__device__ void put_piece(const T (&d)[4], T* to, int ld) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  to[g + 2 * q * ld] = d[0];
  to[g + (2 * q + 1) * ld] = d[1];
  to[g + 8 + 2 * q * ld] = d[2];
  to[g + 8 + (2 * q + 1) * ld] = d[3];
}

/// C := C - V Tᵀ Vᵀ C for `rows` rows in shared memory.
template <class T>
__device__ void reflect_tile(const Shared<T>& s, T* c, int rows) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  const int r0 = warp % 2 * 16, c0 = warp / 2 * 8;
  T d[4] = {};
  multiply_transposed(d, s.v + r0 * s.ld, s.ld, c + c0 * s.ld, s.ld, rows);
  put_piece(d, s.w + r0 + c0 * small_ld, small_ld);
  __syncthreads();
  T x[4] = {};
  multiply_transposed(x, s.t + r0 * small_ld, small_ld, s.w + c0 * small_ld, small_ld, tile);
  put_piece(x, s.x + r0 + c0 * small_ld, small_ld);
  __syncthreads();
  for (int piece = warp; piece < rows / 16; piece += warps) {
    T sums[4][4] = {};
    for (int k = 0; k < tile; k += 8) {
      const T* const from = s.v + piece * 16 + g + (k + 2 * q) * s.ld;
      const T values[4] = {from[0], from[s.ld], from[8], from[s.ld + 8]};
      const auto a = TileMma<T>::prepare(values);
      for (int n = 0; n < 4; ++n) {
        T right[2];
        load_pair(right, s.x + k + 2 * q + (n * 8 + g) * small_ld);
        TileMma<T>::multiply(sums[n], a, right);
      }
    }
    for (int n = 0; n < 4; ++n) {
      T* const to = c + piece * 16 + g + (n * 8 + 2 * q) * s.ld;
      to[0] -= sums[n][0];
      to[s.ld] -= sums[n][1];
      to[8] -= sums[n][2];
      to[s.ld + 8] -= sums[n][3];
    }
  }
  __syncthreads();
}

template <class T>
__device__ void apply(const FrontTileRound<Cuda, T>& round, const Bundle& bundle, int first, int columns,
                      const Shared<T>& s) {
  const TileFront front = round.fronts[bundle.front];
  load_v(round, front, bundle, s);
  load_column(round, front, bundle, first, s.c[0], s.ld);
  for (int k = 0; k < columns; ++k) {
    T* const c = s.c[k % 2];
    if (k + 1 < columns) {
      load_column(round, front, bundle, first + k + 1, s.c[(k + 1) % 2], s.ld);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    reflect_tile(s, c, bundle.rows * tile);
    store_column(round, front, bundle, first + k, c, s.ld);
    __syncthreads();
  }
}

template <class T>
__device__ T warp_total(T x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

/// Householder QR of the bundle's rows of its column tile.
template <class T>
__device__ void factorize(const FrontTileRound<Cuda, T>& round, const Bundle& bundle, const Shared<T>& s) {
  constexpr T negligible = sizeof(T) == 4 ? T(1e-34) : T(1e-290);  // squares below it underflow
  const TileFront front = round.fronts[bundle.front];
  T* const a = s.c[0];
  const int ld = s.ld, rows = bundle.rows * tile, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  load_column(round, front, bundle, bundle.column, a, ld);
  wait_for_copies<0>();
  __syncthreads();
  // w: products of reflectors, v_kᵀ v_j for k < j; x: column 0 holds tau, column 1 beta
  T* const tau = s.x;
  T* const beta = s.x + small_ld;
  T* const inverse = s.x + 2 * small_ld;  // v_j = x_j inverse[j] below its one
  for (int j = 0; j < tile; ++j) {
    const T* const x = a + j * ld;
    T below[widest_bundle], sum = 0;
#pragma unroll
    for (int b = 0; b < widest_bundle; ++b) {
      const int i = b * tile + lane;
      below[b] = i < rows && i > j ? x[i] : T(0);
      sum += below[b] * below[b];
    }
    const T square = warp_total(sum), alpha = x[j];
    T t = 0, head = alpha, factor = 0;
    if (!(square <= negligible)) {
      head = -copysign(sqrt(alpha * alpha + square), alpha);
      t = (head - alpha) / head;
      factor = 1 / (alpha - head);
    }
    for (int k = warp; k < tile; k += warps) {
      if (k == j) {
        if (lane == 0) tau[j] = t, beta[j] = head, inverse[j] = factor;
        continue;
      }
      T* const y = a + k * ld;
      T product = 0;
#pragma unroll
      for (int b = 0; b < widest_bundle; ++b)
        if (b * tile + lane < rows) product += below[b] * y[b * tile + lane];
      product = warp_total(product) * factor;
      if (k < j) {  // reflectors stay unscaled in place until the end
        if (lane == 0) s.w[k + j * small_ld] = inverse[k] * (y[j] + product);
        continue;
      }
      const T weight = t * (y[j] + product);
      __syncwarp();
#pragma unroll
      for (int b = 0; b < widest_bundle; ++b) {
        const int i = b * tile + lane;
        if (i < rows && i >= j) y[i] -= i == j ? weight : weight * factor * below[b];
      }
    }
    __syncthreads();
  }
  // T(0:j, j) = -tau_j T(0:j, 0:j) (v_kᵀ v_j), a lane per row
  if (warp == 0) {
    for (int j = 0; j < tile; ++j) {
      T sum = 0;
      for (int k = lane; k < j; ++k) sum += s.t[lane + k * small_ld] * s.w[k + j * small_ld];
      s.t[lane + j * small_ld] = lane < j ? -tau[j] * sum : lane == j ? tau[j] : T(0);
    }
  }
  __syncthreads();
  T* const vt = round.vt + std::int64_t{bundle.vt} * vt_elements;
  for (int k = threadIdx.x; k < tile * tile; k += threads) {
    const int i = k % tile, j = k / tile;
    vt[i + (i > j) + j * (tile + 1)] = i <= j ? s.t[i + j * small_ld] : a[i + j * ld] * inverse[j];
  }
  __syncthreads();
  for (int k = threadIdx.x; k < rows * tile; k += threads) {
    const int i = k % rows, j = k / rows;
    if (i == j) a[i + j * ld] = beta[j];
    if (i > j) a[i + j * ld] = i < tile ? T(0) : a[i + j * ld] * inverse[j];
  }
  __syncthreads();
  store_column(round, front, bundle, bundle.column, a, ld);
}

/// Row of a front's tiles that holds row i of R, or of what is below R.
template <class T>
__device__ std::int64_t place(const FrontTileRound<Cuda, T>& round, int order, int i) {
  return std::int64_t{round.order[order + i / tile]} * tile + i % tile;
}

template <class T>
__device__ void pack(const FrontTileRound<Cuda, T>& round, const PackTilesTask& task) {
  const TileFront child = round.fronts[task.block.front], parent = round.fronts[child.parent];
  for (int k = threadIdx.x; k < task.block.rows * task.block.columns; k += threads) {
    const int i = task.block.first_row + k % task.block.rows, j = task.block.first_column + k / task.block.rows;
    if (i > j) continue;
    const int row = round.cb_slot[child.slots + i], column = round.parent_col[child.columns + child.pivots + j];
    round.storage[parent.matrix + row + std::int64_t{column} * parent.ld] =
        round.storage[child.matrix + place(round, task.order, child.pivots + i) +
                      (std::int64_t{child.pivots} + j) * child.ld];
  }
}

template <class T>
__device__ void scatter(const FrontTileRound<Cuda, T>& round, const SAssemblyTask& task) {
  const TileFront front = round.fronts[task.front];
  const std::int64_t first = round.row_begin[front.first_row] + task.first;
  for (std::int64_t p = first + threadIdx.x; p < first + task.count; p += threads) {
    std::int64_t low = front.first_row, high = front.first_row + front.own_rows;  // the row with p among its entries
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (round.row_begin[middle] <= p ? low : high) = middle;
    }
    round.storage[front.matrix + round.own_slot[low] + std::int64_t{round.entry_col[p]} * front.ld] = round.values[p];
  }
}

template <class T>
__device__ void finish(const FrontTileRound<Cuda, T>& round, const FinishTilesTask& task) {
  const TileFront front = round.fronts[task.front];
  const std::int64_t bound = front.r_rows;
  for (std::int64_t j = task.part; j < front.cols; j += task.parts) {
    const std::int64_t corner = min(j, bound), pivots = front.pivots, head = min(pivots, bound);
    const std::int64_t offset = j < pivots ? corner * (corner + 1) / 2 + (j - corner) * bound
                                           : head * (head + 1) / 2 + (pivots - head) * bound + (j - pivots) * bound;
    const int count = static_cast<int>(j < pivots ? min(j + 1, bound) : bound);
    for (int i = threadIdx.x; i < count; i += threads)
      round.r[front.r + offset + i] = round.storage[front.matrix + place(round, task.order, i) + j * front.ld];
  }
}

template <class T>
__global__ void __launch_bounds__(threads) tile_round_kernel(FrontTileRound<Cuda, T> round, int bundle) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Shared<T> s = divide(reinterpret_cast<T*>(memory), bundle);
  int k = static_cast<int>(blockIdx.x);
  if (k < round.apply_factorize.count) {
    const ApplyFactorizeTask task = round.apply_factorize.tasks[k];
    const Bundle factored = round.bundles.tasks[task.factored];
    apply(round, round.bundles.tasks[task.applied], factored.column, 1, s);
    factorize(round, factored, s);
    return;
  }
  if ((k -= round.apply_factorize.count) < round.factorize.count) {
    factorize(round, round.bundles.tasks[round.factorize.tasks[k].bundle], s);
    return;
  }
  if ((k -= round.factorize.count) < round.apply.count) {
    const ApplyTask task = round.apply.tasks[k];
    apply(round, round.bundles.tasks[task.bundle], task.first_column, task.columns, s);
    return;
  }
  if ((k -= round.apply.count) < round.pack.count) return pack(round, round.pack.tasks[k]);
  if ((k -= round.pack.count) < round.s_assembly.count) return scatter(round, round.s_assembly.tasks[k]);
  k -= round.s_assembly.count;
  finish(round, round.finish.tasks[k]);
}

}  // namespace

template <class T>
void run_tile_round(const Queue& queue, const FrontTileRound<Cuda, T>& round, std::int32_t bundle) {
  const Launch launch(queue);
  if (round.tasks() == 0) return;
  const std::size_t bytes = shared_bytes<T>(bundle);
  check_cuda(
      cudaFuncSetAttribute(tile_round_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
      "cudaFuncSetAttribute(tile_round)");
  tile_round_kernel<T><<<static_cast<unsigned>(round.tasks()), threads, bytes, launch.stream>>>(round, bundle);
  check_cuda(cudaGetLastError(), "tile_round kernel");
}

template void run_tile_round(const Queue&, const FrontTileRound<Cuda, float>&, std::int32_t);
template void run_tile_round(const Queue&, const FrontTileRound<Cuda, double>&, std::int32_t);

}  // namespace qrane::backend::cuda
