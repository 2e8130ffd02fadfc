// SPDX-License-Identifier: Apache-2.0
// A stream of frames cut into windows, each of which becomes one matrix with a frame in every column.
//
//   |-- window --|-- window --|-- window + rest --|      consecutive windows of a file: a rest of at most half a window
//                                                        joins the one before it, a longer one is a window of its own
//   |-- window --|
//          |----|-- new ------|
//                        |----|-- rest --|               windows that overlap: the shared frames belong to the earlier
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace qrane::cli {

struct FrameWindow {
  std::int64_t first = 0;            ///< number of its first frame, from 0
  std::int64_t count = 0;            ///< frames
  std::int64_t shared = 0;           ///< the first so many were part of the window before
  std::vector<std::uint8_t> frames;  ///< one after the other
};

struct WindowShape {
  std::int64_t window = 200;  ///< frames in each, at least 2
  std::int64_t overlap = 0;   ///< frames that two windows share, less than `window`
  bool live = false;          ///< hand a window out as soon as it is full: a rest is a window of its own
};

/// Holds at most one and a half windows and a frame.
class WindowReader {
 public:
  /// Fills one frame; false at the end of the stream.
  using NextFrame = std::function<bool(std::uint8_t*)>;

  /// `first` is the number of the stream's first frame.
  WindowReader(NextFrame next, std::size_t frame_bytes, const WindowShape& shape, std::int64_t first);

  /// The next window; nothing at the end. Every window has two frames or more, unless the stream has only one.
  std::optional<FrameWindow> next();

 private:
  std::int64_t held() const { return static_cast<std::int64_t>(held_.size() / frame_bytes_); }

  NextFrame next_;
  std::size_t frame_bytes_;
  WindowShape shape_;
  std::int64_t first_;       ///< number of the first frame held
  std::int64_t handed_ = 0;  ///< of the frames held: handed out before, kept for the next window
  bool ended_ = false;
  std::vector<std::uint8_t> held_;
};

/// How many windows a stream of that many frames makes.
std::int64_t count_windows(std::int64_t frames, const WindowShape& shape);

}  // namespace qrane::cli
