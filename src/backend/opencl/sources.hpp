// SPDX-License-Identifier: Apache-2.0
// The texts of the .cl files, embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include <cstddef>

namespace qrane::backend::opencl {

/// One file: its name and its text in parts (compilers limit the length of one string literal).
struct EmbeddedText {
  const char* name;
  const char* const* parts;
  std::size_t part_count;
};

extern const EmbeddedText embedded_texts[];
extern const std::size_t embedded_text_count;

}  // namespace qrane::backend::opencl
