// SPDX-License-Identifier: Apache-2.0
// Copies (whole, parts, rows by lists), conversions and fills of batches of matrices, element by element: 2 scalars
// moved per element. The host defines SOURCE and TARGET (types in memory) and CONVERT(x) from one to the other.

// part: 0 all; 1 upper, zeros below; 2 upper, the rest untouched; 3 unit lower, zeros above.
KERNEL copy(CONDITION, MATRIX(a), MATRIX(b), const long rows, const long cols, const long count, const int lanes_r,
            const int part) {
  if (!WANTED) return;
  const long strips = strip_count(rows, cols, count, lanes_r);
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    __global const SOURCE* a = AT(const SOURCE, a) + at.batch * a_stride + at.col * a_ld;
    __global TARGET* b = AT(TARGET, b) + at.batch * b_stride + at.col * b_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i >= rows) break;
      const bool taken = part == 0 || (part == 3 ? i > at.col : i <= at.col);
      if (taken)
        b[i] = CONVERT(a[i]);
      else if (part == 1)
        b[i] = (TARGET)0;
      else if (part == 3)
        b[i] = (TARGET)(i == at.col ? 1 : 0);
    }
  }
}

// Row targets[i] of b := row sources[i] of a for i < count_r, i itself where a list is not given.
KERNEL copy_rows(CONDITION, MATRIX(a), BUFFER(sources), MATRIX(b), BUFFER(targets), const long count_r, const long cols,
                 const long count, const int lanes_r) {
  if (!WANTED) return;
  const long strips = strip_count(count_r, cols, count, lanes_r);
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, count_r, cols, lanes_r);
    if (at.col >= cols) continue;
    __global const SOURCE* a = AT(const SOURCE, a) + at.batch * a_stride + at.col * a_ld;
    __global TARGET* b = AT(TARGET, b) + at.batch * b_stride + at.col * b_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i >= count_r) break;
      b[targets_at < 0 ? i : AT(const long, targets)[i]] = a[sources_at < 0 ? i : AT(const long, sources)[i]];
    }
  }
}

// Column j of b := column columns[j] of a, where a has that many.
KERNEL gather_columns(CONDITION, MATRIX(a), BUFFER(columns), MATRIX(b), const long rows, const long cols,
                      const long source_cols, const int lanes_r) {
  if (!WANTED) return;
  const long strips = strip_count(rows, cols, 1, lanes_r);
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    const long column = AT(const int, columns)[at.col];
    if (column < 0 || column >= source_cols) continue;
    __global const SOURCE* a = AT(const SOURCE, a) + column * a_ld;
    __global TARGET* b = AT(TARGET, b) + at.col * b_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i < rows) b[i] = CONVERT(a[i]);
    }
  }
}

KERNEL fill(CONDITION, MATRIX(a), const long rows, const long cols, const long count, const int lanes_r,
            const REAL off_diagonal, const REAL diagonal) {
  if (!WANTED) return;
  const long strips = strip_count(rows, cols, count, lanes_r);
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    __global REAL* a = AT(REAL, a) + at.batch * a_stride + at.col * a_ld;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i < rows) a[i] = i == at.col ? diagonal : off_diagonal;
    }
  }
}

KERNEL set_flags(CONDITION, BUFFER(flags), const long count, const int value) {
  if (!WANTED) return;
  for (long i = get_local_id(0); i < count; i += WG) AT(int, flags)[i] = value;
}
