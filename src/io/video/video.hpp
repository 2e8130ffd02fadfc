// SPDX-License-Identifier: Apache-2.0
// Videos as 8-bit frames, row-major. Encoded files and live streams go through pipes to the `ffmpeg` program (5.1 or
// later), so that no codec is linked; images and .npy arrays are read here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace qrane::io {

struct VideoOptions {
  int width = 0;  ///< 0: the video's own; one of the two alone keeps the aspect ratio
  int height = 0;
  std::int64_t max_frames = 0;  ///< 0: all
  bool color = false;           ///< frames are RGB where the source has colours, else all are gray
  /// The network protocol that `source` may name ("rtsp" for rtsp://...); empty: none.
  std::string protocol = {};
  /// Asked while a live source keeps us waiting: true ends next() by Error{interrupted}. May be empty.
  std::function<bool()> stop = {};
};

struct VideoInfo {
  int width = 0;  ///< of the frames that next() returns
  int height = 0;
  int channels = 1;  ///< 3: RGB
  int source_width = 0;
  int source_height = 0;
  double frame_rate = 25;         ///< 25 for images, arrays and live sources
  std::int64_t frame_count = -1;  ///< what is expected in all (max_frames counted in); -1: unknown
  bool live = false;              ///< frames come as they are made
  std::string note;  ///< what was done to the values of an array beyond taking them as levels; mostly empty

  std::size_t pixels() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height); }
  std::size_t frame_bytes() const { return pixels() * static_cast<std::size_t>(channels); }
};

/// Frames in order, one at a time.
///
/// `source` is a local file that ffmpeg reads, a directory of images (sorted by name, numbers by value), a pattern of
/// image names (`frame%05d.png` or `shots/*.jpg`), a .npy array of frames x height x width, or live: `-` (standard
/// input), a pipe, a camera (`/dev/video0`), a URL of the one protocol that the options allow.
/// Whatever the source holds, ffmpeg opens no other file and no other protocol on its behalf.
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
  /// The local files that frames come from.
  std::vector<std::string> files() const;
  /// Fills info().frame_bytes() bytes; false after the last frame. Throws when the source breaks off.
  bool next(std::uint8_t* frame);

 private:
  std::unique_ptr<class VideoSource> source_;
};

/// Gray or RGB frames into an .mp4, .mkv or .avi file, encoded by the ffmpeg program (H.264, else MPEG-4).
/// The file appears under its name at finish(); without finish() nothing is left behind.
class VideoWriter {
 public:
  VideoWriter(const std::string& path, int width, int height, double frame_rate, int channels = 1);
  ~VideoWriter();
  VideoWriter(VideoWriter&&) noexcept;
  VideoWriter& operator=(VideoWriter&&) noexcept;

  /// height x width x channels bytes, row-major.
  void write(const std::uint8_t* frame);
  /// Waits for the encoder and renames the file into place. Needs at least one frame.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Videos that VideoWriter wrote with the same size and rate, one after the other in one file, without encoding again.
/// They lie in the directory of `path`; their names hold no quotes and no line ends.
void join_videos(const std::vector<std::string>& names, const std::string& path);

/// Whether `ffmpeg` and `ffprobe` can be started.
bool have_ffmpeg();

}  // namespace qrane::io
