// SPDX-License-Identifier: Apache-2.0
#include <cli/background/separate.hpp>

#include <charconv>
#include <cmath>

#include <cli/background/mask.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>
#include <cli/suggest.hpp>
#include <io/images/image.hpp>

namespace qrane::cli {
namespace {

/// 0 when the text is no positive number that an int holds.
int positive_number(const std::string& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}

/// Frames from --start on; -1 when the video does not tell its length.
std::int64_t expected_frames(const io::VideoInfo& info, const BackgroundOptions& options) {
  if (info.frame_count < 0) return -1;
  detail::check(info.frame_count > options.start, ErrorCode::invalid_argument, options.video, ": it has ",
                info.frame_count, " frames, none at or after --start ", options.start);
  return info.frame_count - options.start;
}

WindowShape window_shape(const io::VideoInfo& info, const BackgroundOptions& options) {
  return {options.window, options.overlap, info.live};
}

std::int64_t expected_windows(const io::VideoInfo& info, const BackgroundOptions& options) {
  const std::int64_t frames = expected_frames(info, options);
  return frames < 0 ? -1 : count_windows(frames, window_shape(info, options));
}

std::vector<Input> inputs_of(const io::VideoReader& reader, const std::optional<Truth>& truth) {
  std::vector<Input> inputs;
  for (const std::string& path : reader.files()) inputs.push_back({"VIDEO", path});
  if (!truth) return inputs;
  for (const std::string& path : truth->files()) inputs.push_back({"--truth", path});
  return inputs;
}

std::optional<Truth> open_truth(const io::VideoInfo& info, const BackgroundOptions& options) {
  if (options.truth.empty()) return std::nullopt;
  return Truth(options.truth, options.video, options.start, expected_frames(info, options));
}

}  // namespace

io::VideoOptions parse_video_options(const BackgroundOptions& options) {
  io::VideoOptions video;
  video.max_frames = options.frames > 0 ? options.start + options.frames : 0;
  video.color = true;
  video.protocol = options.protocol;
  video.stop = interrupted;
  if (options.size.empty()) return video;
  const std::size_t cross = options.size.find('x');
  if (cross != std::string::npos) {
    video.width = positive_number(options.size.substr(0, cross));
    video.height = positive_number(options.size.substr(cross + 1));
  }
  detail::check(video.width > 0 && video.height > 0, ErrorCode::invalid_argument, "--size: '", options.size,
                "' is not WIDTHxHEIGHT (such as 384x288)");
  return video;
}

RobustPcaMethod parse_method(const std::string& name) {
  return one_of("--method", name, {"inexact-alm", "alternating"}) == 0 ? RobustPcaMethod::inexact_alm
                                                                       : RobustPcaMethod::alternating;
}

void check_background_options(const BackgroundOptions& o) {
  const auto positive = [](const char* flag, double value) {
    detail::check(std::isfinite(value) && value > 0, ErrorCode::invalid_argument, flag, ": ", value,
                  " is not a positive number");
  };
  constexpr std::int64_t largest = std::int64_t{1} << 40;  // sums of two stay in 64 bits
  detail::check(o.frames >= 0 && o.frames <= largest, ErrorCode::invalid_argument, "--frames: ", o.frames,
                " is negative or too large");
  detail::check(o.start >= 0 && o.start <= largest, ErrorCode::invalid_argument, "--start: ", o.start,
                " is negative or too large");
  detail::check(o.window >= 2 && o.window <= largest, ErrorCode::invalid_argument, "--window: ", o.window,
                " frames; a window has at least 2");
  detail::check(std::isfinite(o.threshold) && o.threshold >= 0, ErrorCode::invalid_argument,
                "--threshold: ", o.threshold, " is negative or no number");
  detail::check(o.overlap >= 0 && o.overlap < o.window, ErrorCode::invalid_argument, "--overlap: ", o.overlap,
                " frames; windows of ", o.window, " share at most ", o.window - 1);
  positive("--lambda", o.lambda);
  positive("--tolerance", o.tolerance);
  positive("--max-iterations", o.max_iterations);
}

BackgroundRun::BackgroundRun(const BackgroundOptions& options, const Context& context, Precision precision)
    : options_(options),
      context_(context),
      precision_(precision),
      say_(options.common.quiet),
      reader_(options.video, parse_video_options(options)),
      truth_(open_truth(reader_.info(), options)),
      progress_(options.common.quiet, expected_windows(reader_.info(), options)),
      pictures_(options.out, reader_.info(), inputs_of(reader_, truth_)) {
  check_outputs({{"--json", options.common.json, false}}, inputs_of(reader_, truth_));
  const io::VideoInfo& info = reader_.info();
  say_("video          ", options.video, ": ", info.width, " x ", info.height, " pixels",
       info.frame_count < 0 ? "" : detail::concat(", ", info.frame_count - options.start, " frames"));
  if (!info.note.empty()) say_("               ", info.note);
  say_("device         ", describe_line(context, precision));
}

void BackgroundRun::run() {
  try {
    all_windows();
  } catch (const Error& error) {
    progress_.end();
    finish(error.code() == ErrorCode::interrupted ? "interrupted" : "failed");
    throw;
  } catch (...) {
    progress_.end();
    finish("failed");
    throw;
  }
  finish("complete");
}

void BackgroundRun::all_windows() {
  const std::size_t frame_bytes = reader_.info().frame_bytes();
  std::vector<std::uint8_t> skipped(frame_bytes);
  std::int64_t first = 0;
  while (first < options_.start && reader_.next(skipped.data())) ++first;
  const auto next = [this](std::uint8_t* frame) {
    stop_if_interrupted();
    return reader_.next(frame);
  };
  WindowReader windows(next, frame_bytes, window_shape(reader_.info(), options_), first);
  while (const std::optional<FrameWindow> window = windows.next()) {
    detail::check(window->count >= 2, ErrorCode::invalid_argument, options_.video,
                  ": one frame alone has no background; at least 2 are needed");
    with_scalar(precision_, [&](auto scalar) { separate<decltype(scalar)>(*window); });
  }
  detail::check(!windows_.empty(), ErrorCode::invalid_argument, options_.video, ": it has ", first,
                " frames, none at or after --start ", options_.start);
}

/// A frame's gray levels in every column.
template <class T>
Matrix<T> BackgroundRun::matrix_of(const FrameWindow& window) const {
  const io::VideoInfo& info = reader_.info();
  Matrix<T> m = Matrix<T>::host(static_cast<Index>(info.pixels()), window.count);
  std::vector<std::uint8_t> gray(info.channels == 3 ? info.pixels() : 0);
  for (std::int64_t k = 0; k < window.count; ++k) {
    const std::uint8_t* frame = window.frames.data() + static_cast<std::size_t>(k) * info.frame_bytes();
    if (info.channels == 3) {
      io::to_gray(frame, info.pixels(), gray.data());
      frame = gray.data();
    }
    std::copy_n(frame, info.pixels(), m.data() + k * m.ld());
  }
  return m;
}

template <class T>
void BackgroundRun::separate(const FrameWindow& window) {
  WindowReport report;
  report.first = window.first + window.shared;
  report.frames = window.count - window.shared;
  report.shared = window.shared;
  progress_.begin(static_cast<std::int64_t>(windows_.size()), report.first, report.frames);

  RobustPcaOptions how;
  how.method = parse_method(options_.method);
  how.relative_tolerance = options_.tolerance;
  how.max_iterations = options_.max_iterations;
  how.lambda_multiplier = options_.lambda;
  how.on_iteration = [&](const RobustPcaProgress& step) {
    report.convergence.push_back(step);
    progress_.show(step);
    return !interrupted();
  };
  RobustPca<T> result;
  {
    const Matrix<T> m = matrix_of<T>(window);
    result = robust_pca<T>(context_, m.view(), how);
  }
  progress_.end();
  stop_if_interrupted();
  report.iterations = result.iterations;
  report.seconds = result.seconds;
  report.rank = result.rank;
  report.residual = result.residual;
  report.converged = result.converged;
  deliver(window, report, result);
  if (!report.converged) {
    complain(detail::concat("warning: frames ", report.first, "-", report.first + report.frames - 1, ": ",
                            report.iterations, " iterations ended at residual ", brief(report.residual),
                            ", above --tolerance ", brief(options_.tolerance)));
  }
  say_("frames ", report.first, "-", report.first + report.frames - 1, ": ", report.iterations, " iterations in ",
       brief(report.seconds), " s (", brief(report.seconds > 0 ? report.iterations / report.seconds : 0), "/s), rank ",
       report.rank, ", residual ", brief(report.residual));
  windows_.push_back(std::move(report));
}

template <class T>
void BackgroundRun::deliver(const FrameWindow& window, const WindowReport& report, const RobustPca<T>& result) {
  const io::VideoInfo& info = reader_.info();
  const std::size_t pixels = info.pixels();
  FramePictures pictures;
  pictures.background.resize(pixels);
  pictures.foreground.resize(info.frame_bytes());
  pictures.mask.resize(pixels);
  std::vector<std::uint8_t> raw(pixels);
  pictures_.begin_window(report.first, report.frames);
  for (std::int64_t k = window.shared; k < window.count; ++k) {
    stop_if_interrupted();
    const T* low_rank = result.low_rank.data() + k * result.low_rank.ld();
    const T* sparse = result.sparse.data() + k * result.sparse.ld();
    for (std::size_t i = 0; i < pixels; ++i) pictures.background[i] = gray_level(low_rank[i]);
    threshold_mask(sparse, static_cast<std::int64_t>(pixels), options_.threshold, raw.data());
    median_5x5(raw.data(), info.width, info.height, pictures.mask.data());
    const auto frame = window.frames.begin() + static_cast<std::ptrdiff_t>(info.frame_bytes()) * k;
    if (info.channels == 1) {
      for (std::size_t i = 0; i < pixels; ++i) pictures.foreground[i] = gray_level(std::abs(sparse[i]));
    } else {
      for (std::size_t i = 0; i < info.frame_bytes(); ++i) {
        pictures.foreground[i] = pictures.mask[i / 3] != 0 ? frame[static_cast<std::ptrdiff_t>(i)] : 0;
      }
    }
    pictures_.add(pictures);

    const std::int64_t number = window.first + k;
    if (wants_stills(report, number, pictures_.stills())) {
      pictures.frame.assign(frame, frame + static_cast<std::ptrdiff_t>(info.frame_bytes()));
      pictures_.write_stills(number, pictures);
    }
    if (!truth_) continue;
    if (const auto truth = truth_->mask(number, info.width, info.height, info.source_width, info.source_height)) {
      score_.add(pictures.mask.data(), truth->data(), static_cast<std::int64_t>(pixels));
    }
  }
  pictures_.end_window();
}

void BackgroundRun::finish(const char* how) {
  if (windows_.empty()) return;
  pictures_.finish();
  const Json json = summary(how);
  write_json(options_.out + "/summary.json", json);
  write_json(options_.common.json, json);
  say_result();
}

Json BackgroundRun::summary(const char* how) const {
  const io::VideoInfo& info = reader_.info();
  Json json = describe(context_, precision_);
  json.update({{"status", how},
               {"video", options_.video},
               {"width", info.width},
               {"height", info.height},
               {"frame_rate", info.frame_rate},
               {"start", options_.start},
               {"method", options_.method},
               {"window", options_.window},
               {"overlap", options_.overlap},
               {"color", info.channels == 3},
               {"lambda_multiplier", options_.lambda},
               {"tolerance", options_.tolerance},
               {"threshold", options_.threshold},
               {"total", totals_json(total_of(windows_, wall_seconds()), windows_.size())}});
  if (truth_) json["truth"] = score_json(score_, options_.truth, truth_->by_number());
  json["windows"] = windows_json(windows_);
  return json;
}

void BackgroundRun::say_result() const {
  const BackgroundTotals totals = total_of(windows_, wall_seconds());
  say_("total          ", totals.frames, " frames, ", totals.iterations, " iterations in ", brief(totals.seconds),
       " s (", brief(totals.iterations_per_second()), "/s), ", brief(totals.wall_seconds),
       " s with reading and writing");
  if (truth_) {
    say_("truth          precision ", brief(score_.precision(), 4), ", recall ", brief(score_.recall(), 4),
         ", F-measure ", brief(score_.f_measure(), 4), " over ", score_.frames, " frames");
    if (score_.true_positives + score_.false_negatives == 0) {
      complain(detail::concat("warning: ", options_.truth, ": no pixel of the masks is 255 (foreground)"));
    }
  }
  say_("results        ", options_.out, ": background.mp4, foreground.mp4, mask.mp4, summary.json, ",
       pictures_.stills(), " frames as PNGs");
}

double BackgroundRun::wall_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace qrane::cli
