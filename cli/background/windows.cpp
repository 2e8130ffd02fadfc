// SPDX-License-Identifier: Apache-2.0
#include <cli/background/windows.hpp>

#include <algorithm>

#include <qrane/error.hpp>

namespace qrane::cli {
namespace {

/// Whether a short rest joins the window before it, for which frames beyond a full window are looked at.
bool joins_rest(const WindowShape& shape) { return !shape.live && shape.overlap == 0; }

}  // namespace

WindowReader::WindowReader(NextFrame next, std::size_t frame_bytes, const WindowShape& shape, std::int64_t first)
    : next_(std::move(next)), frame_bytes_(frame_bytes), shape_(shape), first_(first) {
  detail::check(shape.window >= 2, ErrorCode::invalid_argument, "--window: ", shape.window,
                " is too few; a background needs at least 2 frames");
  detail::check(shape.overlap >= 0 && shape.overlap < shape.window, ErrorCode::invalid_argument,
                "--overlap: ", shape.overlap, " frames; windows of ", shape.window, " share at most ",
                shape.window - 1);
}

std::optional<FrameWindow> WindowReader::next() {
  // A frame that is kept only lest the rest be one frame alone.
  const std::int64_t spare = handed_ - std::min(handed_, shape_.overlap);
  const std::int64_t full = shape_.window + spare;
  const bool joins = joins_rest(shape_);
  const std::int64_t longest = joins ? full + shape_.window / 2 : full;
  // One frame beyond the longest window tells whether this is the last one.
  while (!ended_ && held() < longest + (joins ? 1 : 0)) {
    const std::size_t at = held_.size();
    held_.resize(at + frame_bytes_);
    if (next_(held_.data() + at)) continue;
    held_.resize(at);
    ended_ = true;
  }
  if (held() == handed_) return std::nullopt;

  const std::int64_t end = ended_ && held() <= longest ? held() : full;
  const std::int64_t begin = end - spare >= 2 ? spare : 0;
  const auto at = [&](std::int64_t frame) {
    return held_.begin() + static_cast<std::ptrdiff_t>(frame * static_cast<std::int64_t>(frame_bytes_));
  };
  FrameWindow window{first_ + begin, end - begin, handed_ - begin, {at(begin), at(end)}};
  handed_ = joins ? 0 : std::min(std::max<std::int64_t>(shape_.overlap, 1), end);
  held_.erase(held_.begin(), at(end - handed_));
  first_ += end - handed_;
  return window;
}

std::int64_t count_windows(std::int64_t frames, const WindowShape& shape) {
  if (frames <= 0) return 0;
  if (frames <= shape.window) return 1;
  if (!joins_rest(shape)) return 1 + (frames - shape.overlap - 1) / (shape.window - shape.overlap);
  const std::int64_t whole = frames / shape.window, rest = frames % shape.window;
  return whole + (rest > shape.window / 2 ? 1 : 0);
}

}  // namespace qrane::cli
