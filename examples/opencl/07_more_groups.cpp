// SPDX-License-Identifier: Apache-2.0
// Step 7: QR of any matrix, a work-group for each column. Usage: 07_more_groups [m n]
#include "07_more_groups.hpp"
#include "06_more_columns.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int m = argument(argc, argv, 1, 2048), n = argument(argc, argv, 2, 256);
    require(m >= n && n >= 1, "the matrix must not be wide");
    const Device device;
    for (const Matrix& a : {identity(m, n), Matrix(m, n)}) check_r(a, more_groups::factor(device, a).r);
    const Matrix a = random_matrix(m, n);
    const more_columns::Factors last = more_columns::factor(device, a);
    const more_groups::Factors here = more_groups::factor(device, a);
    check_r(a, here.r);
    report("step 6: R, columns shared by work-items", qr_flops(m, n), last.seconds);
    report("step 7: R, a group for each column", qr_flops(m, n), here.seconds);
  });
}
