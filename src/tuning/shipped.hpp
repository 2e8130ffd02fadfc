// SPDX-License-Identifier: Apache-2.0
// The files of src/tuning/tables, named <backend>_<device>.json, embedded at build time.
#pragma once

#include "embedded_text.hpp"

namespace qrane::tuning {

extern const detail::EmbeddedText embedded_texts[];
extern const std::size_t embedded_text_count;

}  // namespace qrane::tuning
