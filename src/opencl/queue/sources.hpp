// SPDX-License-Identifier: Apache-2.0
// The texts of the .cl files, embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include "embedded_text.hpp"

namespace qrane::backend::opencl {

using detail::EmbeddedText;

extern const EmbeddedText embedded_texts[];
extern const std::size_t embedded_text_count;

}  // namespace qrane::backend::opencl
