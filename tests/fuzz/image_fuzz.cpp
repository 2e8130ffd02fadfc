// SPDX-License-Identifier: Apache-2.0
// PNG, JPEG, PGM and PPM images.
#include <io/images/image.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qrane::fuzz::attempt([&] { qrane::io::decode_image("image", {data, size}); });
  return 0;
}
