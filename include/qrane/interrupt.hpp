// SPDX-License-Identifier: Apache-2.0
// Stopping a long call from within its own thread, as an interpreter does for Ctrl-C.
#pragma once

#include <functional>

#include <qrane/export.h>

namespace qrane {

/// While one lives, calls made by this thread on the CPU backend call `poll` now and then, between steps that the cores
/// do together. What it throws leaves the call, and the context stays usable. The innermost one counts. A device's
/// kernels are not interrupted.
class QRANE_API PollScope {
 public:
  explicit PollScope(std::function<void()> poll);
  ~PollScope();
  PollScope(const PollScope&) = delete;
  PollScope& operator=(const PollScope&) = delete;

  /// For qrane itself: calls the poll of this thread, if there is one.
  static void poll();

 private:
  std::function<void()> poll_;
  PollScope* outer_;
};

}  // namespace qrane
