// SPDX-License-Identifier: Apache-2.0
#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <vector>

#include <io/child_process.hpp>
#include <io/file_error.hpp>
#include <io/image.hpp>
#include <io/npy.hpp>
#include <io/video.hpp>

namespace qrane::io {
namespace fs = std::filesystem;
namespace {

constexpr int largest_side = 1 << 16;

/// The size of the frames asked for, given the source's own.
void set_size(VideoInfo& info, const VideoOptions& options, int width, int height) {
  info.source_width = width;
  info.source_height = height;
  info.width = options.width;
  info.height = options.height;
  if (info.width == 0 && info.height == 0) {
    info.width = width;
    info.height = height;
  } else if (info.height == 0) {
    info.height = std::max(1, static_cast<int>(std::lround(double(height) * info.width / width)));
  } else if (info.width == 0) {
    info.width = std::max(1, static_cast<int>(std::lround(double(width) * info.height / height)));
  }
}

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

/// key=value lines as ffprobe writes them.
std::string probe_value(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  }
  return {};
}

template <class Number>
Number to_number(const std::string& text, Number otherwise) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

double to_rate(const std::string& fraction) {
  const std::size_t slash = fraction.find('/');
  if (slash == std::string::npos) return 0;
  const double denominator = to_number(fraction.substr(slash + 1), 0.0);
  return denominator > 0 ? to_number(fraction.substr(0, slash), 0.0) / denominator : 0;
}

}  // namespace

class VideoReader::Source {
 public:
  Source(std::string name, const VideoOptions& options) : name_(std::move(name)), options_(options) {
    detail::check(
        options.width >= 0 && options.width <= largest_side && options.height >= 0 && options.height <= largest_side,
        ErrorCode::invalid_argument, "video size: ", options.width, " x ", options.height, " is outside 1..",
        largest_side);
    detail::check(options.max_frames >= 0, ErrorCode::invalid_argument,
                  "video: the number of frames is negative: ", options.max_frames);
  }
  virtual ~Source() = default;

  bool next(std::uint8_t* frame) {
    if (options_.max_frames > 0 && frames_read_ == options_.max_frames) return false;
    if (!read(frame)) return false;
    ++frames_read_;
    return true;
  }
  const VideoInfo& info() const { return info_; }
  std::int64_t frames_read() const { return frames_read_; }

 protected:
  virtual bool read(std::uint8_t* frame) = 0;
  void set_count(std::int64_t count) {
    info_.frame_count = options_.max_frames > 0 && count >= 0 ? std::min(count, options_.max_frames) : count;
  }
  /// Hands a frame of the source's size on, scaled when asked for.
  void deliver(const std::uint8_t* source, std::uint8_t* frame) const {
    if (info_.width == info_.source_width && info_.height == info_.source_height) {
      std::copy_n(source, static_cast<std::size_t>(info_.width) * static_cast<std::size_t>(info_.height), frame);
    } else {
      scale_area(source, info_.source_width, info_.source_height, frame, info_.width, info_.height);
    }
  }

  std::string name_;
  VideoOptions options_;
  VideoInfo info_;
  std::int64_t frames_read_ = 0;
};

class VideoReader::ImageSource : public Source {
 public:
  ImageSource(const std::string& name, std::vector<std::string> paths, const VideoOptions& options)
      : Source(name, options), paths_(std::move(paths)) {
    if (paths_.empty()) fail(name, "no images (PNG, JPEG, BMP, PGM, PPM or TGA) found");
    std::sort(paths_.begin(), paths_.end(), natural_less);
    const GrayImage first = read_image(paths_.front());
    set_size(info_, options, first.width, first.height);
    set_count(static_cast<std::int64_t>(paths_.size()));
  }

 private:
  bool read(std::uint8_t* frame) override {
    if (frames_read_ == static_cast<std::int64_t>(paths_.size())) return false;
    const std::string& path = paths_[static_cast<std::size_t>(frames_read_)];
    const GrayImage image = read_image(path);
    if (image.width != info_.source_width || image.height != info_.source_height) {
      fail(path, "the image is ", image.width, " x ", image.height, ", those before it are ", info_.source_width, " x ",
           info_.source_height);
    }
    deliver(image.pixels.data(), frame);
    return true;
  }

  std::vector<std::string> paths_;
};

class VideoReader::ArraySource : public Source {
 public:
  ArraySource(const std::string& path, const VideoOptions& options) : Source(path, options), frames_(path) {
    set_size(info_, options, static_cast<int>(frames_.width()), static_cast<int>(frames_.height()));
    set_count(frames_.frames());
    frame_.resize(static_cast<std::size_t>(frames_.width() * frames_.height()));
  }

 private:
  bool read(std::uint8_t* frame) override {
    if (frames_read_ == frames_.frames()) return false;
    frames_.read(frames_read_, frame_.data());
    deliver(frame_.data(), frame);
    return true;
  }

  NpyFrames frames_;
  std::vector<std::uint8_t> frame_;
};

class VideoReader::FfmpegSource : public Source {
 public:
  FfmpegSource(const std::string& path, const VideoOptions& options) : Source(path, options) {
    // "file:" keeps a colon in a name from being read as a protocol.
    const std::string input = path.find("://") == std::string::npos ? "file:" + path : path;
    probe(input);
    std::vector<std::string> arguments = {
        "ffmpeg",    "-nostdin",
        "-v",        "error",
        "-i",        input,
        "-map",      "0:v:0",
        "-vf",       detail::concat("scale=", info_.width, ":", info_.height, ":flags=area"),
        "-fps_mode", "passthrough"};
    if (options.max_frames > 0) {
      arguments.insert(arguments.end(), {"-frames:v", std::to_string(options.max_frames)});
    }
    arguments.insert(arguments.end(), {"-f", "rawvideo", "-pix_fmt", "gray", "pipe:1"});
    ffmpeg_ = std::make_unique<ChildProcess>(arguments, ChildProcess::Direction::read);
  }

 private:
  void probe(const std::string& input) {
    int status = 0;
    std::string words;
    const std::string text =
        output_of({"ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
                   "stream=width,height,avg_frame_rate,r_frame_rate,nb_frames:stream_side_data=rotation", "-of",
                   "default=noprint_wrappers=1", input},
                  status, words);
    if (status != 0) fail(name_, "not a video that ffmpeg can read (", words, ")");
    int width = to_number(probe_value(text, "width"), 0);
    int height = to_number(probe_value(text, "height"), 0);
    if (width <= 0 || height <= 0) fail(name_, "no video in it");
    // ffmpeg turns the picture upright before it is scaled.
    if (std::abs(to_number(probe_value(text, "rotation"), 0)) % 180 == 90) std::swap(width, height);
    set_size(info_, options_, width, height);
    const double average = to_rate(probe_value(text, "avg_frame_rate"));
    const double nominal = to_rate(probe_value(text, "r_frame_rate"));
    if (average > 0 || nominal > 0) info_.frame_rate = average > 0 ? average : nominal;
    set_count(to_number(probe_value(text, "nb_frames"), std::int64_t{-1}));
  }

  bool read(std::uint8_t* frame) override {
    if (ended_) return false;
    const std::size_t bytes = static_cast<std::size_t>(info_.width) * static_cast<std::size_t>(info_.height);
    const std::size_t got = ffmpeg_->read(frame, bytes);
    if (got == bytes) return true;
    ended_ = true;
    const int status = ffmpeg_->wait();
    const std::string words = ffmpeg_->last_words();
    const std::string reason = words.empty() ? "" : " (ffmpeg: " + words + ")";
    if (frames_read_ == 0 && got == 0) fail(name_, "no frame could be decoded", reason);
    if (status != 0) fail(name_, "decoding stopped after frame ", frames_read_, reason);
    if (got != 0) fail(name_, "truncated: it breaks off inside frame ", frames_read_ + 1, reason);
    // Containers may announce a frame more than they hold; only together with a complaint is it a fault.
    if (frames_read_ < info_.frame_count && !words.empty()) {
      fail(name_, "truncated: ", info_.frame_count, " frames announced, ", frames_read_, " could be decoded", reason);
    }
    return false;
  }

  std::unique_ptr<ChildProcess> ffmpeg_;
  bool ended_ = false;
};

std::unique_ptr<VideoReader::Source> VideoReader::open(const std::string& source, const VideoOptions& options) {
  const auto images = [&](std::vector<std::string> paths) {
    return std::make_unique<ImageSource>(source, std::move(paths), options);
  };
  std::error_code ignored;
  const bool address = source.find("://") != std::string::npos;
  if (fs::is_directory(source, ignored)) return images(images_in(source));
  if (!fs::exists(source, ignored) && !address) {
    if (source.find('%') != std::string::npos) return images(numbered_images(source));
    if (source.find_first_of("*?[") != std::string::npos) return images(globbed_images(source));
    fail(source, "cannot read: ", system_reason(ENOENT));
  }
  if (has_ending(source, ".npy")) return std::make_unique<ArraySource>(source, options);
  if (is_image_path(source) && !address) return images({source});
  return std::make_unique<FfmpegSource>(source, options);
}

VideoReader::VideoReader(const std::string& source, const VideoOptions& options) : source_(open(source, options)) {}
VideoReader::~VideoReader() = default;
VideoReader::VideoReader(VideoReader&&) noexcept = default;
VideoReader& VideoReader::operator=(VideoReader&&) noexcept = default;

const VideoInfo& VideoReader::info() const { return source_->info(); }
std::int64_t VideoReader::frames_read() const { return source_->frames_read(); }
bool VideoReader::next(std::uint8_t* frame) { return source_->next(frame); }

}  // namespace qrane::io
