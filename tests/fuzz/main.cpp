// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over a seed corpus without a fuzzing engine: every file, what remains of it when it breaks off at
// various places, and copies with a few bytes changed, always the same ones.
//
// usage: TARGET DIRECTORY...
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t cuts = 64, changes = 128;

void run(const Bytes& bytes) {
  const Bytes exact(bytes);  // no slack behind the end, which would hide a read past it
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void run_around(const Bytes& seed) {
  run(seed);
  for (std::size_t k = 0; k < cuts; ++k)
    run(Bytes(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(seed.size() * k / cuts)));
  std::mt19937 random(static_cast<unsigned>(seed.size()));
  for (std::size_t k = 0; !seed.empty() && k < changes; ++k) {
    Bytes changed = seed;
    // headers are short, and most of what can go wrong is there
    const std::size_t reach = k % 2 == 0 ? std::min<std::size_t>(seed.size(), 128) : seed.size();
    for (std::size_t times = 1 + random() % 4; times > 0; --times) {
      changed[random() % reach] =
          k % 3 == 0 ? static_cast<std::uint8_t>("0159-."[random() % 6]) : static_cast<std::uint8_t>(random());
    }
    run(changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t seeds = 0;
  for (int k = 1; k < argc; ++k) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[k])) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      run_around(Bytes(std::istreambuf_iterator<char>(file), {}));
      ++seeds;
    }
  }
  std::printf("%zu seeds, %zu inputs\n", seeds, seeds * (1 + cuts + changes));
  return seeds > 0 ? 0 : 1;
}
