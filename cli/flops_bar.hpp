// SPDX-License-Identifier: Apache-2.0
// A progress bar by flops done, for factorizations that take long.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace qrane::cli {

/// "[#######             ]  35%  1.2e+12 of 3.4e+12 flops, 61 GFLOP/s, 36 s left"
/// At most `columns` - 1 characters where that many hold the words; the bar takes what they leave.
std::string flops_line(double done_flops, double flops, double seconds, int columns = 120);

/// Drawn on standard error where that is a terminal, from half a second on; gone with the object.
class FlopsBar {
 public:
  explicit FlopsBar(bool quiet);
  ~FlopsBar();
  FlopsBar(const FlopsBar&) = delete;
  FlopsBar& operator=(const FlopsBar&) = delete;

  /// For sparse::FactorOptions::on_progress; must not outlive the bar. Empty where nothing would be drawn.
  std::function<void(double, double)> callback();

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;  // whether there is anybody to see it
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::milliseconds(500);
};

}  // namespace qrane::cli
