// SPDX-License-Identifier: Apache-2.0
// PNG by libpng. Its errors leave by longjmp: the functions that call setjmp own nothing that needs a destructor.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>

#include <io/file_error.hpp>
#include <io/images/image_codecs.hpp>

namespace qrane::io {
namespace {

/// The longest text, profile or other chunk that is not pixels.
constexpr png_alloc_size_t most_chunk_bytes = 1 << 20;

struct Errors {
  char words[128] = "";

  /// The library has no codes: its own words ("Out of memory", "insufficient memory"), and those of append().
  void throw_if_memory() const {
    if (std::strstr(words, "memory") != nullptr) throw std::bad_alloc();
  }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  std::snprintf(static_cast<Errors*>(png_get_error_ptr(png))->words, sizeof(Errors::words), "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

struct Source {
  std::span<const std::uint8_t> left;
};

void read_data(png_structp png, png_bytep to, png_size_t count) {
  auto& left = static_cast<Source*>(png_get_io_ptr(png))->left;
  if (count > left.size()) png_error(png, "the file is truncated");
  std::memcpy(to, left.data(), count);
  left = left.subspan(count);
}

struct Reader {
  Reader() : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// The header, and conversion to 8 bits of gray or RGB asked for; false for an error in `errors`.
  bool begin(Source& source, Image& image) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_read_fn(png, &source, read_data);
    png_set_user_limits(png, most_pixels, most_pixels);
    png_set_chunk_malloc_max(png, most_chunk_bytes);
    png_read_info(png, info);
    image.width = static_cast<int>(png_get_image_width(png, info));
    image.height = static_cast<int>(png_get_image_height(png, info));
    image.channels = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  /// All rows into `pixels`, of `stride` bytes each.
  bool rows(std::uint8_t* pixels, std::size_t stride, int height) {
    if (setjmp(png_jmpbuf(png))) return false;
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < height; ++y) png_read_row(png, pixels + static_cast<std::size_t>(y) * stride, nullptr);
    }
    png_read_end(png, nullptr);
    return true;
  }

  Errors errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
  int passes = 1;
};

struct Writer {
  Writer() : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, on_error, on_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool write(std::vector<std::uint8_t>& bytes, int width, int height, int channels, const std::uint8_t* pixels) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_write_fn(png, &bytes, append, nullptr);
    png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
                 channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    const std::size_t stride = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
    for (int y = 0; y < height; ++y) png_write_row(png, pixels + static_cast<std::size_t>(y) * stride);
    png_write_end(png, nullptr);
    return true;
  }
  /// An exception must not cross the library: running out of memory becomes its error.
  static void append(png_structp png, png_bytep from, png_size_t count) {
    auto& bytes = *static_cast<std::vector<std::uint8_t>*>(png_get_io_ptr(png));
    bool stored = true;
    try {
      bytes.insert(bytes.end(), from, from + count);
    } catch (const std::bad_alloc&) {
      stored = false;
    }
    if (!stored) png_error(png, "out of memory");
  }

  Errors errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

}  // namespace

Image decode_png(const std::string& name, std::span<const std::uint8_t> bytes) {
  Source source{bytes};
  Image image;
  Reader reader;
  if (reader.info == nullptr) throw std::bad_alloc();
  if (!reader.begin(source, image)) {
    reader.errors.throw_if_memory();
    fail(name, "not a PNG image that can be read (", reader.errors.words, ")");
  }
  check_image_size(name, image.width, image.height);
  const std::size_t stride = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  if (png_get_rowbytes(reader.png, reader.info) != stride) fail(name, "a PNG image of an unknown kind");
  image.pixels.resize(stride * static_cast<std::size_t>(image.height));
  if (!reader.rows(image.pixels.data(), stride, image.height)) {
    reader.errors.throw_if_memory();
    fail(name, "not a PNG image that can be read (", reader.errors.words, ")");
  }
  return image;
}

std::string encode_png(const std::string& name, int width, int height, int channels, const std::uint8_t* pixels) {
  std::vector<std::uint8_t> bytes;
  Writer writer;
  if (writer.info == nullptr) throw std::bad_alloc();
  if (!writer.write(bytes, width, height, channels, pixels)) {
    writer.errors.throw_if_memory();
    fail(name, "cannot encode a PNG of ", width, " x ", height, " pixels (", writer.errors.words, ")");
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace qrane::io
