// SPDX-License-Identifier: Apache-2.0
// update_fronts_pair: updates by two neighbouring panels at once, of strips of up to 128 columns:
//     X1 = T1ᵀ V1ᵀ C,   X2 = T2ᵀ (V2ᵀ C - (V2ᵀ V1) X1),   C := C - V1 X1 - V2 X2
// Twice the flops for the bytes that one panel's update (update.cu) moves; for fronts too tall to stay in shared
// memory, which are read twice and written once.
//
// A cluster of blocks shares a task's rows; tiles of V1, V2 (32 columns each) and C (128) come through a ring of
// stages. Forth a warp sums the products of 32 columns of C with one panel, and a sixteenth of V1ᵀ V2; the sums of all
// blocks are added in their order, each block making its share of the columns of X; back a warp has 16 columns of C, X
// in registers. Between the two the ring is where W, X and V1ᵀ V2 lie:
//
//     | W, then X: 128 columns of 64 | V1ᵀ V2 of this block | V1ᵀ V2 |
//
// Flops: 256 per element of C (and 8 for V1ᵀ V2); bytes: 24 in double, from memory, and V once per strip, from L2.
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"
#include "cuda/fronts/update.cuh"

namespace qrane::backend::cuda {
namespace {

using namespace front_update;
using Pair = Vector<double, 2>;

template <class T>
using Two = Geometry<T, 2>;
constexpr int stages = 4, strip = front_update_pair_strip;
constexpr int w_column_bytes = 2 * panel_cols * 8, w_pieces = w_column_bytes / piece_bytes;
constexpr int m_column_bytes = panel_cols * 8, m_bytes = panel_cols * m_column_bytes;
constexpr int ring_bytes = stages * Two<double>::stage_bytes;
static_assert(strip * w_column_bytes + 2 * m_bytes <= ring_bytes);

/// A warp's 16 x 8 of V1ᵀ V2 += its products over the rows in pieces 4 group .. + 3.
template <class T>
__device__ void multiply_panels(double (&m)[4], const std::byte* stage, int group) {
  constexpr int column_bytes = Two<T>::column_bytes;
  using Piece = Vector<T, per_piece<T>>;
  const Lane lane;
  const int warp = threadIdx.x / warp_size, at = place<column_bytes>(lane.g, 4 * group + lane.q);
  const std::byte* const s_left = stage + warp / 4 * 16 * column_bytes + at;
  const auto upper = *reinterpret_cast<const Piece*>(s_left);
  const auto lower = *reinterpret_cast<const Piece*>(s_left + 8 * column_bytes);
  const auto right = *reinterpret_cast<const Piece*>(stage + (panel_cols + warp % 4 * 8) * column_bytes + at);
#pragma unroll
  for (int s = 0; s < per_piece<T> / 2; ++s) {
    const double a[4] = {upper.v[2 * s], lower.v[2 * s], upper.v[2 * s + 1], lower.v[2 * s + 1]};
    mma_16x8x8(m, a, right.v[2 * s], right.v[2 * s + 1]);
  }
}

/// What the block has summed, where other blocks can read it.
__device__ void publish(std::byte* s_w, std::byte* s_m, const double (&w)[2][4][4], const double (&m)[4]) {
  const Lane lane;
  const int warp = threadIdx.x / warp_size;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int column = warp / 2 * 32 + 16 * i + 8 * h + lane.g, piece = warp % 2 * 16 + 4 * n + lane.q;
        *reinterpret_cast<Pair*>(s_w + place<w_column_bytes>(column, piece)) = {w[i][n][2 * h], w[i][n][2 * h + 1]};
      }
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int row = warp / 4 * 16 + e / 2 * 8 + lane.g, column = warp % 4 * 8 + 2 * lane.q + e % 2;
    *reinterpret_cast<double*>(s_m + place<m_column_bytes>(column, row / 2) + row % 2 * 8) = m[e];
  }
}

/// A warp's part of the small products: k = 8n .. + 7 of a panel, n = warp % 4, for columns 16 (warp / 4 + 2 i) + g and
/// + 8 of the block's share.
struct Small {
  double x[4][4];

  static __device__ int column(int i, int h) {
    return 16 * (static_cast<int>(threadIdx.x) / warp_size / 4 + 2 * i) + 8 * h + Lane().g;
  }

  /// x += sign Wᵀ B, Wᵀ of the panel at piece `from`; b: B(8k + 2q .. + 1, 8n + g).
  __device__ void multiply(const std::byte* s_w, int columns, int from, double sign, const double (&b)[4][2]) {
    const Lane lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (column(i, 0) - lane.g >= columns) break;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        Pair a[2] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h)
          if (column(i, h) < columns)
            a[h] = *reinterpret_cast<const Pair*>(s_w + place<w_column_bytes>(column(i, h), from + 4 * k + lane.q));
        const double left[4] = {sign * a[0].v[0], sign * a[1].v[0], sign * a[0].v[1], sign * a[1].v[1]};
        mma_16x8x8(x[i], left, b[k][0], b[k][1]);
      }
    }
  }

  /// f(place of the pair of elements in s_w, x, index of its first in x[i]) for what the warp has of the panel at
  /// `from`.
  template <class F>
  __device__ void visit(std::byte* s_w, int columns, int from, F f) {
    const Lane lane;
    const int n = threadIdx.x / warp_size % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (column(i, h) < columns)
          f(*reinterpret_cast<Pair*>(s_w + place<w_column_bytes>(column(i, h), from + 4 * n + lane.q)), x[i][2 * h],
            x[i][2 * h + 1]);
    }
  }
};

/// W of all blocks to -X of both panels, in every block.
template <class T>
__device__ void finish_w(std::byte* s_w, const T* g_t, int t_ld, const int (&v_cols)[2], int rank, int blocks) {
  const Lane lane;
  std::byte* const s_m_mine = s_w + strip * w_column_bytes;
  std::byte* const s_m = s_m_mine + m_bytes;
  const int columns = strip / blocks, n = threadIdx.x / warp_size % 4;
  std::byte* const s_mine = s_w + rank * columns * w_column_bytes;  // this block's columns of W (a multiple of 8)
  double b[4][2];
  load_t(b, g_t, t_ld, v_cols[0], n);
  cluster_sync(blocks);
  for (int e = threadIdx.x; e < m_bytes / piece_bytes; e += threads)
    *reinterpret_cast<Pair*>(s_m + e * piece_bytes) = sum_of_blocks(s_m_mine + e * piece_bytes, blocks);
  for (int e = threadIdx.x; e < columns * w_pieces; e += threads) {
    auto& sum = *reinterpret_cast<Pair*>(s_mine + e * piece_bytes);
    sum = sum_of_blocks(s_mine + e * piece_bytes, blocks);
  }
  __syncthreads();

  Small small{};  // -X1 = -W1ᵀ T1
  small.multiply(s_mine, columns, 0, -1, b);
  __syncthreads();
  small.visit(s_mine, columns, 0, [](Pair& w, double& x0, double& x1) { w = {x0, x1}; });
  __syncthreads();

  small.visit(s_mine, columns, w_pieces / 2, [](Pair& w, double& x0, double& x1) { x0 = w.v[0], x1 = w.v[1]; });
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const Pair pair = *reinterpret_cast<const Pair*>(s_m + place<m_column_bytes>(8 * n + lane.g, 4 * k + lane.q));
    b[k][0] = pair.v[0], b[k][1] = pair.v[1];
  }
  small.multiply(s_mine, columns, 0, 1, b);  // W2ᵀ - X1ᵀ (V1ᵀ V2)
  small.visit(s_mine, columns, w_pieces / 2, [](Pair& w, double& x0, double& x1) { w = {x0, x1}; });
  load_t(b, g_t + static_cast<std::int64_t>(t_ld) * t_ld, t_ld, v_cols[1], n);
  __syncthreads();

  small = {};
  small.multiply(s_mine, columns, w_pieces / 2, -1, b);
  __syncthreads();
  small.visit(s_mine, columns, w_pieces / 2, [](Pair& w, double& x0, double& x1) { w = {x0, x1}; });
  __syncthreads();
  for (int r = 0; r < blocks; ++r) {
    if (r == rank) continue;
    for (int e = threadIdx.x; e < columns * w_pieces; e += threads)
      *reinterpret_cast<Pair*>(in_block(s_mine + e * piece_bytes, r)) =
          *reinterpret_cast<const Pair*>(s_mine + e * piece_bytes);
  }
  cluster_sync(blocks);
}

/// Thread map: a cluster of `blocks` blocks per task, blockIdx.x / blocks its number.
template <class T>
__global__ void __launch_bounds__(threads, 2) front_update_pair_kernel(const std::int32_t* condition, Fronts<Cuda, T> f,
                                                                       const FrontUpdateTask* tasks, int blocks) {
  if (skipped(condition)) return;
  using G = Two<T>;
  static_assert(G::stage_bytes == Two<double>::stage_bytes);
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ Share<T, 2> s_share;
  const FrontUpdateTask task = tasks[blockIdx.x / blocks];
  const int rank = blocks > 1 ? cluster_rank() : 0;
  if (threadIdx.x == 0) s_share = make_share<T, 2>(f, task, rank, blocks);
  const T* const g_t = f.storage + f.shapes[task.front].t + static_cast<std::int64_t>(task.panel) * f.panel * f.panel;
  __syncthreads();
  if (s_share.begin == s_share.end || task.cols == 0) return;
  const int tiles = s_share.tiles, warp = threadIdx.x / warp_size;
  const auto ask = [&](int tile, int slot) {
    if (tile >= 0 && tile < tiles) Feed<T, 2>::fetch(s_share, tile, shared + slot % stages * G::stage_bytes);
    __pipeline_commit();
  };
  const auto arrive = [] {  // the tile asked for stages - 1 steps ago is there, and nobody reads the last one any more
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
  };

#pragma unroll 1
  for (int tile = 0; tile < stages - 1; ++tile) ask(tile, tile);
  double w[2][4][4] = {}, m[4] = {};
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    arrive();
    ask(tile + stages - 1, tile + stages - 1);
    const std::byte* const stage = shared + tile % stages * G::stage_bytes;
#pragma unroll 1
    for (int group = 0; group < G::pieces / 4; ++group) {
      multiply_forth<T, 2>(w, stage + G::v_bytes + warp / 2 * 32 * G::column_bytes, stage + warp % 2 * G::panel_bytes,
                           group, s_share.c_cols - warp / 2 * 32);
      multiply_panels<T>(m, stage, group);
    }
  }
  __syncthreads();
  publish(shared, shared + strip * w_column_bytes, w, m);
  finish_w(shared, g_t, f.panel, s_share.v_cols, rank, blocks);

  const Back<T, 2> back(shared);
  __syncthreads();  // the ring is a ring again
#pragma unroll 1
  for (int k = 0; k < stages - 1; ++k) ask(tiles - 1 - k, k);
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {  // from the last tile: the nearest to be in L2 still
    arrive();
    ask(tiles - k - stages, k + stages - 1);
    back.multiply(s_share, shared + k % stages * G::stage_bytes, tiles - 1 - k);
  }
}

}  // namespace

template <class T>
void update_fronts_pair(const Queue& queue, const Fronts<Cuda, T>& fronts,
                               const FrontTasks<Cuda, FrontUpdateTask>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0 || tasks.max_rows == 0) return;
  check_update(fronts, tasks, "update_fronts_pair");
  launch_clusters(front_update_pair_kernel<T>, ring_bytes, launch, fronts, tasks, "update_fronts_pair kernel");
}

template void update_fronts_pair<float>(const Queue&, const Fronts<Cuda, float>&,
                                               const FrontTasks<Cuda, FrontUpdateTask>&);
template void update_fronts_pair<double>(const Queue&, const Fronts<Cuda, double>&,
                                                const FrontTasks<Cuda, FrontUpdateTask>&);

}  // namespace qrane::backend::cuda
