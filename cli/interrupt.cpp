// SPDX-License-Identifier: Apache-2.0
#include <cli/interrupt.hpp>

#include <time.h>

#include <io/partial_file.hpp>
#include <qrane/error.hpp>

namespace qrane::cli {
namespace {

constexpr int numbers[] = {SIGINT, SIGTERM};

volatile sig_atomic_t guarded = 0, signalled = 0;
timespec first_signal;

double seconds_since(const timespec& then) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - then.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - then.tv_nsec);
}

/// Calls nothing but what a signal handler may.
void handle(int number) {
  if (guarded && !signalled) {
    ::clock_gettime(CLOCK_MONOTONIC, &first_signal);
    signalled = 1;
  } else if (!guarded || seconds_since(first_signal) > 0.5) {
    io::remove_partial_files();
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
}

struct sigaction handling() {
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  return action;
}

}  // namespace

void clean_up_on_signals() {
  const struct sigaction action = handling();
  for (const int number : numbers) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
}

InterruptGuard::InterruptGuard() {
  signalled = 0;
  guarded = 1;
  const struct sigaction action = handling();
  for (int i = 0; i < 2; ++i) ::sigaction(numbers[i], &action, &before_[i]);
}

InterruptGuard::~InterruptGuard() {
  for (int i = 0; i < 2; ++i) ::sigaction(numbers[i], &before_[i], nullptr);
  guarded = 0;
}

bool interrupted() { return signalled != 0; }

void stop_if_interrupted() { detail::check(!interrupted(), ErrorCode::interrupted, "stopped by a signal (Ctrl-C)"); }

}  // namespace qrane::cli
