// SPDX-License-Identifier: Apache-2.0
// Step 4: QR by one work-group, with Q as a product of Householder matrices. Usage: 04_one_group [n]
#include "04_one_group.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int n = argument(argc, argv, 1, 64);
    require(n >= 1, "n must be positive");
    const Device device;
    for (const Matrix& a : {identity(n, n), Matrix(n, n), random_matrix(n, n)}) {
      const one_group::Factors f = one_group::factor(device, a);
      check_r(a, f.r);
      check_q(a, f.q, f.r);
      if (a(0, 0) != 0 && a(0, 0) != 1) report("step 4: Q and R by one group, with P", 2 * qr_flops(n, n), f.seconds);
    }
  });
}
