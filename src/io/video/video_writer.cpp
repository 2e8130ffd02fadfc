// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include <io/file_error.hpp>
#include <io/partial_file.hpp>
#include <io/video/child_process.hpp>
#include <io/video/video.hpp>

namespace qrane::io {
namespace {

/// ffmpeg's name of the container, by the path's ending.
std::string container_of(const std::string& path) {
  if (has_ending(path, ".mp4")) return "mp4";
  if (has_ending(path, ".mkv")) return "matroska";
  if (has_ending(path, ".avi")) return "avi";
  fail(path, "cannot write a video under this name: it must end in .mp4, .mkv or .avi");
}

/// H.264 where this ffmpeg has it, else MPEG-4, both near to lossless to the eye.
std::vector<std::string> encoder_arguments() {
  static const bool have_h264 = [] {
    int status = 0;
    std::string words;
    return output_of({"ffmpeg", "-hide_banner", "-v", "error", "-encoders"}, status, words).find(" libx264 ") !=
           std::string::npos;
  }();
  if (have_h264) return {"-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-bf", "0"};
  return {"-c:v", "mpeg4", "-q:v", "2"};
}

std::vector<std::string> arguments_for(const std::string& container, int width, int height, double frame_rate,
                                       int channels, const std::string& target) {
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.9g", frame_rate);
  std::vector<std::string> arguments = {"ffmpeg", "-y", "-nostdin", "-v", "error"};
  const char* const format = channels == 3 ? "rgb24" : "gray";
  const std::string size = detail::concat(width, "x", height);
  arguments.insert(arguments.end(), {"-f", "rawvideo", "-pix_fmt", format, "-s", size, "-r", rate, "-i", "pipe:0"});
  // Chroma is halved in both directions, so the encoders want even sizes.
  if (width % 2 != 0 || height % 2 != 0) {
    arguments.insert(arguments.end(), {"-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"});
  }
  const std::vector<std::string> encoder = encoder_arguments();
  arguments.insert(arguments.end(), encoder.begin(), encoder.end());
  arguments.insert(arguments.end(), {"-pix_fmt", "yuv420p", "-f", container, "file:" + target});
  return arguments;
}

}  // namespace

struct VideoWriter::State {
  State(const std::string& path_, const std::string& container, int width, int height, double frame_rate, int channels)
      : path(path_),
        frame_bytes(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                    static_cast<std::size_t>(channels)),
        file(path_),
        ffmpeg(arguments_for(container, width, height, frame_rate, channels, file.writable_path()),
               ChildProcess::Direction::write) {}

  [[noreturn]] void fail_encoder() {
    ffmpeg.wait();
    throw WriteError(detail::concat(path, ": cannot write: the encoder stopped (ffmpeg: ", ffmpeg.last_words(), ")"));
  }

  std::string path;
  std::size_t frame_bytes;
  std::int64_t frames = 0;
  PartialFile file;  // before the encoder: removed only after the encoder is gone
  ChildProcess ffmpeg;
};

VideoWriter::VideoWriter(const std::string& path, int width, int height, double frame_rate, int channels) {
  detail::check(width > 0 && height > 0, ErrorCode::invalid_argument, "VideoWriter: ", path, ": frames of ", width,
                " x ", height, " pixels");
  detail::check(std::isfinite(frame_rate) && frame_rate > 0, ErrorCode::invalid_argument, "VideoWriter: ", path,
                ": frame rate ", frame_rate);
  detail::check(channels == 1 || channels == 3, ErrorCode::invalid_argument, "VideoWriter: ", path,
                ": channels must be 1 or 3, not ", channels);
  state_ = std::make_unique<State>(path, container_of(path), width, height, frame_rate, channels);
}

VideoWriter::~VideoWriter() = default;
VideoWriter::VideoWriter(VideoWriter&&) noexcept = default;
VideoWriter& VideoWriter::operator=(VideoWriter&&) noexcept = default;

void VideoWriter::write(const std::uint8_t* frame) {
  detail::check(state_ != nullptr, ErrorCode::invalid_argument, "VideoWriter: write after finish");
  if (!state_->ffmpeg.write(frame, state_->frame_bytes)) state_->fail_encoder();
  ++state_->frames;
}

void VideoWriter::finish() {
  detail::check(state_ != nullptr, ErrorCode::invalid_argument, "VideoWriter: finished twice");
  detail::check(state_->frames > 0, ErrorCode::invalid_argument, "VideoWriter: ", state_->path,
                ": no frame was written");
  if (state_->ffmpeg.wait() != 0) state_->fail_encoder();
  state_->file.commit();
  state_.reset();
}

void join_videos(const std::vector<std::string>& names, const std::string& path) {
  PartialFile file(path);
  PartialFile list(path + ".list");  // never committed: it goes with this function
  list.write("ffconcat version 1.0\n");
  for (const std::string& name : names) list.write("file '" + name + "'\n");
  list.flush();
  int status = 0;
  std::string words;
  output_of({"ffmpeg", "-y", "-nostdin", "-v", "error", "-f", "concat", "-safe", "0", "-i",
             "file:" + list.writable_path(), "-c", "copy", "-f", container_of(path), "file:" + file.writable_path()},
            status, words);
  if (status != 0) throw WriteError(detail::concat(path, ": cannot write (ffmpeg: ", words, ")"));
  file.commit();
}

bool have_ffmpeg() {
  for (const char* program : {"ffmpeg", "ffprobe"}) {
    try {
      int status = 0;
      std::string words;
      output_of({program, "-version"}, status, words);
      if (status != 0) return false;
    } catch (const Error&) {
      return false;
    }
  }
  return true;
}

}  // namespace qrane::io
