// SPDX-License-Identifier: Apache-2.0
// How much device memory a computation takes, as the driver sees it.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include <qrane/qrane.hpp>

namespace qrane::bench {

/// By how much a device's free memory falls while the object lives; the asking itself takes time.
class DevicePeak {
 public:
  explicit DevicePeak(const Context& context) : context_(context), start_(free_bytes()), least_(start_) {
    if (start_ > 0)
      thread_ = std::thread([this] {
        while (!done_) look();
      });
  }
  ~DevicePeak() { stop(); }
  DevicePeak(const DevicePeak&) = delete;
  DevicePeak& operator=(const DevicePeak&) = delete;

  /// -1: unknown
  Index bytes() {
    stop();
    look();
    return start_ > 0 ? start_ - least_ : -1;
  }

 private:
  Index free_bytes() const {
    const DeviceInfo info = context_.device();
    return info.is_gpu ? info.free_bytes : 0;
  }
  void look() { least_ = std::min(least_, free_bytes()); }
  void stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

  const Context& context_;
  Index start_, least_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace qrane::bench
