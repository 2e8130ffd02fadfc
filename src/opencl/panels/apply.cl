// SPDX-License-Identifier: Apache-2.0
// apply_qt_h (TREE 0) and apply_qt_tree (TREE 1): C := (I - V op(T) V^T) C for the rows of one block and a
// tile of TC columns of C per group; Anderson, Ballard, Demmel, Keutzer (IPDPS 2011), section IV.
//
// V (KP columns, padded with zeros) and C pass through local memory in chunks of CHUNK rows, twice:
//   W = V^T C      4 x 4 elements of W per work-item in registers
//   W = op(T) W    T from global memory, the same for neighbouring work-items
//   C = C - V W
// V's ones and zeros are supplied here: reflector k is 1 in row k, and zero above it and below the diagonal of the
// eliminated triangles; head 0 of a tree is the identity.
//
// WG = KP / 4 * TC / 4 (product.cl). Flops: 4 r k c + 2 k^2 c per block (r rows, k reflectors, c columns).
// Bytes: C read twice and written once, V read twice per column tile.
// Local memory: CHUNK * (KP + TC + 2) + KP * (TC + 1) scalars.

typedef struct {
  __global const REAL* data;
  long ld, head_step;
  int cols;
} Reflectors;

// s_v[r * LDV + k] := V(row i0 + r of head h, k), zeros outside.
void load_v(Reflectors v, int h, int i0, int head_rows, __local REAL* s_v) {
  for (int e = (int)get_local_id(0); e < CHUNK * KP; e += WG) {
    const int r = e % CHUNK, k = e / CHUNK, i = i0 + r;
    REAL value = 0;
    if (k < v.cols && i < head_rows) {
      if (TREE && h == 0)
        value = i == k;
      else if (TREE)
        value = i <= k ? v.data[h * v.head_step + i + k * v.ld] : 0;
      else
        value = i == k ? 1 : i > k ? v.data[i + k * v.ld] : 0;
    }
    s_v[r * LDV + k] = value;
  }
}

KERNEL apply(CONDITION, MATRIX(a), BUFFER(t), BUFFER(tasks), MATRIX(c), const long c_cols, const int inner,
             const int transposed) {
  __local REAL s_v[CHUNK * LDV], s_c[CHUNK * LDC], s_w[KP * LDC];
  const int id = (int)get_local_id(0), x = id / (TC / 4), y = id % (TC / 4);
  const long tiles = (c_cols + TC - 1) / TC;
  const long task_index = get_group_id(0) / tiles, c0 = get_group_id(0) % tiles * TC;
  BlockTask task = AT(const BlockTask, tasks)[task_index];
  if (!WANTED) task.rows = task.cols = 0;
  const int heads = HEADS(task), head_rows = HEAD_ROWS(task), cols = task.cols;
  const int here = (int)min((long)TC, c_cols - c0);
  __global REAL* g_c = AT(REAL, c) + task.matrix * c_stride + task.row + c0 * c_ld;
  __global const REAL* g_t = AT(const REAL, t) + task.t;
  Reflectors v;
  v.data = AT(const REAL, a) + task.matrix * a_stride + task.row + task.col * a_ld;
  v.ld = a_ld;
  v.head_step = task.stride;
  v.cols = cols;

  REAL sum[4][4];
  for (int q = 0; q < 4; ++q)
    for (int s = 0; s < 4; ++s) sum[q][s] = 0;
  for (int h = 0; h < heads; ++h)
    for (int i0 = 0; i0 < head_rows; i0 += CHUNK) {
      load_v(v, h, i0, head_rows, s_v);
      for (int e = id; e < CHUNK * TC; e += WG) {
        const int r = e % CHUNK, j = e / CHUNK;
        s_c[r * LDC + j] = i0 + r < head_rows && j < here ? g_c[(long)h * task.stride + i0 + r + j * c_ld] : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (!TREE || 4 * x + 3 >= i0)  // the triangle's rows below these columns are zero
        add_products(x, y, s_v, s_c, sum);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  store_w(x, y, sum, s_w);
  barrier(CLK_LOCAL_MEM_FENCE);
  multiply_t(g_t, inner, cols, transposed, x, y, s_w, sum);
  barrier(CLK_LOCAL_MEM_FENCE);
  store_w(x, y, sum, s_w);

  for (int h = 0; h < heads; ++h)
    for (int i0 = 0; i0 < head_rows; i0 += CHUNK) {
      load_v(v, h, i0, head_rows, s_v);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int e = id; e < CHUNK * (TC / 4); e += WG) {
        const int r = e % CHUNK, j = e / CHUNK;
        REAL change[4];
        multiply_row(r, j, TREE ? i0 : 0, cols, s_v, s_w, change);
        for (int s = 0; s < 4; ++s)
          if (i0 + r < head_rows && j + TC / 4 * s < here)
            g_c[(long)h * task.stride + i0 + r + (j + TC / 4 * s) * c_ld] -= change[s];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
}
