// SPDX-License-Identifier: Apache-2.0
// The decoders behind decode_image and the encoder behind write_png.
#pragma once

#include <io/images/image.hpp>

namespace qrane::io {

/// `bytes` begin as a PNG file does.
Image decode_png(const std::string& name, std::span<const std::uint8_t> bytes);
/// `bytes` begin as a JPEG file does.
Image decode_jpeg(const std::string& name, std::span<const std::uint8_t> bytes);
/// `bytes` begin with P5 or P6.
Image decode_pnm(const std::string& name, std::span<const std::uint8_t> bytes);

/// The file's bytes; the arguments are those of write_png.
std::string encode_png(const std::string& name, int width, int height, int channels, const std::uint8_t* pixels);

}  // namespace qrane::io
