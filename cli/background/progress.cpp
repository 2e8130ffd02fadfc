// SPDX-License-Identifier: Apache-2.0
#include <cli/background/progress.hpp>

#include <unistd.h>

#include <cli/common.hpp>

namespace qrane::cli {

Progress::Progress(bool quiet, std::int64_t windows)
    : wanted_(!quiet && ::isatty(::fileno(Words::stream())) == 1), windows_(windows) {}

void Progress::begin(std::int64_t window, std::int64_t first, std::int64_t frames) {
  head_ = detail::concat("window ", window + 1);
  if (windows_ >= 0) head_ += detail::concat(" of ", windows_);
  head_ += detail::concat(" (frames ", first, "-", first + frames - 1, ")");
  next_ = Clock::now();
  draw(": sending it to the device");
}

void Progress::show(const RobustPcaProgress& step) {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(50);
  const double rate = step.seconds > 0 ? step.iteration / step.seconds : 0;
  draw(detail::concat(": iteration ", step.iteration, ", residual ", brief(step.residual), ", rank ", step.rank, ", ",
                      brief(rate), " iterations/s"));
}

void Progress::draw(const std::string& words) {
  if (!wanted_) return;
  std::fprintf(Words::stream(), "\r\033[K%s", fit_to_terminal(head_ + words, Words::stream()).c_str());
  std::fflush(Words::stream());
  shown_ = true;
}

void Progress::end() {
  if (shown_) std::fputs("\r\033[K", Words::stream());
  std::fflush(Words::stream());
  shown_ = false;
}

}  // namespace qrane::cli
