// SPDX-License-Identifier: Apache-2.0
// What the panels of fronts (front_panel.cu) are made of: shared memory of a block, sums over warps and blocks, and a
// strip of 8 columns in registers.
#pragma once

#include "backend/cuda/cluster.cuh"
#include "backend/cuda/mailbox.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/triangle.cuh"

namespace qrane::backend::cuda::front_panel {

constexpr int order = 32;  // columns of a panel
constexpr int width = 8;   // of a strip
constexpr int most_strips = order / width;
constexpr int most_blocks = 16;  // of a cluster
constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int values = width * order;  // of a strip's products, one for each thread
static_assert(values == threads);

/// Shared memory of a block besides the panel's rows.
struct Block {
  double warp_products[warps][values];
  double products[values];              // V_sᵀ P, row i of it at i * order
  double pieces[values + most_blocks];  // other blocks' sums of those that this block adds
  double sums[2][most_blocks][width];   // of the blocks, by parity of the column
  double head_of_all[2][width];
  double warp_sums[2][warps][width];
  double head[2][width];  // the pivot row in the strip
  double w[width][order];
  double t[order][order + 1];
  double t_sums[width][order];
  double tau[order];
  double scale[order][2];  // 2^-exponent is their product
  Mailbox column_box[2], piece_box, product_box;
};

/// The blocks that work on a panel, and how often they have met.
struct Team {
  int rank, active;
  int columns = 0, strips = 0;

  __device__ void init(Block& b) const {
    if (threadIdx.x != 0) return;
    b.column_box[0].init();
    b.column_box[1].init();
    b.piece_box.init();
    b.product_box.init();
  }
};

/// Sums over a warp of p[width - n .. width - 1]; lane l gets that of p[width - n + l * n / 32].
template <int n>
__device__ double warp_sums(const double (&p)[width]) {
  double v[n];
#pragma unroll
  for (int k = 0; k < n; ++k) v[k] = p[width - n + k];
  int d = 16;
#pragma unroll
  for (int half = n / 2; half > 0; half /= 2, d /= 2) {
    const bool upper = (threadIdx.x & d) != 0;
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const double mine = upper ? v[k + half] : v[k], other = upper ? v[k] : v[k + half];
      v[k] = mine + __shfl_xor_sync(0xffffffffu, other, d);
    }
  }
#pragma unroll
  for (; d > 0; d /= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], d);
  return v[0];
}

/// Sums over all rows: lane l gets that of p[l % width]; only from j on they count. The pivot row is in warp 0 of block
/// 0, whose lane `pivot` has it in `row`; `head` becomes element l % width of it.
template <int j>
__device__ double team_sums(Team& team, Block& b, const double (&p)[width], const double (&row)[width], int pivot,
                            double& head) {
  constexpr int n = j < 4 ? 8 : j < 6 ? 4 : j < 7 ? 2 : 1;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = lane % width, turn = team.columns & 1;
  const double mine = warp_sums<n>(p);
  if (lane % (32 / n) == 0) b.warp_sums[turn][warp][width - n + lane * n / 32] = mine;
  if (team.rank == 0 && threadIdx.x == pivot) {
#pragma unroll
    for (int i = 0; i < width; ++i) b.head[turn][i] = row[i];
  }
  __syncthreads();
  const auto four = [](double x) {
    x += __shfl_xor_sync(0xffffffffu, x, 8);
    return x + __shfl_xor_sync(0xffffffffu, x, 16);
  };
  const int quarter = lane / width;
  static_assert(warps == 8);
  const bool counts = k >= width - n;
  double sum = four(counts ? b.warp_sums[turn][2 * quarter][k] + b.warp_sums[turn][2 * quarter + 1][k] : 0.0);
  head = b.head[turn][k];
  if (team.active > 1) {
    const int to = warp + quarter % 2 * warps, parity = team.columns / 2 & 1;
    if (threadIdx.x == 0) b.column_box[turn].expect((team.active + 1) * width * 8);
    if (to < team.active) {
      if (quarter < 2) Address(b.sums[turn][team.rank], &b.column_box[turn], to).put(k, 0, sum);
      if (quarter >= 2 && team.rank == 0) Address(b.head_of_all[turn], &b.column_box[turn], to).put(k, 0, head);
    }
    b.column_box[turn].wait(parity);
    sum = 0;
#pragma unroll
    for (int i = 0; i < most_blocks; i += 4)
      if (i + quarter < team.active) sum += b.sums[turn][i + quarter][k];
    sum = four(sum);
    head = b.head_of_all[turn][k];
  }
  ++team.columns;
  return sum;
}

/// products := the sum of all warp_products of all blocks. Begins and ends with a barrier of the block.
__device__ inline void team_products(Team& team, Block& b) {
  const int v = threadIdx.x;
  __syncthreads();
  double sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += b.warp_products[w][v];
  if (team.active > 1) {  // each block adds a piece of them and tells the others
    const int piece = (values + team.active - 1) / team.active, parity = team.strips & 1;
    const int own = max(min(values - team.rank * piece, piece), 0);
    if (threadIdx.x == 0) {
      b.piece_box.expect(own * team.active * 8);
      b.product_box.expect(values * 8);
    }
    Address(b.pieces, &b.piece_box, v / piece).put(team.rank * piece + v % piece, 0, sum);
    b.piece_box.wait(parity);
    for (int e = v; e < team.active * piece; e += threads) {
      if (e % piece >= own) continue;
      double all = 0;
      for (int from = 0; from < team.active; ++from) all += b.pieces[from * piece + e % piece];
      Address(b.products, &b.product_box, e / piece).put(team.rank * piece + e % piece, 0, all);
    }
    b.product_box.wait(parity);
  } else {
    b.products[v] = sum;
    __syncthreads();
  }
  ++team.strips;
}

}  // namespace qrane::backend::cuda::front_panel
