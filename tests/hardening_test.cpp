// SPDX-License-Identifier: Apache-2.0
// A process that uses the CPU backend has no memory that is writable and executable at once.
#include <fstream>
#include <string>

#include <qrane/svd.hpp>

#include "support/backends.hpp"

namespace qrane::test {
namespace {

TEST(Hardening, NoMemoryIsWritableAndExecutable) {
  const Context& context = shared_context(Backend::cpu);
  const auto a = random_normal<double>(300, 40, 1);
  svd<double>(context, a.view());
  std::ifstream maps("/proc/self/maps");
  if (!maps) GTEST_SKIP() << "no /proc/self/maps here";
  for (std::string line; std::getline(maps, line);) {
    const std::string rights = line.substr(line.find(' ') + 1, 3);
    EXPECT_FALSE(rights[1] == 'w' && rights[2] == 'x') << line;
  }
}

}  // namespace
}  // namespace qrane::test
