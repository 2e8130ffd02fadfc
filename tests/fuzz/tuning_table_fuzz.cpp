// SPDX-License-Identifier: Apache-2.0
// Tables of tuned parameters.
#include "fuzz.hpp"
#include "tuning/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qrane::fuzz::attempt([&] { qrane::tuning::parse({reinterpret_cast<const char*>(data), size}, "table.json"); });
  return 0;
}
