// SPDX-License-Identifier: Apache-2.0
// Videos as gray 8-bit frames, row-major. Encoded files go through pipes to the `ffmpeg` program (5.1 or later), so
// that no codec is linked; images and .npy arrays are read here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace qrane::io {

struct VideoOptions {
  int width = 0;  ///< 0: the video's own; one of the two alone keeps the aspect ratio
  int height = 0;
  std::int64_t max_frames = 0;  ///< 0: all
};

struct VideoInfo {
  int width = 0;  ///< of the frames that next() returns
  int height = 0;
  int source_width = 0;
  int source_height = 0;
  double frame_rate = 25;         ///< 25 for images and arrays
  std::int64_t frame_count = -1;  ///< what is expected in all (max_frames counted in); -1: unknown
};

/// Frames in order, one at a time.
///
/// `source` is a file that ffmpeg reads, a directory of images (sorted by name, numbers by value), a pattern of
/// image names (`frame%05d.png` or `shots/*.jpg`), or a .npy array of frames x height x width.
/// Faults are Error{file} naming the source (missing, not a video, truncated, no frames), or Error{unavailable}
/// when the ffmpeg program is needed and not installed.
class VideoReader {
 public:
  explicit VideoReader(const std::string& source, const VideoOptions& options = {});
  ~VideoReader();
  VideoReader(VideoReader&&) noexcept;
  VideoReader& operator=(VideoReader&&) noexcept;

  const VideoInfo& info() const;
  std::int64_t frames_read() const;
  /// Fills info().height x info().width bytes; false after the last frame. Throws when the source breaks off.
  bool next(std::uint8_t* frame);

 private:
  class Source;
  class FfmpegSource;
  class ImageSource;
  class ArraySource;
  static std::unique_ptr<Source> open(const std::string& source, const VideoOptions& options);
  std::unique_ptr<Source> source_;
};

/// Gray frames into an .mp4, .mkv or .avi file, encoded by the ffmpeg program (H.264, else MPEG-4).
/// The file appears under its name at finish(); without finish() nothing is left behind.
class VideoWriter {
 public:
  VideoWriter(const std::string& path, int width, int height, double frame_rate);
  ~VideoWriter();
  VideoWriter(VideoWriter&&) noexcept;
  VideoWriter& operator=(VideoWriter&&) noexcept;

  /// height x width bytes, row-major.
  void write(const std::uint8_t* frame);
  /// Waits for the encoder and renames the file into place. Needs at least one frame.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether `ffmpeg` and `ffprobe` can be started.
bool have_ffmpeg();

}  // namespace qrane::io
