// SPDX-License-Identifier: Apache-2.0
// Host memory that a device's queue copies to directly (Queue::allocate_host).
#pragma once

#include <optional>
#include <utility>

#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// `count` numbers, not set. Move-only.
template <class B, class T>
class HostMemory {
 public:
  using Queue = typename B::Queue;

  HostMemory() = default;
  HostMemory(const Queue& queue, Index count)
      : queue_(queue), data_(reinterpret_cast<T*>(queue.allocate_host(count * static_cast<Index>(sizeof(T))))) {}
  HostMemory(HostMemory&& other) noexcept
      : queue_(std::move(other.queue_)), data_(std::exchange(other.data_, nullptr)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    release();
    queue_ = std::move(other.queue_);
    data_ = std::exchange(other.data_, nullptr);
    return *this;
  }
  ~HostMemory() { release(); }
  T* data() const { return data_; }

 private:
  void release() noexcept {
    if (data_) queue_->release_host(reinterpret_cast<std::byte*>(data_));
    data_ = nullptr;
  }
  std::optional<Queue> queue_;
  T* data_ = nullptr;
};

}  // namespace qrane::sparse
