// SPDX-License-Identifier: Apache-2.0
#include <qrane/interrupt.hpp>

#include <utility>

namespace qrane {

namespace {
thread_local PollScope* innermost = nullptr;
}  // namespace

PollScope::PollScope(std::function<void()> poll) : poll_(std::move(poll)), outer_(std::exchange(innermost, this)) {}
PollScope::~PollScope() { innermost = outer_; }
void PollScope::poll() {
  if (innermost != nullptr) innermost->poll_();
}

}  // namespace qrane
