// SPDX-License-Identifier: Apache-2.0
// Step 6: QR by one work-group whose work-items share columns. Usage: 06_more_columns [m n]
#include "06_more_columns.hpp"
#include "05_reflectors.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int m = argument(argc, argv, 1, 512), n = argument(argc, argv, 2, 128);
    require(m >= n && n >= 1, "the matrix must not be wide");
    const Device device;
    for (const Matrix& a : {identity(m, n), Matrix(m, n)}) check_r(a, more_columns::factor(device, a).r);
    const Matrix a = random_matrix(m, n);
    const reflectors::Factors last = reflectors::factor(device, a);
    const more_columns::Factors here = more_columns::factor(device, a);
    check_r(a, here.r);
    report("step 5: R by reflectors", qr_flops(m, n), last.r_seconds);
    report("step 6: R, columns shared by work-items", qr_flops(m, n), here.seconds);
  });
}
