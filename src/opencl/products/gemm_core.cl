// SPDX-License-Identifier: Apache-2.0
// The products of gemm.cl for devices that run a work-group on one core: a group is one work-item (WG = 1) that keeps a
// small tile of C in vector registers. No local memory and no barriers, which such devices pay for and do not need.
// Both kernels compute tiles at the edge of C from columns that are there, and store only what is C's.
// The host defines, besides what dots_core.cl needs, C_TYPE, TILES_N columns of C for each group, and STEP rows of A
// and B that stay in the core's cache.

// C := alpha A^T B + beta C. One group for each chunk of the inner dimension and TILES_N columns of C.
KERNEL gemm_dots(CONDITION, MATRIX(a), MATRIX(b), MATRIX(c), BUFFER(partial), const long m, const long n,
                 const long depth, const ACC alpha, const ACC beta, const long chunks, const long chunk_depth,
                 const int upper) {
  if (!WANTED) return;
  const long tiles_n = (n + TILES_N - 1) / TILES_N;
  const long j0 = get_group_id(0) % tiles_n * TILES_N, j1 = min(n, j0 + TILES_N);
  const long chunk = get_group_id(0) / tiles_n % chunks, batch = get_group_id(0) / tiles_n / chunks;
  __global const A_TYPE* a = AT(const A_TYPE, a) + batch * a_stride;
  __global const B_TYPE* b = AT(const B_TYPE, b) + batch * b_stride;
  __global C_TYPE* c = AT(C_TYPE, c) + batch * c_stride;
  __global ACC* partial = AT(ACC, partial) + (batch * chunks + chunk) * m * n;
  const long first = chunk * chunk_depth, last = min(depth, first + chunk_depth), step = chunks > 1 ? STEP : depth;
  long k0 = first;
  do {
    const long k1 = min(last, k0 + step);
    for (long j = j0; j < j1; j += 3)
      for (long i = 0; i < m && !(upper && i > j + 2); i += 4) {
        __global const A_TYPE* columns_a[4];
        __global const B_TYPE* columns_b[3];
        for (int p = 0; p < 4; ++p) columns_a[p] = a + min(i + p, m - 1) * a_ld;
        for (int q = 0; q < 3; ++q) columns_b[q] = b + min(j + q, n - 1) * b_ld;
        ACC sums[4][3];
        add_dots(columns_a, columns_b, k0, k1, sums);
        for (int q = 0; q < 3 && j + q < j1; ++q)
          for (int p = 0; p < 4 && i + p < m && !(upper && i + p > j + q); ++p) {
            if (chunks > 1) {
              __global ACC* sum = partial + i + p + (j + q) * m;
              *sum = k0 == first ? sums[p][q] : *sum + sums[p][q];
            } else {
              __global C_TYPE* element = c + i + p + (j + q) * c_ld;
              const ACC product = alpha * sums[p][q];
              *element = (C_TYPE)(beta == 0 ? product : product + beta * (ACC)*element);
            }
          }
      }
    k0 = k1;
  } while (k0 < last);
}

#define DEPTH 128

// C := alpha A op(B) + beta C. One group for each STEP rows and TILES_N columns of C. 2 LANES rows and DEPTH columns of
// A are copied to local memory, converted: as they lie, every column is on another page of memory. Sums over more than
// DEPTH columns stay there as ACC: C may be narrower.
KERNEL gemm_columns(CONDITION, MATRIX(a), MATRIX(b), MATRIX(c), const long m, const long n, const long depth,
                    const ACC alpha, const ACC beta, const int transpose_b) {
  __local ACC s_a[DEPTH * 2 * LANES], s_sums[TILES_N * 2 * LANES];
  if (!WANTED) return;
  const long tiles_m = (m + STEP - 1) / STEP, tiles_n = (n + TILES_N - 1) / TILES_N;
  const long i0 = get_group_id(0) % tiles_m * STEP, i1 = min(m, i0 + STEP);
  const long j0 = get_group_id(0) / tiles_m % tiles_n * TILES_N, j1 = min(n, j0 + TILES_N);
  const long batch = get_group_id(0) / tiles_m / tiles_n;
  __global const A_TYPE* a = AT(const A_TYPE, a) + batch * a_stride;
  __global const B_TYPE* b = AT(const B_TYPE, b) + batch * b_stride;
  __global C_TYPE* c = AT(C_TYPE, c) + batch * c_stride;
  const long step_j = transpose_b ? 1 : b_ld, step_k = transpose_b ? b_ld : 1;
  for (long i = i0; i < i1; i += 2 * LANES) {
    const int rows = (int)min(2L * LANES, i1 - i);
    long k0 = 0;
    do {
      const int here = (int)min((long)DEPTH, depth - k0);
      for (int k = 0; k < here; ++k) {
        __global const A_TYPE* column = a + i + (k0 + k) * a_ld;
        if (rows == 2 * LANES) {
          JOIN(vstore, LANES)(LOAD(column), 2 * k, s_a);
          JOIN(vstore, LANES)(LOAD(column + LANES), 2 * k + 1, s_a);
        } else {
          for (int r = 0; r < 2 * LANES; ++r) s_a[2 * LANES * k + r] = r < rows ? (ACC)column[r] : 0;
        }
      }
      const int first = k0 == 0, last = k0 + here == depth;
      for (long j = j0; j < j1; j += 4) {
        __global const B_TYPE* columns_b[4];
        for (int q = 0; q < 4; ++q) columns_b[q] = b + min(j + q, n - 1) * step_j + k0 * step_k;
        VECTOR v[2][4];
        for (int q = 0; q < 4; ++q) v[0][q] = v[1][q] = 0;
        for (int k = 0; k < here; ++k) {
          const VECTOR x0 = JOIN(vload, LANES)(2 * k, s_a), x1 = JOIN(vload, LANES)(2 * k + 1, s_a);
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            const VECTOR y = (VECTOR)((ACC)columns_b[q][k * step_k]);
            v[0][q] = fma(x0, y, v[0][q]);
            v[1][q] = fma(x1, y, v[1][q]);
          }
        }
        for (int q = 0; q < 4 && j + q < j1; ++q) {
          ACC sums[2 * LANES];
          JOIN(vstore, LANES)(v[0][q], 0, sums);
          JOIN(vstore, LANES)(v[1][q], 1, sums);
          __global C_TYPE* column = c + i + (j + q) * c_ld;
          __local ACC* before = s_sums + (j + q - j0) * 2 * LANES;
          for (int r = 0; r < rows; ++r) {
            const ACC sum = first ? sums[r] : before[r] + sums[r];
            if (last)
              column[r] = (C_TYPE)(beta == 0 ? alpha * sum : alpha * sum + beta * (ACC)column[r]);
            else
              before[r] = sum;
          }
        }
      }
      k0 += DEPTH;
    } while (k0 < depth);
  }
}
