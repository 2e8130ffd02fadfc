// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that is nearest to an unknown one.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace qrane::cli {

/// Letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
int edit_distance(const std::string& a, const std::string& b);

/// The nearest of the known words; empty when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// What to say about arguments that a command did not take: " (did you mean --sparse?)", or nothing.
std::string suggestion(const CLI::App& command);

}  // namespace qrane::cli
