// SPDX-License-Identifier: Apache-2.0
// One n x n Cholesky factorization with its proof, by one group: G = D (Rs^T Rs) D with D = diag(G)^(1/2),
// then Rs^-1, kappa = |Rs|_F |Rs^-1|_F and the verdict (vocabulary/guard.hpp, GuardedCholesky; method of Yamazaki,
// Tomov, Dongarra, SISC 2015, for the scaling). The scaled G is worked on where Rs^-1 will be; Rs and Rs^-1 grow in
// the outputs and get their scale back at the end. Where there is no finite bound the outputs are identities.
// Flops: 2 n^3 / 3. Local memory: 2 n + WG wide numbers. Needs cl_khr_fp64.

// The sum of all work-items' values, in every work-item; fixed order.
wide group_sum(wide value, __local wide* s_values) {
  const int id = (int)get_local_id(0);
  s_values[id] = value;
  for (int half_width = WG / 2; half_width > 0; half_width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_width) s_values[id] += s_values[id + half_width];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const wide sum = s_values[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// Rs in r's upper triangle from the scaled G; returns 0 when a pivot is not positive and finite.
int factor_scaled(__global wide* g, long ldg, __global wide* r, long ldr, int n, __local wide* s_row) {
  const int id = (int)get_local_id(0), lanes = WG < 16 ? WG : 16, lane = id % lanes;
  int good = 1;  // the same in all work-items
  for (int j = 0; j < n; ++j) {
    const wide pivot = g[j + j * ldg];
    const int sound = pivot > 0 && isfinite(pivot);
    const wide root = sound ? sqrt(pivot) : 1;  // after a bad pivot the rest only has to end
    good &= sound;
    for (int k = j + id; k < n; k += WG) {
      s_row[k] = k == j ? root : g[j + k * ldg] / root;
      r[j + k * ldr] = s_row[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = j + 1 + id / lanes; k < n; k += WG / lanes)
      for (int i = j + 1 + lane; i <= k; i += lanes) g[i + k * ldg] = FMA(-s_row[i], s_row[k], g[i + k * ldg]);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  return good;
}

// Column k of the inverse per work-item: back substitution by columns of Rs.
void invert_upper(__global const wide* r, long ldr, __global wide* x, long ldx, int n) {
  for (int k = (int)get_local_id(0); k < n; k += WG) {
    __global wide* column = x + k * ldx;
    for (int i = 0; i < n; ++i) column[i] = i == k;
    for (int l = k; l >= 0; --l) {
      const wide value = column[l] / r[l + l * ldr];
      column[l] = value;
      for (int i = 0; i < l; ++i) column[i] = FMA(-r[i + l * ldr], value, column[i]);
    }
  }
}

// Below this a column norm may owe its leading digits to underflow in its square.
#define LEAST_SCALE 0x1p-490

KERNEL guarded_cholesky(CONDITION, MATRIX(gram), MATRIX(r), MATRIX(inverse), BUFFER(failed), BUFFER(verdict),
                        BUFFER(bound), const int given_n, const wide limit, const wide fit_limit, const wide rounding,
                        const wide shift, __local wide* s_work) {
  const bool wanted = WANTED;
  const int n = wanted ? given_n : 0;
  __local wide s_values[WG];
  __local wide* s_scale = s_work;
  __local wide* s_row = s_work + n;
  const int id = (int)get_local_id(0);
  __global const wide* g = AT(const wide, gram);
  __global wide* r = AT(wide, r);
  __global wide* x = AT(wide, inverse);
  for (int i = id; i < n; i += WG) s_scale[i] = sqrt(g[i + i * gram_ld]);
  barrier(CLK_LOCAL_MEM_FENCE);
  FOR_EACH(e, (long)n * n) {
    const long i = e % n, k = e / n;
    const wide pivot = s_scale[k] >= LEAST_SCALE && isfinite(s_scale[k]) ? 1 + shift : -1;
    if (i <= k) x[i + k * inverse_ld] = i == k ? pivot : g[i + k * gram_ld] / s_scale[i] / s_scale[k];
    if (i > k) r[i + k * r_ld] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  const int factored = factor_scaled(x, inverse_ld, r, r_ld, n, s_row);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  invert_upper(r, r_ld, x, inverse_ld, n);
  barrier(CLK_GLOBAL_MEM_FENCE);
  wide r_square = 0, x_square = 0;
  FOR_EACH(e, (long)n * n) {
    const wide u = r[e % n + e / n * r_ld], v = x[e % n + e / n * inverse_ld];
    r_square = FMA(u, u, r_square);
    x_square = FMA(v, v, x_square);
  }
  r_square = group_sum(r_square, s_values);
  x_square = group_sum(x_square, s_values);
  wide kappa = sqrt(r_square) * sqrt(x_square);
  kappa += n * rounding * kappa * kappa;
  if (!factored || isnan(kappa)) kappa = INFINITY;
  const int good = isfinite(kappa), within = kappa <= limit, fit = kappa <= max(limit, fit_limit);
  FOR_EACH(e, (long)n * n) {
    const long i = e % n, k = e / n;
    if (good && i <= k) {
      r[i + k * r_ld] *= s_scale[k];
      x[i + k * inverse_ld] /= s_scale[i];
    } else if (!good) {
      r[i + k * r_ld] = x[i + k * inverse_ld] = i == k;
    }
  }
  if (wanted && id == 0) {
    AT(wide, bound)[0] = kappa;
    if (failed_at >= 0 && !fit) AT(int, failed)[0] = 1;
    if (verdict_at >= 0) {
      AT(int, verdict)[0] = within;
      AT(int, verdict)[1] = !within;
      AT(int, verdict)[2] = !within && fit;
      AT(int, verdict)[3] = !within && !fit;
    }
  }
}
