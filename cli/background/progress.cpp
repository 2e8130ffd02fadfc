// SPDX-License-Identifier: Apache-2.0
#include <cli/background/progress.hpp>

#include <unistd.h>

#include <cli/common.hpp>

namespace qrane::cli {

Progress::Progress(bool quiet, std::int64_t windows)
    : quiet_(quiet), terminal_(::isatty(STDOUT_FILENO) == 1), windows_(windows) {}

void Progress::begin(std::int64_t window, std::int64_t first, std::int64_t frames) {
  head_ = detail::concat("window ", window + 1);
  if (windows_ >= 0) head_ += detail::concat(" of ", windows_);
  head_ += detail::concat(" (frames ", first, "-", first + frames - 1, ")");
  next_ = Clock::now();
  if (quiet_ || !terminal_) return;
  std::printf("\r\033[K%s: sending it to the device", head_.c_str());
  std::fflush(stdout);
  shown_ = true;
}

void Progress::show(const RobustPcaProgress& step) {
  const Clock::time_point now = Clock::now();
  if (quiet_ || now < next_) return;
  next_ = now + (terminal_ ? std::chrono::milliseconds(50) : std::chrono::milliseconds(1000));
  const double rate = step.seconds > 0 ? step.iteration / step.seconds : 0;
  const std::string line =
      detail::concat(head_, ": iteration ", step.iteration, ", residual ", brief(step.residual), ", rank ", step.rank,
                     ", ", brief(rate), " iterations/s");
  std::printf(terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stdout);
  shown_ = true;
}

void Progress::end() {
  if (shown_ && terminal_) std::printf("\r\033[K");
  std::fflush(stdout);
  shown_ = false;
}

}  // namespace qrane::cli
