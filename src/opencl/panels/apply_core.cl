// SPDX-License-Identifier: Apache-2.0
// apply_qt_h (TREE 0) and apply_qt_tree (TREE 1) for devices that run a work-group on one core (see gemm_core.cl): one
// work-item applies the reflectors of one block to TC columns of C, C := (I - V op(T) V^T) C. V stands in local memory
// by chunks of CHUNK rows, with its ones and zeros written out, so that the products need no cases. Flops: 4 r k c + 2
// k^2 c per block (r rows, k reflectors, c columns). Local memory: KP * (CHUNK + 2 TC) scalars.

// s_v[r + k * CHUNK] := V(row i0 + r of head h, k), zeros outside; KP columns.
void load_v(__global const REAL* v, long ld, long head_step, int h, int i0, int rows, int cols, __local REAL* s_v) {
  for (int k = 0; k < KP; ++k)
    for (int r = 0; r < rows; ++r) {
      const int i = i0 + r;
      const bool below = TREE ? h > 0 && i <= k : i > k;
      const bool one = i == k && !(TREE && h > 0);
      s_v[r + k * CHUNK] = k >= cols ? 0 : one ? 1 : below ? v[h * head_step + i + k * ld] : 0;
    }
}

// s_w[k + j * KP] += (V^T C)(k, j) for a chunk of C.
void add_w(__local const REAL* s_v, __global const REAL* c, long ld, int rows, int here, __local REAL* s_w) {
  for (int j = 0; j < here; j += 3) {
    __global const REAL* columns_c[3];
    for (int q = 0; q < 3; ++q) columns_c[q] = c + min(j + q, here - 1) * ld;
    for (int k = 0; k < KP; k += 4) {
      __local const REAL* columns_v[4];
      for (int p = 0; p < 4; ++p) columns_v[p] = s_v + (k + p) * CHUNK;
      REAL sums[4][3];
      add_dots(columns_v, columns_c, 0, rows, sums);
      for (int q = 0; q < 3 && j + q < here; ++q)
        for (int p = 0; p < 4; ++p) s_w[k + p + (j + q) * KP] += sums[p][q];
    }
  }
}

// C -= V W for a chunk, by two vectors of rows and four columns in registers.
void subtract_vw(__local const REAL* s_v, __local const REAL* s_w, __global REAL* c, long ld, int rows, int cols,
                 int here) {
  for (int j = 0; j < here; j += 4) {
    __local const REAL* w[4];
    for (int q = 0; q < 4; ++q) w[q] = s_w + min(j + q, here - 1) * KP;
    int i = 0;
    for (; i + 2 * LANES <= rows; i += 2 * LANES) {
      VECTOR sums[2][4];
      for (int q = 0; q < 4; ++q) sums[0][q] = sums[1][q] = 0;
      for (int k = 0; k < cols; ++k) {
        const VECTOR x0 = LOAD(s_v + i + k * CHUNK), x1 = LOAD(s_v + i + LANES + k * CHUNK);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const VECTOR y = (VECTOR)(w[q][k]);
          sums[0][q] = FMA(x0, y, sums[0][q]);
          sums[1][q] = FMA(x1, y, sums[1][q]);
        }
      }
      for (int q = 0; q < 4 && j + q < here; ++q)
        for (int u = 0; u < 2; ++u) {
          __global REAL* p = c + i + u * LANES + (j + q) * ld;
          JOIN(vstore, LANES)(LOAD(p) - sums[u][q], 0, p);
        }
    }
    for (; i < rows; ++i)
      for (int q = 0; q < 4 && j + q < here; ++q) {
        REAL sum = 0;
        for (int k = 0; k < cols; ++k) sum = FMA(s_v[i + k * CHUNK], w[q][k], sum);
        c[i + (j + q) * ld] -= sum;
      }
  }
}

KERNEL apply(CONDITION, MATRIX(a), BUFFER(t), BUFFER(tasks), MATRIX(c), const long c_cols, const int inner,
             const int transposed) {
  __local REAL s_v[KP * CHUNK], s_w[KP * TC], s_tw[KP * TC];
  if (!WANTED) return;
  const long tiles = (c_cols + TC - 1) / TC;
  const long c0 = get_group_id(0) % tiles * TC;
  const BlockTask task = AT(const BlockTask, tasks)[get_group_id(0) / tiles];
  const int heads = HEADS(task), head_rows = HEAD_ROWS(task), cols = task.cols;
  const int here = (int)min((long)TC, c_cols - c0);
  __global const REAL* v = AT(const REAL, a) + task.matrix * a_stride + task.row + task.col * a_ld;
  __global const REAL* t = AT(const REAL, t) + task.t;
  __global REAL* c = AT(REAL, c) + task.matrix * c_stride + task.row + c0 * c_ld;

  for (int e = 0; e < KP * here; ++e) s_w[e] = 0;
  for (int h = 0; h < heads; ++h)
    for (int i0 = 0; i0 < head_rows; i0 += CHUNK) {
      const int rows = min(CHUNK, head_rows - i0);
      load_v(v, a_ld, task.stride, h, i0, rows, cols, s_v);
      add_w(s_v, c + (long)h * task.stride + i0, c_ld, rows, here, s_w);
    }
  for (int j = 0; j < here; ++j)
    for (int k = 0; k < cols; ++k) {
      REAL sum = 0;
      if (transposed)
        for (int l = 0; l <= k; ++l) sum = FMA(t[l + (long)k * inner], s_w[l + j * KP], sum);
      else
        for (int l = k; l < cols; ++l) sum = FMA(t[k + (long)l * inner], s_w[l + j * KP], sum);
      s_tw[k + j * KP] = sum;
    }
  for (int h = 0; h < heads; ++h)
    for (int i0 = 0; i0 < head_rows; i0 += CHUNK) {
      const int rows = min(CHUNK, head_rows - i0);
      load_v(v, a_ld, task.stride, h, i0, rows, cols, s_v);
      subtract_vw(s_v, s_tw, c + (long)h * task.stride + i0, c_ld, rows, cols, here);
    }
}
