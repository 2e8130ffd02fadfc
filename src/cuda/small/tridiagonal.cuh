// SPDX-License-Identifier: Apache-2.0
// H_{n-2} ... H_0 G H_0 ... H_{n-2} = T: a symmetric matrix made tridiagonal by Householder reflections (LAPACK's
// sytrd) in registers of one block or of a cluster, in double.
//
//   v = x + sign(x_0) ‖x‖ e_0 of x = A(k+1:, k),   beta = 2 / vᵀv,   p = A v,   w = beta p - beta² (pᵀv) / 2 v,
//   A := A - v wᵀ - w vᵀ
//
// A worker (a warp) has every 13th (52nd) column, a lane every 32nd row: A is symmetric, so p comes from columns alone.
// Each worker gives its part of p to all blocks, and one of them column k + 1 as it was before the step. After the
// barrier all find w for themselves, workers change their columns, and each block's leader, a warp without columns,
// meanwhile finds what becomes of column k + 1, and from it the next v.
//
// Costs latency: two sums over a warp's lanes, one after the other, two barriers, and p.
#pragma once

#include "cuda/collectives/cluster.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/warp.cuh"
#include "cuda/small/small_cholesky.cuh"

namespace qrane::backend::cuda::eigen {

/// The sum over the lanes, in all of them, by two tensor-core products: half the time of shuffles.
__device__ inline double product_sum(double x) {
  double rows[2] = {}, all[2] = {};
  mma_8x8x4(rows, x, 1.0);  // of each four lanes
  const int first = threadIdx.x % 4 * 4;
  const double pair = __shfl_sync(full_warp, rows[0], first) + __shfl_sync(full_warp, rows[0], first + 16);
  mma_8x8x4(all, pair, 1.0);
  return all[0];
}

// Warps of a block by the scheduler that they are on: the leader, which everybody waits for, shares its own with one
// worker.
constexpr int block_warps = 16, leader = 15, block_workers = 13;
__device__ inline int worker_of_warp(int warp) {  // negative: none
  return warp % 4 < 3 ? warp / 4 * 3 + warp % 4 : warp == 3 ? block_workers - 1 : -1;
}

/// What comes out, in global memory: n each, but for the reflectors, whose column k is v of step k with zeros above.
struct Tridiagonal {
  double *diagonal, *beside, *beta, *reflectors;
};

template <int R, int C, int blocks>
class Reduction {
 public:
  static constexpr int workers = block_workers * blocks, threads = 32 * block_warps;
  static constexpr int length = 32 * R > C* workers ? 32 * R : C* workers;
  struct Shared {  // of even and odd steps, since another block may be a step ahead
    double v[2][length], p[2][length], column[2][length], beta[2];
  };

  __device__ Reduction(int n, Shared& shared, const Tridiagonal& out)
      : n_(n),
        lane_(threadIdx.x % 32),
        leads_(threadIdx.x / 32 == leader),
        local_(worker_of_warp(static_cast<int>(threadIdx.x) / 32)),
        s_(shared),
        out_(out) {}

  /// element(i, j): of G, i <= j. All of the cluster.
  template <class Element>
  __device__ void run(Element element) {
    const auto at = [&](int i, int j) { return i < n_ && j < n_ ? element(min(i, j), max(i, j)) : 0.0; };
    double a[C][R], x[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      x[r] = leads_ ? at(row(r), 0) : 0.0;
#pragma unroll
      for (int c = 0; c < C; ++c) a[c][r] = works() ? at(row(r), column(c)) : 0.0;
    }
    for (int i = threadIdx.x; i < 6 * length; i += threads) (&s_.v[0][0])[i] = 0;
    cluster_sync(blocks);  // all blocks are there, too
    Found found;
    if (leads_) reflect(x, 0, found);
    __syncthreads();
    chunk<0>(a, found);
    if (leads_) write(n_ - 1, found);
  }

 private:
  /// By the leader of a column, beside its v: what nobody waits for.
  struct Found {
    double diagonal = 0, beside = 0, divisor = 0;  // of lane k % 32; 1 / beta, or 0
  };

  __device__ bool works() const { return local_ >= 0; }
  __device__ bool speaks() const { return cluster_rank() == 0; }
  __device__ int row(int r) const { return lane_ + 32 * r; }
  __device__ int worker() const { return cluster_rank() * block_workers + local_; }
  __device__ int column(int c) const { return worker() + workers * c; }
  __device__ static double* place(double* p, int block) { return blocks > 1 ? in_block(p, block) : p; }

  /// Element i of x, which is spread over the lanes, in all of them.
  __device__ double element_of(const double (&x)[R], int i) const {
    double mine = 0;
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (row(r) == i) mine = x[r];
    return __shfl_sync(full_warp, mine, i % 32);
  }

  /// By the leader: v from column k, rows k.. of it in x.
  __device__ void reflect(const double (&x)[R], int k, Found& found) const {
    double below = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (row(r) > k + 1) below = fma(x[r], x[r], below);
      if (row(r) == k) found.diagonal = x[r];
    }
    const double first = element_of(x, k + 1);
    below = product_sum(below);
    const bool some = !(below <= 0x1p-400);  // so little beside G is rounding
    const double square = fma(first, first, below), norm = square * inverse_root(square);
    const double away = -copysign(norm, first), lead = first - away;
#pragma unroll
    for (int r = 0; r < R; ++r) s_.v[k % 2][row(r)] = !some || row(r) <= k ? 0.0 : row(r) == k + 1 ? lead : x[r];
    found.beside = some ? away : first;
    found.divisor = some ? fma(fabs(first), norm, square) : 0.0;
  }

  /// By the leader, while the others find p: what belongs to column k, past the last reflection T's diagonal alone.
  __device__ void write(int k, const Found& found) const {
    if (speaks() && lane_ == k % 32) out_.diagonal[k] = found.diagonal;
    if (k + 1 >= n_) return;
    const double beta = found.divisor > 0 || found.divisor != found.divisor ? __drcp_rn(found.divisor) : 0.0;
    if (lane_ == 0) s_.beta[k % 2] = beta;
    if (!speaks()) return;
    if (lane_ == 0) out_.beta[k] = beta, out_.beside[k] = found.beside;
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (row(r) < n_) out_.reflectors[row(r) + k * n_] = s_.v[k % 2][row(r)];
  }

  /// Steps that begin with a column of chunk `at` of all workers' columns; those before are done with.
  template <int at>
  __device__ void chunk(double (&a)[C][R], Found& found) const {
    if constexpr (at < C) {
      const int end = min(workers * (at + 1), n_ - 1);
      for (int k = workers * at; k < end; ++k) step<at>(a, k, found);
      chunk<at + 1>(a, found);
    }
  }

  template <int at>
  __device__ void step(double (&a)[C][R], int k, Found& found) const {
    constexpr int top = workers * at / 32;  // rows 32 * top .. are not all done with
    const int turn = k % 2;
    double v[R];
#pragma unroll
    for (int r = top; r < R; ++r) v[r] = s_.v[turn][row(r)];
    if (works()) publish<at, top>(a, v, k);
    if (leads_) write(k, found);
    cluster_sync(blocks);
    double p[R], dot = 0;
#pragma unroll
    for (int r = top; r < R; ++r) {
      p[r] = s_.p[turn][row(r)];
      dot = fma(p[r], v[r], dot);
    }
    const double beta = s_.beta[turn], gamma = 0.5 * beta * beta * product_sum(dot);
    const auto w_of = [&](double p_i, double v_i) { return fma(beta, p_i, -gamma * v_i); };
    if (leads_) {
      const double v_next = s_.v[turn][k + 1], w_next = w_of(s_.p[turn][k + 1], v_next);
      double x[R];
#pragma unroll
      for (int r = 0; r < R; ++r)
        x[r] = r < top ? 0.0 : fma(-v[r], w_next, fma(-w_of(p[r], v[r]), v_next, s_.column[turn][row(r)]));
      reflect(x, k + 1, found);
    } else if (works()) {
      double w[R];
#pragma unroll
      for (int r = top; r < R; ++r) w[r] = w_of(p[r], v[r]);
#pragma unroll
      for (int c = at; c < C; ++c) {
        const double v_j = s_.v[turn][column(c)], w_j = w_of(s_.p[turn][column(c)], v_j);
#pragma unroll
        for (int r = top; r < R; ++r) a[c][r] = fma(-v[r], w_j, fma(-w[r], v_j, a[c][r]));
      }
    }
    __syncthreads();
  }

  /// This worker's part of p, and column k + 1 if it has it, to all blocks.
  template <int at, int top>
  __device__ void publish(const double (&a)[C][R], const double (&v)[R], int k) const {
    constexpr int slots = C - at > 4 ? 8 : 4;
    const int turn = k % 2, slot = lane_ % slots, to = lane_ / slots;
    double sums[slots] = {};
#pragma unroll
    for (int r = top; r < R; ++r)
#pragma unroll
      for (int c = at; c < C; ++c) sums[c - at] = fma(a[c][r], v[r], sums[c - at]);
    if ((k + 1) % workers == worker()) {
      const auto put = [&](const double(&own)[R]) {
#pragma unroll
        for (int r = top; r < R; ++r)
#pragma unroll
          for (int b = 0; b < blocks; ++b) *place(s_.column[turn] + row(r), b) = own[r];
      };
      if ((k + 1) / workers == at)
        put(a[at]);
      else if constexpr (at + 1 < C)
        put(a[at + 1]);
    }
    const double sum = sum_slot_of_lane(sums);
    if (at + slot < C && to < blocks) *place(s_.p[turn] + column(at + slot), to) = sum;
  }

  const int n_, lane_;
  const bool leads_;
  const int local_;  // this worker in its block
  Shared& s_;
  const Tridiagonal out_;
};

}  // namespace qrane::backend::cuda::eigen
