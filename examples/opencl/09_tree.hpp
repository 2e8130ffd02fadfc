// SPDX-License-Identifier: Apache-2.0
// TSQR: the QR of a tall, narrow matrix by a tree (Demmel, Grigori, Hoemmen, Langou 2012). The rows are cut into blocks
// that fit in local memory. A group factors each: one read of A. The triangles stand on top of each other in a matrix
// that is shorter by the ratio of a block's rows to its columns, which is factored in the same way, until one is left.
//
//   A0 -> R0 \                                The last block of a level may have fewer rows than columns. Its R is then
//   A1 -> R1  >  [R0; R1; R2; R3] -> R        a trapezoid, with zeros below it.
//   A2 -> R2 /
//   A3 -> R3
#pragma once

#include "06_more_columns.hpp"

namespace tree {

constexpr int items = 64;  // a work-group

const char* const kernel_text = R"cl(
// One group for each block of block_rows rows of a (m x n). Its R becomes rows n g .. n g + n - 1 of r, whose columns
// are r_ld apart. If `keep` then its reflectors stay in a, and their tau in column g of tau.
kernel void factor_blocks(global float* a, int m, int n, int block_rows, int keep, global float* r, int r_ld,
                          global float* tau, local float* s_a, local float* s_sum, local float* s_dot) {
  const int id = get_local_id(0), items = get_local_size(0), g = get_group_id(0);
  const int rows = min(block_rows, m - g * block_rows);
  global float* block = a + g * (long)block_rows;
  for (int j = 0; j < n; ++j)
    for (int i = id; i < rows; i += items) s_a[i + j * rows] = block[i + j * (long)m];
  barrier(CLK_LOCAL_MEM_FENCE);
  factor_columns(s_a, rows, tau + g * n, rows, n, s_sum, s_dot);
  for (int j = 0; j < n; ++j) {
    for (int i = id; i < n; i += items) r[g * n + i + j * (long)r_ld] = i <= j && i < rows ? s_a[i + j * rows] : 0;
    for (int i = id; keep && i < rows; i += items) block[i + j * (long)m] = s_a[i + j * rows];
  }
}
)cl";

/// One level: a matrix that is cut into blocks.
struct Level {
  int rows, blocks;
  cl::Buffer a, tau;
};

struct Factors {
  Matrix r;
  double seconds;
};

/// The largest power of two of rows of which two blocks fit into local memory, with the sums.
inline int block_rows(const Device& device, int n) {
  int rows = 256;
  while (rows > 2 && (2 * rows + more_columns::lanes + 2) * n * sizeof(float) > device.local_bytes()) rows /= 2;
  require(rows >= 2 * n, "this step takes fewer columns on this device");
  return rows;
}

/// A level for A, one for the triangles of its blocks, and so on; the last one is R.
inline std::vector<Level> make_levels(const Device& device, int m, int n) {
  std::vector<Level> levels;
  const int block = block_rows(device, n);
  for (int rows = m; levels.empty() || levels.back().blocks > 1; rows = levels.back().blocks * n) {
    const int blocks = (rows + block - 1) / block;
    levels.push_back({rows, blocks, device.allocate(std::size_t(rows) * n), device.allocate(std::size_t(blocks) * n)});
  }
  levels.push_back({n, 0, device.allocate(std::size_t(n) * n), {}});
  return levels;
}

inline cl::Kernel build(const Device& device) {
  return cl::Kernel(device.build(std::string(more_columns::factor_columns) + kernel_text, "-DMEMORY=local"),
                    "factor_blocks");
}

inline void factor_levels(const Device& device, const cl::Kernel& kernel, const std::vector<Level>& levels, int n,
                          bool keep) {
  const int block = block_rows(device, n);
  for (std::size_t l = 0; l + 1 < levels.size(); ++l)
    device.run(kernel, levels[l].blocks, items, levels[l].a, levels[l].rows, n, block, int(keep), levels[l + 1].a,
               levels[l + 1].rows, levels[l].tau, local_floats(std::size_t(block) * n),
               local_floats(more_columns::lanes * n), local_floats(n));
}

inline Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols;
  const cl::Kernel kernel = build(device);
  const std::vector<Level> levels = make_levels(device, m, n);
  device.upload(a, levels.front().a);
  Factors f;
  f.seconds = device.seconds([] {}, [&] { factor_levels(device, kernel, levels, n, false); });
  f.r = device.download(levels.back().a, n, n);
  return f;
}

}  // namespace tree
