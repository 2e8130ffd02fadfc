// SPDX-License-Identifier: Apache-2.0
// One-sided block Jacobi (Hestenes; Demmel, Veselić, "Jacobi's method is more accurate than QR", 1992) on the columns
// of a small matrix, in double, by a cluster of thread blocks.
//
// Blocks of eight columns sit at a round table (Brent, Luk, 1985): eight warps own a pair of blocks; after each round
// all blocks but one move on to a neighbour, into its shared memory, which is another thread block's where the table
// goes on there.
//
//     upper  [0] -> 1 -> 2 -> 3        A sweep is 2 seats - 1 rounds, after which every pair of columns has met once
//                   /          |       and all are where they began: in a round the 64 pairs between two blocks, in
//     lower   7 <- 6 <- 5 <- 4         the first also the 28 within each.
//             (7 moves to place 1)
//
// A round: X's columns' Gram matrix H by fp64 tensor cores, by all warps; then one warp finds rotations from H, step by
// step (jacobi_pair.cuh), while the others, a row of X in each lane's registers, follow a step behind, and put their
// rows into the neighbours' memory, which wait for these and nothing else (mailbox.cuh). H is exact to rounding in
// every round. What it costs is latency: more than half of it the eight steps one after the other.
//
// A rotation makes the columns of a pair orthogonal when their cosine exceeds the tolerance, relative to the columns
// however small, so normalized columns of a nonsingular matrix come out orthonormal.
#pragma once

#include "cuda/collectives/cluster.cuh"
#include "cuda/collectives/mailbox.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/small/jacobi_pair.cuh"

namespace qrane::backend::cuda::jacobi {

constexpr int most_blocks = 16;  // of a cluster
constexpr int most_sweeps = 40;
constexpr int seat_warps = 8;
constexpr int row_warps = seat_warps - 1;  // the first finds rotations
constexpr int most_rows = 32 * row_warps;
constexpr int partials = 4;  // of each half of H
constexpr int partial_doubles = 2 * partials * 4 * 32;

/// Who sits where.
struct Table {
  int n;          // columns, and their length, at most most_rows; columns of zeros fill the table
  int seats;      // pairs of blocks
  int per_block;  // seats of one thread block; the last may have fewer
  int blocks;     // of the cluster

  /// Rows rounded up to eights.
  __host__ __device__ int rows() const { return (n + 7) / 8 * 8; }
  /// Of columns in shared memory: fragments without bank conflicts.
  __host__ __device__ int stride() const { return rows() + 4; }
  /// The columns of one seat, of X and, with `both`, of Y; there are two of it, since they come while others leave.
  __host__ __device__ int buffer(bool both) const { return (both ? 2 : 1) * pair * stride(); }
  __host__ __device__ int seat_doubles(bool both) const { return 2 * buffer(both) + partial_doubles; }
  __host__ __device__ int doubles(bool both) const { return per_block * seat_doubles(both); }
};

/// What a seat has in static shared memory.
struct Exchange {
  Mailbox box[2];  // of each buffer
  Published published;
  int turns;  // whether the pair needs rotations
};

/// Eight warps and their two blocks of columns, of X and, with `both`, of Y, which is rotated alongside.
template <bool both>
class Seat {
 public:
  /// memory: table.doubles() in every block; exchange: table.per_block. The cluster must meet before the first round.
  __device__ Seat(const Table& table, double* memory, Exchange* exchange)
      : Seat(table, memory, exchange, cluster_rank() * table.per_block + local()) {}

  __device__ bool taken() const { return taken_; }
  /// This warp's columns of its seat, before the first round and after the last: how many, and where.
  static constexpr int own = pair / seat_warps;
  /// The k-th of them, by its number in X when a sweep begins; >= n is one of zeros.
  __device__ int column(int k) const { return width * (k == 0 ? slot_ : 2 * table_.seats - 1 - slot_) + warp(); }
  __device__ double* x(int k) const { return memory_ + here_ + (warp() + width * k) * table_.stride(); }
  __device__ double* y(int k) const { return x(k) + pair * table_.stride(); }
  /// Rows past X's last are zeros, in this buffer and the other.
  __device__ void clear_rest() const {
    for (int k = 0; k < own; ++k)
      for (int i = table_.n + lane(); i < table_.rows(); i += 32) x(k)[i] = x(k)[i - here_ + there()] = 0;
  }

  /// Rotates the pair and moves its blocks, and waits for those that come. `first`: round of a sweep. Every seat of the
  /// table must.
  __device__ void round(bool first, float tolerance, Seen& seen) {
    if (thread() == 0) exchange_.box[there() != 0].expect((both ? 2 : 1) * pair * table_.n * 8);
    form_gram();
    sync();
    double rows[both ? 2 : 1][pair];
    if (warp() == 0) {
      PairTurn turn;
      const bool needed = turn.load(first, tolerance, [&](int r, int c, int k) {
        const double* const p = s_partial_ + (c * partials * 4 + 2 * r + k) * 32 + lane();
        return (p[0] + p[4 * 32]) + (p[2 * 4 * 32] + p[3 * 4 * 32]);
      });
      if (lane() == 0) exchange_.turns = needed ? 1 : 0;
      sync();
      if (needed && first) turn.turn_all(seen, exchange_.published);
      if (needed && !first) turn.turn_across(seen, exchange_.published);
    } else {
      load(rows);
      sync();
      if (exchange_.turns != 0) {
        if (first) follow<across_steps, across_steps + within_steps>(rows, within_parity_);
        follow<0, across_steps>(rows, across_parity_);
      }
      send(rows);
    }
    if (exchange_.turns != 0) {
      across_parity_ ^= 1;
      if (first) within_parity_ ^= 1;
    }
    here_ = there();
    exchange_.box[here_ != 0].wait(box_parity_);
    if (here_ == 0) box_parity_ ^= 1;
  }

  /// The squared norm of this warp's k-th column, in all lanes.
  __device__ double square(int k) const {
    double sum = 0;
    for (int i = lane(); i < table_.n; i += 32) sum = fma(x(k)[i], x(k)[i], sum);
#pragma unroll
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
    return sum;
  }

 private:
  __device__ Seat(const Table& table, double* memory, Exchange* exchange, int slot)
      : table_(table),
        slot_(slot),
        taken_(local() < table.per_block && slot < table.seats),
        memory_(memory + (taken_ ? local() : 0) * table.seat_doubles(both)),
        s_partial_(memory_ + 2 * table.buffer(both)),
        exchange_(exchange[taken_ ? local() : 0]),
        to_{upper(table, memory, exchange, taken_ ? slot : 0), lower(table, memory, exchange, taken_ ? slot : 0)} {
    if (taken_ && thread() == 0) {
      for (Mailbox& box : exchange_.box) box.init();
      for (Barrier& ready : exchange_.published.ready) ready.init(width);
    }
  }

  __device__ static int local() { return static_cast<int>(threadIdx.x) / (32 * seat_warps); }
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % (32 * seat_warps); }
  __device__ static int warp() { return thread() / 32; }
  __device__ static int lane() { return thread() % 32; }
  __device__ int there() const { return table_.buffer(both) - here_; }
  /// All warps of the seat.
  __device__ static void sync() {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + local()), "n"(32 * seat_warps) : "memory");
  }

  /// Where the upper and the lower block of slot k go.
  __device__ static Address upper(const Table& table, double* memory, Exchange* exchange, int k) {
    const int last = table.seats - 1;
    return k == 0     ? seat(table, memory, exchange, 0, 0)
           : k < last ? seat(table, memory, exchange, k + 1, 0)
                      : seat(table, memory, exchange, k, 1);
  }
  __device__ static Address lower(const Table& table, double* memory, Exchange* exchange, int k) {
    return k > 0             ? seat(table, memory, exchange, k - 1, 1)
           : table.seats > 1 ? seat(table, memory, exchange, 1, 0)
                             : seat(table, memory, exchange, 0, 1);
  }
  __device__ static Address seat(const Table& table, double* memory, Exchange* exchange, int slot, int side) {
    const int place = slot % table.per_block;
    return {memory + place * table.seat_doubles(both) + side * width * table.stride(), exchange[place].box,
            slot / table.per_block};
  }

  /// H in parts: a warp takes the columns of one half of H, and every fourth eight rows of X.
  __device__ void form_gram() const {
    const int g = lane() / 4, t = lane() % 4, stride = table_.stride();
    const bool lower = warp() >= partials;
    const double* const column = memory_ + here_ + g * stride + t;
    double sum[2][4] = {};
    for (int i = 8 * (warp() % partials); i < table_.rows(); i += 16 * partials)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        double x[4] = {};
        const int row = i + 8 * partials * h;
        if (row < table_.rows())
#pragma unroll
          for (int k = 0; k < 4; ++k) x[k] = column[k % 2 * width * stride + row + k / 2 * 4];
        mma_16x8x8(sum[h], x, lower ? x[1] : x[0], lower ? x[3] : x[2]);
      }
#pragma unroll
    for (int k = 0; k < 4; ++k) s_partial_[(warp() * 4 + k) * 32 + lane()] = sum[0][k] + sum[1][k];
  }

  using Rows = double[both ? 2 : 1][pair];  // this lane's row, of X and of Y

  __device__ int row() const { return thread() - 32; }

  __device__ void load(Rows& rows) const {
#pragma unroll
    for (int m = 0; m < (both ? 2 : 1); ++m)
#pragma unroll
      for (int c = 0; c < pair; ++c)
        rows[m][c] = row() < table_.n ? memory_[here_ + (m * pair + c) * table_.stride() + row()] : 0.0;
  }

  template <int begin, int end>
  __device__ void follow(Rows& rows, int parity) const {
    if (row() - lane() >= table_.n) return;
    const Published& published = exchange_.published;
#pragma unroll
    for (int step = begin; step < end; ++step) {
      published.ready[step].wait(parity);
#pragma unroll
      for (int p = 0; p < width; ++p) {
        const Meeting pair = meeting(step, p);
        const double2 turn = published.turn[step][p];
#pragma unroll
        for (int m = 0; m < (both ? 2 : 1); ++m) {
          const double a = rows[m][pair.first], b = rows[m][pair.second];
          rows[m][pair.first] = fma(turn.x, a, -turn.y * b);
          rows[m][pair.second] = fma(turn.y, a, turn.x * b);
        }
      }
    }
  }

  __device__ void send(const Rows& rows) const {
    if (row() >= table_.n) return;
#pragma unroll
    for (int m = 0; m < (both ? 2 : 1); ++m)
#pragma unroll
      for (int c = 0; c < pair; ++c)
        to_[c / width].put(there() + (m * pair + c % width) * table_.stride() + row(), there() != 0, rows[m][c]);
  }

  const Table& table_;
  const int slot_;
  const bool taken_;
  double* const memory_;
  double* const s_partial_;
  Exchange& exchange_;
  const Address to_[2];  // where the blocks go
  int here_ = 0;         // the buffer that has this round's columns
  int box_parity_ = 0, across_parity_ = 0, within_parity_ = 0;
};

/// What all blocks have seen in a sweep. One sweep's numbers may still be read while another block, done with the next
/// sweep, sends that one's: hence two places.
__device__ inline Seen gather(const Table& table, const Seen& own, int sweep) {
  __shared__ float s_both[2][most_blocks][2];
  float(*const s_seen)[2] = s_both[sweep % 2];
  __shared__ int s_most[2];
  if (threadIdx.x == 0) s_most[0] = s_most[1] = 0;
  __syncthreads();
  const int cosine = __reduce_max_sync(all_lanes, __float_as_int(own.cosine));  // ordered as nonnegative floats are
  const int mixing = __reduce_max_sync(all_lanes, __float_as_int(own.mixing));
  if (threadIdx.x % 32 == 0 && cosine > 0) {
    atomicMax(&s_most[0], cosine);
    atomicMax(&s_most[1], mixing);
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < table.blocks) {
    float* const to = *in_block(s_seen + cluster_rank(), static_cast<int>(threadIdx.x));
    to[0] = __int_as_float(s_most[0]);
    to[1] = __int_as_float(s_most[1]);
  }
  cluster_sync(table.blocks);
  Seen all;
  for (int k = 0; k < table.blocks; ++k) {
    all.cosine = fmaxf(all.cosine, s_seen[k][0]);
    all.mixing = fmaxf(all.mixing, s_seen[k][1]);
  }
  return all;
}

/// Sweeps until the cosines are below n^(1/2) accuracy, or must be after the last sweep: what rotations mix into a pair
/// that is done is 2 n times the product of what was seen at the very most, and (2 n)^(1/2) times at random. Returns
/// the sweeps.
template <bool both>
__device__ int run(const Table& table, Seat<both>& seat, double accuracy) {
  const float tolerance = static_cast<float>(sqrt(static_cast<double>(table.n)) * accuracy);
  for (int k = 1;; ++k) {
    Seen seen;
    if (seat.taken())
      for (int round = 0; round < 2 * table.seats - 1; ++round) seat.round(round == 0, tolerance, seen);
    seen = gather(table, seen, k);
    if (4.0 * seen.cosine * seen.mixing <= accuracy || k == most_sweeps) return k;
  }
}

}  // namespace qrane::backend::cuda::jacobi
