// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that is nearest to one that a command does not know.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace qrane::cli {

/// The place of `given` among the names; throws Error{invalid_argument} with all of them and the nearest.
std::size_t one_of(const char* flag, const std::string& given, const std::vector<std::string>& names);

/// What to say about arguments that a command did not take: " (did you mean --sparse?)", or nothing.
std::string suggestion(const CLI::App& command);

}  // namespace qrane::cli
