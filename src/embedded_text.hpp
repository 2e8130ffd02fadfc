// SPDX-License-Identifier: Apache-2.0
// Text files that the build puts into a program (cmake/EmbedText.cmake).
#pragma once

#include <cstddef>
#include <string>

namespace qrane::detail {

/// One file: its name and its text in parts (compilers limit the length of one string literal).
struct EmbeddedText {
  const char* name;
  const char* const* parts;
  std::size_t part_count;
};

inline std::string whole(const EmbeddedText& file) {
  std::string text;
  for (std::size_t part = 0; part < file.part_count; ++part) text += file.parts[part];
  return text;
}

}  // namespace qrane::detail
