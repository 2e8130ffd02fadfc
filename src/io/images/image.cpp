// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <io/file_error.hpp>
#include <io/images/image_codecs.hpp>
#include <io/input_file.hpp>
#include <io/partial_file.hpp>

namespace qrane::io {
namespace {

/// An uncompressed frame of most_pixels in 16-bit RGB, with its header.
constexpr std::int64_t most_file_bytes = 6 * most_pixels + 65536;

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

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

bool is_image_path(const std::string& path) {
  const auto endings = {".png", ".jpg", ".jpeg", ".pgm", ".ppm"};
  return std::any_of(endings.begin(), endings.end(), [&](const char* e) { return has_ending(path, e); });
}

void check_image_size(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0) fail(name, "an image of ", width, " x ", height, " pixels is empty");
  if (width > most_pixels || height > most_pixels / width) {
    fail(name, "an image of ", width, " x ", height, " pixels is too large: at most ", most_pixels, " are read");
  }
}

Image decode_image(const std::string& name, std::span<const std::uint8_t> bytes) {
  if (begins_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(name, bytes);
  if (begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(name, bytes);
  if (begins_with(bytes, "P5") || begins_with(bytes, "P6")) return decode_pnm(name, bytes);
  fail(name, "not an image that can be read: neither PNG nor JPEG nor binary PGM or PPM");
}

Image read_image(const std::string& path) {
  const std::string bytes = read_file(path, most_file_bytes);
  return decode_image(path, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

GrayImage read_gray_image(const std::string& path) {
  Image image = read_image(path);
  if (image.channels == 1) return {image.width, image.height, std::move(image.pixels)};
  GrayImage gray{image.width, image.height, {}};
  gray.pixels.resize(image.pixels.size() / 3);
  to_gray(image.pixels.data(), gray.pixels.size(), gray.pixels.data());
  return gray;
}

void to_gray(const std::uint8_t* rgb, std::size_t count, std::uint8_t* gray) {
  for (std::size_t k = 0; k < count; ++k) {
    gray[k] = static_cast<std::uint8_t>((77 * rgb[3 * k] + 150 * rgb[3 * k + 1] + 29 * rgb[3 * k + 2] + 128) >> 8);
  }
}

void write_png(const std::string& path, int width, int height, int channels, const std::uint8_t* pixels) {
  detail::check(width > 0 && height > 0, ErrorCode::invalid_argument, "write_png: ", path, ": a picture of ", width,
                " x ", height, " pixels");
  detail::check(channels == 1 || channels == 3, ErrorCode::invalid_argument, "write_png: ", path,
                ": channels must be 1 or 3, not ", channels);
  write_file(path, encode_png(path, width, height, channels, pixels));
}

void scale_area(const std::uint8_t* source, int width, int height, std::uint8_t* target, int new_width, int new_height,
                int channels) {
  const std::vector<Footprint> across = footprints(width, new_width);
  const std::vector<Footprint> down = footprints(height, new_height);
  const std::size_t samples = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  std::vector<float> row(samples);
  for (const Footprint& rows : down) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (std::size_t r = 0; r < rows.weights.size(); ++r) {
      const std::uint8_t* from = source + (static_cast<std::size_t>(rows.first) + r) * samples;
      for (std::size_t j = 0; j < samples; ++j) row[j] += rows.weights[r] * from[j];
    }
    for (const Footprint& cols : across) {
      for (int channel = 0; channel < channels; ++channel) {
        float sum = 0;
        for (std::size_t c = 0; c < cols.weights.size(); ++c) {
          sum += cols.weights[c] * row[(static_cast<std::size_t>(cols.first) + c) * channels + channel];
        }
        *target++ = static_cast<std::uint8_t>(std::lround(std::clamp(sum, 0.0f, 255.0f)));
      }
    }
  }
}

}  // namespace qrane::io
