// SPDX-License-Identifier: Apache-2.0
// How far a factorization has come, told to a callback of the user.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

namespace qrane::sparse {

/// Work may be added from any thread; the callback runs in the one that made the object, at most some hundred times.
class Progress {
 public:
  using Callback = std::function<void(double done_flops, double flops)>;

  Progress(const Callback& callback, double flops) : callback_(callback), flops_(flops) {}

  /// What the callback throws passes through.
  void add(double flops) {
    if (!callback_) return;
    const double done = done_.fetch_add(flops, std::memory_order_relaxed) + flops;
    if (std::this_thread::get_id() != thread_ || done < next_) return;
    next_ = done + flops_ / 400;
    callback_(std::min(done, flops_), flops_);
  }
  /// The callback hears of the beginning and of the end in any case, however little of the work its thread did itself.
  void begin() const {
    if (callback_) callback_(0, flops_);
  }
  void finish() const {
    if (callback_) callback_(flops_, flops_);
  }

 private:
  const Callback& callback_;
  double flops_, next_ = 0;
  std::atomic<double> done_{0};
  std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace qrane::sparse
