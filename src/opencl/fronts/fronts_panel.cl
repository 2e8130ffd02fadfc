// SPDX-License-Identifier: Apache-2.0
// factor_front_panels (vocabulary/fronts.hpp): a panel per group, where it stands in global memory. Column j takes four
// phases, each ended by a barrier:
//   dots     d_k = x_j . a_k below the pivot row, for every column k of the panel at once: d_j is the tail's square,
//            d_k (k > j) gives v_j^T a_k, and d_k (k < j) gives V_k^T v_j for T
//   scalars  the partial sums of LANES lanes are added in order; whether the column is dropped; tau, beta, and the
//            factor that makes x_j v_j
//   update   a_k -= tau (v_j^T a_k) v_j for k > j, and T(0:j, j) = -tau T(0:j, 0:j) V^T v_j
//   store    R from the panel's first row on goes to the corner; v_j with its one and zeros
//
// Flops: 4 h c^2 and h c^2 for T (h rows, c columns). Local memory: NB * (LANES + 2) scalars.
#define LANES (WG < 32 ? WG : 32)
#define GROUPS (WG / LANES)
// Squares below this underflow, and columns are scaled so that nothing is lost with what is below it.
#if REAL_IS_DOUBLE
#define NEGLIGIBLE 1e-290
#else
#define NEGLIGIBLE 1e-34f
#endif

KERNEL factor_front_panels(CONDITION, FRONTS, BUFFER(tasks), const int whole) {
  __local REAL s_partial[NB * LANES], s_dot[NB], s_top[NB], s_step[3];
  __local wide s_norm;
  __local int s_kept, s_dropped;
  const int id = (int)get_local_id(0), lane = id % LANES;
  const long group = get_group_id(0);
  const int front = whole < 0 ? AT(const FrontPanelTask, tasks)[group].front : AT(const int, tasks)[group];
  const int k_panel = whole < 0 ? AT(const FrontPanelTask, tasks)[group].panel : whole;
  __global const FrontShape* shape = SHAPE(front);
  const int begin = k_panel * NB, n = WANTED ? max(min(NB, shape->cols - begin), 0) : 0;
  const int ld = shape->ld, pivots = shape->pivots, rows = STATE(front)->rows, first_row = STATE(front)->position;
  __global REAL* a = MATRIX_COLUMN(shape, begin);
  __global REAL* corner = AT(REAL, storage) + shape->corner + (long)begin * NB;
  __global REAL* t = AT(REAL, storage) + shape->t + (long)begin * NB;
  __global const int* stair = AT(const int, stair) + shape->columns + begin;
  const wide least = to_wide(tolerance);

  FOR_EACH(e, n * NB) {
    corner[e] = 0;
    t[e] = 0;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);

  int row = first_row, bottom = first_row, live_pivots = 0;
  wide dropped = 0;
  for (int j = 0; j < n; ++j) {
    __global REAL* x = a + (long)j * ld;
    const bool rows_left = row < rows;
    const int height = rows_left ? min(rows, max(stair[j], row + 1)) : row;
    for (int k = id / LANES; k < n; k += GROUPS) {
      __global const REAL* y = a + (long)k * ld;
      REAL sum = 0;
      for (int i = row + 1 + lane; i < height; i += LANES) sum = FMA(x[i], y[i], sum);
      s_partial[k * LANES + lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int k = id; k < n; k += WG) {
      REAL dot = 0;
      for (int l = 0; l < LANES; ++l) dot += s_partial[k * LANES + l];
      const REAL top = rows_left ? a[row + (long)k * ld] : 0;
      s_dot[k] = dot;
      s_top[k] = top;
      if (k == j) {
        const REAL norm = sqrt(FMA(top, top, dot));
        wide true_norm = norm;
        if (begin + j < pivots && exponents_at >= 0)
          true_norm = ldexp(true_norm, -AT(const int, exponents)[shape->first_col + begin + j]);
        const int drop =
            rows_left && begin + j < pivots && least >= 0 && (scaled_tolerance ? (wide)norm : true_norm) <= least;
        REAL beta = top, tau = 0, scale = 0;
        if (!(dot <= NEGLIGIBLE)) {  // else H = I; NaN comes here and spreads
          beta = -copysign(norm, top);
          tau = (beta - top) / beta;
          scale = 1 / (top - beta);
        }
        s_step[0] = beta;
        s_step[1] = tau;
        s_step[2] = scale;
        s_norm = true_norm;
        s_dropped = drop;
        s_kept = rows_left && !drop;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const bool kept = s_kept;
    const REAL beta = s_step[0], tau = kept ? s_step[1] : 0, scale = s_step[2];
    if (s_dropped) dropped += s_norm * s_norm;
    if (tau != 0) {
      for (int k = j + 1 + id / LANES; k < n; k += GROUPS) {
        __global REAL* y = a + (long)k * ld;
        const REAL w = tau * FMA(scale, s_dot[k], s_top[k]), factor = w * scale;
        if (lane == 0) y[row] = s_top[k] - w;
        for (int i = row + 1 + lane; i < height; i += LANES) y[i] = FMA(-factor, x[i], y[i]);
      }
      for (int i = id; i <= j; i += WG) {
        REAL sum = 0;
        for (int l = i; l < j; ++l) sum = FMA(t[i + l * NB], FMA(scale, s_dot[l], s_top[l]), sum);
        t[i + j * NB] = i == j ? tau : -tau * sum;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    FOR_EACH(i, height - first_row) {
      const int here = first_row + (int)i;
      const REAL value = x[here];
      if (here < row)
        corner[i + j * NB] = value;
      else if (here == row && kept)
        corner[i + j * NB] = beta;
      x[here] = here < row || !kept ? 0 : here == row ? 1 : tau != 0 ? value * scale : 0;
    }
    if (id == 0) AT(int, pivot)[shape->columns + begin + j] = kept ? row : -1;
    bottom = max(bottom, height);
    row += kept;
    live_pivots += kept && begin + j < pivots;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  if (id == 0 && n > 0) {
    __global FrontState* state = STATE(front);
    __global FrontPanelState* panel = PANEL(shape, k_panel);
    state->dropped = from_wide(to_wide(state->dropped) + dropped);
    state->position = row;
    state->r_rows += live_pivots;
    panel->first_row = first_row;
    panel->height = bottom - first_row;
    panel->live = row - first_row;
    panel->unused = 0;
  }
}
