// SPDX-License-Identifier: Apache-2.0
// 8-bit images: PNG, JPEG, BMP and PGM in, PNG out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrane::io {

/// height x width, row-major, one byte a pixel.
struct GrayImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// Whether read_image knows the path's ending (.png .jpg .jpeg .bmp .pgm .ppm .tga).
bool is_image_path(const std::string& path);

/// Colour is turned to luma. Throws Error{file} naming the path and the reason.
GrayImage read_image(const std::string& path);

/// pixels: height x width x channels, row-major; channels 1 (gray) or 3 (RGB). Written beside and renamed.
void write_png(const std::string& path, int width, int height, int channels, const std::uint8_t* pixels);
inline void write_png(const std::string& path, const GrayImage& image) {
  write_png(path, image.width, image.height, 1, image.pixels.data());
}

/// Each new pixel is the mean of the old picture over its own area (so enlarging repeats pixels).
void scale_area(const std::uint8_t* source, int width, int height, std::uint8_t* target, int new_width, int new_height);

}  // namespace qrane::io
