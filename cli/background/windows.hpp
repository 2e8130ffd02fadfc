// SPDX-License-Identifier: Apache-2.0
// A stream of frames cut into consecutive windows, each of which becomes one matrix with a frame in every column.
//
//   |-- window --|-- window --|-- window + rest --|      a rest of at most half a window joins the one before it,
//                                                        a longer one is a window of its own
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace qrane::cli {

struct FrameWindow {
  std::int64_t first = 0;  ///< number of its first frame, from 0
  std::int64_t count = 0;
  std::vector<std::uint8_t> pixels;  ///< count frames, one after the other
};

/// Holds at most one and a half windows and a frame.
class WindowReader {
 public:
  /// Fills one frame; false at the end of the stream.
  using NextFrame = std::function<bool(std::uint8_t*)>;

  /// `first` is the number of the stream's first frame; window >= 2.
  WindowReader(NextFrame next, std::size_t frame_bytes, std::int64_t window, std::int64_t first);

  /// The next window; nothing at the end. Every window has two frames or more, unless the stream has only one.
  std::optional<FrameWindow> next();

 private:
  NextFrame next_;
  std::size_t frame_bytes_;
  std::int64_t window_;
  std::int64_t first_;
  bool ended_ = false;
  std::vector<std::uint8_t> held_;  ///< frames read, not handed out
};

/// How many windows a stream of that many frames makes.
std::int64_t count_windows(std::int64_t frames, std::int64_t window);

}  // namespace qrane::cli
