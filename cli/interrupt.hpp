// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) and SIGTERM: as a question that long work asks itself, else as the end, which leaves no file half
// written.
#pragma once

#include <csignal>

namespace qrane::cli {

/// From now on the two signals end the program after removing its io::PartialFile's; one that the caller had the
/// program ignore stays ignored.
void clean_up_on_signals();

/// While one lives, the first of the two signals is remembered, and a second ends the program at once. What comes
/// within half a second of the first is the same one still: `timeout` signals its child and then the group.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_[2];
};

/// Whether a signal came since the guard was made.
bool interrupted();

/// Throws Error{interrupted} when one came.
void stop_if_interrupted();

}  // namespace qrane::cli
