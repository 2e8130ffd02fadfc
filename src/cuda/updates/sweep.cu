// SPDX-License-Identifier: Apache-2.0
// A chain of orthogonal blocks applied from the right to the rows of X, in one launch (Sweep in
// vocabulary/updates.hpp).
//
// A warp owns 16 rows from the first block to the last. In registers it has the carry, the columns J of X that the
// block at hand stands on, and those of the next block, which are on their way; a product's result lies as the next
// product's operand (tile_mma.cuh), so the carry never moves. X is read once and written once. Blocks go through shared
// memory, a stage or two ahead, in the order [carry | X] of rows and columns whichever way the chain goes, padded with
// zeros to multiples of 8 (carry) and 32 (X):
//
//            carry            X (32)
//   carry  | p ......p 0  |  p x |J| ...  |      column-major, leading dimension 8 (mod 16), which keeps a warp's reads
//   of X      | |J| x p   0  |  |J| x |J| .. |      two neighbours in each of eight columns free of bank conflicts
//
// Lane (g, q) of a warp holds rows 2g and 2g + 1 of columns 2q and 2q + 1 of every eight: two rows are one access.
// Products and sums are double's for float, too (WideSweep): the tensor cores' sums of float are cut off rather than
// rounded, which shortens Q a little with every update; those of double are rounded. The carry stays double throughout.
// Flops: 2 rows (32 + p)^2 per block, on tensor cores, p rounded up to a multiple of 8, a power of two of them.
#include <cuda_pipeline_primitives.h>

#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/updates.hpp"
#include "cuda/collectives/tile_mma.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int x_tiles = sweep_block / 8;

/// Carries of up to 8 * P columns.
template <int P>
struct Shape {
  static constexpr int carry = 8 * P;
  static constexpr int order = carry + sweep_block;
  static constexpr int ld = order % 16 == 8 ? order : order + 8;
  static constexpr int stages = P == 8 ? 2 : 3;
  static constexpr int bytes = stages * order * ld * static_cast<int>(sizeof(double));
  static constexpr int warps = 8;           // at most, by registers
  static constexpr bool together = P <= 4;  // carry and X at once, where registers last
  using Mma = TileMma<double>;
  using A = Mma::A;
};

struct Access {
  bool x, carry_in, carry_out, h;  // pairs of neighbours are aligned
};

/// Block j of the chain to shared memory.
template <class S, class T>
__device__ void fetch_block(double* s_h, const Sweep<Cuda, T>& task, const double* h, Index j, bool pairs) {
  const int p = static_cast<int>(task.p);
  const int w = static_cast<int>(min(task.block, task.cols - j * task.block));
  const double* source = h + j * (task.block + task.p) * (task.block + task.p);
  const int carry_row = task.down ? 0 : w, x_row = task.down ? p : 0;
  const int carry_col = task.down ? w : 0, x_col = task.down ? 0 : p;
  for (int e = threadIdx.x; e < S::order * (S::order / 2); e += blockDim.x) {
    const int c = e / (S::order / 2), r = 2 * (e % (S::order / 2));
    const int row = r < S::carry ? carry_row + r : x_row + r - S::carry;
    const int col = c < S::carry ? carry_col + c : x_col + c - S::carry;
    const int rows = r < S::carry ? p - r : w - (r - S::carry);  // that are left
    const bool taken = c < S::carry ? c < p : c - S::carry < w;
    const double* from = source + row + static_cast<Index>(col) * (w + p);
    double* to = s_h + c * S::ld + r;
    if (pairs) {  // both or none
      const bool both = taken && rows > 0;
      __pipeline_memcpy_async(to, both ? from : h, 2 * sizeof(double), both ? 0 : 2 * sizeof(double));
    } else {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const bool one = taken && rows > v;
        __pipeline_memcpy_async(to + v, one ? from + v : h, sizeof(double), one ? 0 : sizeof(double));
      }
    }
  }
}

/// The columns of `a` that tile `tile` has in this lane; a begins at the lane's first row, of which `rows` are there,
/// and first column, from which on there are `cols`.
template <class T>
__device__ void load_tile(T (&d)[4], const T* a, Index ld, int tile, int cols, int rows, bool pairs) {
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    d[v] = d[2 + v] = T(0);
    if (8 * tile + v >= cols) continue;
    const T* from = a + (8 * tile + v) * ld;
    if (pairs && rows >= 2) {
      const auto pair = *reinterpret_cast<const Pair<T>*>(from);
      d[v] = pair.x, d[2 + v] = pair.y;
    } else {
      if (rows >= 1) d[v] = from[0];
      if (rows >= 2) d[2 + v] = from[1];
    }
  }
}

/// Rounded to the scalar of X.
template <class T>
__device__ void store_tile(const double (&d)[4], T* a, Index ld, int tile, int cols, int rows, bool pairs) {
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    if (8 * tile + v >= cols) continue;
    T* to = a + (8 * tile + v) * ld;
    if (pairs && rows >= 2) {
      *reinterpret_cast<Pair<T>*>(to) = {static_cast<T>(d[v]), static_cast<T>(d[2 + v])};
    } else {
      if (rows >= 1) to[0] = static_cast<T>(d[v]);
      if (rows >= 2) to[1] = static_cast<T>(d[2 + v]);
    }
  }
}

/// A loaded tile as an operand.
template <class S, class T>
__device__ typename S::A operand(const T (&d)[4]) {
  const double wide[4] = {d[0], d[1], d[2], d[3]};
  return S::Mma::prepare(wide);
}

/// Tiles of [carry | X] H from column `first` on.
template <class S, int N, int P>
__device__ void multiply(double (*out)[4], const typename S::A (&carry)[P], const typename S::A (&x)[x_tiles],
                         const double* s_h, int first) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  const double* s_b = s_h + (first + g) * S::ld + 2 * q;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int v = 0; v < 4; ++v) out[n][v] = 0;
#pragma unroll
  for (int k = 0; k < P + x_tiles; ++k)
#pragma unroll
    for (int n = 0; n < N; ++n) {
      double b[2];
      load_pair(b, s_b + 8 * n * S::ld + 8 * k);
      S::Mma::multiply(out[n], k < P ? carry[k % P] : x[k < P ? 0 : k - P], b);
    }
}

/// One strip of `strip_warps` * 16 rows of one matrix per block; warps beyond those only fetch.
template <class T, int P>
__global__ void __launch_bounds__(32 * Shape<P>::warps, 1)
    sweep_kernel(const std::int32_t* condition, Sweep<Cuda, T> task, const double* chains, Access access,
                 int strip_warps, unsigned strips) {
  using S = Shape<P>;
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char shared[];
  double* const s_h = reinterpret_cast<double*>(shared);
  const Index batch = blockIdx.x / strips;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q2 = threadIdx.x % 4 * 2;
  const Index row = (static_cast<Index>(blockIdx.x % strips) * strip_warps + warp) * 16 + 2 * g;
  const int rows = warp < strip_warps ? static_cast<int>(max(Index(0), min(Index(2), task.x.rows - row))) : 0;
  const bool idle = warp >= strip_warps || row - 2 * g >= task.x.rows;
  T* const x_lane = task.x.data + batch * task.x.stride + row + q2 * task.x.ld;
  const double* const h = chains + batch * task.h_stride;
  const Index blocks = (task.cols + task.block - 1) / task.block;
  const auto block_at = [&](Index step) { return task.down ? step : blocks - 1 - step; };
  const auto width = [&](Index j) { return static_cast<int>(min(task.block, task.cols - j * task.block)) - q2; };

  for (int step = 0; step < S::stages - 1; ++step) {
    if (step < blocks) fetch_block<S>(s_h + step * S::order * S::ld, task, h, block_at(step), access.h);
    __pipeline_commit();
  }
  // columns of the carry from this lane's first on
  const auto carried = [&](const DeviceMatrix<Cuda, T>& a) { return static_cast<int>(min(task.p, a.cols)) - q2; };
  double carry[P][4];
  T next[x_tiles][4];
  typename S::A a_carry[P];
#pragma unroll
  for (int t = 0; t < P; ++t) {
    const T* from = task.carry_in.data + batch * task.carry_in.stride + row + q2 * task.carry_in.ld;
    T stored[4];
    load_tile(stored, from, task.carry_in.ld, t, carried(task.carry_in), rows, access.carry_in);
    a_carry[t] = operand<S>(stored);
#pragma unroll
    for (int v = 0; v < 4; ++v) carry[t][v] = stored[v];
  }
#pragma unroll
  for (int t = 0; t < x_tiles; ++t) {
    const Index j = block_at(0);
    load_tile(next[t], x_lane + (task.first + j * task.block) * task.x.ld, task.x.ld, t, blocks > 0 ? width(j) : 0,
              rows, access.x);
  }
  int stage = 0;
  for (Index step = 0; step < blocks; ++step) {
    __pipeline_wait_prior(S::stages - 2);
    __syncthreads();
    if (step + S::stages - 1 < blocks)
      fetch_block<S>(s_h + (stage == 0 ? S::stages - 1 : stage - 1) * S::order * S::ld, task, h,
                     block_at(step + S::stages - 1), access.h);
    __pipeline_commit();
    if (!idle) {
      typename S::A x[x_tiles];
#pragma unroll
      for (int t = 0; t < x_tiles; ++t) x[t] = operand<S>(next[t]);
      if (step + 1 < blocks) {
        const Index j = block_at(step + 1);
        const T* from = x_lane + (task.first + j * task.block) * task.x.ld;
#pragma unroll
        for (int t = 0; t < x_tiles; ++t) load_tile(next[t], from, task.x.ld, t, width(j), rows, access.x);
      }
      const double* s_block = s_h + stage * S::order * S::ld;
      const Index j = block_at(step);
      T* to = x_lane + (task.first + j * task.block + task.shift) * task.x.ld;
      double out[S::together ? P + x_tiles : x_tiles][4];
      if constexpr (S::together) {
        multiply<S, P + x_tiles, P>(out, a_carry, x, s_block, 0);
#pragma unroll
        for (int t = 0; t < P; ++t)
#pragma unroll
          for (int v = 0; v < 4; ++v) carry[t][v] = out[t][v];
#pragma unroll
        for (int t = 0; t < x_tiles; ++t) store_tile(out[P + t], to, task.x.ld, t, width(j), rows, access.x);
      } else {
        multiply<S, x_tiles, P>(out, a_carry, x, s_block, S::carry);
#pragma unroll
        for (int t = 0; t < x_tiles; ++t) store_tile(out[t], to, task.x.ld, t, width(j), rows, access.x);
        multiply<S, P, P>(carry, a_carry, x, s_block, 0);
      }
#pragma unroll
      for (int t = 0; t < P; ++t) a_carry[t] = S::Mma::prepare(carry[t]);
    }
    stage = stage + 1 == S::stages ? 0 : stage + 1;
  }
  __pipeline_wait_prior(0);
  if (idle) return;
#pragma unroll
  for (int t = 0; t < P; ++t) {
    T* to = task.carry_out.data + batch * task.carry_out.stride + row + q2 * task.carry_out.ld;
    store_tile(carry[t], to, task.carry_out.ld, t, carried(task.carry_out), rows, access.carry_out);
  }
}

/// Warps to a strip: as many as leave the least work for the multiprocessor that has most.
int choose_warps(Index rows, Index count, int most) {
  const Index units = multiprocessors();
  int best = 1;
  Index least = std::numeric_limits<Index>::max();
  for (int warps : {1, 2, 4, 6, 8, 12}) {
    if (warps > most) break;
    const Index strips = (rows + 16 * warps - 1) / (16 * warps) * count;
    const Index work = (strips + units - 1) / units * warps;
    if (work <= least) least = work, best = warps;
  }
  return best;
}

template <class T, int P>
void run(const Launch& launch, const Sweep<Cuda, T>& task, double* chains) {
  using S = Shape<P>;
  const Index order = task.block + task.p;
  const DeviceMatrix<Cuda, double> h{chains, order, 2, order, order * order, 2};
  Access access{};
  access.x = is_aligned<2>(task.x);
  access.carry_in = is_aligned<2>(task.carry_in);
  access.carry_out = is_aligned<2>(task.carry_out);
  access.h = is_aligned<2>(h) && task.p % 2 == 0 && task.cols % 2 == 0 && task.block % 2 == 0 && task.h_stride % 2 == 0;
  const int warps = choose_warps(task.x.rows, task.x.count, S::warps);
  const Index strips = (task.x.rows + 16 * warps - 1) / (16 * warps);
  allow_shared_memory(sweep_kernel<T, P>, S::bytes, "cudaFuncSetAttribute of sweep");
  sweep_kernel<T, P>
      <<<static_cast<unsigned>(strips * task.x.count), 32 * std::max(warps, 4), S::bytes, launch.stream>>>(
          launch.condition, task, chains, access, warps, static_cast<unsigned>(strips));
  check_launch("sweep kernel");
}

template <class T>
void run_by_carry(const Launch& launch, const Sweep<Cuda, T>& task, double* chains) {
  detail::check(task.p >= 0 && task.p <= sweep_carry, ErrorCode::invalid_argument, "sweep: p = ", task.p, ", at most ",
                sweep_carry, " is possible");
  detail::check(task.block > 0 && task.block <= sweep_block, ErrorCode::invalid_argument, "sweep: block = ", task.block,
                ", 1 to ", sweep_block, " is possible");
  if (task.x.rows == 0 || task.x.count == 0) return;
  if (task.p <= 8) return run<T, 1>(launch, task, chains);
  if (task.p <= 16) return run<T, 2>(launch, task, chains);
  if (task.p <= 32) return run<T, 4>(launch, task, chains);
  run<T, 8>(launch, task, chains);
}

}  // namespace

void sweep(const Queue& queue, const Sweep<Cuda, double>& task) {
  const Launch launch(queue);
  run_by_carry(launch, task, task.h);
}

void wide_sweep(const Queue& queue, const WideSweep<Cuda, float>& task) {
  const Launch launch(queue);
  run_by_carry<float>(launch, task.sweep, task.h);
}

}  // namespace qrane::backend::cuda
