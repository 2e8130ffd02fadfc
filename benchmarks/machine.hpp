// SPDX-License-Identifier: Apache-2.0
// What the numbers were measured on, and with which sources.
#pragma once

#include <cstdint>
#include <string>

namespace qrane::bench {

struct Machine {
  std::string processor;  ///< model name
  int threads = 0;        ///< that this process may use
  std::int64_t memory_bytes = 0;
  std::string system;  ///< kernel name and release
  std::string compiler;
};

Machine describe_machine();
/// Host memory that can be had without swapping; 0 where the system does not tell.
std::int64_t available_memory_bytes();
/// "2026-11-21T08:00:00Z"
std::string utc_now();
/// `git describe` of the sources at build time, or "unknown".
std::string source_commit();

}  // namespace qrane::bench
