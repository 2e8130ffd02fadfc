// SPDX-License-Identifier: Apache-2.0
// The nearest of the words that are known, for messages about one that is not.
#include <qrane/error.hpp>

#include <algorithm>

namespace qrane::detail {

namespace {

/// Letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
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

}  // namespace

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

}  // namespace qrane::detail
