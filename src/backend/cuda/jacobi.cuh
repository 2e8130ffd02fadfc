// SPDX-License-Identifier: Apache-2.0
// One-sided Jacobi (Hestenes; Demmel, Veselić, "Jacobi's method is more accurate than QR", 1992) on the columns of a
// small matrix, in double, by a cluster of thread blocks.
//
// Blocks of two columns sit at a round table (Brent, Luk, 1985): a warp owns a pair of blocks and keeps its four columns in
// registers; after each round all blocks but one move on to a neighbour, through shared memory, that of another thread
// block where the table goes on there.
//
//     upper  [0] -> 1 -> 2 -> 3        A sweep is 2 seats - 1 rounds, after which every pair of columns has met once
//                   /          |       and all are where they began: in a round the four pairs between two blocks, in
//     lower   7 <- 6 <- 5 <- 4         the first also the pair within each.
//             (7 moves to place 1)
//
// A round takes the six dot products of its four columns at once. Two rotations at a time are found from them, and the
// dot products that the next two need follow from the rotations. What it costs is latency: the sums over the lanes, two
// rotations one after the other, the barrier of the cluster.
//
// A rotation makes the columns of a pair orthogonal when their cosine exceeds the tolerance, relative to the columns
// however small, so normalized columns of a nonsingular matrix come out orthonormal.
#pragma once

#include "backend/cuda/cluster.cuh"

namespace qrane::backend::cuda::jacobi {

constexpr int most_sweeps = 40;

/// Who sits where.
struct Table {
  int n;          // columns, and their length; columns of zeros fill the table
  int seats;      // pairs of blocks
  int per_block;  // seats of one thread block; the last may have fewer
  int blocks;     // of the cluster

  __host__ __device__ int length(bool both) const { return (both ? 4 : 2) * n + 2; }  // of a block on its way
  __host__ __device__ int doubles(bool both) const { return 4 * per_block * length(both); }
};

/// A warp's columns of X, 0 and 1 of the upper block, 2 and 3 of the lower: elements lane, lane + 32, ...; with `both`
/// also of Y, which is rotated alongside.
template <int E, bool both>
struct Columns {
  double x[4][E], y[4][both ? E : 1];
  double square[4];  // squared norms of X's columns: exact once a sweep, updated by the rotations
};

template <int E>
__device__ double partial_dot(const double (&a)[E], const double (&b)[E]) {
  double sum = 0;
#pragma unroll
  for (int h = 0; h < E; ++h) sum = fma(a[h], b[h], sum);
  return sum;
}

/// Sums of eight values over the lanes, in all lanes: halves of the values go to halves of the lanes until each lane
/// sums one.
__device__ inline void sum_eight(double (&v)[8]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int count = 4; count > 0; count /= 2) {
    const bool high = (lane & (4 * count)) != 0;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const double keep = high ? v[k + count] : v[k], give = high ? v[k] : v[k + count];
      v[k] = keep + __shfl_xor_sync(0xffffffffu, give, 4 * count);
    }
  }
  double sum = v[0];
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = __shfl_sync(0xffffffffu, sum, 4 * k);
}

/// 1 / x to about 20 bits, in double's range.
__device__ inline double rough_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
__device__ inline float rough_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float rough_root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float rough_inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// c, s = t c with t the smaller root of t^2 + (bb - aa) / ab t - 1 = 0, and t. t needs few digits, which cost a later
/// sweep next to nothing; c and s must be a rotation to the last one.
__device__ inline void find_rotation(double aa, double bb, double ab, double& c, double& s, double& t) {
  const double d = bb - aa, e = 2 * ab, ad = fabs(d), ae = fabs(e);
  const bool steep = ad < ae;
  const double r = (steep ? ad : ae) * rough_reciprocal(steep ? ae : ad);
  const float rf = static_cast<float>(r), q = rough_root(fmaf(rf, rf, 1.0f));
  const float f = rough_reciprocal(steep ? rf + q : 1.0f + q), tf = steep ? f : rf * f;
  const double start = rough_inverse_root(fmaf(tf, tf, 1.0f));
  t = steep ? static_cast<double>(f) : r * f;
  t = (d < 0) != (e < 0) ? -t : t;
  const double left = fma(-start * start, fma(t, t, 1.0), 1.0);  // c = start (1 - left)^(-1/2)
  c = fma(start * left, fma(0.375, left, 0.5), start);
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

/// The dot products of four columns, the diagonal too; only the upper triangle is used.
struct Gram {
  double g[4][4];
  __device__ double& at(int i, int j) { return i < j ? g[i][j] : g[j][i]; }

  /// What a rotation of columns i < j makes of them.
  __device__ void rotate(int i, int j, double c, double s, double t) {
    const double ab = g[i][j];
    g[i][i] = fmax(fma(-t, ab, g[i][i]), 0.0);
    g[j][j] = fmax(fma(t, ab, g[j][j]), 0.0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k == i || k == j) continue;
      const double a = at(i, k), b = at(j, k);
      at(i, k) = fma(c, a, -s * b);
      at(j, k) = fma(s, a, c * b);
    }
  }
};

/// Makes columns i and j, and k and l, orthogonal where they are not. NaN counts as orthogonal, so that it ends.
template <int i, int j, int k, int l, int E, bool both>
__device__ void rotate_two(Columns<E, both>& p, Gram& gram, double tolerance, Seen& seen) {
  constexpr int pair[2][2] = {{i, j}, {k, l}};
  double c[2], s[2], t[2];
  bool turn[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const double aa = gram.g[pair[h][0]][pair[h][0]], bb = gram.g[pair[h][1]][pair[h][1]],
                 ab = gram.g[pair[h][0]][pair[h][1]];
    turn[h] = ab * ab > tolerance * aa * bb;
    find_rotation(aa, bb, ab, c[h], s[h], t[h]);
    if (!turn[h]) c[h] = 1, s[h] = t[h] = 0;
    const float cosine = turn[h] ? fminf(static_cast<float>(ab * ab * rough_reciprocal(aa * bb)), 1.0f) : 0.0f;
    seen.cosine = fmaxf(seen.cosine, cosine);
    seen.mixing = fmaxf(seen.mixing, fmaxf(cosine, static_cast<float>(s[h] * s[h])));
  }
  if (!turn[0] && !turn[1]) return;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    gram.rotate(pair[h][0], pair[h][1], c[h], s[h], t[h]);
    rotate(p.x[pair[h][0]], p.x[pair[h][1]], c[h], s[h]);
    if constexpr (both) rotate(p.y[pair[h][0]], p.y[pair[h][1]], c[h], s[h]);
  }
}

/// One round's pairs; `first`: of a sweep.
template <int E, bool both>
__device__ void orthogonalize(Columns<E, both>& p, bool first, double tolerance, Seen& seen) {
  double v[8] = {partial_dot(p.x[0], p.x[1]), partial_dot(p.x[0], p.x[2]), partial_dot(p.x[0], p.x[3]),
                 partial_dot(p.x[1], p.x[2]), partial_dot(p.x[1], p.x[3]), partial_dot(p.x[2], p.x[3]), 0, 0};
  sum_eight(v);
  Gram gram;
#pragma unroll
  for (int k = 0; k < 4; ++k) gram.g[k][k] = p.square[k];
  gram.g[0][1] = v[0], gram.g[0][2] = v[1], gram.g[0][3] = v[2];
  gram.g[1][2] = v[3], gram.g[1][3] = v[4], gram.g[2][3] = v[5];
  if (first) rotate_two<0, 1, 2, 3>(p, gram, tolerance, seen);
  rotate_two<0, 2, 1, 3>(p, gram, tolerance, seen);
  rotate_two<0, 3, 1, 2>(p, gram, tolerance, seen);
#pragma unroll
  for (int k = 0; k < 4; ++k) p.square[k] = gram.g[k][k];
}

/// The seat of one warp: where its blocks arrive and where it sends them. buffers: table.doubles() in every block.
template <int E, bool both>
class Seat {
 public:
  __device__ Seat(const Table& table, double* buffers) : table_(table), lane_(threadIdx.x % 32) {
    const int mine = threadIdx.x / 32;
    slot_ = cluster_rank() * table.per_block + mine;
    taken_ = mine < table.per_block && slot_ < table.seats;
    if (!taken_) slot_ = 0;
    const int k = slot_, last = table.seats - 1;
    from_ = buffers + place(k, 0);
    to_[0] = seat(buffers, k < last ? k + 1 : k, k < last ? 0 : 1);
    to_[1] = seat(buffers, k > 0 ? k - 1 : (last > 0 ? 1 : 0), k > 0 ? 1 : 0);
  }

  __device__ bool taken() const { return taken_; }
  /// The column k of 4 at this seat when a sweep begins; >= n is one of zeros.
  __device__ int column(int k) const { return 2 * (k < 2 ? slot_ : 2 * table_.seats - 1 - slot_) + k % 2; }

  /// All blocks of the table move by one; called by all threads of the cluster.
  __device__ void move(Columns<E, both>& p, int round) {
    const int turn = (round & 1) * 2 * table_.per_block * table_.length(both);
    if (taken_) {
      if (slot_ > 0) send<0>(p, to_[0] + turn);
      if (table_.seats > 1) send<1>(p, to_[1] + turn);
    }
    cluster_sync(table_.blocks);
    if (taken_) {
      if (slot_ > 0) receive<0>(p, from_ + turn);
      if (table_.seats > 1) receive<1>(p, from_ + turn + table_.length(both));
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
  template <int side>
  __device__ void send(const Columns<E, both>& p, double* to) const {
    const int n = table_.n;
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane_ + 32 * h;
      if (i >= n) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        to[e * n + i] = p.x[2 * side + e][h];
        if constexpr (both) to[(2 + e) * n + i] = p.y[2 * side + e][h];
      }
    }
    if (lane_ < 2) to[table_.length(both) - 2 + lane_] = lane_ == 0 ? p.square[2 * side] : p.square[2 * side + 1];
  }
  template <int side>
  __device__ void receive(Columns<E, both>& p, const double* from) const {
    const int n = table_.n;
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane_ + 32 * h;
      if (i >= n) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        p.x[2 * side + e][h] = from[e * n + i];
        if constexpr (both) p.y[2 * side + e][h] = from[(2 + e) * n + i];
      }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) p.square[2 * side + e] = from[table_.length(both) - 2 + e];
  }

  const Table& table_;
  int lane_, slot_;
  bool taken_;
  double* from_;
  double* to_[2];
};

template <int E, bool both>
__device__ void measure(Columns<E, both>& p) {
  double v[8] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = partial_dot(p.x[k], p.x[k]);
  sum_eight(v);
#pragma unroll
  for (int k = 0; k < 4; ++k) p.square[k] = v[k];
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
/// a pair that is done is 2 n times the product of what was seen at the very most, and (2 n)^(1/2) times at random. Returns with measured columns.
template <int E, bool both>
__device__ int run(const Table& table, Seat<E, both>& seat, Columns<E, both>& p, double tolerance) {
  __shared__ float s_seen[8][2];
  __shared__ int s_most[2];
  for (int k = 1;; ++k) {
    measure(p);
    Seen seen;
    for (int round = 0; round < 2 * table.seats - 1; ++round) {
      if (seat.taken()) orthogonalize(p, round == 0, tolerance, seen);
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
