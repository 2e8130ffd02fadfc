// SPDX-License-Identifier: Apache-2.0
// Binary PGM (P5) and PPM (P6): width, height and the largest value in words, one blank, then the samples, two bytes
// each (the higher one first) where the largest value is above 255. A # begins a comment up to the end of its line.
#include <io/file_error.hpp>
#include <io/images/image_codecs.hpp>

namespace qrane::io {
namespace {

bool is_blank(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The next number of the header; `at` ends behind it.
std::int64_t number(const std::string& name, std::span<const std::uint8_t> bytes, std::size_t& at, const char* what) {
  while (at < bytes.size() && (is_blank(bytes[at]) || bytes[at] == '#')) {
    if (bytes[at] == '#') {
      while (at < bytes.size() && bytes[at] != '\n') ++at;
    } else {
      ++at;
    }
  }
  const std::size_t begin = at;
  std::int64_t value = 0;
  while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && at - begin < 10) {
    value = 10 * value + (bytes[at++] - '0');
  }
  if (at == begin) fail(name, "malformed PGM or PPM header: no ", what);
  return value;
}

}  // namespace

Image decode_pnm(const std::string& name, std::span<const std::uint8_t> bytes) {
  std::size_t at = 2;
  const std::int64_t width = number(name, bytes, at, "width");
  const std::int64_t height = number(name, bytes, at, "height");
  const std::int64_t largest = number(name, bytes, at, "largest value");
  check_image_size(name, width, height);
  if (largest < 1 || largest > 65535) fail(name, "malformed PGM or PPM header: largest value ", largest);
  if (at == bytes.size() || !is_blank(bytes[at])) fail(name, "malformed PGM or PPM header: no blank after it");
  ++at;

  Image image{static_cast<int>(width), static_cast<int>(height), bytes[1] == '6' ? 3 : 1, {}};
  const std::int64_t samples = width * height * image.channels;
  const std::int64_t sample_bytes = largest > 255 ? 2 : 1;
  const std::int64_t found = static_cast<std::int64_t>(bytes.size() - at);
  if (found < samples * sample_bytes) {
    fail(name, "truncated: expected ", samples * sample_bytes, " bytes of pixels, found ", found);
  }
  image.pixels.resize(static_cast<std::size_t>(samples));
  const std::uint8_t* from = bytes.data() + at;
  for (std::uint8_t& pixel : image.pixels) {
    std::int64_t value = *from++;
    if (sample_bytes == 2) value = 256 * value + *from++;
    if (value > largest) fail(name, "a sample is ", value, ", above the largest value ", largest);
    pixel = static_cast<std::uint8_t>((255 * value + largest / 2) / largest);
  }
  return image;
}

}  // namespace qrane::io
