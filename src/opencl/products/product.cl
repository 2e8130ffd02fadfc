// SPDX-License-Identifier: Apache-2.0
// Products of block reflectors with a tile of TC columns: C := C - V op(T) (V^T C), V of KP columns (a multiple of 4)
// and C in local memory by chunks of CHUNK rows. A work-item has 4 x 4 elements of W = V^T C in registers, rows 4 x ..
// 4 x + 3 and columns y + TC / 4 s: WG = KP / 4 * TC / 4.
#define CHUNK 16
#define LDV (KP + 1)
#define LDC (TC + 1)

// W += V^T C of a chunk.
void add_products(int x, int y, __local const REAL* s_v, __local const REAL* s_c, REAL sum[4][4]) {
#pragma unroll 2
  for (int r = 0; r < CHUNK; ++r)
    for (int q = 0; q < 4; ++q) {
      const REAL u = s_v[r * LDV + 4 * x + q];
      for (int s = 0; s < 4; ++s) sum[q][s] = FMA(u, s_c[r * LDC + y + TC / 4 * s], sum[q][s]);
    }
}

void store_w(int x, int y, REAL sum[4][4], __local REAL* s_w) {
  for (int q = 0; q < 4; ++q)
    for (int s = 0; s < 4; ++s) s_w[(4 * x + q) * LDC + y + TC / 4 * s] = sum[q][s];
}

// 4 x 4 elements of T^T W or T W: rows 4 x .. 4 x + 3, columns y + TC / 4 s.
void multiply_t(__global const REAL* g_t, int inner, int cols, int transposed, int x, int y, __local const REAL* s_w,
                REAL sum[4][4]) {
  for (int q = 0; q < 4; ++q)
    for (int s = 0; s < 4; ++s) sum[q][s] = 0;
  for (int l = 0; l < cols; ++l)
    for (int q = 0; q < 4; ++q) {
      const int k = 4 * x + q;
      if (k >= cols || (transposed ? l > k : l < k)) continue;
      const REAL t = transposed ? g_t[l + (long)k * inner] : g_t[k + (long)l * inner];
      for (int s = 0; s < 4; ++s) sum[q][s] = FMA(t, s_w[l * LDC + y + TC / 4 * s], sum[q][s]);
    }
}

// (V W)(r, j + TC / 4 s) by columns first .. cols - 1 of V.
void multiply_row(int r, int j, int first, int cols, __local const REAL* s_v, __local const REAL* s_w, REAL change[4]) {
  for (int s = 0; s < 4; ++s) change[s] = 0;
  for (int k = first; k < cols; ++k) {
    const REAL u = s_v[r * LDV + k];
    for (int s = 0; s < 4; ++s) change[s] = FMA(u, s_w[k * LDC + j + TC / 4 * s], change[s]);
  }
}
