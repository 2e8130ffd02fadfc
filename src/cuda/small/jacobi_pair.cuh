// SPDX-License-Identifier: Apache-2.0
// The rotations of one pair of column blocks, found by one warp: from H = XᵀX of 16 columns, two blocks of eight, those
// that make the columns of X closer to orthogonal, every pair once: a sweep of cyclic Jacobi on H.
//
//            block 0   block 1       lane (P, t) = (l / 4, l % 4) holds, for Q = 2 t and 2 t + 1, the element (P, Q) of
//     block 0   uu        ul         each quarter: what fp64 tensor cores leave (mma.cuh). Rotation P turns column P of
//     block 1   lu        ll         the one role against column P of the other.
//
// Step m of eight turns column P of block 0 against column P ^ m of block 1, eight rotations at once: between steps
// the columns of the second role move along a Gray code, by one exchange of lanes or registers. For pairs within a
// block, the role trades places with a bit of P.
//
// H in float finds the angles: its diagonal as a sum of two, so that differences of near equals are right, its
// off-diagonal elements to their own relative precision, however small. Each angle's rotation is then orthogonal to
// double precision, so an error of an angle costs a later sweep little and X nothing. Rotations are published step by
// step for those who have X's rows: they are through when this warp is.
//
// Costs latency: some 370 cycles a step on an H200.
#pragma once

#include "cuda/collectives/mailbox.cuh"

namespace qrane::backend::cuda::jacobi {

constexpr int width = 8;  // columns of a block
constexpr int pair = 2 * width;
constexpr int across_steps = 8;  // pairs of columns of two blocks
constexpr int within_steps = 7;  // of one block: numbered after the others

constexpr unsigned all_lanes = 0xffffffffu;

__device__ inline float rough_inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The largest cosine that was met, and the largest of what a rotation can mix into another pair's.
struct Seen {
  float cosine = 0, mixing = 0;
};

/// c, s = t c with t the smaller root of t^2 + d / e t - 1 = 0.
struct Rotation {
  float c, s, t;
};
__device__ inline Rotation find_rotation(float d, float e) {
  const float e2 = 2 * e;
  const int exponent = __float_as_int(fmaxf(fabsf(d), fabsf(e2))) & 0x7f800000;
  const float scale = __int_as_float(0x7f000000 - exponent);  // squares neither vanish nor overflow
  const float x = fabsf(d) * scale, y = fabsf(e2) * scale;
  const float h = rough_inverse_root(fmaf(x, x, y * y));
  const float square = fmaf(0.5f * x, h, 0.5f), inverse = rough_inverse_root(square);  // c^2 and 1 / c
  const float s = 0.5f * y * h * inverse;
  const bool negative = (d < 0) != (e < 0);
  return {square * inverse, negative ? -s : s, negative ? -s * inverse : s * inverse};
}

/// The rotations of each step, in shared memory, and the barriers that say they are there.
struct Published {
  double2 turn[across_steps + within_steps][width];  // c, s
  Barrier ready[across_steps + within_steps];        // of `width` arrivals

  /// `mine`: this lane has rotation p. Without a branch, which would hold up the warp.
  __device__ void put(bool mine, int step, int p, double c, double s) {
    asm volatile(
        "{\n.reg .pred mine;\n.reg .b64 phase;\nsetp.ne.s32 mine, %0, 0;\n@mine st.shared.v2.f64 [%1], {%2, %3};\n"
        "@mine mbarrier.arrive.shared.b64 phase, [%4];\n}" ::"r"(mine ? 1 : 0),
        "r"(shared_address(&turn[step][p])), "d"(c), "d"(s), "r"(shared_address(&ready[step].state))
        : "memory");
  }
};

/// The columns that rotation p of a step turns.
struct Meeting {
  int first, second;
};
__device__ constexpr Meeting meeting(int step, int p) {
  if (step < across_steps) return {p, width + (p ^ step ^ step / 2)};
  const int k = step - across_steps;  // within: by bit 2 in four steps, by bit 1 in two, by bit 0
  if (k < 4) return {p / 4 * 8 + p % 4, p / 4 * 8 + 4 + (p % 4 ^ k ^ k / 2)};
  if (k < 6) return {p / 2 * 4 + p % 2, p / 2 * 4 + 2 + (p % 2 ^ (k - 4))};
  return {2 * p, 2 * p + 1};
}

class PairTurn {
 public:
  /// element(row role, column role, h): of H. False when it needs no rotation: no cosine above the tolerance, or no
  /// numbers. `within`: pairs inside the blocks count too.
  template <class Element>
  __device__ bool load(bool within, float tolerance, Element element) {
    tolerance_ = tolerance;
    double h[2][2][2], diagonal[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int k = 0; k < 2; ++k) h[r][c][k] = element(r, c, k);
#pragma unroll
    for (int r = 0; r < 2; ++r) diagonal[r] = odd() ? h[r][r][1] : h[r][r][0];
    int top = max(__double2hiint(diagonal[0]) & 0x7fffffff, __double2hiint(diagonal[1]) & 0x7fffffff);
    top = __reduce_max_sync(all_lanes, on_diagonal() ? top : 0);
    const int exponent = top >> 20;
    if (top == 0 || exponent >= 2046) return false;
    const double scale = __hiloint2double((2046 - exponent) << 20, 0);
    float inverse[2], row[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const double x = diagonal[r] * scale;
      high_[r] = static_cast<float>(x);
      low_[r] = static_cast<float>(x - high_[r]);
      inverse[r] = rough_inverse_root(high_[r]);
      row[r] = __shfl_sync(all_lanes, inverse[r], diagonal_lane(place()));
    }
    bool turn = false;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float column[2];
#pragma unroll
      for (int c = 0; c < 2; ++c) column[c] = __shfl_sync(all_lanes, inverse[c], diagonal_lane(column_place(k)));
      const bool here = is_diagonal(k);
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          a_[r][c][k] = r == c && here ? 0.0f : static_cast<float>(h[r][c][k] * scale);
          if (r != c || within) turn = turn || fabsf(a_[r][c][k]) * row[r] * column[c] > tolerance;
        }
    }
    return __any_sync(all_lanes, turn);
  }

  /// All pairs, those within each block first: columns whose numbers differ in bit 2, then in bit 1 and not in bit 2,
  /// then in bit 0.
  __device__ void turn_all(Seen& seen, Published& out) {
    trade<4>();
    step<8, none>(seen, out), move<1>();
    step<9, 8>(seen, out), move<2>();
    step<10, 9>(seen, out), move<1>();
    step<11, 10>(seen, out), move<2>();
    trade<2>();
    step<12, 11>(seen, out), move<1>();
    step<13, 12>(seen, out), move<1>();
    trade<1>();
    step<14, 13>(seen, out);
    trade<1>();
    trade<2>();
    trade<4>();
    turn_across<14>(seen, out);
  }

  /// All pairs of the two blocks. before: the step whose rotations are yet to be published.
  template <int before = -1>
  __device__ void turn_across(Seen& seen, Published& out) {
    step<0, before>(seen, out), move<1>();
    step<1, 0>(seen, out), move<2>();
    step<2, 1>(seen, out), move<1>();
    step<3, 2>(seen, out), move<4>();
    step<4, 3>(seen, out), move<1>();
    step<5, 4>(seen, out), move<2>();
    step<6, 5>(seen, out), move<1>();
    step<7, 6>(seen, out);
    publish<7>(out);
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int place() { return lane() / 4; }
  __device__ static int column_place(int k) { return 2 * (lane() % 4) + k; }
  __device__ static int diagonal_lane(int p) { return 4 * p + p / 2; }
  __device__ static bool odd() { return (lane() & 4) != 0; }
  __device__ static bool on_diagonal() { return lane() == diagonal_lane(place()); }
  __device__ static bool is_diagonal(int k) { return place() == column_place(k); }

  static constexpr int none = -1;

  /// The last rotations, c and s right to double precision: c = (1 + t^2)^(-1/2) from the float c.
  template <int number>
  __device__ void publish(Published& out) const {
    if constexpr (number == none) return;
    const double t = last_.t, start = last_.c, left = fma(-start * start, fma(t, t, 1.0), 1.0);
    const double c = fma(start * left, fma(0.375, left, 0.5), start);
    out.put(on_diagonal(), number, place(), c, t * c);
  }

  /// Publishes the rotations of the step before meanwhile.
  template <int number, int before>
  __device__ void step(Seen& seen, Published& out) {
    const float e = odd() ? a_[0][1][1] : a_[0][1][0];  // on the diagonal's lanes, as all up to the exchange
    const float d = (high_[1] - high_[0]) + (low_[1] - low_[0]);
    const float cosine = fabsf(e) * (rough_inverse_root(high_[0] + low_[0]) * rough_inverse_root(high_[1] + low_[1]));
    const bool turn = on_diagonal() && cosine > tolerance_;
    Rotation f = find_rotation(d, e);
    if (!turn) f = {1, 0, 0};
    if (turn) {
      seen.cosine = fmaxf(seen.cosine, fminf(cosine, 1.0f));
      seen.mixing = fmaxf(seen.mixing, fmaxf(fminf(cosine, 1.0f), fabsf(f.s)));
    }
    low_[0] = fmaf(-f.t, e, low_[0]);
    low_[1] = fmaf(f.t, e, low_[1]);
    publish<before>(out);
    last_ = f;
    if constexpr (number == across_steps - 1) return;  // nobody needs H
    const int from = diagonal_lane(place());
    const float cp = __shfl_sync(all_lanes, f.c, from), sp = __shfl_sync(all_lanes, f.s, from);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int q = diagonal_lane(column_place(k));
      const float cq = __shfl_sync(all_lanes, f.c, q), sq = __shfl_sync(all_lanes, f.s, q);
      const float uu = fmaf(cp, a_[0][0][k], -sp * a_[1][0][k]), lu = fmaf(sp, a_[0][0][k], cp * a_[1][0][k]);
      const float ul = fmaf(cp, a_[0][1][k], -sp * a_[1][1][k]), ll = fmaf(sp, a_[0][1][k], cp * a_[1][1][k]);
      const bool here = is_diagonal(k);
      const float rest = turn ? 0.0f : e;
      a_[0][0][k] = here ? 0.0f : fmaf(cq, uu, -sq * ul);
      a_[0][1][k] = here ? rest : fmaf(sq, uu, cq * ul);
      a_[1][0][k] = here ? rest : fmaf(cq, lu, -sq * ll);
      a_[1][1][k] = here ? 0.0f : fmaf(sq, lu, cq * ll);
    }
  }

  /// Lanes apart where the places of columns (rows), or of both, differ in `bit`. Bit 1 of a column's is k.
  template <int bit>
  static constexpr int across_columns = bit / 2;
  template <int bit>
  static constexpr int across_rows = 4 * bit;
  template <int bit>
  static constexpr int across_both = 4 * bit + bit / 2;

  template <int lanes, int bit>
  __device__ static void exchange(float (&x)[2]) {
#pragma unroll
    for (int k = 0; k < 2; ++k)
      if constexpr (lanes != 0) x[k] = __shfl_xor_sync(all_lanes, x[k], lanes);
    if constexpr (bit == 1) {
      const float keep = x[0];
      x[0] = x[1];
      x[1] = keep;
    }
  }

  /// Column P of the second role becomes P ^ bit.
  template <int bit>
  __device__ void move() {
    exchange<across_columns<bit>, bit>(a_[0][1]);
    exchange<across_rows<bit>, 0>(a_[1][0]);
    exchange<across_both<bit>, bit>(a_[1][1]);
    high_[1] = __shfl_xor_sync(all_lanes, high_[1], across_both<bit>);
    low_[1] = __shfl_xor_sync(all_lanes, low_[1], across_both<bit>);
  }

  /// Of a lane whose bit is b, the value of role 1 - b trades places with the other's.
  template <int lanes>
  __device__ static void trade_values(bool set, float& first, float& second) {
    const float other = __shfl_xor_sync(all_lanes, set ? first : second, lanes);
    first = set ? other : first;
    second = set ? second : other;
  }

  /// The role and `bit` of the place trade places, for rows and for columns.
  template <int bit>
  __device__ void trade() {
    const bool row_set = (place() & bit) != 0, column_set = (column_place(0) & bit) != 0;
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int c = 0; c < 2; ++c) trade_values<across_rows<bit>>(row_set, a_[0][c][k], a_[1][c][k]);
#pragma unroll
    for (int r = 0; r < 2; ++r) trade_columns<bit>(column_set, a_[r]);
    trade_values<across_both<bit>>(row_set, high_[0], high_[1]);
    trade_values<across_both<bit>>(row_set, low_[0], low_[1]);
  }
  template <int bit>
  __device__ static void trade_columns(bool set, float (&x)[2][2]) {
    if constexpr (bit == 1) {
      const float keep = x[0][1];
      x[0][1] = x[1][0];
      x[1][0] = keep;
    } else {
#pragma unroll
      for (int k = 0; k < 2; ++k) trade_values<across_columns<bit>>(set, x[0][k], x[1][k]);
    }
  }

  float a_[2][2][2];        // [role of row][role of column][k]: H, its diagonal left out
  float high_[2], low_[2];  // on the diagonal's lanes: H's diagonal at P, by role
  Rotation last_;
  float tolerance_;
};

}  // namespace qrane::backend::cuda::jacobi
