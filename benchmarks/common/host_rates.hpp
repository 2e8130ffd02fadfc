// SPDX-License-Identifier: Apache-2.0
// The rates of the machine's own processor: a square GEMM by the linked BLAS, and a copy by all threads.
#pragma once

#include <string>

namespace qrane::bench {

/// What a device can do at best, measured; 0 where it was not.
struct Rates {
  double gemm_gflops = 0;
  double copy_gbytes = 0;  ///< 10^9 bytes a second, read and written bytes both counted
  std::string source;      ///< how they were measured
};

/// precision: "f32" or "f64". Takes about a second.
Rates measure_host_rates(const std::string& precision);

}  // namespace qrane::bench
