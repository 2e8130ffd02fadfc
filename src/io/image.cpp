// SPDX-License-Identifier: Apache-2.0
// Decoding and encoding by the public-domain stb_image and stb_image_write headers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <io/file_error.hpp>
#include <io/image.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

/// new pixel k covers old pixels [first, first + weights.size()), with these shares of its own length.
struct Footprint {
  int first = 0;
  std::vector<float> weights;
};

std::vector<Footprint> footprints(int old_size, int new_size) {
  std::vector<Footprint> result(static_cast<std::size_t>(new_size));
  const double step = static_cast<double>(old_size) / new_size;
  for (int k = 0; k < new_size; ++k) {
    const double begin = k * step;
    const double end = std::min<double>((k + 1) * step, old_size);
    Footprint& f = result[static_cast<std::size_t>(k)];
    f.first = std::min(static_cast<int>(begin), old_size - 1);
    for (int p = f.first; p < old_size && p < end; ++p) {
      const double share = std::min<double>(p + 1, end) - std::max<double>(p, begin);
      f.weights.push_back(static_cast<float>(share / step));
    }
  }
  return result;
}

}  // namespace

bool is_image_path(const std::string& path) {
  const auto endings = {".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".tga"};
  return std::any_of(endings.begin(), endings.end(), [&](const char* e) { return has_ending(path, e); });
}

GrayImage read_image(const std::string& path) {
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) fail(path, "cannot read: ", system_reason());
  GrayImage image;
  int channels = 0;
  struct Free {
    void operator()(stbi_uc* p) const { stbi_image_free(p); }
  };
  const std::unique_ptr<stbi_uc, Free> pixels(
      stbi_load_from_file(file.get(), &image.width, &image.height, &channels, 1));
  if (!pixels) fail(path, "not an image that can be read (", stbi_failure_reason(), ")");
  // The decoder fills what a short PGM or PPM lacks with whatever is there; both hold at least a byte a sample.
  if (has_ending(path, ".pgm") || has_ending(path, ".ppm")) {
    std::fseek(file.get(), 0, SEEK_END);
    const std::int64_t samples = std::int64_t{image.width} * image.height * channels;
    if (std::ftell(file.get()) < samples) fail(path, "truncated: ", samples, " samples are promised");
  }
  image.pixels.assign(pixels.get(), pixels.get() + std::size_t(image.width) * std::size_t(image.height));
  return image;
}

void write_png(const std::string& path, int width, int height, int channels, const std::uint8_t* pixels) {
  detail::check(width > 0 && height > 0, ErrorCode::invalid_argument, "write_png: ", path, ": a picture of ", width,
                " x ", height, " pixels");
  detail::check(channels == 1 || channels == 3, ErrorCode::invalid_argument, "write_png: ", path,
                ": channels must be 1 or 3, not ", channels);
  // Encoded whole before the file is touched: exceptions must not cross the C encoder.
  std::string bytes;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
  };
  if (stbi_write_png_to_func(append, &bytes, width, height, channels, pixels, width * channels) == 0) {
    fail(path, "cannot encode a PNG of ", width, " x ", height, " pixels");
  }
  write_file(path, bytes);
}

void scale_area(const std::uint8_t* source, int width, int height, std::uint8_t* target, int new_width,
                int new_height) {
  const std::vector<Footprint> across = footprints(width, new_width);
  const std::vector<Footprint> down = footprints(height, new_height);
  std::vector<float> row(static_cast<std::size_t>(width));
  for (int i = 0; i < new_height; ++i) {
    std::fill(row.begin(), row.end(), 0.0f);
    const Footprint& rows = down[static_cast<std::size_t>(i)];
    for (std::size_t r = 0; r < rows.weights.size(); ++r) {
      const std::uint8_t* from = source + (std::size_t(rows.first) + r) * std::size_t(width);
      for (int j = 0; j < width; ++j) row[std::size_t(j)] += rows.weights[r] * from[j];
    }
    for (int j = 0; j < new_width; ++j) {
      const Footprint& cols = across[static_cast<std::size_t>(j)];
      float sum = 0;
      for (std::size_t c = 0; c < cols.weights.size(); ++c) {
        sum += cols.weights[c] * row[static_cast<std::size_t>(cols.first) + c];
      }
      *target++ = static_cast<std::uint8_t>(std::lround(std::clamp(sum, 0.0f, 255.0f)));
    }
  }
}

}  // namespace qrane::io
