// SPDX-License-Identifier: Apache-2.0
// Host memory that a device copies to without detours and beside other work, where the backend has such memory
// (`allocate_host`, `release_host`, `download_later` of its queue); else any.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// `count` numbers, not set. Move-only.
template <class B, class T>
class HostMemory {
 public:
  using Queue = typename B::Queue;
  static constexpr bool pinned = requires(Queue & q, Index n) { q.allocate_host(n); };

  HostMemory() = default;
  HostMemory(const Queue& queue, Index count) : queue_(queue) {
    if constexpr (pinned)
      data_ = reinterpret_cast<T*>(queue_->allocate_host(count * static_cast<Index>(sizeof(T))));
    else
      data_ = new T[static_cast<std::size_t>(count)];
  }
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
    if (!data_) return;
    if constexpr (pinned)
      queue_->release_host(reinterpret_cast<std::byte*>(data_));
    else
      delete[] data_;
    data_ = nullptr;
  }
  std::optional<Queue> queue_;
  T* data_ = nullptr;
};

/// Queues a copy to HostMemory; it is there when the queue has been synchronized.
template <class Queue, class Pointer, class T>
void download_later(Queue& queue, Pointer source, T* target, Index count) {
  if constexpr (requires { queue.download_later(source, target, count); })
    queue.download_later(source, target, count);
  else
    queue.download(source, target, count);
}

/// And from there.
template <class Queue, class Pointer, class T>
void upload_later(Queue& queue, const T* source, Pointer target, Index count) {
  if constexpr (requires { queue.upload_later(source, target, count); })
    queue.upload_later(source, target, count);
  else
    queue.upload(source, target, count);
}

}  // namespace qrane::sparse
