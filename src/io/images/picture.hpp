// SPDX-License-Identifier: Apache-2.0
// Drawings of lines and discs, as SVG or PNG.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace qrane::io {

using Rgb = std::array<std::uint8_t, 3>;

/// In pixels, (0, 0) at the top left; lines are drawn first, then discs, then words.
struct Picture {
  struct Line {
    double x1 = 0, y1 = 0, x2 = 0, y2 = 0, width = 1;
    Rgb color{};
  };
  struct Disc {
    double x = 0, y = 0, radius = 1;
    Rgb color{};
    std::string title;  ///< SVG: shown under the pointer
  };
  struct Words {
    double x = 0, y = 0, size = 14;
    std::string text;
  };
  double width = 0;
  double height = 0;
  std::vector<Line> lines;
  std::vector<Disc> discs;
  std::vector<Words> words;  ///< SVG alone
};

/// Throws Error{invalid_argument} unless the path ends in .svg or .png.
void check_picture_path(const std::string& path);

/// SVG, or a PNG at most 4000 pixels wide and high (scaled down to that), by the path's ending; written beside and
/// renamed.
void write_picture(const std::string& path, const Picture& picture);

}  // namespace qrane::io
