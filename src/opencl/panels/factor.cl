// SPDX-License-Identifier: Apache-2.0
// factor (TREE 0) and factor_tree (TREE 1): Householder QR of one block per group, with its compact-WY T;
// kernels of Anderson, Ballard, Demmel, Keutzer (IPDPS 2011), section IV. vocabulary/panels.hpp draws the storage.
//
// The panel works in local memory (PANEL __local, copied in and out) or, when it does not fit, where it
// stands (PANEL __global). Column j takes three phases, each ended by one barrier:
//   dots    d_k = x_j . a_k below row j, for every column k of the panel at once: d_j is the tail's
//           square, d_k (k > j) gives w_k = v_j^T a_k, and d_k (k < j) gives V_k^T v_j for T
//   scalars the partial sums of LANES lanes are added in order; tau, beta, and the factor that makes x_j v_j
//   update  a_k -= tau w_k v_j for k > j, and T(0:j, j) = -tau T(0:j, 0:j) V^T v_j
// so x_j stays unscaled until the panel is stored. Tails of the eliminated triangles end at row j.
//
// Safety: every column is scaled by a power of two to largest magnitude in [1/2, 1), so no square overflows,
// and one below TINY (the square of about eps * 1e-6) stands for a tail that is zero at this precision: it is
// dropped and H = I, as for an exactly zero tail. The scaling is undone on R alone, since v and tau do not
// change with it. Columns with NaN or Inf keep their scale and spread.
//
// Flops: 2 r c^2 - 2 c^3 / 3 for the panel and r c^2 for T (r rows, c columns). Bytes: 2 r c scalars.
// Local memory: NB * (2 NB + LANES + 7) scalars, and the panel.
#define LANES (WG < 16 ? WG : 16)
#define GROUPS (WG / LANES)
#if REAL_IS_DOUBLE
#define TINY 1e-44
#else
#define TINY 1e-27f
#endif

typedef struct {
  PANEL REAL* data;
  long ld;
  long head_step;
  int heads, head_rows;
} Tile;
#define ELEMENT(tile, h, i, j) (tile).data[(h) * (tile).head_step + (i) + (j) * (tile).ld]

// Rows that reflector j eliminates: heads first_head.., rows first_row .. end_row - 1 of each.
typedef struct {
  int first_head, first_row, end_row;
} Tail;

// Rows of column j in each head.
#define COLUMN_ROWS(task, j) (TREE ? (j) + 1 : (task).rows)

// A lane's part of the work on one column, rows begin .. end - 1: every LANES-th row, or all in vectors where a group
// is one work-item, since it then has a core for itself.
#if WG == 1
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR16 JOIN(REAL, 16)
#define VECTOR4 JOIN(REAL, 4)
REAL dot_part(PANEL const REAL* x, PANEL const REAL* y, int begin, int end, int lane) {
  int i = begin;
  VECTOR16 wide_sum = 0;
  for (; i + 16 <= end; i += 16) wide_sum = FMA(vload16(0, x + i), vload16(0, y + i), wide_sum);
  VECTOR4 sums = (wide_sum.lo.lo + wide_sum.lo.hi) + (wide_sum.hi.lo + wide_sum.hi.hi);
  for (; i + 4 <= end; i += 4) sums = FMA(vload4(0, x + i), vload4(0, y + i), sums);
  REAL sum = (sums.s0 + sums.s2) + (sums.s1 + sums.s3);
  for (; i < end; ++i) sum = FMA(x[i], y[i], sum);
  return sum;
}
void add_part(REAL factor, PANEL const REAL* x, PANEL REAL* y, int begin, int end, int lane) {
  int i = begin;
  for (; i + 16 <= end; i += 16) vstore16(FMA((VECTOR16)(factor), vload16(0, x + i), vload16(0, y + i)), 0, y + i);
  for (; i + 4 <= end; i += 4) vstore4(FMA((VECTOR4)(factor), vload4(0, x + i), vload4(0, y + i)), 0, y + i);
  for (; i < end; ++i) y[i] = FMA(factor, x[i], y[i]);
}
#else
REAL dot_part(PANEL const REAL* x, PANEL const REAL* y, int begin, int end, int lane) {
  REAL sum = 0;
  for (int i = begin + lane; i < end; i += LANES) sum = FMA(x[i], y[i], sum);
  return sum;
}
void add_part(REAL factor, PANEL const REAL* x, PANEL REAL* y, int begin, int end, int lane) {
  for (int i = begin + lane; i < end; i += LANES) y[i] = FMA(factor, x[i], y[i]);
}
#endif

// s_partial[k * LANES + lane] := this lane's part of sum x(r) a_k(r) over the tail's rows.
void partial_dots(Tile tile, Tail tail, int j, int cols, __local REAL* s_partial) {
  const int lane = (int)get_local_id(0) % LANES;
  for (int k = (int)get_local_id(0) / LANES; k < cols; k += GROUPS) {
    REAL sum = 0;
    const int end = TREE ? min(tail.end_row, k + 1) : tail.end_row;
    for (int h = tail.first_head; h < tile.heads; ++h)
      sum += dot_part(&ELEMENT(tile, h, 0, j), &ELEMENT(tile, h, 0, k), tail.first_row, end, lane);
    s_partial[k * LANES + lane] = sum;
  }
}

// a_k := a_k - tau w_k v_j for the columns k > j of the panel.
void update_trailing(Tile tile, Tail tail, int j, int cols, REAL tau, REAL scale, __local const REAL* s_dot,
                     __local const REAL* s_top) {
  const int lane = (int)get_local_id(0) % LANES;
  for (int k = j + 1 + (int)get_local_id(0) / LANES; k < cols; k += GROUPS) {
    const REAL w = tau * FMA(scale, s_dot[k], s_top[k]);
    const REAL factor = w * scale;
    if (lane == 0) ELEMENT(tile, 0, j, k) = s_top[k] - w;
    for (int h = tail.first_head; h < tile.heads; ++h)
      add_part(-factor, &ELEMENT(tile, h, 0, j), &ELEMENT(tile, h, 0, k), tail.first_row, tail.end_row, lane);
  }
}

// Column j of T, from z_l = V_l^T v_j = s_scale_l (top_l + scale d_l).
void append_t(int j, REAL tau, REAL scale, __local const REAL* s_dot, __local const REAL* s_top,
              __local const REAL* s_scale, __local REAL* s_t) {
  for (int i = (int)get_local_id(0); i <= j; i += WG) {
    REAL sum = 0;
    if (tau != 0)
      for (int l = i; l < j; ++l)
        if (s_scale[l] != 0) sum = FMA(s_t[i + l * NB], s_scale[l] * FMA(scale, s_dot[l], s_top[l]), sum);
    s_t[i + j * NB] = i == j ? tau : tau == 0 ? 0 : -tau * sum;
  }
}

// Scales every column by 2^-e to largest magnitude in [1/2, 1); s_exponent[j] = e, 0 for zero or not finite.
void scale_columns(Tile tile, BlockTask task, __local REAL* s_partial, __local int* s_exponent) {
  const int id = (int)get_local_id(0), lane = id % LANES;
  for (int j = id / LANES; j < task.cols; j += GROUPS) {
    REAL largest = 0;
    const int end = COLUMN_ROWS(task, j);
    for (int h = 0; h < tile.heads; ++h)
      for (int i = lane; i < end; i += LANES) {
        const REAL x = fabs(ELEMENT(tile, h, i, j));
        largest = x > largest || isnan(x) ? x : largest;
      }
    s_partial[j * LANES + lane] = largest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = id; j < task.cols; j += WG) {
    REAL largest = 0;
    for (int l = 0; l < LANES; ++l) {
      const REAL x = s_partial[j * LANES + l];
      largest = x > largest || isnan(x) ? x : largest;
    }
    int exponent = 0;
    if (largest > 0 && isfinite(largest)) frexp(largest, &exponent);
    s_exponent[j] = exponent;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = id / LANES; j < task.cols; j += GROUPS) {
    const int end = COLUMN_ROWS(task, j);
    for (int h = 0; h < tile.heads; ++h)
      for (int i = lane; i < end; i += LANES) ELEMENT(tile, h, i, j) = ldexp(ELEMENT(tile, h, i, j), -s_exponent[j]);
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

KERNEL factor(CONDITION, MATRIX(a), BUFFER(t), BUFFER(tasks), const int inner, __local REAL* s_panel) {
  __local REAL s_t[NB * NB], s_partial[NB * LANES], s_dot[NB], s_top[NB], s_scale[NB], s_step[3];
  __local int s_exponent[NB];
  const int id = (int)get_local_id(0), lane = id % LANES;
  BlockTask task = AT(const BlockTask, tasks)[get_group_id(0)];
  if (!WANTED) task.rows = task.cols = 0;
  __global REAL* g_block = AT(REAL, a) + task.matrix * a_stride + task.row + task.col * a_ld;
  __global REAL* g_t = AT(REAL, t) + task.t;

  const int heads = HEADS(task), head_rows = HEAD_ROWS(task), cols = task.cols;
  Tile tile;
  tile.heads = heads;
  tile.head_rows = head_rows;
#if PANEL_IS_LOCAL
  tile.data = s_panel;
  tile.head_step = head_rows;
  tile.ld = (heads * head_rows) | 1;
  for (int j = id / LANES; j < cols; j += GROUPS) {
    const int end = COLUMN_ROWS(task, j);
    for (int h = 0; h < heads; ++h)
      for (int i = lane; i < head_rows; i += LANES)
        ELEMENT(tile, h, i, j) = i < end ? g_block[(long)h * task.stride + i + j * a_ld] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#else
  tile.data = g_block;
  tile.head_step = task.stride;
  tile.ld = a_ld;
#endif
  scale_columns(tile, task, s_partial, s_exponent);

  for (int j = 0; j < cols; ++j) {
    const bool rows_left = j < head_rows;
    Tail tail;
    tail.first_head = TREE;
    tail.first_row = TREE ? 0 : j + 1;
    tail.end_row = COLUMN_ROWS(task, j);
    if (rows_left) partial_dots(tile, tail, j, cols, s_partial);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = id; k < cols; k += WG) {
      REAL dot = 0;
      if (rows_left)
        for (int l = 0; l < LANES; ++l) dot += s_partial[k * LANES + l];
      s_dot[k] = dot;
      s_top[k] = rows_left && (!TREE || k >= j) ? ELEMENT(tile, 0, j, k) : 0;
      if (k == j) {
        const REAL alpha = s_top[j];
        REAL beta = alpha, tau = 0, scale = 0;
        if (!(dot < (REAL)TINY)) {
          beta = -copysign(sqrt(alpha * alpha + dot), alpha);
          tau = (beta - alpha) / beta;
          scale = 1 / (alpha - beta);
        }
        s_step[0] = beta;
        s_step[1] = tau;
        s_step[2] = scale;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const REAL tau = rows_left ? s_step[1] : 0, scale = rows_left ? s_step[2] : 0;
    if (tau != 0) update_trailing(tile, tail, j, cols, tau, scale, s_dot, s_top);
    append_t(j, tau, scale, s_dot, s_top, s_scale, s_t);
    if (id == 0) {
      if (rows_left) ELEMENT(tile, 0, j, j) = s_step[0];
      s_scale[j] = scale;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }

  // R unscaled, v scaled; nothing is written below the eliminated triangles' diagonals.
  for (int j = id / LANES; j < cols; j += GROUPS)
    for (int h = 0; h < heads; ++h)
      for (int i = lane; i < COLUMN_ROWS(task, j); i += LANES) {
        const REAL x = ELEMENT(tile, h, i, j);
        const REAL value = h == 0 && i <= j ? ldexp(x, s_exponent[j]) : s_scale[j] == 0 ? 0 : x * s_scale[j];
        g_block[(long)h * task.stride + i + j * a_ld] = value;
      }
  FOR_EACH(e, cols * cols) {
    const int i = (int)e % cols, j = (int)e / cols;
    g_t[i + (long)j * inner] = i <= j ? s_t[i + j * NB] : 0;
  }
}
