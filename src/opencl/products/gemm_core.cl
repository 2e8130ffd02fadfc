// SPDX-License-Identifier: Apache-2.0
// The products of gemm.cl for devices that run a work-group on one core: a group is one work-item (WG = 1) that keeps a
// small tile of C in vector registers. No local memory and no barriers, which such devices pay for and do not need.
// Both kernels compute tiles at the edge of C from columns that are there, and store only what is C's.
// The host defines the types in memory A_TYPE, B_TYPE, C_TYPE, the type ACC of products and sums, LANES of a vector of
// it, TILES_N columns of C for each group, and STEP rows of A and B that stay in the core's cache.

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VECTOR JOIN(ACC, LANES)
#define LOAD(p) JOIN(convert_, VECTOR)(JOIN(vload, LANES)(0, p))

ACC sum_lanes(VECTOR v) {
#if LANES == 8
  const JOIN(ACC, 4) h = v.lo + v.hi;
#else
  const VECTOR h = v;
#endif
  return (h.s0 + h.s2) + (h.s1 + h.s3);
}

// 4 x 3 elements of A^T B: sums over rows begin .. end - 1 of columns i .. i + 3 of A and j .. j + 2 of B.
void add_dots(__global const A_TYPE* const* a, __global const B_TYPE* const* b, long begin, long end, ACC sums[4][3]) {
  VECTOR v[4][3];
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 3; ++q) v[p][q] = 0;
  long k = begin;
  for (; k + LANES <= end; k += LANES) {
    const VECTOR b0 = LOAD(b[0] + k), b1 = LOAD(b[1] + k), b2 = LOAD(b[2] + k);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const VECTOR x = LOAD(a[p] + k);
      v[p][0] = fma(x, b0, v[p][0]);
      v[p][1] = fma(x, b1, v[p][1]);
      v[p][2] = fma(x, b2, v[p][2]);
    }
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 3; ++q) {
      ACC sum = sum_lanes(v[p][q]);
      for (long l = k; l < end; ++l) sum += (ACC)a[p][l] * (ACC)b[q][l];
      sums[p][q] = sum;
    }
}

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

// C := alpha A op(B) + beta C. One group for each STEP rows and TILES_N columns of C.
KERNEL gemm_columns(CONDITION, MATRIX(a), MATRIX(b), MATRIX(c), const long m, const long n, const long depth,
                    const ACC alpha, const ACC beta, const int transpose_b) {
  if (!WANTED) return;
  const long tiles_m = (m + STEP - 1) / STEP, tiles_n = (n + TILES_N - 1) / TILES_N;
  const long i0 = get_group_id(0) % tiles_m * STEP, i1 = min(m, i0 + STEP);
  const long j0 = get_group_id(0) / tiles_m % tiles_n * TILES_N, j1 = min(n, j0 + TILES_N);
  const long batch = get_group_id(0) / tiles_m / tiles_n;
  __global const A_TYPE* a = AT(const A_TYPE, a) + batch * a_stride;
  __global const B_TYPE* b = AT(const B_TYPE, b) + batch * b_stride;
  __global C_TYPE* c = AT(C_TYPE, c) + batch * c_stride;
  const long step_j = transpose_b ? 1 : b_ld, step_k = transpose_b ? b_ld : 1;
  for (long j = j0; j < j1; j += 4) {
    __global const B_TYPE* columns_b[4];
    for (int q = 0; q < 4; ++q) columns_b[q] = b + min(j + q, n - 1) * step_j;
    long i = i0;
    for (; i + 2 * LANES <= i1; i += 2 * LANES) {
      VECTOR v[2][4];
      for (int q = 0; q < 4; ++q) v[0][q] = v[1][q] = 0;
      for (long k = 0; k < depth; ++k) {
        const VECTOR x0 = LOAD(a + i + k * a_ld), x1 = LOAD(a + i + LANES + k * a_ld);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const VECTOR y = (VECTOR)((ACC)columns_b[q][k * step_k]);
          v[0][q] = fma(x0, y, v[0][q]);
          v[1][q] = fma(x1, y, v[1][q]);
        }
      }
      for (int q = 0; q < 4 && j + q < j1; ++q)
        for (int u = 0; u < 2; ++u) {
          __global C_TYPE* p = c + i + u * LANES + (j + q) * c_ld;
          VECTOR product = alpha * v[u][q];
          if (beta != 0) product += beta * LOAD(p);
          JOIN(vstore, LANES)(JOIN(JOIN(convert_, C_TYPE), LANES)(product), 0, p);
        }
    }
    for (; i < i1; ++i)
      for (int q = 0; q < 4 && j + q < j1; ++q) {
        ACC sum = 0;
        for (long k = 0; k < depth; ++k) sum = fma((ACC)a[i + k * a_ld], (ACC)columns_b[q][k * step_k], sum);
        __global C_TYPE* element = c + i + (j + q) * c_ld;
        *element = (C_TYPE)(beta == 0 ? alpha * sum : alpha * sum + beta * (ACC)*element);
      }
  }
}
