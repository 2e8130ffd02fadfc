// SPDX-License-Identifier: Apache-2.0
#include <cli/interrupt.hpp>

#include <signal.h>

#include <qrane/error.hpp>

namespace qrane::cli {
namespace {

volatile sig_atomic_t signalled = 0;

void remember(int) { signalled = 1; }

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  signalled = 0;
  handle(remember);
}

InterruptGuard::~InterruptGuard() { handle(SIG_DFL); }

bool interrupted() { return signalled != 0; }

void stop_if_interrupted() { detail::check(!interrupted(), ErrorCode::interrupted, "stopped by a signal (Ctrl-C)"); }

}  // namespace qrane::cli
