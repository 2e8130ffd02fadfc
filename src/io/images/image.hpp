// SPDX-License-Identifier: Apache-2.0
// 8-bit images: PNG, JPEG and binary PGM and PPM in, told apart by their first bytes; PNG out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace qrane::io {

/// The largest image or video frame: 7680 x 4320 fits. What is larger is refused before memory is taken for it.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 25;

/// height x width x channels, row-major, one byte a sample; channels is 1 (gray) or 3 (RGB).
struct Image {
  int width = 0;
  int height = 0;
  int channels = 1;
  std::vector<std::uint8_t> pixels;
};

/// height x width, row-major, one byte a pixel.
struct GrayImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// Whether the path ends as the images do that are read: .png .jpg .jpeg .pgm .ppm.
bool is_image_path(const std::string& path);

/// An image file's bytes as pixels: samples are scaled to 0..255, transparency is ignored. `name` is for messages.
/// Throws Error{file} for another format, damage, an empty image, and more than most_pixels.
Image decode_image(const std::string& name, std::span<const std::uint8_t> bytes);

/// Reads and decodes a file. Throws Error{file} naming the path and the reason.
Image read_image(const std::string& path);
/// The same with colour turned to luma.
GrayImage read_gray_image(const std::string& path);

/// count pixels of RGB to luma by the weights of ITU-R BT.601.
void to_gray(const std::uint8_t* rgb, std::size_t count, std::uint8_t* gray);

/// Throws Error{file} naming `name` where an image of this size is empty or too large.
void check_image_size(const std::string& name, std::int64_t width, std::int64_t height);

/// pixels: height x width x channels, row-major; channels 1 (gray) or 3 (RGB). Written beside and renamed.
void write_png(const std::string& path, int width, int height, int channels, const std::uint8_t* pixels);
inline void write_png(const std::string& path, const GrayImage& image) {
  write_png(path, image.width, image.height, 1, image.pixels.data());
}

/// Each new pixel is the mean of the old picture over its own area, so that enlarging repeats pixels. All arrays are
/// height x width x channels.
void scale_area(const std::uint8_t* source, int width, int height, std::uint8_t* target, int new_width, int new_height,
                int channels = 1);

}  // namespace qrane::io
