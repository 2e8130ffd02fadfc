// SPDX-License-Identifier: Apache-2.0
// The texts of the .cl files here, embedded at build time by cmake/EmbedText.cmake.
#pragma once

#include "embedded_text.hpp"

namespace qrane::paper {

extern const detail::EmbeddedText embedded_texts[];
extern const std::size_t embedded_text_count;

}  // namespace qrane::paper
