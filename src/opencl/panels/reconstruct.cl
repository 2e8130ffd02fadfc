// SPDX-License-Identifier: Apache-2.0
// Householder vectors from an orthonormal panel (Ballard et al. 2015, section 5; LAPACK's orhr_col), one group
// per matrix: Q1 - S = L U without pivoting, S = diag(+-1) chosen against each pivot so that |U_jj| >= 1;
// then T = -U S L^-T, U^-1, and R := S R. `panel` holds L and U while they are needed; S is read off U's
// diagonal, S_j = -sign(U_jj). Flops: about 5 b^3 / 3 for b columns. Local memory: 2 b scalars.

#define LANES (WG < 16 ? WG : 16)

// L U of a - S in place.
void factor_lu(__global REAL* a, long ld, int b, __local REAL* s_row, __local REAL* s_column) {
  const int id = (int)get_local_id(0), lane = id % LANES;
  for (int j = 0; j < b; ++j) {
    const REAL diagonal = a[j + j * ld];
    const REAL pivot = diagonal + copysign((REAL)1, diagonal);
    for (int k = j + id; k < b; k += WG) {
      s_row[k] = a[j + k * ld];
      s_column[k] = k == j ? pivot : a[k + j * ld] / pivot;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int k = j + id; k < b; k += WG) a[k + j * ld] = s_column[k];
    for (int k = j + 1 + id / LANES; k < b; k += WG / LANES)
      for (int i = j + 1 + lane; i < b; i += LANES) a[i + k * ld] = FMA(-s_column[i], s_row[k], a[i + k * ld]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}

KERNEL reconstruct(CONDITION, MATRIX(q), MATRIX(r), MATRIX(panel), MATRIX(t), MATRIX(inverse), const int given_b,
                   __local REAL* s_work) {
  const int b = WANTED ? given_b : 0;
  const int id = (int)get_local_id(0);
  const long batch = get_group_id(0);
  __global const REAL* q = AT(const REAL, q) + batch * q_stride;
  __global const REAL* r = AT(const REAL, r) + batch * r_stride;
  __global REAL* a = AT(REAL, panel) + batch * panel_stride;
  __global REAL* t = AT(REAL, t) + batch * t_stride;
  __global REAL* x = AT(REAL, inverse) + batch * inverse_stride;
  FOR_EACH(e, (long)b * b) a[e % b + e / b * panel_ld] = q[e % b + e / b * q_ld];
  barrier(CLK_GLOBAL_MEM_FENCE);
  factor_lu(a, panel_ld, b, s_work, s_work + b);

  // Row i of T: t L^T = -u S by forward substitution; T is upper because U is.
  for (int i = id; i < b; i += WG)
    for (int k = 0; k < b; ++k) {
      if (k < i) {
        t[i + k * t_ld] = 0;
        continue;
      }
      REAL sum = copysign((REAL)1, a[k + k * panel_ld]) * a[i + k * panel_ld];  // -U S
      for (int l = i; l < k; ++l) sum = FMA(-t[i + l * t_ld], a[k + l * panel_ld], sum);
      t[i + k * t_ld] = sum;
    }
  // Column k of U^-1 by back substitution.
  for (int k = id; k < b; k += WG) {
    __global REAL* column = x + k * inverse_ld;
    for (int i = 0; i < b; ++i) column[i] = i == k;
    for (int l = k; l >= 0; --l) {
      const REAL value = column[l] / a[l + l * panel_ld];
      column[l] = value;
      for (int i = 0; i < l; ++i) column[i] = FMA(-a[i + l * panel_ld], value, column[i]);
    }
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = id; i < b; i += WG) {
    const REAL sign = -copysign((REAL)1, a[i + i * panel_ld]);  // before U's row i makes room for R's
    for (int k = i; k < b; ++k) a[i + k * panel_ld] = sign * r[i + k * r_ld];
  }
}
