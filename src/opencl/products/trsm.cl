// SPDX-License-Identifier: Apache-2.0
// One diagonal block of a triangular solve: Y := alpha L^-1 B for a triangle of at most NB rows, one
// right-hand side per work-item, WG of them in local memory. The host solves block after block and updates
// the rest by gemm. A solve from the right is the same solve of the transposed system: the two strides of
// B and of the triangle say which. Flops: NB^2 per right-hand side.
// Local memory: NB * (NB + 1) + NB * (WG + 1) scalars.

KERNEL solve_block(CONDITION, MATRIX(a), MATRIX(b), const int given_rows, const long columns, const int forward,
                   const int transposed, const int unit, const int from_right, const REAL alpha) {
  const int rows = WANTED ? given_rows : 0;
  __local REAL s_triangle[NB * (NB + 1)];
  __local REAL s_b[NB * (WG + 1)];
  const int lane = (int)get_local_id(0);
  const long tiles = (columns + WG - 1) / WG;
  const long first = get_group_id(0) % tiles * WG, batch = get_group_id(0) / tiles;
  const int here = (int)min((long)WG, columns - first);
  __global const REAL* a = AT(const REAL, a) + batch * a_stride;
  __global REAL* b = AT(REAL, b) + batch * b_stride;
  const long step_i = from_right ? b_ld : 1, step_s = from_right ? 1 : b_ld;

  FOR_EACH(e, rows * rows) {
    const int i = (int)e % rows, l = (int)e / rows;  // element (i, l) of a as it lies
    const int target = transposed ? l * (NB + 1) + i : i * (NB + 1) + l;
    s_triangle[target] = a[i + l * a_ld];
  }
  FOR_EACH(e, rows * here) {
    const int i = (int)(from_right ? e / here : e % rows), s = (int)(from_right ? e % here : e / rows);
    s_b[i * (WG + 1) + s] = alpha * b[i * step_i + (first + s) * step_s];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane < here) {
    for (int step = 0; step < rows; ++step) {
      const int i = forward ? step : rows - 1 - step;
      REAL y = s_b[i * (WG + 1) + lane];
      for (int l = forward ? 0 : i + 1; l < (forward ? i : rows); ++l)
        y = FMA(-s_triangle[i * (NB + 1) + l], s_b[l * (WG + 1) + lane], y);
      s_b[i * (WG + 1) + lane] = unit ? y : y / s_triangle[i * (NB + 1) + i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  FOR_EACH(e, rows * here) {
    const int i = (int)(from_right ? e / here : e % rows), s = (int)(from_right ? e % here : e / rows);
    b[i * step_i + (first + s) * step_s] = s_b[i * (WG + 1) + s];
  }
}
