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
// Shared memory: a column of a tile is 16 pieces of 16 bytes (32 rows of double, 64 of float), piece p of column c at
// p ^ swizzle(c), so that all reads of a warp are free of bank conflicts: two neighbouring columns by four pieces, and
// eight rows of four columns, even or odd ones. W and X (k fastest) are stored the same way.
//
// Flops: 128 per element of C; bytes: 16 (24 where C is read twice) in double, from memory, and V once per strip, from L2.
#include <cuda_pipeline_primitives.h>

#include "backend/cuda/cluster.cuh"
#include "backend/cuda/front_update.hpp"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/tile_mma.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int strip = front_update_strip, panel_cols = 32;
constexpr int threads = 256;
constexpr int pieces = 16, piece_bytes = 16, column_bytes = pieces * piece_bytes;
constexpr int v_bytes = panel_cols * column_bytes, stage_bytes = v_bytes + strip * column_bytes;
constexpr int w_bytes = strip * panel_cols * static_cast<int>(sizeof(double));
static_assert(w_bytes == strip * column_bytes, "W is laid out like a tile");

template <class T>
constexpr int per_piece = piece_bytes / static_cast<int>(sizeof(T));
template <class T>
constexpr int tile_rows = pieces * per_piece<T>;

constexpr int shared_bytes(int stages) { return stages * stage_bytes + w_bytes; }

__device__ constexpr int swizzle(int column) { return (column & 1) << 2 ^ (column & 6); }

/// The place of a piece within a tile or W.
__device__ inline int place(int column, int piece) {
  return column * column_bytes + (piece ^ swizzle(column)) * piece_bytes;
}

/// What a block works on: tiles of `tile_rows` rows from matrix row `first_tile` on, of which [begin, end) count.
template <class T>
struct Share {
  const T* g_v;
  T* g_c;
  std::int64_t ld;
  int v_cols, c_cols;
  int begin, end;
  int first_tile, tiles;
  bool aligned;  // 16 bytes from every fourth (float) or second (double) row on

  __device__ int tile_row(int tile) const { return first_tile + tile * tile_rows<T>; }
  /// All rows of the tile count, and are aligned.
  __device__ bool whole(int tile) const {
    const int row = tile_row(tile);
    return aligned && row >= begin && row + tile_rows<T> <= end;
  }
};

template <class T>
__device__ Share<T> make_share(const Fronts<Cuda, T>& f, const FrontShape& shape, const FrontPanelState& state,
                               const FrontUpdateTask& task, int rank, int blocks) {
  constexpr int grain = 64 / static_cast<int>(sizeof(T));  // rows that tiles begin at a multiple of: 64 bytes
  Share<T> share;
  T* const g_front = f.storage + shape.matrix;
  share.ld = shape.ld;
  share.g_v = g_front + static_cast<std::int64_t>(task.panel) * f.panel * share.ld;
  share.g_c = g_front + static_cast<std::int64_t>(task.first) * share.ld;
  share.v_cols = min(f.panel, shape.cols - task.panel * f.panel);
  share.c_cols = task.cols;
  share.begin = state.first_row;
  share.end = state.first_row + state.height;
  const int origin = share.begin / grain * grain;
  const int all = (share.end - origin + tile_rows<T> - 1) / tile_rows<T>;
  const int first = static_cast<int>(static_cast<std::int64_t>(all) * rank / blocks);
  const int last = static_cast<int>(static_cast<std::int64_t>(all) * (rank + 1) / blocks);
  share.first_tile = origin + first * tile_rows<T>;
  share.tiles = last - first;
  share.aligned = reinterpret_cast<std::uintptr_t>(g_front) % piece_bytes == 0 && share.ld % per_piece<T> == 0;
  return share;
}

/// Thread map of copies: a piece of every 16th column.
constexpr int column_step = threads / pieces;

/// A piece of which not all counts: zeros for the rest.
template <class T>
__device__ void fetch_part(const Share<T>& share, T* s_to, const T* g_from, int row, bool exists) {
#pragma unroll
  for (int i = 0; i < per_piece<T>; ++i) {
    const bool valid = exists && row + i >= share.begin && row + i < share.end;
    __pipeline_memcpy_async(s_to + i, valid ? g_from + i : share.g_v, sizeof(T), valid ? 0 : sizeof(T));
  }
}

/// Starts the copy of a tile of V and of C; zeros outside of the rows and past the last column of V. Columns of C that
/// the task has not are left: nothing of theirs is kept.
template <class T>
__device__ void fetch(const Share<T>& share, int tile, std::byte* stage) {
  const int piece = threadIdx.x % pieces, column = threadIdx.x / pieces;
  const int row = share.tile_row(tile) + piece * per_piece<T>;
  std::byte* const s_to = stage + place(column, piece);  // every 16th column has the same swizzle
  const T* const g_v = share.g_v + column * share.ld + row;
  const T* const g_c = share.g_c + column * share.ld + row;
  if (share.whole(tile) && share.v_cols == panel_cols && share.c_cols == strip) {
    const T* g_from = g_v;
#pragma unroll
    for (int c = 0; c < panel_cols; c += column_step, g_from += column_step * share.ld)
      __pipeline_memcpy_async(s_to + c * column_bytes, g_from, piece_bytes);
    g_from = g_c;
#pragma unroll
    for (int c = 0; c < strip; c += column_step, g_from += column_step * share.ld)
      __pipeline_memcpy_async(s_to + v_bytes + c * column_bytes, g_from, piece_bytes);
  } else {
    const bool inside = share.aligned && row >= share.begin && row + per_piece<T> <= share.end;
#pragma unroll 1
    for (int c = 0; c < panel_cols + strip; c += column_step) {
      const bool is_v = c < panel_cols;
      const int k = is_v ? c : c - panel_cols;
      const bool exists = column + k < (is_v ? share.v_cols : share.c_cols);
      if (!is_v && !exists) break;
      auto* const s_piece = reinterpret_cast<T*>(s_to + c * column_bytes);
      const T* const g_from = (is_v ? g_v : g_c) + k * share.ld;
      if (inside && exists) {
        __pipeline_memcpy_async(s_piece, g_from, piece_bytes);
      } else {
        fetch_part(share, s_piece, g_from, row, exists);
      }
    }
  }
}

/// Lane (g, q) of a warp; its part of the pieces' swizzle.
struct Lane {
  int g = threadIdx.x % warp_size / 4, q = threadIdx.x % 4;
};

/// Wᵀ (columns 32 half .. + 31 of C by all of V) += Cᵀ V over the rows of a tile in pieces 4 quarter .. + 3.
template <class T>
__device__ void multiply_forth(double (&w)[2][4][4], const std::byte* stage, int half, int quarter, int c_cols) {
  using Piece = Vector<T, per_piece<T>>;
  const Lane lane;
  const int at = place(lane.g, 4 * quarter + lane.q);
  Piece b[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) b[n] = *reinterpret_cast<const Piece*>(stage + n * 8 * column_bytes + at);
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const int column = 32 * half + 16 * m;
    if (column >= c_cols) break;
    const std::byte* const s_c = stage + v_bytes + column * column_bytes + at;
    const auto upper = *reinterpret_cast<const Piece*>(s_c);
    const auto lower = *reinterpret_cast<const Piece*>(s_c + 8 * column_bytes);
#pragma unroll
    for (int s = 0; s < per_piece<T> / 2; ++s) {
      const double a[4] = {upper.v[2 * s], lower.v[2 * s], upper.v[2 * s + 1], lower.v[2 * s + 1]};
#pragma unroll
      for (int n = 0; n < 4; ++n) mma_16x8x8(w[m][n], a, b[n].v[2 * s], b[n].v[2 * s + 1]);
    }
  }
}

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
            auto& sum = *reinterpret_cast<Pair*>(s_w + place(32 * half + 16 * m + 8 * h + lane.g, 4 * n + lane.q));
            const Pair mine{w[m][n][2 * h], w[m][n][2 * h + 1]};
            sum = turn == 0 ? mine : Pair{sum.v[0] + mine.v[0], sum.v[1] + mine.v[1]};
          }
        }
      }
    }
    __syncthreads();
  }
}

/// T(8k + 2q .. + 1, 8n + g) for k = 0 .. 3.
template <class T>
__device__ void load_t(double (&t)[4][2], const T* g_t, int ld, int cols, int n) {
  const Lane lane;
  const int column = 8 * n + lane.g;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 8 * k + 2 * lane.q + i;
      t[k][i] = row <= column && column < cols ? static_cast<double>(g_t[row + column * ld]) : 0.0;
    }
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
      Pair sum = *reinterpret_cast<const Pair*>(in_block(mine, 0));
#pragma unroll 4
      for (int r = 1; r < blocks; ++r) {
        const Pair x = *reinterpret_cast<const Pair*>(in_block(mine, r));
        sum.v[0] += x.v[0];
        sum.v[1] += x.v[1];
      }
      *reinterpret_cast<Pair*>(mine) = sum;
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
      if (upper < columns) a[0] = *reinterpret_cast<const Pair*>(s_w + place(first + upper, 4 * k + lane.q));
      if (lower < columns) a[1] = *reinterpret_cast<const Pair*>(s_w + place(first + lower, 4 * k + lane.q));
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
      std::byte* const mine = s_w + place(first + column, 4 * n + lane.q);
      const Pair mine_x{x[m][2 * h], x[m][2 * h + 1]};
      for (int r = 0; r < blocks; ++r) *reinterpret_cast<Pair*>(blocks > 1 ? in_block(mine, r) : mine) = mine_x;
    }
  }
  cluster_sync(blocks);
}

/// Two neighbours of a column of C, where they are among the rows.
template <class T>
__device__ void store_pair(const Share<T>& share, T* g_to, int row, double upper, double lower, bool whole) {
  if (whole) {
    *reinterpret_cast<Vector<T, 2>*>(g_to) = {static_cast<T>(upper), static_cast<T>(lower)};
  } else {
    if (row >= share.begin && row < share.end) g_to[0] = static_cast<T>(upper);
    if (row + 1 >= share.begin && row + 1 < share.end) g_to[1] = static_cast<T>(lower);
  }
}

/// Cᵀ += Xᵀ Vᵀ for columns `column` .. + 15 and a half of the tile's rows; x: Xᵀ as left operands.
template <class T>
__device__ void multiply_back(const Share<T>& share, const double (&x)[4][4], const std::byte* stage, int tile,
                              int column, int half) {
  constexpr int half_rows = tile_rows<T> / 2, element = static_cast<int>(sizeof(T));
  const Lane lane;
  const std::byte* const s_c = stage + v_bytes + column * column_bytes;
  const std::byte* const s_v = stage + 2 * lane.q * column_bytes;
  const int even = swizzle(2 * lane.q), odd = swizzle(2 * lane.q + 1);
  const bool whole = share.whole(tile);
  const bool has_upper = column + lane.g < share.c_cols, has_lower = column + lane.g + 8 < share.c_cols;
  const int first_row = share.tile_row(tile) + half * half_rows + 2 * lane.q;
  T* const g_c = share.g_c + (column + lane.g) * share.ld + first_row;
#pragma unroll
  for (int i = 0; i < half_rows / 8; ++i) {
    const int c_row = half * half_rows + 8 * i + 2 * lane.q, v_row = half * half_rows + 8 * i + lane.g;  // of the tile
    const int c_at = place(lane.g, c_row / per_piece<T>) + c_row % per_piece<T> * element;
    const auto upper = *reinterpret_cast<const Vector<T, 2>*>(s_c + c_at);
    const auto lower = *reinterpret_cast<const Vector<T, 2>*>(s_c + 8 * column_bytes + c_at);
    double c[4] = {upper.v[0], upper.v[1], lower.v[0], lower.v[1]};
    const int piece = v_row / per_piece<T>, within = v_row % per_piece<T> * element;
    const int at_even = (piece ^ even) * piece_bytes + within, at_odd = (piece ^ odd) * piece_bytes + within;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::byte* const s_k = s_v + 8 * k * column_bytes;
      const double b0 = *reinterpret_cast<const T*>(s_k + at_even);
      const double b1 = *reinterpret_cast<const T*>(s_k + column_bytes + at_odd);
      mma_16x8x8(c, x[k], b0, b1);
    }
    if (has_upper) store_pair(share, g_c + 8 * i, first_row + 8 * i, c[0], c[1], whole);
    if (has_lower) store_pair(share, g_c + 8 * share.ld + 8 * i, first_row + 8 * i, c[2], c[3], whole);
  }
}

/// Thread map: a cluster of `blocks` blocks per task, blockIdx.x / blocks its number.
template <class T, int stages>
__global__ void __launch_bounds__(threads, 2)
    front_update_kernel(const std::int32_t* condition, Fronts<Cuda, T> f, const FrontUpdateTask* tasks, int blocks) {
  if (skipped(condition)) return;
  extern __shared__ __align__(128) std::byte shared[];
  std::byte* const s_w = shared + stages * stage_bytes;
  const FrontUpdateTask task = tasks[blockIdx.x / blocks];
  const FrontShape& shape = f.shapes[task.front];
  const FrontPanelState state = f.panels[shape.panels + task.panel];
  if (state.height == 0 || task.cols == 0) return;
  const int rank = blocks > 1 ? cluster_rank() : 0;
  const Share<T> share = make_share(f, shape, state, task, rank, blocks);
  const int warp = threadIdx.x / warp_size;
  const auto ask = [&](int tile) {
    if (tile >= 0 && tile < share.tiles) fetch(share, tile, shared + tile % stages * stage_bytes);
    __pipeline_commit();
  };
  const auto arrive = [] {  // the tile asked for stages - 1 steps ago is there, and nobody reads the last one any more
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
  };

  for (int tile = 0; tile < stages - 1; ++tile) ask(tile);
  double w[2][4][4] = {};
  for (int tile = 0; tile < share.tiles; ++tile) {
    arrive();
    ask(tile + stages - 1);
    multiply_forth<T>(w, shared + tile % stages * stage_bytes, warp / 4, warp % 4, share.c_cols);
  }
  double t[4][2];
  load_t(t, f.storage + shape.t + static_cast<std::int64_t>(task.panel) * f.panel * f.panel, f.panel, share.v_cols,
         warp % 4);
  add_quarters(w, s_w, warp / 4, warp % 4);
  finish_w(s_w, t, share.c_cols, rank, blocks);

  const int column = warp / 2 * 16;
  double x[4][4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const Lane lane;
    const auto upper = *reinterpret_cast<const Vector<double, 2>*>(s_w + place(column + lane.g, 4 * k + lane.q));
    const auto lower = *reinterpret_cast<const Vector<double, 2>*>(s_w + place(column + 8 + lane.g, 4 * k + lane.q));
    x[k][0] = upper.v[0], x[k][1] = lower.v[0], x[k][2] = upper.v[1], x[k][3] = lower.v[1];
  }
  for (int tile = share.tiles - 1; tile >= 0; --tile) {
    if (tile < share.tiles - 1) {
      arrive();
      ask(tile + 1 - stages);
    }
    if (column < share.c_cols)
      multiply_back(share, x, shared + tile % stages * stage_bytes, tile, column, warp % 2);
  }
}

constexpr int portable_cluster = 8, most_blocks = 16;

template <class T, int stages>
void launch_staged(const Launch& launch, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontUpdateTask>& tasks,
                   int blocks) {
  const char* const name = "update_fronts kernel";
  auto* const kernel = front_update_kernel<T, stages>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes(stages)), name);
  cudaLaunchConfig_t config{};
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes(stages));
  config.stream = launch.stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = blocks > 1 ? 1 : 0;
  if (blocks > portable_cluster)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), name);
  config.gridDim = dim3(static_cast<unsigned>(tasks.count * blocks));
  check_cuda(cudaLaunchKernelEx(&config, kernel, launch.condition, fronts, tasks.tasks, blocks), name);
  check_launch(name);
}

}  // namespace

template <class T>
void launch_update_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                          const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  if (tasks.count == 0 || tasks.max_rows == 0) return;
  const char* const name = "update_fronts";
  detail::check(fronts.panel <= panel_cols, ErrorCode::invalid_argument, name, ": panels of ", fronts.panel,
                " columns, at most ", panel_cols, " are possible");
  detail::check(tasks.count <= 0x7fffffff / most_blocks, ErrorCode::invalid_argument, name, ": ", tasks.count,
                " tasks are too many for one launch");
  constexpr int stages = 4;
  const bool roomy = shared_memory_limit() >= shared_bytes(stages);
  int blocks = 1;  // that keep the rows in shared memory
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9)
    while (blocks < most_blocks && tasks.max_rows > blocks * stages * tile_rows<T>) blocks *= 2;
  if (roomy) {
    launch_staged<T, stages>(launch, fronts, tasks, blocks);
  } else {
    launch_staged<T, 2>(launch, fronts, tasks, blocks);
  }
}

template void launch_update_fronts<float>(const Launch&, const Fronts<Cuda, float>&,
                                          const FrontTasks<Cuda, FrontUpdateTask>&);
template void launch_update_fronts<double>(const Launch&, const Fronts<Cuda, double>&,
                                           const FrontTasks<Cuda, FrontUpdateTask>&);

}  // namespace qrane::backend::cuda
