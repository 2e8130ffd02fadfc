// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg (libjpeg-turbo). Its errors leave by longjmp: the functions that call setjmp own nothing that needs
// a destructor. Damage that the library would paper over, such as a missing end, is an error.
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>

#include <io/file_error.hpp>
#include <io/images/image_codecs.hpp>

namespace qrane::io {
namespace {

/// Cameras write 1 or about 10. Each scan costs a pass over the whole image, however short it is in the file.
constexpr int most_scans = 100;
constexpr long most_memory_bytes = 16 * most_pixels;

struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg hands back its address
  std::jmp_buf leave;
  char words[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  Errors& errors = *reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors.words);
  std::longjmp(errors.leave, 1);
}

/// Levels below 0 are warnings: the data are damaged.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM) on_error(info);
}

void on_progress(j_common_ptr info) {
  if (!info->is_decompressor || reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= most_scans) return;
  Errors& errors = *reinterpret_cast<Errors*>(info->err);
  std::snprintf(errors.words, sizeof(errors.words), "it has more than %d scans", most_scans);
  std::longjmp(errors.leave, 1);
}

struct Reader {
  Reader() {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = on_error;
    errors.manager.emit_message = on_message;
  }
  ~Reader() { jpeg_destroy_decompress(&info); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool begin(std::span<const std::uint8_t> bytes, Image& image) {
    if (setjmp(errors.leave)) return false;
    jpeg_create_decompress(&info);
    info.mem->max_memory_to_use = most_memory_bytes;
    progress.progress_monitor = on_progress;
    info.progress = &progress;
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_read_header(&info, TRUE);
    image.width = static_cast<int>(info.image_width);
    image.height = static_cast<int>(info.image_height);
    image.channels = info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    info.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    return true;
  }
  bool rows(std::uint8_t* pixels, std::size_t stride) {
    if (setjmp(errors.leave)) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + info.output_scanline * stride;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }

  Errors errors{};
  jpeg_decompress_struct info{};
  jpeg_progress_mgr progress{};
};

}  // namespace

Image decode_jpeg(const std::string& name, std::span<const std::uint8_t> bytes) {
  Image image;
  Reader reader;
  if (!reader.begin(bytes, image)) fail(name, "not a JPEG image that can be read (", reader.errors.words, ")");
  check_image_size(name, image.width, image.height);
  const std::size_t stride = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  image.pixels.resize(stride * static_cast<std::size_t>(image.height));
  if (!reader.rows(image.pixels.data(), stride)) {
    fail(name, "not a JPEG image that can be read (", reader.errors.words, ")");
  }
  return image;
}

}  // namespace qrane::io
