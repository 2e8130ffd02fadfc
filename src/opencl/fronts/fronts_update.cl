// SPDX-License-Identifier: Apache-2.0
// update_fronts (vocabulary/fronts.hpp): C := C - V T^T (V^T C) for up to TC columns of a front per group; product.cl
// says how.
//
// Flops: 4 h k c + k^2 c per group (h rows, k reflectors, c columns). Bytes: V and C read twice, C written once.
// Local memory: CHUNK * (KP + TC + 2) + KP * (TC + 1) scalars.

// s_x[r * ld + j] := X(i0 + r, j), zeros outside of rows x cols.
void load_chunk(__global const REAL* g_x, long g_ld, int i0, int rows, int cols, int width, int ld, __local REAL* s_x) {
  for (int e = (int)get_local_id(0); e < CHUNK * width; e += WG) {
    const int r = e % CHUNK, j = e / CHUNK;
    s_x[r * ld + j] = i0 + r < rows && j < cols ? g_x[i0 + r + j * g_ld] : 0;
  }
}

KERNEL update_fronts(CONDITION, FRONTS, BUFFER(tasks), const int whole, const int tiles) {
  __local REAL s_v[CHUNK * LDV], s_c[CHUNK * LDC], s_w[KP * LDC];
  const int id = (int)get_local_id(0), x = id / (TC / 4), y = id % (TC / 4);
  const long group = get_group_id(0);
  __global const FrontUpdateTask* task = AT(const FrontUpdateTask, tasks) + group;
  const int front = whole < 0 ? task->front : AT(const int, tasks)[group / tiles];
  const int k_panel = whole < 0 ? task->panel : whole;
  __global const FrontShape* shape = SHAPE(front);
  const int begin = k_panel * NB, n = max(min(NB, shape->cols - begin), 0);
  int first, c_cols;
  if (whole < 0) {
    first = task->first;
    c_cols = task->cols;
  } else {
    first = min(begin + NB, shape->cols) + (int)(group % tiles) * TC;
    c_cols = min(TC, shape->cols + rhs_cols - first);
  }
  int height = 0, first_row = 0;
  if (WANTED && n > 0 && c_cols > 0 && PANEL(shape, k_panel)->live > 0) {
    height = PANEL(shape, k_panel)->height;
    first_row = PANEL(shape, k_panel)->first_row;
  }
  const long ld = shape->ld;
  __global const REAL* g_v = MATRIX_COLUMN(shape, begin) + first_row;
  __global REAL* g_c = MATRIX_COLUMN(shape, first) + first_row;
  __global const REAL* g_t = AT(const REAL, storage) + shape->t + (long)begin * NB;

  REAL sum[4][4];
  for (int q = 0; q < 4; ++q)
    for (int s = 0; s < 4; ++s) sum[q][s] = 0;
  for (int i0 = 0; i0 < height; i0 += CHUNK) {
    load_chunk(g_v, ld, i0, height, n, KP, LDV, s_v);
    load_chunk(g_c, ld, i0, height, c_cols, TC, LDC, s_c);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_products(x, y, s_v, s_c, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  store_w(x, y, sum, s_w);
  barrier(CLK_LOCAL_MEM_FENCE);
  multiply_t(g_t, NB, height > 0 ? n : 0, 1, x, y, s_w, sum);
  barrier(CLK_LOCAL_MEM_FENCE);
  store_w(x, y, sum, s_w);
  for (int i0 = 0; i0 < height; i0 += CHUNK) {
    load_chunk(g_v, ld, i0, height, n, KP, LDV, s_v);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < CHUNK * (TC / 4); e += WG) {
      const int r = e % CHUNK, j = e / CHUNK;
      REAL change[4];
      multiply_row(r, j, 0, n, s_v, s_w, change);
      for (int s = 0; s < 4; ++s)
        if (i0 + r < height && j + TC / 4 * s < c_cols) g_c[i0 + r + (j + TC / 4 * s) * ld] -= change[s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
