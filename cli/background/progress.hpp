// SPDX-License-Identifier: Apache-2.0
// One line of a terminal that shows how far robust PCA is, rewritten in place; nothing where words go elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <qrane/robust_pca.hpp>

namespace qrane::cli {

class Progress {
 public:
  /// `windows` < 0: their number is not known.
  Progress(bool quiet, std::int64_t windows);

  void begin(std::int64_t window, std::int64_t first, std::int64_t frames);
  void show(const RobustPcaProgress& step);
  /// Removes the line, so that other words can follow.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const std::string& words);

  bool wanted_;
  bool shown_ = false;
  std::int64_t windows_;
  std::string head_;
  Clock::time_point next_{};
};

}  // namespace qrane::cli
