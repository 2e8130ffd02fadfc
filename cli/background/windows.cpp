// SPDX-License-Identifier: Apache-2.0
#include <cli/background/windows.hpp>

#include <qrane/error.hpp>

namespace qrane::cli {

WindowReader::WindowReader(NextFrame next, std::size_t frame_bytes, std::int64_t window, std::int64_t first)
    : next_(std::move(next)), frame_bytes_(frame_bytes), window_(window), first_(first) {
  detail::check(window >= 2, ErrorCode::invalid_argument, "--window: ", window,
                " is too few; a background needs at least 2 frames");
}

std::optional<FrameWindow> WindowReader::next() {
  // One frame beyond the longest window tells whether this is the last one.
  const std::size_t wanted = static_cast<std::size_t>(window_ + window_ / 2 + 1) * frame_bytes_;
  while (!ended_ && held_.size() < wanted) {
    const std::size_t at = held_.size();
    held_.resize(at + frame_bytes_);
    if (next_(held_.data() + at)) continue;
    held_.resize(at);
    ended_ = true;
  }
  if (held_.empty()) return std::nullopt;

  const auto held = static_cast<std::int64_t>(held_.size() / frame_bytes_);
  FrameWindow window;
  window.first = first_;
  window.count = ended_ && held <= window_ + window_ / 2 ? held : window_;
  const auto cut = held_.begin() + static_cast<std::ptrdiff_t>(window.count * static_cast<std::int64_t>(frame_bytes_));
  window.pixels.assign(held_.begin(), cut);
  held_.erase(held_.begin(), cut);
  first_ += window.count;
  return window;
}

std::int64_t count_windows(std::int64_t frames, std::int64_t window) {
  if (frames <= 0) return 0;
  const std::int64_t whole = frames / window, rest = frames % window;
  return whole == 0 ? 1 : whole + (rest > window / 2 ? 1 : 0);
}

}  // namespace qrane::cli
