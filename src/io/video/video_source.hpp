// SPDX-License-Identifier: Apache-2.0
// Where a VideoReader's frames come from: images, an array, the ffmpeg program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <io/video/video.hpp>

namespace qrane::io {

class VideoSource {
 public:
  VideoSource(std::string name, const VideoOptions& options);
  virtual ~VideoSource() = default;

  bool next(std::uint8_t* frame);
  virtual std::vector<std::string> files() const { return {name_}; }
  const VideoInfo& info() const { return info_; }
  std::int64_t frames_read() const { return frames_read_; }

 protected:
  virtual bool read(std::uint8_t* frame) = 0;
  /// The source's own size; that of the frames follows from the options.
  void set_size(int width, int height);
  void set_count(std::int64_t count);

  std::string name_;
  VideoOptions options_;
  VideoInfo info_;
  std::int64_t frames_read_ = 0;
};

/// A local file, pipe, camera or URL by way of the ffmpeg program.
std::unique_ptr<VideoSource> open_with_ffmpeg(const std::string& source, const VideoOptions& options);

/// Whether the source names a protocol ("rtsp://camera/1").
bool is_address(const std::string& source);

}  // namespace qrane::io
