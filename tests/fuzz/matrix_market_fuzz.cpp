// SPDX-License-Identifier: Apache-2.0
// Matrix Market files, plain and compressed.
#include <io/matrices/matrix_market.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const qrane::fuzz::MemoryFile file(data, size);
  qrane::fuzz::attempt([&] { qrane::io::read_matrix_market_header(file.path()); });
  qrane::fuzz::attempt([&] { qrane::io::read_matrix_market(file.path()); });
  return 0;
}
