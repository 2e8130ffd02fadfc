// SPDX-License-Identifier: Apache-2.0
// fp64 tensor-core products of one warp, and the names of its lanes.
//
// Lane l of a warp is (g, t) = (l / 4, l % 4). Of an 8 x 8 x 4 product C += A B it holds
//     A(g, t)        B(t, g)        C(g, 2t), C(g, 2t + 1)
// so the fragments of A and of B for a Gram matrix AᵀA are the same values: element (t, g) of a
// 4 x 8 piece of A serves as either operand.
#pragma once

namespace qrane::backend::cuda {

/// C (8 x 8) += A (8 x 4) B (4 x 8).
__device__ inline void mma_8x8x4(double (&c)[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
}

/// C (16 x 8) += A (16 x 4) B (4 x 8): rows g in a0 and c[0], c[1], rows g + 8 in a1 and c[2], c[3].
__device__ inline void mma_16x8x4(double (&c)[4], double a0, double a1, double b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a0), "d"(a1), "d"(b));
#else
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a0), "d"(b));
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[2]), "+d"(c[3])
      : "d"(a1), "d"(b));
#endif
}

/// Tiles of 8 x 8 on and above the diagonal, numbered by columns of tiles: (row, col), row <= col.
__host__ __device__ constexpr int tile_index(int row, int col) { return col * (col + 1) / 2 + row; }
__host__ __device__ constexpr int tile_count(int cols) { return cols * (cols + 1) / 2; }

}  // namespace qrane::backend::cuda
