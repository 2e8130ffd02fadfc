// SPDX-License-Identifier: Apache-2.0
// One-sided Jacobi (Hestenes; Demmel, Veselić, "Jacobi's method is more accurate than QR", 1992) on the columns of a
// small matrix, in double, by a cluster of thread blocks.
//
// The columns sit at a round table (Brent, Luk, 1985): a warp owns a pair and keeps it in registers; after each round
// all columns but one move on to a neighbour, through shared memory, that of another block where the table goes on there.
//
//     upper  [0] -> 1 -> 2 -> 3        A sweep is players - 1 rounds, after which every pair has met once and all
//                   /          |       columns are where they began. A round costs the latency of a dot product, a
//     lower   7 <- 6 <- 5 <- 4         rotation and a cluster barrier.
//             (7 moves to place 1)
//
// A rotation makes the columns of a pair orthogonal when their cosine exceeds the tolerance, relative to the columns
// however small, so normalized columns of a nonsingular matrix come out orthonormal.
#pragma once

#include "backend/cuda/cluster.cuh"

namespace qrane::backend::cuda::jacobi {

constexpr int most_sweeps = 40;

/// Who sits where.
struct Table {
  int n;         // columns, and their length
  int pairs;     // (n + 1) / 2; an odd n has a column of zeros more
  int per_block; // pairs of one block; the last may have fewer
  int blocks;    // of the cluster

  __host__ __device__ int length(bool both) const { return (both ? 2 : 1) * n + 1; }  // of a column on its way
  __host__ __device__ int doubles(bool both) const { return 4 * per_block * length(both); }
};

/// A warp's two columns of X: elements lane, lane + 32, ...; with `both` also of Y, which is rotated alongside.
template <int E, bool both>
struct Pair {
  double x[2][E], y[2][both ? E : 1];
  double square[2];  // squared norms of X's columns: exact once a sweep, updated by the rotations
};

template <int E>
__device__ double dot(const double (&a)[E], const double (&b)[E]) {
  double sum = 0;
#pragma unroll
  for (int h = 0; h < E; ++h) sum = fma(a[h], b[h], sum);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  return sum;
}

/// 1 / x and x^(-1/2) to about 20 bits.
__device__ inline double rough_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
__device__ inline double rough_rsqrt(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

/// c, s = t c with t the smaller root of t^2 + (bb - aa) / ab t - 1 = 0, and t. t needs few digits, which cost a later
/// sweep next to nothing; c and s must be a rotation to the last one.
__device__ inline void find_rotation(double aa, double bb, double ab, double& c, double& s, double& t) {
  const double d = bb - aa, e = 2 * ab, ad = fabs(d), ae = fabs(e);
  const bool steep = ad < ae;
  const double r = (steep ? ad : ae) * rough_reciprocal(steep ? ae : ad), w = fma(r, r, 1.0);
  const double q = w * rough_rsqrt(w);
  t = (steep ? 1.0 : r) * rough_reciprocal(steep ? r + q : 1.0 + q);
  t = (d < 0) != (e < 0) ? -t : t;
  const double u = fma(t, t, 1.0);
  c = rough_rsqrt(u);
#pragma unroll
  for (int k = 0; k < 2; ++k) c = fma(0.5 * c, fma(-u * c, c, 1.0), c);
  s = c * t;
}

/// (a, b) := (c a - s b, s a + c b).
template <int E>
__device__ void rotate(double (&a)[E], double (&b)[E], double c, double s) {
#pragma unroll
  for (int h = 0; h < E; ++h) {
    const double old = a[h];
    a[h] = fma(c, old, -s * b[h]);
    b[h] = fma(s, old, c * b[h]);
  }
}

/// The largest squares of a cosine that was met, and of what a rotation can mix into another pair's.
struct Seen {
  float cosine = 0, mixing = 0;
};

/// NaN counts as orthogonal, so that it ends.
template <int E, bool both>
__device__ void orthogonalize(Pair<E, both>& p, double tolerance, Seen& seen) {
  const double aa = p.square[0], bb = p.square[1], ab = dot(p.x[0], p.x[1]);
  if (!(ab * ab > tolerance * aa * bb)) return;
  double c, s, t;
  find_rotation(aa, bb, ab, c, s, t);
  rotate(p.x[0], p.x[1], c, s);
  if constexpr (both) rotate(p.y[0], p.y[1], c, s);
  p.square[0] = fmax(fma(-t, ab, aa), 0.0);
  p.square[1] = fmax(fma(t, ab, bb), 0.0);
  const float cosine = fminf(static_cast<float>(ab * ab * rough_reciprocal(aa * bb)), 1.0f);
  seen.cosine = fmaxf(seen.cosine, cosine);
  seen.mixing = fmaxf(seen.mixing, fmaxf(cosine, static_cast<float>(s * s)));
}

/// The seat of one warp: where its columns arrive and where it sends them. buffers: table.doubles() in every block.
template <int E, bool both>
class Seat {
 public:
  __device__ Seat(const Table& table, double* buffers) : table_(table), lane_(threadIdx.x % 32) {
    const int mine = threadIdx.x / 32;
    slot_ = cluster_rank() * table.per_block + mine;
    taken_ = mine < table.per_block && slot_ < table.pairs;
    if (!taken_) slot_ = 0;
    const int k = slot_, last = table.pairs - 1;
    from_ = buffers + place(k, 0);
    to_[0] = seat(buffers, k < last ? k + 1 : k, k < last ? 0 : 1);
    to_[1] = seat(buffers, k > 0 ? k - 1 : (last > 0 ? 1 : 0), k > 0 ? 1 : 0);
  }

  __device__ bool taken() const { return taken_; }
  /// The column at this seat when a sweep begins; >= n is the one of zeros.
  __device__ int column(int side) const { return side == 0 ? slot_ : 2 * table_.pairs - 1 - slot_; }

  /// All columns of the table move by one; called by all threads of the cluster.
  __device__ void move(Pair<E, both>& p, int round) {
    const int turn = (round & 1) * 2 * table_.per_block * table_.length(both);
    if (taken_) {
      if (slot_ > 0) send(p, 0, to_[0] + turn);
      if (table_.pairs > 1) send(p, 1, to_[1] + turn);
    }
    cluster_sync(table_.blocks);
    if (taken_) {
      if (slot_ > 0) receive(p, 0, from_ + turn);
      if (table_.pairs > 1) receive(p, 1, from_ + turn + table_.length(both));
    }
  }

 private:
  __device__ int place(int slot, int side) const {
    return (slot % table_.per_block * 2 + side) * table_.length(both);
  }
  __device__ double* seat(double* buffers, int slot, int side) const {
    double* const p = buffers + place(slot, side);
    const int rank = slot / table_.per_block;
    return rank == cluster_rank() ? p : in_block(p, rank);
  }
  __device__ void send(const Pair<E, both>& p, int side, double* to) const {
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane_ + 32 * h;
      if (i >= table_.n) continue;
      to[i] = p.x[side][h];
      if constexpr (both) to[table_.n + i] = p.y[side][h];
    }
    if (lane_ == 0) to[table_.length(both) - 1] = p.square[side];
  }
  __device__ void receive(Pair<E, both>& p, int side, const double* from) const {
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane_ + 32 * h;
      if (i >= table_.n) continue;
      p.x[side][h] = from[i];
      if constexpr (both) p.y[side][h] = from[table_.n + i];
    }
    p.square[side] = from[table_.length(both) - 1];
  }

  const Table& table_;
  int lane_, slot_;
  bool taken_;
  double* from_;
  double* to_[2];
};

template <int E, bool both>
__device__ void measure(Pair<E, both>& p) {
#pragma unroll
  for (int side = 0; side < 2; ++side) p.square[side] = dot(p.x[side], p.x[side]);
}

/// What all blocks have seen in a sweep. s_seen: 2 * 8 floats of every block, and 2 for the block's own maximum.
__device__ inline Seen gather(const Table& table, const Seen& own, float (*s_seen)[2], int* s_most) {
  if (threadIdx.x == 0) s_most[0] = s_most[1] = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {  // bits of nonnegative floats are ordered as integers
    atomicMax(&s_most[0], __float_as_int(own.cosine));
    atomicMax(&s_most[1], __float_as_int(own.mixing));
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

/// Sweeps until the cosines are below the root of `tolerance`, or must be after the last sweep: what rotations mix into
/// a pair that is done is at most the product of what was seen, 2 n times. Returns with measured columns.
template <int E, bool both>
__device__ int run(const Table& table, Seat<E, both>& seat, Pair<E, both>& p, double tolerance) {
  __shared__ float s_seen[8][2];
  __shared__ int s_most[2];
  for (int k = 1;; ++k) {
    measure(p);
    Seen seen;
    for (int round = 0; round < 2 * table.pairs - 1; ++round) {
      if (seat.taken()) orthogonalize(p, tolerance, seen);
      seat.move(p, round);
    }
    seen = gather(table, seen, s_seen, s_most);
    const double left = 16.0 * table.n * seen.cosine * seen.mixing;
    if (left <= tolerance || k == most_sweeps) {
      measure(p);
      return k;
    }
  }
}

}  // namespace qrane::backend::cuda::jacobi
