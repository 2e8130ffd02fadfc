// SPDX-License-Identifier: Apache-2.0
// Step 9: R of a tall, narrow matrix by a tree of blocks. Usage: 09_tree [m n]
#include "09_tree.hpp"
#include "08_tiles.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int m = argument(argc, argv, 1, 65536), n = argument(argc, argv, 2, 32);
    require(m >= n && n >= 1, "the matrix must not be wide");
    const Device device;
    for (const Matrix& a : {identity(m, n), Matrix(m, n)}) check_r(a, tree::factor(device, a).r);
    const Matrix a = random_matrix(m, n);
    const tiles::Factors last = tiles::factor(device, a);
    const tree::Factors here = tree::factor(device, a);
    check_r(a, here.r);
    report("step 8: R, panels and tiles", qr_flops(m, n), last.seconds);
    report("step 9: R by a tree", qr_flops(m, n), here.seconds);
  });
}
