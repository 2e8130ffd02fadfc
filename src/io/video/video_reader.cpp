// SPDX-License-Identifier: Apache-2.0
#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <vector>

#include <io/file_error.hpp>
#include <io/images/image.hpp>
#include <io/input_file.hpp>
#include <io/matrices/npy.hpp>
#include <io/video/video_source.hpp>

namespace qrane::io {
namespace fs = std::filesystem;
namespace {

constexpr int largest_side = 1 << 16;

/// Names as people count: digits compare by value ("shot9" before "shot10").
bool natural_less(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t i_end = i, j_end = j;
    while (i_end < a.size() && is_digit(a[i_end])) ++i_end;
    while (j_end < b.size() && is_digit(b[j_end])) ++j_end;
    if (i_end - i != j_end - j) return i_end - i < j_end - j;
    const int order = a.compare(i, i_end - i, b, j, j_end - j);
    if (order != 0) return order < 0;
    i = i_end, j = j_end;
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::vector<std::string> images_in(const std::string& directory) {
  std::error_code reason;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory, reason)) {
    if (is_image_path(entry.path().string())) paths.push_back(entry.path().string());
  }
  if (reason) fail(directory, "cannot read: ", reason.message());
  return paths;
}

/// What matches NAME%05dNAME (or %d); empty when the name holds no such pattern.
std::vector<std::string> numbered_images(const std::string& pattern) {
  const std::size_t percent = pattern.find('%');
  if (percent == std::string::npos) return {};
  std::size_t end = percent + 1;
  while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9') ++end;
  if (end == pattern.size() || pattern[end] != 'd') return {};
  const std::size_t slash = pattern.find_last_of('/');
  const std::string directory = slash == std::string::npos ? "." : pattern.substr(0, slash + 1);
  const std::size_t name_begin = slash == std::string::npos ? 0 : slash + 1;
  if (percent < name_begin) return {};
  const std::string before = pattern.substr(name_begin, percent - name_begin);
  const std::string after = pattern.substr(end + 1);
  std::size_t digits = 0;
  std::from_chars(pattern.data() + percent + 1, pattern.data() + end, digits);

  std::vector<std::string> paths = images_in(directory);
  std::erase_if(paths, [&](const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    if (name.size() < before.size() + after.size() + std::max<std::size_t>(digits, 1)) return true;
    const std::string number = name.substr(before.size(), name.size() - before.size() - after.size());
    return !name.starts_with(before) || !name.ends_with(after) ||
           number.find_first_not_of("0123456789") != std::string::npos;
  });
  return paths;
}

std::vector<std::string> globbed_images(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::erase_if(paths, [](const std::string& path) { return !is_image_path(path); });
  return paths;
}

/// Frames of the source's size are scaled when another was asked for.
void deliver(const VideoInfo& info, const std::uint8_t* source, std::uint8_t* frame) {
  if (info.width == info.source_width && info.height == info.source_height) {
    std::copy_n(source, info.frame_bytes(), frame);
  } else {
    scale_area(source, info.source_width, info.source_height, frame, info.width, info.height, info.channels);
  }
}

class ImageSource : public VideoSource {
 public:
  ImageSource(const std::string& name, std::vector<std::string> paths, const VideoOptions& options)
      : VideoSource(name, options), paths_(std::move(paths)) {
    if (paths_.empty()) fail(name, "no images (PNG, JPEG, PGM or PPM) found");
    std::sort(paths_.begin(), paths_.end(), natural_less);
    const Image first = read_image(paths_.front());
    info_.channels = options.color ? first.channels : 1;
    set_size(first.width, first.height);
    set_count(static_cast<std::int64_t>(paths_.size()));
  }
  std::vector<std::string> files() const override { return paths_; }

 private:
  bool read(std::uint8_t* frame) override {
    if (frames_read_ == static_cast<std::int64_t>(paths_.size())) return false;
    const std::string& path = paths_[static_cast<std::size_t>(frames_read_)];
    Image image = read_image(path);
    if (image.width != info_.source_width || image.height != info_.source_height) {
      fail(path, "the image is ", image.width, " x ", image.height, ", those before it are ", info_.source_width, " x ",
           info_.source_height);
    }
    if (image.channels != info_.channels) convert(image);
    deliver(info_, image.pixels.data(), frame);
    return true;
  }
  /// A gray image among coloured ones, or the other way round.
  void convert(Image& image) const {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) *
                                     static_cast<std::size_t>(info_.channels));
    if (info_.channels == 1) {
      to_gray(image.pixels.data(), pixels.size(), pixels.data());
    } else {
      for (std::size_t k = 0; k < pixels.size(); ++k) pixels[k] = image.pixels[k / 3];
    }
    image.pixels = std::move(pixels);
  }

  std::vector<std::string> paths_;
};

class ArraySource : public VideoSource {
 public:
  ArraySource(const std::string& path, const VideoOptions& options) : VideoSource(path, options), frames_(path) {
    set_size(static_cast<int>(frames_.width()), static_cast<int>(frames_.height()));
    set_count(frames_.frames());
    info_.note = frames_.note();
    frame_.resize(static_cast<std::size_t>(frames_.width() * frames_.height()));
  }

 private:
  bool read(std::uint8_t* frame) override {
    if (frames_read_ == frames_.frames()) return false;
    frames_.read(frames_read_, frame_.data());
    deliver(info_, frame_.data(), frame);
    return true;
  }

  NpyFrames frames_;
  std::vector<std::uint8_t> frame_;
};

std::unique_ptr<VideoSource> open(const std::string& source, const VideoOptions& options) {
  const auto images = [&](std::vector<std::string> paths) {
    return std::make_unique<ImageSource>(source, std::move(paths), options);
  };
  if (is_address(source) || is_stream(source)) return open_with_ffmpeg(source, options);
  std::error_code ignored;
  if (fs::is_directory(source, ignored)) return images(images_in(source));
  if (!fs::exists(source, ignored)) {
    if (source.find('%') != std::string::npos) return images(numbered_images(source));
    if (source.find_first_of("*?[") != std::string::npos) return images(globbed_images(source));
    fail(source, "cannot read: ", system_reason(ENOENT));
  }
  if (has_ending(source, ".npy")) return std::make_unique<ArraySource>(source, options);
  if (is_image_path(source)) return images({source});
  return open_with_ffmpeg(source, options);
}

}  // namespace

VideoSource::VideoSource(std::string name, const VideoOptions& options) : name_(std::move(name)), options_(options) {
  detail::check(
      options.width >= 0 && options.width <= largest_side && options.height >= 0 && options.height <= largest_side,
      ErrorCode::invalid_argument, "video size: ", options.width, " x ", options.height, " is outside 1..",
      largest_side);
  detail::check(options.max_frames >= 0, ErrorCode::invalid_argument,
                "video: the number of frames is negative: ", options.max_frames);
}

bool VideoSource::next(std::uint8_t* frame) {
  if (options_.max_frames > 0 && frames_read_ == options_.max_frames) return false;
  if (!read(frame)) return false;
  ++frames_read_;
  return true;
}

void VideoSource::set_size(int width, int height) {
  check_image_size(name_, width, height);
  info_.source_width = width;
  info_.source_height = height;
  info_.width = options_.width;
  info_.height = options_.height;
  if (info_.width == 0 && info_.height == 0) {
    info_.width = width;
    info_.height = height;
  } else if (info_.height == 0) {
    info_.height = std::max(1, static_cast<int>(std::lround(double(height) * info_.width / width)));
  } else if (info_.width == 0) {
    info_.width = std::max(1, static_cast<int>(std::lround(double(width) * info_.height / height)));
  }
  check_image_size(name_, info_.width, info_.height);
}

void VideoSource::set_count(std::int64_t count) {
  info_.frame_count = options_.max_frames > 0 && count >= 0 ? std::min(count, options_.max_frames) : count;
}

VideoReader::VideoReader(const std::string& source, const VideoOptions& options) : source_(open(source, options)) {}
VideoReader::~VideoReader() = default;
VideoReader::VideoReader(VideoReader&&) noexcept = default;
VideoReader& VideoReader::operator=(VideoReader&&) noexcept = default;

const VideoInfo& VideoReader::info() const { return source_->info(); }
std::int64_t VideoReader::frames_read() const { return source_->frames_read(); }
std::vector<std::string> VideoReader::files() const { return source_->files(); }
bool VideoReader::next(std::uint8_t* frame) { return source_->next(frame); }

}  // namespace qrane::io
