// SPDX-License-Identifier: Apache-2.0
// C := alpha op(A) op(B) + beta C for a batch, 2 m n k flops. G x G work-items (WG = G * G) compute a tile of
// C of 4G x 4G, 4 x 4 elements each in registers, from slices of op(A) and op(B) of depth KC in local memory.
// A long inner dimension is cut into chunks, each group then writes its partial product and sum_chunks.cl
// adds them in order, so that tall-skinny products fill the device and bits still repeat.
// The host defines the types in memory A_TYPE, B_TYPE, C_TYPE, the conversions LOAD_A, LOAD_B, LOAD_C, STORE_C,
// the type ACC of products and sums, G and KC.
// Work-item (x, y) has rows x + G q and columns y + G q of the tile: neighbours touch neighbouring banks.
// Local memory: 2 * KC * (4G + 1) ACC.
#define TILE (4 * G)
#define LD (TILE + 1)

// s_slice[k * LD + i] := op(X)(i0 + i, k0 + k), zeros outside rows x depth; X column-major.
#define LOAD_SLICE(s_slice, x, ld, load, along_depth, i0, rows, k0, depth)                                 \
  for (int e = lane; e < TILE * KC; e += WG) {                                                             \
    const int i = (along_depth) ? e / KC : e % TILE, k = (along_depth) ? e % KC : e / TILE;                \
    ACC value = 0;                                                                                         \
    if ((i0) + i < (rows) && (k0) + k < (depth))                                                           \
      value = load((along_depth) ? (x)[(k0) + k + ((i0) + i) * (ld)] : (x)[(i0) + i + ((k0) + k) * (ld)]); \
    (s_slice)[k * LD + i] = value;                                                                         \
  }

KERNEL gemm(CONDITION, MATRIX(a), MATRIX(b), MATRIX(c), BUFFER(partial), const long m, const long n, const long depth,
            const ACC alpha, const ACC beta, const int transpose_a, const int transpose_b, const long chunks,
            const long chunk_depth, const int upper) {
  __local ACC s_a[KC * LD];
  __local ACC s_b[KC * LD];
  const int lane = (int)get_local_id(0), x = lane % G, y = lane / G;
  const long tiles_m = (m + TILE - 1) / TILE, tiles_n = (n + TILE - 1) / TILE;
  long g = get_group_id(0);
  const long i0 = g % tiles_m * TILE;
  g /= tiles_m;
  const long j0 = g % tiles_n * TILE;
  g /= tiles_n;
  const long chunk = g % chunks, batch = g / chunks;
  const bool wanted = WANTED && !(upper && i0 > j0 + TILE - 1);  // the same in the whole group
  __global const A_TYPE* a = AT(const A_TYPE, a) + batch * a_stride;
  __global const B_TYPE* b = AT(const B_TYPE, b) + batch * b_stride;
  const long end = wanted ? min(depth, (chunk + 1) * chunk_depth) : 0;

  ACC sum[4][4];
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) sum[p][q] = 0;
  for (long k0 = chunk * chunk_depth; k0 < end; k0 += KC) {
    LOAD_SLICE(s_a, a, a_ld, LOAD_A, transpose_a, i0, m, k0, end)
    LOAD_SLICE(s_b, b, b_ld, LOAD_B, !transpose_b, j0, n, k0, end)
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 2
    for (int k = 0; k < KC; ++k) {
      ACC u[4], v[4];
      for (int p = 0; p < 4; ++p) u[p] = s_a[k * LD + x + G * p];
      for (int q = 0; q < 4; ++q) v[q] = s_b[k * LD + y + G * q];
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] = FMA(u[p], v[q], sum[p][q]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  for (int q = 0; q < 4; ++q)
    for (int p = 0; p < 4; ++p) {
      const long i = i0 + x + G * p, j = j0 + y + G * q;
      if (!wanted || i >= m || j >= n || (upper && i > j)) continue;
      if (chunks > 1) {
        AT(ACC, partial)[(batch * chunks + chunk) * m * n + i + j * m] = sum[p][q];
      } else {
        __global C_TYPE* c = AT(C_TYPE, c) + batch * c_stride + i + j * c_ld;
        const ACC product = alpha * sum[p][q];
        *c = STORE_C(beta == 0 ? product : product + beta * LOAD_C(*c));
      }
    }
}
