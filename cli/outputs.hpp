// SPDX-License-Identifier: Apache-2.0
// Files a command was asked to write: refused before the work starts rather than after it.
#pragma once

#include <string>
#include <vector>

#include <cli/common.hpp>

namespace qrane::cli {

struct Output {
  const char* flag;  ///< "--r", for messages
  std::string path;  ///< empty: not asked for
  bool matrix = true;
};

/// Checks that no two are the same file, that matrices have a matrix file's ending, and that each can be written.
/// Nothing that exists is touched. Throws Error{invalid_argument} or Error{file}.
void check_outputs(const std::vector<Output>& outputs);

/// Writes the JSON beside `path` and renames; nothing for an empty path.
void write_json(const std::string& path, const Json& json);

}  // namespace qrane::cli
