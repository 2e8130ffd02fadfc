// SPDX-License-Identifier: Apache-2.0
// What the panels of fronts (panel.cu) are made of: shared memory of a block, sums over warps and blocks, and the
// scalars of a reflector.
#pragma once

#include "cuda/collectives/cluster.cuh"
#include "cuda/collectives/mailbox.cuh"
#include "cuda/collectives/mma.cuh"

namespace qrane::backend::cuda::front_panel {

constexpr int order = 32;  // columns of a panel
constexpr int width = 8;   // of a strip
constexpr int most_strips = order / width;
constexpr int most_blocks = 16;                        // of a cluster
constexpr int log_values = 8, values = width * order;  // of a strip's products
static_assert(values == 1 << log_values);
constexpr double negligible = 1e-290;  // squares below it underflow

/// Shared memory of a block of `warps` warps, besides the panel's rows.
template <int warps>
struct alignas(16) Block {
  union {                                       // one after the other:
    double lane_sums[2][width][warps * 4 + 2];  // by parity of the column; padded: lanes that read the same place of
                                                // all columns meet no bank twice
    double warp_products[warps][values];
    struct {
      double w[width][order];
      double t_sums[width][order];
    };
  };
  double products[values];             // V_sᵀ P, row i of it at i * order
  double pieces[values];               // other blocks' sums of those that this block adds
  double sums[2][most_blocks][width];  // of the blocks, by parity of the column
  double head_of_all[2][width];
  double head[2][width];   // the pivot row in the strip
  double t[order][order];  // T's columns
  double tau[order];
  double limit[order];    // a column of at most this norm is dropped
  double dropped[order];  // norms of those
  Mailbox column_box[2], piece_box, product_box, copy_box;
};

/// The blocks that work on a panel, 2^log_active, and how often they have met.
template <int warps>
struct Team {
  Block<warps>& b;
  int rank, active = 1, log_active = 0;
  int columns = 0, strips = 0;

  __device__ void init() const {
    if (threadIdx.x != 0) return;
    b.column_box[0].init();
    b.column_box[1].init();
    b.piece_box.init();
    b.product_box.init();
    b.copy_box.init();
  }
};

/// Copies from device to shared memory that a mailbox counts; addresses and bytes are multiples of 16.
struct BulkCopy {
#if __CUDA_ARCH__ >= 900
  static constexpr bool exists = true;
#else
  static constexpr bool exists = false;
#endif
  Mailbox& box;

  __device__ void operator()(double* target, const void* source, int bytes) const {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(target)),
                 "l"(source), "r"(bytes), "r"(shared_address(&box))
                 : "memory");
#endif
  }
};

/// Sums over the lanes l % 4 of a warp, of p[width - n .. width - 1]: lane l gets that of p[width - n + l * n / 32].
template <int n>
__device__ double lane_sums(const double (&p)[width]) {
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
  for (; d > 2; d /= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], d);
  return v[0];
}

/// By a tree.
template <int n>
__device__ double tree_sum(const double (&v)[n]) {
  if constexpr (n == 1) {
    return v[0];
  } else {
    double half[n / 2];
#pragma unroll
    for (int i = 0; i < n / 2; ++i) half[i] = v[i] + v[i + n / 2];
    return tree_sum(half);
  }
}

/// Over lanes l, l + 8, l + 16 and l + 24.
__device__ inline double quarter_sum(double x) {
  x += __shfl_xor_sync(0xffffffffu, x, 8);
  return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

/// Sums over all rows of the columns of a strip from column j on, and their elements in the pivot row; lane l has those
/// of column l % width. alpha and tail: of column j.
struct Sums {
  double sum, head, alpha, tail;
};

/// The pivot row is in warp 0 of block 0, whose thread `pivot` has it in `row`.
template <int j, int warps>
__device__ Sums team_sums(Team<warps>& team, const double (&p)[width], const double (&row)[width], int pivot) {
  constexpr int n = j < 4 ? 8 : j < 6 ? 4 : j < 7 ? 2 : 1;
  Block<warps>& b = team.b;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = lane % width, quarter = lane / width;
  const int turn = team.columns & 1;
  if (team.rank == 0 && threadIdx.x == pivot) {
#pragma unroll
    for (int i = 0; i < width; ++i) b.head[turn][i] = row[i];
  }
  const double part = lane_sums<n>(p);
  if (lane % (32 / n) < 4) b.lane_sums[turn][width - n + lane * n / 32][warp * 4 + lane % 4] = part;
  __syncthreads();
  double all[warps];
#pragma unroll
  for (int i = 0; i < warps; ++i) all[i] = b.lane_sums[turn][k][quarter * warps + i];
  const double* head = b.head[turn];
  double sum = quarter_sum(tree_sum(all));
  if (team.active > 1) {
    Mailbox& box = b.column_box[turn];
    if (threadIdx.x == 0) box.expect((team.active + 1) * width * 8);
    const int to = warp * 4 + quarter, to_head = to - (warps - 4) * 4;
    if (to < team.active) Address(b.sums[turn][team.rank], &box, to).put(k, 0, sum);
    if (team.rank == 0 && to_head >= 0 && to_head < team.active)
      Address(b.head_of_all[turn], &box, to_head).put(k, 0, head[k]);
    box.wait(team.columns / 2 & 1);
    double of[most_blocks / 4];
#pragma unroll
    for (int i = 0; i < most_blocks / 4; ++i)
      of[i] = i * 4 + quarter < team.active ? b.sums[turn][i * 4 + quarter][k] : 0.0;
    sum = quarter_sum((of[0] + of[1]) + (of[2] + of[3]));
    head = b.head_of_all[turn];
  }
  ++team.columns;
  return {sum, head[k], head[j], __shfl_sync(0xffffffffu, sum, j)};
}

/// beta, tau, and v = factor * x below the one; product = tau vᵀ a of the column a whose sum and head this lane has.
struct Reflector {
  double beta, tau, factor, product, norm;
  bool live, drop;
};

/// Of a column [alpha; x], tail = xᵀx; dropped if its norm is at most `limit`, none if there is no row for it.
/// Everything waits for this: no branches, what decides stays beside what is computed, tau * factor = sign(alpha) /
/// norm, and both reciprocals begin from what 20 bits of the root say.
__device__ inline Reflector reflector(const Sums& s, double limit, bool has_row) {
  const double square = fma(s.alpha, s.alpha, s.tail), size = fabs(s.alpha);
  double rough, inverse;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(square));
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(fma(size, rough, 1.0)));
  const double e = fma(-square * rough, rough, 1.0);
  const double root = fma(fma(0.375, e, 0.5), rough * e, rough);  // 1 / norm
  const double tau = fma(size, root, 1.0), signed_root = copysign(root, s.alpha);
  const double product = fma(tau, s.head, signed_root * s.sum);
  const double f = fma(-tau, inverse, 1.0);
  const double factor = signed_root * fma(fma(f, f, f), inverse, inverse);
  const bool flat = s.tail <= negligible;  // H = I; NaN goes the other way and spreads
  const double norm = flat ? size : square * root;
  const bool drop = has_row && norm <= limit, live = has_row && !drop, bent = live && !flat;
  return {bent ? -copysign(norm, s.alpha) : s.alpha,
          !bent     ? 0.0
          : tau > 2 ? 2.0
                    : tau,
          bent ? factor : 0.0,
          bent ? product : 0.0,
          norm,
          live,
          drop};
}

/// products := the sum of all warp_products of all blocks. Begins and ends with a barrier of the block.
template <int warps>
__device__ void team_products(Team<warps>& team) {
  constexpr int threads = warps * 32;
  Block<warps>& b = team.b;
  const int log_piece = log_values - team.log_active, piece = 1 << log_piece, parity = team.strips++ & 1;
  __syncthreads();
  if (team.active > 1 && threadIdx.x == 0) {
    b.piece_box.expect(values * 8);
    b.product_box.expect(values * 8);
  }
#pragma unroll
  for (int v = threadIdx.x; v < values; v += threads) {
    double all[warps];
#pragma unroll
    for (int i = 0; i < warps; ++i) all[i] = b.warp_products[i][v];
    const double sum = tree_sum(all);
    if (team.active == 1)
      b.products[v] = sum;
    else
      Address(b.pieces, &b.piece_box, v >> log_piece).put(team.rank * piece + (v & (piece - 1)), 0, sum);
  }
  if (team.active == 1) {
    __syncthreads();
    return;
  }
  b.piece_box.wait(parity);  // each block adds a piece of them and tells the others
#pragma unroll
  for (int e = threadIdx.x; e < values; e += threads) {
    double all[most_blocks];
#pragma unroll
    for (int i = 0; i < most_blocks; ++i)
      all[i] = i < team.active ? b.pieces[(i << log_piece) + (e & (piece - 1))] : 0.0;
    Address(b.products, &b.product_box, e >> log_piece).put(team.rank * piece + (e & (piece - 1)), 0, tree_sum(all));
  }
  b.product_box.wait(parity);
  __syncthreads();
}

}  // namespace qrane::backend::cuda::front_panel
