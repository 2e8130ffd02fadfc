// SPDX-License-Identifier: Apache-2.0
// Background subtraction by robust PCA, window by window (Anderson et al., "Communication-Avoiding QR Decomposition
// for GPUs", IPDPS 2011, section VI): M, a frame in every column, is low rank (what stands still) plus sparse (what
// moves). Per window of n frames of m pixels: 12 m n bytes of the host in float, and one robust PCA.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <cli/background/pictures.hpp>
#include <cli/background/progress.hpp>
#include <cli/background/results.hpp>
#include <cli/background/truth.hpp>
#include <cli/background/windows.hpp>
#include <cli/common.hpp>
#include <io/video/video.hpp>

namespace qrane::cli {

/// "384x288" to numbers; Error{invalid_argument} for anything else.
io::VideoOptions parse_video_options(const BackgroundOptions& options);
/// "inexact-alm" or "alternating"; Error{invalid_argument} for another word.
RobustPcaMethod parse_method(const std::string& name);
/// Throws Error{invalid_argument} naming the first option that makes no sense.
void check_background_options(const BackgroundOptions& options);

/// A run from the first window to the summary. What windows were finished is on disk however it ends.
class BackgroundRun {
 public:
  /// Opens the video and the truth, makes the directory: nothing long.
  BackgroundRun(const BackgroundOptions& options, const Context& context, Precision precision);

  /// All windows. An error, or Ctrl-C as Error{interrupted}, is thrown on after the finished windows were saved.
  void run();

 private:
  template <class T>
  void separate(const FrameWindow& window);
  template <class T>
  Matrix<T> matrix_of(const FrameWindow& window) const;
  template <class T>
  void deliver(const FrameWindow& window, const WindowReport& report, const RobustPca<T>& result);
  void all_windows();
  /// Videos, summary and the closing words; `how` is "complete", "interrupted" or "failed".
  void finish(const char* how);
  Json summary(const char* how) const;
  void say_result() const;
  double wall_seconds() const;

  const BackgroundOptions& options_;
  const Context& context_;
  Precision precision_;
  Words say_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  io::VideoReader reader_;
  std::optional<Truth> truth_;
  Progress progress_;
  Pictures pictures_;  // last: it makes the directory, once all else was found in order
  Score score_;
  std::vector<WindowReport> windows_;
};

}  // namespace qrane::cli
