// SPDX-License-Identifier: Apache-2.0
// B := A^T for a batch, not in place, through square tiles in local memory so that both sides are read and
// written along columns. The padding column keeps the transposed reads off one memory bank.
// Local memory: TILE * (TILE + 1) scalars.
#define TILE 16

KERNEL transpose(CONDITION, MATRIX(a), MATRIX(b), const long rows, const long cols, const long count) {
  __local REAL s_tile[TILE * (TILE + 1)];
  const int lane = (int)get_local_id(0);
  const long tiles_r = (rows + TILE - 1) / TILE, tiles_c = (cols + TILE - 1) / TILE;
  const long tiles = WANTED ? tiles_r * tiles_c * count : 0;
  for (long g = get_group_id(0); g < tiles; g += get_num_groups(0)) {
    const long i0 = g % tiles_r * TILE, j0 = g / tiles_r % tiles_c * TILE, batch = g / tiles_r / tiles_c;
    __global const REAL* a = AT(const REAL, a) + batch * a_stride;
    __global REAL* b = AT(REAL, b) + batch * b_stride;
    for (int e = lane; e < TILE * TILE; e += WG) {
      const int i = e % TILE, j = e / TILE;
      if (i0 + i < rows && j0 + j < cols) s_tile[i + j * (TILE + 1)] = a[i0 + i + (j0 + j) * a_ld];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = lane; e < TILE * TILE; e += WG) {
      const int j = e % TILE, i = e / TILE;
      if (i0 + i < rows && j0 + j < cols) b[j0 + j + (i0 + i) * b_ld] = s_tile[i + j * (TILE + 1)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
