// SPDX-License-Identifier: Apache-2.0
#include <cli/flops_bar.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <cli/common.hpp>

namespace qrane::cli {

std::string flops_line(double done_flops, double flops, double seconds, int columns) {
  const double share = flops > 0 ? std::clamp(done_flops / flops, 0.0, 1.0) : 1;
  char text[160];
  std::snprintf(text, sizeof text, "%3.0f%%  %.2g of %.2g flops, %.3g GFLOP/s", 100 * share, share * flops, flops,
                seconds > 0 ? share * flops / seconds * 1e-9 : 0);
  std::string line = text;
  if (share > 0 && share < 1) {
    std::snprintf(text, sizeof text, ", %.0f s left", seconds / share * (1 - share));
    line += text;
  }
  const int room = columns - 1 - static_cast<int>(line.size()) - 3;  // brackets and a blank
  const int width = std::min(room, 30);
  if (width < 4) return line;
  std::string bar(static_cast<std::size_t>(width), ' ');
  std::fill_n(bar.begin(), static_cast<int>(share * width), '#');
  return "[" + bar + "] " + line;
}

FlopsBar::FlopsBar(bool quiet) : shown_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

FlopsBar::~FlopsBar() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

std::function<void(double, double)> FlopsBar::callback() {
  if (!shown_) return {};
  return [this](double done_flops, double flops) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    drawn_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r\033[K%s",
                 fit_to_terminal(flops_line(done_flops, flops, seconds, terminal_columns(stderr)), stderr).c_str());
    std::fflush(stderr);
  };
}

}  // namespace qrane::cli
