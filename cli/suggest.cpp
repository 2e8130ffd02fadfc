// SPDX-License-Identifier: Apache-2.0
#include <cli/suggest.hpp>

#include <algorithm>
#include <filesystem>

#include <qrane/error.hpp>

namespace qrane::cli {

std::size_t one_of(const char* flag, const std::string& given, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  const std::string meant = detail::nearest(given, names);
  throw Error(ErrorCode::invalid_argument, detail::concat(flag, ": '", given, "' is none of ", all,
                                                          meant.empty() ? "" : "; did you mean " + meant + "?"));
}

std::string suggestion(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const std::string& extra : command.remaining()) {
    if (!extra.starts_with('-')) continue;
    std::error_code reason;
    if (std::filesystem::exists(extra, reason)) return " (the file " + extra + " is given as ./" + extra + ")";
    const std::string flag = detail::nearest(extra.substr(0, extra.find('=')), flags);
    if (!flag.empty()) return " (" + extra + ": did you mean " + flag + "?)";
  }
  return "";
}

}  // namespace qrane::cli
