// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over a matrix in two stages: every group reduces its strips in a fixed order to one
// partial, then one group reduces the partials in a fixed order. No atomics, so bits repeat.
// Bytes: each element is read once. Local memory: WG wide numbers.
// kind: 0 sum of squares, 1 sum of magnitudes, 2 largest magnitude (NaN if there is a NaN).

wide combine(int kind, wide a, wide b) {
  if (kind != 2) return a + b;
  return b > a || isnan(b) ? b : a;
}

// The combination of all work-items' values, in work-item 0. All must call it.
wide group_reduce(int kind, wide value, __local wide* s_values) {
  const int lane = (int)get_local_id(0);
  s_values[lane] = value;
  for (int half_width = WG / 2; half_width > 0; half_width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_width) s_values[lane] = combine(kind, s_values[lane], s_values[lane + half_width]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return s_values[0];
}

KERNEL reduce(CONDITION, MATRIX(a), BUFFER(partial), const long rows, const long cols, const int lanes_r,
              const int kind) {
  const bool wanted = WANTED;
  __local wide s_values[WG];
  wide value = 0;
  const long strips = wanted ? strip_count(rows, cols, 1, lanes_r) : 0;
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    __global const REAL* a = AT(const REAL, a) + at.col * a_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i >= rows) break;
      const wide x = (wide)a[i];
      value = combine(kind, value, kind == 0 ? x * x : fabs(x));
    }
  }
  value = group_reduce(kind, value, s_values);
  if (wanted && get_local_id(0) == 0) AT(stored_wide, partial)[get_group_id(0)] = from_wide(value);
}

KERNEL reduce_partials(CONDITION, BUFFER(partial), BUFFER(result), const long partials, const int kind) {
  const bool wanted = WANTED;
  __local wide s_values[WG];
  wide value = 0;
  for (long p = get_local_id(0); wanted && p < partials; p += WG)
    value = combine(kind, value, to_wide(AT(const stored_wide, partial)[p]));
  value = group_reduce(kind, value, s_values);
  if (wanted && get_local_id(0) == 0) AT(stored_wide, result)[0] = from_wide(value);
}

// Column-major positions, LONG_MAX for none.
long group_min(long value, __local long* s_values) {
  const int lane = (int)get_local_id(0);
  s_values[lane] = value;
  for (int half_width = WG / 2; half_width > 0; half_width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < half_width) s_values[lane] = min(s_values[lane], s_values[lane + half_width]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return s_values[0];
}

KERNEL find_not_finite(CONDITION, MATRIX(a), BUFFER(partial), const long rows, const long cols, const int lanes_r) {
  const bool wanted = WANTED;
  __local long s_values[WG];
  long first = LONG_MAX;
  const long strips = wanted ? strip_count(rows, cols, 1, lanes_r) : 0;
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    __global const REAL* a = AT(const REAL, a) + at.col * a_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i < rows && !isfinite(a[i])) first = min(first, i + at.col * rows);
    }
  }
  first = group_min(first, s_values);
  if (wanted && get_local_id(0) == 0) AT(long, partial)[get_group_id(0)] = first;
}

// result: row and column, or -1, -1.
KERNEL first_not_finite(CONDITION, BUFFER(partial), BUFFER(result), const long partials, const long rows) {
  const bool wanted = WANTED;
  __local long s_values[WG];
  long first = LONG_MAX;
  for (long p = get_local_id(0); wanted && p < partials; p += WG) first = min(first, AT(const long, partial)[p]);
  first = group_min(first, s_values);
  if (wanted && get_local_id(0) == 0) {
    AT(long, result)[0] = first == LONG_MAX ? -1 : first % rows;
    AT(long, result)[1] = first == LONG_MAX ? -1 : first / rows;
  }
}
