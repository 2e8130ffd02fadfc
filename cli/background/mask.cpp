// SPDX-License-Identifier: Apache-2.0
#include <cli/background/mask.hpp>

#include <vector>

namespace qrane::cli {

void median_5x5(const std::uint8_t* mask, int width, int height, std::uint8_t* median) {
  constexpr int reach = 2, majority = 13;
  // The square's sum is a sum of column sums: five rows, then five of those.
  std::vector<int> columns(static_cast<std::size_t>(width));
  for (int y = 0; y < height; ++y) {
    std::fill(columns.begin(), columns.end(), 0);
    for (int dy = -reach; dy <= reach; ++dy) {
      const std::uint8_t* row = mask + static_cast<std::int64_t>(std::clamp(y + dy, 0, height - 1)) * width;
      for (int x = 0; x < width; ++x) columns[x] += row[x] != 0;
    }
    for (int x = 0; x < width; ++x) {
      int sum = 0;
      for (int dx = -reach; dx <= reach; ++dx) sum += columns[std::clamp(x + dx, 0, width - 1)];
      median[static_cast<std::int64_t>(y) * width + x] = sum >= majority ? 255 : 0;
    }
  }
}

}  // namespace qrane::cli
