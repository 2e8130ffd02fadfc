// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <omp.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>

#include "bench_commit.hpp"

namespace qrane::bench {
namespace {

/// The text after "key ... :" in a file of such lines, its first occurrence.
std::string field(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::int64_t memory_field(const std::string& key) {
  const std::string text = field("/proc/meminfo", key);
  return text.empty() ? 0 : std::strtoll(text.c_str(), nullptr, 10) * 1024;
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  machine.processor = field("/proc/cpuinfo", "model name");
  machine.threads = omp_get_max_threads();
  machine.memory_bytes = memory_field("MemTotal");
  utsname system{};
  if (uname(&system) == 0) machine.system = std::string(system.sysname) + " " + system.release;
#if defined(__VERSION__)
  machine.compiler = __VERSION__;
#endif
  return machine;
}

std::int64_t available_memory_bytes() { return memory_field("MemAvailable"); }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string source_commit() { return QRANE_BENCH_COMMIT; }

}  // namespace qrane::bench
