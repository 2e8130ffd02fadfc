// SPDX-License-Identifier: Apache-2.0
// Step 10: Q of a tall, narrow matrix, down the tree of step 9. At the top Q is the identity. Each group takes its n
// rows of the level above, puts zeros below them, and applies its block's reflectors from the last to the first: that
// gives its rows of Q. Usage: 10_thin_q [m n]
#include "09_tree.hpp"

const char* const source = R"cl(
// One group of n work-items for each block, one work-item for each column of Q: no barrier but the one after the loads.
kernel void form_blocks(global const float* a, int m, int n, int block_rows, global const float* tau,
                        global const float* above, int above_ld, global float* q, local float* s_v, local float* s_q) {
  const int id = get_local_id(0), g = get_group_id(0);
  const int rows = min(block_rows, m - g * block_rows), ld = block_rows + 1;  // an odd distance spreads over the banks
  global const float* block = a + g * (long)block_rows;
  for (int j = 0; j < n; ++j)
    for (int i = id; i < rows; i += n) {
      s_v[i + j * block_rows] = block[i + j * (long)m];
      s_q[i + j * ld] = i < n ? above[g * n + i + j * (long)above_ld] : 0;
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  local float* x = s_q + id * ld;
  for (int k = min(rows, n) - 1; k >= 0; --k) {
    local const float* v = s_v + k * block_rows;
    float dot = x[k];
    for (int i = k + 1; i < rows; ++i) dot += v[i] * x[i];
    const float w = tau[g * n + k] * dot;
    x[k] -= w;
    for (int i = k + 1; i < rows; ++i) x[i] -= w * v[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = 0; j < n; ++j)
    for (int i = id; i < rows; i += n) q[g * block_rows + i + j * (long)m] = s_q[i + j * ld];
}
)cl";

struct Factors {
  Matrix q, r;
  double seconds;
};

Factors factor(const Device& device, const Matrix& a) {
  const int m = a.rows, n = a.cols, block = tree::block_rows(device, n);
  const cl::Kernel factor_blocks = tree::build(device), form_blocks(device.build(source), "form_blocks");
  const std::vector<tree::Level> levels = tree::make_levels(device, m, n);
  std::vector<cl::Buffer> q;  // of each level; the last is the identity
  for (const tree::Level& level : levels) q.push_back(device.allocate(std::size_t(level.rows) * n));
  device.upload(identity(n, n), q.back());
  const auto work = [&] {
    tree::factor_levels(device, factor_blocks, levels, n, true);
    for (std::size_t l = levels.size() - 1; l-- > 0;)
      device.run(form_blocks, levels[l].blocks, n, levels[l].a, levels[l].rows, n, block, levels[l].tau, q[l + 1],
                 levels[l + 1].rows, q[l], local_floats(std::size_t(block) * n),
                 local_floats(std::size_t(block + 1) * n));
  };
  Factors f;
  f.seconds = device.seconds([&] { device.upload(a, levels.front().a); }, work);
  f.q = device.download(q.front(), m, n);
  f.r = device.download(levels.back().a, n, n);
  return f;
}

int main(int argc, char** argv) {
  return run_example([&] {
    const int m = argument(argc, argv, 1, 65536), n = argument(argc, argv, 2, 32);
    require(m >= n && n >= 1, "the matrix must not be wide");
    const Device device;
    for (const Matrix& a : {identity(m, n), Matrix(m, n), random_matrix(m, n)}) {
      const Factors here = factor(device, a);
      check_r(a, here.r);
      check_q(a, here.q, here.r);
      if (a(0, 0) == 0 || a(0, 0) == 1) continue;
      report("step 9: R by a tree", qr_flops(m, n), tree::factor(device, a).seconds);
      report("step 10: Q and R by a tree", 2 * qr_flops(m, n), here.seconds);
    }
  });
}
