// SPDX-License-Identifier: Apache-2.0
#include <cli/suggest.hpp>

#include <algorithm>
#include <filesystem>

#include <qrane/error.hpp>

namespace qrane::cli {

int edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  int least = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  if (word.size() > 64) return best;
  for (const std::string& candidate : known) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const int distance = begins ? 1 : edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
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
    const std::string flag = nearest(extra.substr(0, extra.find('=')), flags);
    if (!flag.empty()) return " (" + extra + ": did you mean " + flag + "?)";
  }
  return "";
}

}  // namespace qrane::cli
