// SPDX-License-Identifier: Apache-2.0
// update_fronts: C := C - V Tᵀ (Vᵀ C) for strips of up to 64 columns of fronts, V a panel of up to 32 reflectors.
//
// A cluster of blocks shares a task's rows. Each block takes its rows in tiles, V and C side by side in shared memory:
//
//            V (32)  C (64 columns)
//          | tile 0 |  tile 0        |      forth:  Wᵀ += Cᵀ V    (a warp: 32 columns of C, a quarter of the rows)
//     rows | tile 1 |  tile 1        |      then the blocks' Wᵀ are added in their order, and Xᵀ = -Wᵀ T
//          | ...    |  ...           |      back:   Cᵀ += Xᵀ Vᵀ   (a warp: 16 columns of C, half of the rows)
//
// Tiles come by asynchronous copies, `stages` - 1 ahead; on the way back the last `stages` tiles are there already, so
// that fronts of up to cluster x stages tiles are read once and written once, taller ones read twice. Products and sums
// are in double on tensor cores for float, too (which costs no more than products in float would, and rounds once).
//
// Flops: 128 per element of C; bytes: 16 (24 where C is read twice) in double, from memory, and V once per strip, from
// L2.
#include "cuda/fronts/update.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {
namespace {

using namespace front_update;

template <class T>
using One = Geometry<T, 1>;
constexpr int strip = front_update_strip, pieces = 16, column_bytes = pieces * piece_bytes;
constexpr int w_bytes = strip * panel_cols * static_cast<int>(sizeof(double));
static_assert(w_bytes == strip * column_bytes && column_bytes == One<double>::column_bytes,
              "W is laid out like a tile");

constexpr int shared_bytes(int stages) { return stages * One<double>::stage_bytes + w_bytes; }

/// The quarters' sums, one after the other, into shared memory.
__device__ void add_quarters(const double (&w)[2][4][4], std::byte* s_w, int half, int quarter) {
  using Pair = Vector<double, 2>;
  const Lane lane;
  for (int turn = 0; turn < 4; ++turn) {
    if (turn == quarter) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            auto& sum = *reinterpret_cast<Pair*>(
                s_w + place<column_bytes>(32 * half + 16 * m + 8 * h + lane.g, 4 * n + lane.q));
            const Pair mine{w[m][n][2 * h], w[m][n][2 * h + 1]};
            sum = turn == 0 ? mine : Pair{sum.v[0] + mine.v[0], sum.v[1] + mine.v[1]};
          }
        }
      }
    }
    __syncthreads();
  }
}

/// s_w of every block := -(sum of the blocks' Wᵀ) T. Each block sees to its share of the columns.
/// t: as from load_t for n = warp % 4.
__device__ void finish_w(std::byte* s_w, const double (&t)[4][2], int c_cols, int rank, int blocks) {
  using Pair = Vector<double, 2>;
  const int columns = strip / blocks, first = rank * columns;
  if (blocks > 1) {
    cluster_sync(blocks);
    for (int e = threadIdx.x; e < columns * pieces; e += threads) {
      if (first + e / pieces >= c_cols) break;
      std::byte* const mine = s_w + first * column_bytes + e * piece_bytes;
      *reinterpret_cast<Pair*>(mine) = sum_of_blocks(mine, blocks);
    }
    __syncthreads();
  }
  const Lane lane;
  const int warp = threadIdx.x / warp_size, n = warp % 4;
  double x[2][4] = {};  // columns first + 16 (warp / 4 + 2 m) + g and + g + 8
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const int upper = 16 * (warp / 4 + 2 * m) + lane.g, lower = upper + 8;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      Pair a[2] = {};
      if (upper < columns)
        a[0] = *reinterpret_cast<const Pair*>(s_w + place<column_bytes>(first + upper, 4 * k + lane.q));
      if (lower < columns)
        a[1] = *reinterpret_cast<const Pair*>(s_w + place<column_bytes>(first + lower, 4 * k + lane.q));
      const double left[4] = {-a[0].v[0], -a[1].v[0], -a[0].v[1], -a[1].v[1]};
      mma_16x8x8(x[m], left, t[k][0], t[k][1]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int column = 16 * (warp / 4 + 2 * m) + 8 * h + lane.g;
      if (column >= columns || first + column >= c_cols) continue;
      std::byte* const mine = s_w + place<column_bytes>(first + column, 4 * n + lane.q);
      const Pair mine_x{x[m][2 * h], x[m][2 * h + 1]};
      for (int r = 0; r < blocks; ++r) *reinterpret_cast<Pair*>(blocks > 1 ? in_block(mine, r) : mine) = mine_x;
    }
  }
  cluster_sync(blocks);
}

/// Thread map: a cluster of `blocks` blocks per task, blockIdx.x / blocks its number.
template <class T, int stages>
__global__ void __launch_bounds__(threads, 2)
    front_update_kernel(const std::int32_t* condition, Fronts<Cuda, T> f, const FrontUpdateTask* tasks, int blocks) {
  if (skipped(condition)) return;
  using G = One<T>;
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ Share<T, 1> s_share;
  std::byte* const s_w = shared + stages * G::stage_bytes;
  const FrontUpdateTask task = tasks[blockIdx.x / blocks];
  const int rank = blocks > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) s_share = make_share<T, 1>(f, task, rank, blocks);
  const T* const g_t = f.storage + f.shapes[task.front].t + static_cast<std::int64_t>(task.panel) * f.panel * f.panel;
  __syncthreads();
  if (s_share.begin == s_share.end || task.cols == 0) return;
  const int tiles = s_share.tiles, warp = threadIdx.x / warp_size;
  const auto ask = [&](int tile) {
    if (tile >= 0 && tile < tiles) Feed<T, 1>::fetch(s_share, tile, shared + tile % stages * G::stage_bytes);
    __pipeline_commit();
  };
  const auto arrive = [] {  // the tile asked for stages - 1 steps ago is there, and nobody reads the last one any more
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
  };

#pragma unroll 1
  for (int tile = 0; tile < stages - 1; ++tile) ask(tile);
  double w[2][4][4] = {};
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    arrive();
    ask(tile + stages - 1);
    const std::byte* const stage = shared + tile % stages * G::stage_bytes;
    multiply_forth<T, 1>(w, stage + G::v_bytes + warp / 4 * 32 * column_bytes, stage, warp % 4,
                         s_share.c_cols - warp / 4 * 32);
  }
  double t[4][2];
  load_t(t, g_t, f.panel, s_share.v_cols[0], warp % 4);
  add_quarters(w, s_w, warp / 4, warp % 4);
  finish_w(s_w, t, s_share.c_cols, rank, blocks);

  const Back<T, 1> back(s_w);
#pragma unroll 1
  for (int tile = tiles - 1; tile >= 0; --tile) {
    if (tile < tiles - 1) {
      arrive();
      ask(tile + 1 - stages);
    }
    back.multiply(s_share, shared + tile % stages * G::stage_bytes, tile);
  }
}

template <class T, int stages>
void launch_staged(const Launch& launch, const Fronts<Cuda, T>& fronts,
                   const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  launch_clusters(front_update_kernel<T, stages>, shared_bytes(stages), launch, fronts, tasks, "update_fronts kernel");
}

}  // namespace

template <class T>
void update_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0 || tasks.max_rows == 0) return;
  check_update(fronts, tasks, "update_fronts");
  constexpr int stages = 4;
  if (shared_memory_limit() >= shared_bytes(stages)) {
    launch_staged<T, stages>(launch, fronts, tasks);
  } else {
    launch_staged<T, 2>(launch, fronts, tasks);
  }
}

template void update_fronts<float>(const Queue&, const Fronts<Cuda, float>&, const FrontTasks<Cuda, FrontUpdateTask>&);
template void update_fronts<double>(const Queue&, const Fronts<Cuda, double>&,
                                    const FrontTasks<Cuda, FrontUpdateTask>&);

}  // namespace qrane::backend::cuda
