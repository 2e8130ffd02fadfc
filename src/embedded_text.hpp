// SPDX-License-Identifier: Apache-2.0
// Text files that the build puts into the library (cmake/EmbedText.cmake).
#pragma once

#include <cstddef>

namespace qrane::detail {

/// One file: its name and its text in parts (compilers limit the length of one string literal).
struct EmbeddedText {
  const char* name;
  const char* const* parts;
  std::size_t part_count;
};

}  // namespace qrane::detail
