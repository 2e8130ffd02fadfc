// SPDX-License-Identifier: Apache-2.0
// Built program binaries on disk, under $XDG_CACHE_HOME/qrane or ~/.cache/qrane: a first build takes seconds
// on some drivers. An entry that is missing, broken or another key's is as good as none; nothing here throws.
#pragma once

#include <string>
#include <vector>

namespace qrane::backend::opencl {

/// The binary stored for exactly this key, or an empty vector.
std::vector<unsigned char> load_binary(const std::string& key);
/// Stores a binary: written beside its place and renamed, so that readers see all of it or nothing.
void store_binary(const std::string& key, const std::vector<unsigned char>& binary);

}  // namespace qrane::backend::opencl
