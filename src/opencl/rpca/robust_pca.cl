// SPDX-License-Identifier: Apache-2.0
// One fused pass of robust PCA (vocabulary/rpca.hpp, RobustPcaPass):
//   s := shrink(m - l + y / mu, threshold),  z = m - l - s,  y := y + mu z,  x := m - s + y / mu_next
// and each group's part of sum z^2, added by reduce_partials. Bytes: 6 scalars per element, 3 read, 3 written.
// Local memory: WG wide numbers.

KERNEL robust_pca_pass(CONDITION, BUFFER(m), BUFFER(l), BUFFER(y), BUFFER(s), BUFFER(x), BUFFER(partial),
                       const long ld, const long rows, const long cols, const int lanes_r, const REAL mu,
                       const REAL inverse_mu, const REAL inverse_mu_next, const REAL threshold) {
  const bool wanted = WANTED;
  __local wide s_values[WG];
  wide sum = 0;
  const long strips = wanted ? strip_count(rows, cols, 1, lanes_r) : 0;
  for (long strip = get_group_id(0); strip < strips; strip += get_num_groups(0)) {
    const Strip at = strip_at(strip, rows, cols, lanes_r);
    if (at.col >= cols) continue;
    for (int u = 0; u < STRIP_ROWS; ++u) {
      const long i = at.row + u * lanes_r;
      if (i >= rows) break;
      const long e = i + at.col * ld;
      const REAL m = AT(const REAL, m)[e], rest = m - AT(const REAL, l)[e], y = AT(const REAL, y)[e];
      const REAL v = FMA(y, inverse_mu, rest);
      const REAL magnitude = fabs(v) - threshold;
      const REAL s = isnan(v) ? v : magnitude > 0 ? copysign(magnitude, v) : 0;
      const REAL z = rest - s;
      const REAL y_new = FMA(mu, z, y);
      AT(REAL, s)[e] = s;
      AT(REAL, y)[e] = y_new;
      AT(REAL, x)[e] = FMA(y_new, inverse_mu_next, m - s);
      sum = FMA((wide)z, (wide)z, sum);
    }
  }
  const int id = (int)get_local_id(0);
  s_values[id] = sum;
  for (int half_width = WG / 2; half_width > 0; half_width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_width) s_values[id] += s_values[id + half_width];
  }
  if (wanted && id == 0) AT(stored_wide, partial)[get_group_id(0)] = from_wide(s_values[0]);
}
