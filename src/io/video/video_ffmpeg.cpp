// SPDX-License-Identifier: Apache-2.0
// Videos by way of the ffmpeg program, which writes each frame as a PGM or PPM image into a pipe.
//
// What a source may lead to is limited twice. Its protocol is the only one that ffmpeg may open, and a local file must
// be a container that holds its own frames: playlists, which name further files, are refused.
#include <sys/stat.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include <io/file_error.hpp>
#include <io/images/image.hpp>
#include <io/input_file.hpp>
#include <io/video/child_process.hpp>
#include <io/video/video_source.hpp>

namespace qrane::io {
namespace {

/// ffmpeg's names of the containers that are read from files and pipes; of those with sound alone, so that the message
/// can say so.
constexpr const char* containers =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h261,h263,h264,hevc,av1,obu,ivf,vc1,dirac,"
    "cavsvideo,flv,asf,ogg,mxf,gxf,nut,gif,apng,yuv4mpegpipe,dv,rm,swf,mjpeg,smjpeg,wtv,nsv,film_cpk,roq,bink,smk,flic,"
    "amv,wav,mp3,flac,aac";

/// A protocol that --protocol may name, and what it is carried by.
struct Protocol {
  std::string_view name;
  const char* allowed;
};
constexpr Protocol protocols[] = {{"rtsp", "rtsp,rtp,udp,tcp"},
                                  {"rtsps", "rtsps,rtsp,rtp,udp,tls,tcp"},
                                  {"rtmp", "rtmp,tcp"},
                                  {"http", "http,tcp"},
                                  {"https", "https,tls,tcp"},
                                  {"srt", "srt"},
                                  {"tcp", "tcp"},
                                  {"udp", "udp"},
                                  {"rtp", "rtp,udp"}};

/// Arguments for ffmpeg and ffprobe that open the source and nothing else.
std::vector<std::string> input_arguments(const std::string& source, const std::string& protocol) {
  if (source == "-") return {"-protocol_whitelist", "pipe", "-format_whitelist", containers, "-i", "pipe:0"};
  struct stat status {};
  if (is_address(source)) {
    const std::string scheme = source.substr(0, source.find(':'));
    std::string known;
    for (const Protocol& p : protocols) {
      if (p.name == protocol && scheme == protocol) return {"-protocol_whitelist", p.allowed, "-i", source};
      known += detail::concat(known.empty() ? "" : ", ", p.name);
    }
    throw Error(ErrorCode::invalid_argument,
                protocol.empty() || protocol == scheme
                    ? detail::concat(source, ": only local files are read unless --protocol names one of ", known)
                    : detail::concat(source, ": --protocol ", protocol, " allows ", protocol, "://... only"));
  }
  if (::stat(source.c_str(), &status) == 0 && S_ISCHR(status.st_mode)) return {"-f", "v4l2", "-i", source};
  // "file:" keeps a name from being read as a protocol or an option.
  return {"-protocol_whitelist", "file", "-format_whitelist", containers, "-i", "file:" + source};
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

class FfmpegSource : public VideoSource {
 public:
  FfmpegSource(const std::string& source, const VideoOptions& options)
      : VideoSource(source, options), live_(is_address(source) || is_stream(source)) {
    const std::vector<std::string> input = input_arguments(source, options.protocol);
    info_.live = live_;
    info_.channels = options.color ? 3 : 1;
    if (!live_) probe(input);
    std::vector<std::string> arguments = {"ffmpeg", "-v", "error"};
    if (source != "-") arguments.push_back("-nostdin");
    arguments.insert(arguments.end(), input.begin(), input.end());
    arguments.insert(arguments.end(), {"-map", "0:v:0", "-vf", filters(), "-fps_mode", "passthrough"});
    if (options.max_frames > 0) {
      arguments.insert(arguments.end(), {"-frames:v", std::to_string(options.max_frames)});
    }
    const bool color = info_.channels == 3;
    arguments.insert(arguments.end(), {"-pix_fmt", color ? "rgb24" : "gray", "-c:v", color ? "ppm" : "pgm", "-f",
                                       "image2pipe", "pipe:1"});
    ffmpeg_ =
        std::make_unique<ChildProcess>(arguments, ChildProcess::Direction::read,
                                       source == "-" ? ChildProcess::Input::inherited : ChildProcess::Input::none);
    if (live_) read_first();
  }

  std::vector<std::string> files() const override {
    return live_ ? std::vector<std::string>() : std::vector<std::string>{name_};
  }

 private:
  void probe(const std::vector<std::string>& input) {
    int status = 0;
    std::string words;
    std::vector<std::string> arguments = {
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "v:0",
        "-show_entries",
        "stream=width,height,pix_fmt,avg_frame_rate,r_frame_rate,nb_frames:stream_side_data=rotation",
        "-of",
        "default=noprint_wrappers=1"};
    arguments.insert(arguments.end(), input.begin(), input.end());
    const std::string text = output_of(arguments, status, words);
    if (status != 0) fail(name_, "not a video that ffmpeg can read (", words, ")");
    int width = to_number(probe_value(text, "width"), 0);
    int height = to_number(probe_value(text, "height"), 0);
    if (width <= 0 || height <= 0) fail(name_, "no video in it");
    // ffmpeg turns the picture upright before it is scaled.
    if (std::abs(to_number(probe_value(text, "rotation"), 0)) % 180 == 90) std::swap(width, height);
    set_size(width, height);
    const std::string format = probe_value(text, "pix_fmt");
    if (format.starts_with("gray") || format.starts_with("mono")) info_.channels = 1;
    const double average = to_rate(probe_value(text, "avg_frame_rate"));
    const double nominal = to_rate(probe_value(text, "r_frame_rate"));
    if (average > 0 || nominal > 0) info_.frame_rate = average > 0 ? average : nominal;
    set_count(to_number(probe_value(text, "nb_frames"), std::int64_t{-1}));
  }

  /// A file's frames must all have the size that was probed (a crop to no width is an error); those of a live source
  /// are scaled to the size of its first one.
  std::string filters() const {
    if (live_) {
      if (options_.width == 0 && options_.height == 0) return "null";
      return detail::concat("scale=", options_.width > 0 ? options_.width : -1, ":",
                            options_.height > 0 ? options_.height : -1, ":flags=area");
    }
    return detail::concat("crop=if(eq(iw\\,", info_.source_width, ")*eq(ih\\,", info_.source_height,
                          ")\\,iw\\,0):ih,scale=", info_.width, ":", info_.height, ":flags=area");
  }

  /// "P6\n64 48\n255\n"; false at the end of the stream.
  bool read_header(int& width, int& height) {
    std::string text;
    for (int lines = 0; lines < 3 && text.size() < 64;) {
      char c = 0;
      if (ffmpeg_->read(&c, 1, options_.stop) != 1) break;
      text += c;
      lines += c == '\n';
    }
    if (text.empty()) return false;
    char end = 0;
    const char* const form = info_.channels == 3 ? "P6\n%d %d\n255%c" : "P5\n%d %d\n255%c";
    if (std::sscanf(text.c_str(), form, &width, &height, &end) != 3 || end != '\n') {
      fail(name_, "truncated: it breaks off inside frame ", frames_read_ + 1);
    }
    return true;
  }

  void read_first() {
    int width = 0, height = 0;
    if (!read_header(width, height)) finish(0);
    check_image_size(name_, width, height);
    info_.width = info_.source_width = width;
    info_.height = info_.source_height = height;
    first_.resize(info_.frame_bytes());
    if (const std::size_t got = ffmpeg_->read(first_.data(), first_.size(), options_.stop); got != first_.size())
      finish(got);
  }

  bool read(std::uint8_t* frame) override {
    if (ended_) return false;
    if (!first_.empty()) {
      std::copy(first_.begin(), first_.end(), frame);
      first_.clear();
      return true;
    }
    int width = 0, height = 0;
    if (!read_header(width, height)) return finish(0);
    if (width != info_.width || height != info_.height) {
      fail(name_, "frame ", frames_read_ + 1, " is ", width, " x ", height, " pixels, those before it are ",
           info_.width, " x ", info_.height);
    }
    const std::size_t got = ffmpeg_->read(frame, info_.frame_bytes(), options_.stop);
    return got == info_.frame_bytes() || finish(got);
  }

  /// The stream ended with `got` bytes of a frame: false where that is its end, an error where it is not.
  bool finish(std::size_t got) {
    ended_ = true;
    const int status = ffmpeg_->wait();
    const std::string words = ffmpeg_->last_words();
    const std::string reason = words.empty() ? "" : " (ffmpeg: " + words + ")";
    if (frames_read_ == 0 && got == 0) fail(name_, "no frame could be decoded", reason);
    if (ffmpeg_->said("Invalid too big or non positive size")) {
      fail(name_, "the size of its frames changes after frame ", frames_read_);
    }
    if (status != 0) fail(name_, "decoding stopped after frame ", frames_read_, reason);
    if (got != 0) fail(name_, "truncated: it breaks off inside frame ", frames_read_ + 1, reason);
    // Containers may announce a frame more than they hold; only together with a complaint is it a fault.
    if (frames_read_ < info_.frame_count && !words.empty()) {
      fail(name_, "truncated: ", info_.frame_count, " frames announced, ", frames_read_, " could be decoded", reason);
    }
    return false;
  }

  bool live_;
  std::unique_ptr<ChildProcess> ffmpeg_;
  std::vector<std::uint8_t> first_;  ///< of a live source: read to know the size
  bool ended_ = false;
};

}  // namespace

bool is_address(const std::string& source) { return source.find("://") != std::string::npos; }

std::unique_ptr<VideoSource> open_with_ffmpeg(const std::string& source, const VideoOptions& options) {
  return std::make_unique<FfmpegSource>(source, options);
}

}  // namespace qrane::io
