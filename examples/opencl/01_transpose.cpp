// SPDX-License-Identifier: Apache-2.0
// Step 1: a square matrix transposed in place. First one work-item for each pair of elements, then one for each pair of
// 4 x 4 blocks, which it reads and writes as float4. Only blocks on and above the diagonal need a work-item: with n
// blocks in a row, n (n + 1) / 2 of them. Usage: 01_transpose [n], n a multiple of 4
#include "example.hpp"

const char* const source = R"cl(
kernel void transpose_elements(global float* a, int n) {
  const int i = get_global_id(0) % n, j = get_global_id(0) / n;
  if (i >= j || j >= n) return;
  const float upper = a[i + j * n];
  a[i + j * n] = a[j + i * n];
  a[j + i * n] = upper;
}

// b := a^T for a 4 x 4 block in four columns.
void transpose_block(const float4* a, float4* b) {
  b[0] = (float4)(a[0].x, a[1].x, a[2].x, a[3].x);
  b[1] = (float4)(a[0].y, a[1].y, a[2].y, a[3].y);
  b[2] = (float4)(a[0].z, a[1].z, a[2].z, a[3].z);
  b[3] = (float4)(a[0].w, a[1].w, a[2].w, a[3].w);
}

// Element (4 i, j) of the matrix begins float4 number i + j * blocks.
kernel void transpose_blocks(global float4* a, int blocks) {
  // Work-item k has block (row, col), row <= col: the blocks are counted row by row from the diagonal.
  int col = get_global_id(0), row = 0;
  while (row < blocks && col >= blocks - row) {
    col -= blocks - row;
    ++row;
  }
  if (row >= blocks) return;  // the last work-group may be larger than what is left
  col += row;

  global float4* above = a + row + 4 * col * blocks;
  global float4* below = a + col + 4 * row * blocks;
  float4 x[4], y[4], xt[4], yt[4];
  for (int k = 0; k < 4; ++k) {
    x[k] = above[k * blocks];
    y[k] = below[k * blocks];  // the same block on the diagonal
  }
  transpose_block(x, xt);
  transpose_block(y, yt);
  for (int k = 0; k < 4; ++k) {
    below[k * blocks] = xt[k];
    above[k * blocks] = yt[k];
  }
}
)cl";

int main(int argc, char** argv) {
  return run_example([&] {
    const int n = argument(argc, argv, 1, 2048), blocks = n / 4;
    require(n >= 4 && n % 4 == 0, "n must be a multiple of 4");
    const Device device;
    const cl::Program program = device.build(source);
    const cl::Kernel by_elements(program, "transpose_elements"), by_blocks(program, "transpose_blocks");
    const Matrix a = random_matrix(n, n);
    const cl::Buffer buffer = device.allocate(a.values.size());
    const auto restore = [&] { device.upload(a, buffer); };
    const auto check = [&] {
      const Matrix b = device.download(buffer, n, n);
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) require(b(i, j) == a(j, i), "an element of the transpose");
    };
    const auto print = [&](const char* name, double seconds) {
      std::printf("%-44s %10.3f ms %9.3f GB/s\n", name, 1e3 * seconds, 8e-9 * n * n / seconds);
    };

    const int items = 64;
    const int pairs = blocks * (blocks + 1) / 2;
    const double elements_time =
        device.seconds(restore, [&] { device.run(by_elements, (n * n + items - 1) / items, items, buffer, n); });
    check();
    const double blocks_time =
        device.seconds(restore, [&] { device.run(by_blocks, (pairs + items - 1) / items, items, buffer, blocks); });
    check();
    print("element by element", elements_time);
    print("step 1: 4 x 4 blocks as float4", blocks_time);
  });
}
