// SPDX-License-Identifier: Apache-2.0
// What gemm_core.cl and apply_core.cl share: one work-item's dot products of columns, in vector registers. The host
// defines the types in memory A_TYPE and B_TYPE, A's address space A_SPACE, the type ACC of products and sums, and
// LANES of a vector of it.

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
void add_dots(A_SPACE const A_TYPE* const* a, __global const B_TYPE* const* b, long begin, long end, ACC sums[4][3]) {
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
