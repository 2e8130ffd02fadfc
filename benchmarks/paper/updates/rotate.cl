// SPDX-License-Identifier: Apache-2.0
// Wavefronts of Givens rotations (Rotations and Rotate in rotations.hpp), WAVES fronts.
//
// make_rotations: one group; work-item r has row r of the strip, and item j finds the rotation of front j for all.
// rotate: a work-item has a row of X and the WAVES + 1 columns that the fronts stand on; a column is read once and
// written once for all of them.

KERNEL make_rotations(CONDITION, MATRIX(strip), BUFFER(cs), const long heights, const long cols) {
  __local REAL turn[2];
  const int r = (int)get_local_id(0);
  const long steps = WANTED ? heights * WAVES : 0;
  __global REAL* strip = AT(REAL, strip) + (r < WAVES ? r : 0);
  __global REAL* cs = AT(REAL, cs);
  for (long e = 0; e < steps; ++e) {
    const int j = (int)(e % WAVES);
    const long i = heights - e / WAVES;
    const bool there = i + j < cols;
    __global REAL* a = strip + (i - 1 + j) * strip_ld;
    if (r == j) {
      REAL c = 1, s = 0;
      const REAL f = there ? a[0] : (REAL)0, g = there ? a[strip_ld] : (REAL)0;
      if (g != (REAL)0) {
        const REAL scale = fmax(fabs(f), fabs(g)), x = f / scale, y = g / scale, length = sqrt(FMA(x, x, y * y));
        c = x / length;
        s = y / length;
        a[0] = scale * length;
        a[strip_ld] = 0;
      }
      turn[0] = c;
      turn[1] = s;
      cs[2 * e] = c;
      cs[2 * e + 1] = s;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (there && r > j && r < WAVES) {
      const REAL c = turn[0], s = turn[1], x = a[0], y = a[strip_ld];
      a[0] = FMA(c, x, s * y);
      a[strip_ld] = FMA(c, y, -s * x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

KERNEL rotate_columns(CONDITION, MATRIX(x), BUFFER(cs), const long rows, const long cols, const long heights,
                      const int drop, const int lower) {
  const long row = get_global_id(0), group_end = (long)(get_group_id(0) + 1) * WG;
  if (!WANTED || row >= rows) return;
  const long start = lower && group_end < heights ? group_end : heights;
  __global REAL* x = AT(REAL, x) + row;
  __global const REAL* cs = AT(const REAL, cs);
  REAL v[WAVES + 1];  // columns i - 1 .. i - 1 + WAVES at step i
  for (int q = 0; q <= WAVES; ++q) v[q] = start - 1 + q < cols ? x[(start - 1 + q) * x_ld] : (REAL)0;
  if (drop)
    for (long j = start + WAVES; j < cols; ++j) x[(j - WAVES) * x_ld] = x[j * x_ld];
  for (long i = start; i >= 1; --i) {
    __global const REAL* turn = cs + 2 * WAVES * (heights - i);
    for (int j = 0; j < WAVES; ++j) {
      const REAL c = turn[2 * j], s = turn[2 * j + 1], a = v[j], b = v[j + 1];
      v[j] = FMA(c, a, s * b);
      v[j + 1] = FMA(c, b, -s * a);
    }
    const long done = i + WAVES - 1;
    if (done < cols) x[(drop ? i - 1 : done) * x_ld] = v[WAVES];
    for (int q = WAVES; q > 0; --q) v[q] = v[q - 1];
    v[0] = i >= 2 ? x[(i - 2) * x_ld] : (REAL)0;
  }
  if (drop) return;
  for (int q = 1; q <= WAVES; ++q)
    if (q - 1 < cols) x[(q - 1) * x_ld] = v[q];
}
