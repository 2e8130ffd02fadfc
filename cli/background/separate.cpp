// SPDX-License-Identifier: Apache-2.0
#include <cli/background/separate.hpp>

#include <charconv>
#include <cmath>

#include <cli/background/mask.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>

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

std::int64_t expected_windows(const io::VideoInfo& info, const BackgroundOptions& options) {
  const std::int64_t frames = expected_frames(info, options);
  return frames < 0 ? -1 : count_windows(frames, options.window);
}

std::optional<Truth> open_truth(const io::VideoInfo& info, const BackgroundOptions& options) {
  if (options.truth.empty()) return std::nullopt;
  return Truth(options.truth, options.video, options.start, expected_frames(info, options));
}

}  // namespace

io::VideoOptions parse_video_options(const BackgroundOptions& options) {
  io::VideoOptions video;
  video.max_frames = options.frames > 0 ? options.start + options.frames : 0;
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
  if (name == "inexact-alm") return RobustPcaMethod::inexact_alm;
  detail::check(name == "alternating", ErrorCode::invalid_argument, "--method: '", name,
                "' is neither inexact-alm nor alternating");
  return RobustPcaMethod::alternating;
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
  detail::check(std::isfinite(o.threshold) && o.threshold >= 0, ErrorCode::invalid_argument, "--threshold: ",
                o.threshold, " is negative or no number");
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
      pictures_(options.out, reader_.info()) {
  const io::VideoInfo& info = reader_.info();
  say_("video          ", options.video, ": ", info.width, " x ", info.height, " pixels",
       info.frame_count < 0 ? "" : detail::concat(", ", info.frame_count - options.start, " frames"));
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
  const io::VideoInfo& info = reader_.info();
  const std::size_t frame_bytes = static_cast<std::size_t>(info.width) * static_cast<std::size_t>(info.height);
  std::vector<std::uint8_t> skipped(frame_bytes);
  std::int64_t first = 0;
  while (first < options_.start && reader_.next(skipped.data())) ++first;
  const auto next = [this](std::uint8_t* frame) {
    stop_if_interrupted();
    return reader_.next(frame);
  };
  WindowReader windows(next, frame_bytes, options_.window, first);
  while (const std::optional<FrameWindow> window = windows.next()) {
    detail::check(window->count >= 2, ErrorCode::invalid_argument, options_.video,
                  ": one frame alone has no background; at least 2 are needed");
    with_scalar(precision_, [&](auto scalar) { separate<decltype(scalar)>(*window); });
  }
  detail::check(!windows_.empty(), ErrorCode::invalid_argument, options_.video, ": it has ", first,
                " frames, none at or after --start ", options_.start);
}

template <class T>
void BackgroundRun::separate(const FrameWindow& window) {
  const auto pixels = static_cast<Index>(window.pixels.size()) / window.count;
  WindowReport report;
  report.first = window.first;
  report.frames = window.count;
  progress_.begin(static_cast<std::int64_t>(windows_.size()), window.first, window.count);

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
    Matrix<T> m = Matrix<T>::host(pixels, window.count);
    std::copy(window.pixels.begin(), window.pixels.end(), m.data());
    result = robust_pca<T>(context_, std::as_const(m).view(), how);
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
       brief(report.seconds), " s (", brief(report.seconds > 0 ? report.iterations / report.seconds : 0),
       "/s), rank ", report.rank, ", residual ", brief(report.residual));
  windows_.push_back(std::move(report));
}

template <class T>
void BackgroundRun::deliver(const FrameWindow& window, const WindowReport& report, const RobustPca<T>& result) {
  const io::VideoInfo& info = reader_.info();
  const std::size_t pixels = window.pixels.size() / static_cast<std::size_t>(window.count);
  FramePictures pictures;
  pictures.background.resize(pixels);
  pictures.foreground.resize(pixels);
  pictures.mask.resize(pixels);
  std::vector<std::uint8_t> raw(pixels);
  for (std::int64_t k = 0; k < window.count; ++k) {
    const T* low_rank = result.low_rank.data() + k * result.low_rank.ld();
    const T* sparse = result.sparse.data() + k * result.sparse.ld();
    for (std::size_t i = 0; i < pixels; ++i) {
      pictures.background[i] = gray_level(low_rank[i]);
      pictures.foreground[i] = gray_level(std::abs(sparse[i]));
    }
    threshold_mask(sparse, static_cast<std::int64_t>(pixels), options_.threshold, raw.data());
    median_5x5(raw.data(), info.width, info.height, pictures.mask.data());
    pictures_.add(pictures);

    const std::int64_t frame = window.first + k;
    if (wants_stills(report, frame, pictures_.stills())) {
      const auto begin = window.pixels.begin() + static_cast<std::ptrdiff_t>(pixels) * k;
      pictures.frame.assign(begin, begin + static_cast<std::ptrdiff_t>(pixels));
      pictures_.write_stills(frame, pictures);
    }
    if (!truth_) continue;
    if (const auto truth = truth_->mask(frame, info.width, info.height, info.source_width, info.source_height)) {
      score_.add(pictures.mask.data(), truth->data(), static_cast<std::int64_t>(pixels));
    }
  }
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
