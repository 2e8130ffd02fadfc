// SPDX-License-Identifier: Apache-2.0
// The files that `qrane background` leaves in its directory:
//
//   background.mp4, foreground.mp4, mask.mp4      of all frames, at the end
//   background_000000-000199.mp4 and so on        of a finished window, until the end joins them
//   frame_000100.png, background_..., foreground_..., mask_...      a few frames
//   summary.json
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <cli/background/results.hpp>
#include <cli/outputs.hpp>
#include <io/video/video.hpp>

namespace qrane::cli {

/// Each file appears whole under its name. The videos of a window appear when it is finished, so that they outlast
/// whatever ends the program; finish() joins them. Without finish(), or without frames, an older run's results stay.
class Pictures {
 public:
  /// Makes the directory. Throws Error{file} when files cannot be written there, Error{invalid_argument} where a result
  /// would overwrite an input.
  Pictures(const std::string& directory, const io::VideoInfo& info, const std::vector<Input>& inputs);

  /// The frames that are added from now on have these numbers.
  void begin_window(std::int64_t first, std::int64_t frames);
  void add(const FramePictures& pictures);
  /// Writes frame_NNNNNN.png, background_..., foreground_..., mask_...
  void write_stills(std::int64_t frame, const FramePictures& pictures);
  /// The window's videos appear under their names.
  void end_window();
  /// Joins the windows and removes the pictures of earlier runs. A window that was not ended is dropped.
  void finish();
  std::int64_t stills() const { return stills_; }

 private:
  struct Kind {
    const char* name;
    std::unique_ptr<io::VideoWriter> writer;
    std::vector<std::string> windows;  ///< names of finished ones
  };
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void remove_older() const;

  std::string directory_;
  io::VideoInfo info_;
  std::vector<Input> inputs_;
  std::int64_t stills_ = 0;
  std::array<Kind, 3> kinds_;
  std::string window_suffix_;
  std::set<std::string> written_;  ///< names of pictures of this run
};

/// The number or numbers in the name of a picture or window ("mask_000100.png": "_000100.png"); empty for other names.
std::string picture_suffix(const std::string& name);

}  // namespace qrane::cli
