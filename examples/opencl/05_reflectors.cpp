// SPDX-License-Identifier: Apache-2.0
// Step 5: QR by one work-group that keeps reflectors and forms no P. Usage: 05_reflectors [n]
#include "05_reflectors.hpp"
#include "04_one_group.hpp"

int main(int argc, char** argv) {
  return run_example([&] {
    const int n = argument(argc, argv, 1, 64);
    require(n >= 1, "n must be positive");
    const Device device;
    for (const Matrix& a : {identity(n, n), Matrix(n, n), random_matrix(n, n)}) {
      const reflectors::Factors f = reflectors::factor(device, a);
      check_r(a, f.r);
      check_q(a, f.q, f.r);
    }
    const Matrix a = random_matrix(n, n);
    const one_group::Factors last = one_group::factor(device, a);
    const reflectors::Factors here = reflectors::factor(device, a);
    report("step 4: Q and R by one group, with P", 2 * qr_flops(n, n), last.seconds);
    report("step 5: Q and R by reflectors", 2 * qr_flops(n, n), here.r_seconds + here.q_seconds);
  });
}
