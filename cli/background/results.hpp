// SPDX-License-Identifier: Apache-2.0
// What `qrane background` leaves behind: videos and pictures in a directory, and the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cli/background/truth.hpp>
#include <cli/common.hpp>
#include <io/video/video.hpp>
#include <qrane/robust_pca.hpp>

namespace qrane::cli {

struct BackgroundOptions {
  CommonOptions common;
  std::string video;
  std::string out = "qrane-background";
  std::string size, truth, protocol;
  std::string method = "inexact-alm";
  std::int64_t frames = 0;  ///< 0: all
  std::int64_t start = 0;
  std::int64_t window = 200;
  std::int64_t overlap = 0;
  double threshold = 15;
  double lambda = 1;
  double tolerance = 1e-4;
  int max_iterations = 1000;
};

/// One window, separated. The frames that it shares with the one before are not counted.
struct WindowReport {
  std::int64_t first = 0;
  std::int64_t frames = 0;
  std::int64_t shared = 0;
  int iterations = 0;
  double seconds = 0;  ///< of the iterations
  Index rank = 0;
  double residual = 0;
  bool converged = false;
  std::vector<RobustPcaProgress> convergence;
};

/// One frame's results, height x width, row-major; frame and foreground are RGB where the video has colours.
struct FramePictures {
  std::vector<std::uint8_t> frame, background, foreground, mask;
};

/// Whether a frame gets stills: three of the first window, then the middle one of each further window, twelve in all.
bool wants_stills(const WindowReport& window, std::int64_t frame, std::int64_t stills_so_far);

struct BackgroundTotals {
  std::int64_t frames = 0;
  std::int64_t iterations = 0;
  double seconds = 0;       ///< of the iterations
  double wall_seconds = 0;  ///< with reading, transfers and writing

  double iterations_per_second() const { return seconds > 0 ? static_cast<double>(iterations) / seconds : 0; }
};

BackgroundTotals total_of(const std::vector<WindowReport>& windows, double wall_seconds);

/// The fields of summary.json that grow with the work: windows (with their convergence), total, truth.
Json windows_json(const std::vector<WindowReport>& windows);
Json totals_json(const BackgroundTotals& totals, std::size_t windows);
Json score_json(const Score& score, const std::string& directory, bool by_number);

}  // namespace qrane::cli
