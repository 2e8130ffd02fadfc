// SPDX-License-Identifier: Apache-2.0
// .npy files, as matrices and as videos.
#include <vector>

#include <io/matrices/npy.hpp>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const qrane::fuzz::MemoryFile file(data, size);
  qrane::fuzz::attempt([&] { qrane::io::read_npy<float>(file.path()); });
  qrane::fuzz::attempt([&] { qrane::io::read_npy<double>(file.path()); });
  qrane::fuzz::attempt([&] {
    qrane::io::NpyFrames frames(file.path());
    std::vector<std::uint8_t> frame(static_cast<std::size_t>(frames.height() * frames.width()));
    for (std::int64_t k = 0; k < frames.frames(); ++k) frames.read(k, frame.data());
  });
  return 0;
}
