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

/// C (16 x 8) += A (16 x 8) B (8 x 8). c[0], c[1] are rows g, c[2], c[3] rows g + 8; a: (g, t), (g + 8, t),
/// (g, t + 4), (g + 8, t + 4); b: (t, g), (t + 4, g).
__device__ inline void mma_16x8x8(double (&c)[4], const double (&a)[4], double b0, double b1) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
  double upper[2] = {c[0], c[1]}, lower[2] = {c[2], c[3]};
  mma_8x8x4(upper, a[0], b0);
  mma_8x8x4(lower, a[1], b0);
  mma_8x8x4(upper, a[2], b1);
  mma_8x8x4(lower, a[3], b1);
  c[0] = upper[0], c[1] = upper[1], c[2] = lower[0], c[3] = lower[1];
#endif
}

/// Tiles of 8 x 8 on and above the diagonal, numbered by columns of tiles: (row, col), row <= col.
__host__ __device__ constexpr int tile_index(int row, int col) { return col * (col + 1) / 2 + row; }
__host__ __device__ constexpr int tile_count(int cols) { return cols * (cols + 1) / 2; }

}  // namespace qrane::backend::cuda
