// SPDX-License-Identifier: Apache-2.0
// Between the values of an enumeration and their names, by a table of both.
#pragma once

#include <string>
#include <vector>

#include <qrane/error.hpp>

namespace qrane::detail {

template <class Names, class Value>
const char* name_of(const Names& names, Value value) {
  for (const auto& [v, name] : names)
    if (v == value) return name;
  return "unknown";
}

/// Throws Error{invalid_argument} with the names there are, and the nearest.
template <class Names>
auto value_of(const Names& names, const std::string& text, const char* what) {
  std::vector<std::string> known;
  std::string all;
  for (const auto& [v, name] : names) {
    if (text == name) return v;
    known.emplace_back(name);
    all += std::string(all.empty() ? "" : ", ") + name;
  }
  const std::string meant = nearest(text, known);
  throw Error(ErrorCode::invalid_argument, concat("unknown ", what, " '", text, "'; known are ", all,
                                                  meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace qrane::detail
