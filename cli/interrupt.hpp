// SPDX-License-Identifier: Apache-2.0
// Ctrl-C (SIGINT) and SIGTERM as a question that long work asks itself.
#pragma once

namespace qrane::cli {

/// While one lives, the first SIGINT or SIGTERM is remembered, and a second ends the program at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether a signal came since the guard was made.
bool interrupted();

/// Throws Error{interrupted} when one came.
void stop_if_interrupted();

}  // namespace qrane::cli
