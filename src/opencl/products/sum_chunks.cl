// SPDX-License-Identifier: Apache-2.0
// C := alpha (partial products in order of their chunks) + beta C: the second half of a product whose inner dimension
// was cut into chunks (gemm.cl, gemm_core.cl).

KERNEL sum_chunks(CONDITION, BUFFER(partial), MATRIX(c), const long m, const long n, const long count,
                  const int lanes_r, const ACC alpha, const ACC beta, const long chunks, const int upper) {
  if (!WANTED) return;
  const long strips = strip_count(m, n, count, lanes_r);
  for (long s = get_group_id(0); s < strips; s += get_num_groups(0)) {
    const Strip at = strip_at(s, m, n, lanes_r);
    if (at.col >= n) continue;
    for (int t = 0; t < STRIP_ROWS; ++t) {
      const long i = at.row + t * lanes_r;
      if (i >= m || (upper && i > at.col)) break;
      __global const ACC* partial = AT(const ACC, partial) + at.batch * chunks * m * n + i + at.col * m;
      ACC sum = 0;
      for (long z = 0; z < chunks; ++z) sum += partial[z * m * n];
      __global C_TYPE* c = AT(C_TYPE, c) + at.batch * c_stride + i + at.col * c_ld;
      *c = STORE_C(beta == 0 ? alpha * sum : alpha * sum + beta * LOAD_C(*c));
    }
  }
}
