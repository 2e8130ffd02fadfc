// SPDX-License-Identifier: Apache-2.0
// Step 8: QR by panels whose reflectors are applied together to tiles. Usage: 08_tiles [m n]
#include "08_tiles.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int m = argument(argc, argv, 1, 2048), n = argument(argc, argv, 2, 256);
    require(m >= n && n >= 1, "the matrix must not be wide");
    const Device device;
    for (const Matrix& a : {identity(m, n), Matrix(m, n)}) check_r(a, tiles::factor(device, a).r);
    const Matrix a = random_matrix(m, n);
    const more_groups::Factors last = more_groups::factor(device, a);
    const tiles::Factors here = tiles::factor(device, a);
    check_r(a, here.r);
    report("step 7: R, a group for each column", qr_flops(m, n), last.seconds);
    report("step 8: R, panels and tiles", qr_flops(m, n), here.seconds);
  });
}
