// SPDX-License-Identifier: Apache-2.0
// Owned device memory, and one piece of it cut into several.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "vocabulary/vocabulary.hpp"

namespace qrane::dense {

using backend::bytes_of, backend::cast_pointer;

/// Bytes of device memory, released with the object. Move-only.
template <class B>
class Buffer {
 public:
  using Queue = typename B::Queue;
  Buffer() = default;
  Buffer(const Queue& queue, Index bytes) : queue_(queue), data_(queue_->allocate(bytes)), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Buffer() {
    if (bytes_ > 0) queue_->release(data_);
  }

  Index bytes() const { return bytes_; }
  template <class T>
  typename B::template Pointer<T> as(Index byte_offset = 0) const {
    return cast_pointer<T>(data_ + byte_offset);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::optional<Queue> queue_;
  typename B::template Pointer<std::byte> data_{};
  Index bytes_ = 0;
};

/// Cuts pieces, each aligned to 256 bytes, from memory; with no memory it only counts.
template <class B>
class Carver {
 public:
  Carver() = default;
  explicit Carver(typename B::template Pointer<std::byte> data) : data_(data), counting_(false) {}

  template <class T>
  typename B::template Pointer<T> take(Index count) {
    return cast_pointer<T>(cut(bytes_of(count, 1, 1, sizeof(T))));
  }
  template <class T>
  backend::DeviceMatrix<B, T> matrix(Index rows, Index cols, Index count = 1) {
    // an empty matrix still needs a leading dimension that libraries accept
    const Index ld = rows > 0 ? rows : 1;
    return {cast_pointer<T>(cut(bytes_of(ld, cols, count, sizeof(T)))), rows, cols, ld, ld * cols, count};
  }
  Index used() const { return used_; }

 private:
  typename B::template Pointer<std::byte> cut(Index bytes) {
    const Index offset = used_;
    used_ += (bytes + 255) / 256 * 256;
    (void)bytes_of(used_, 1, 1, 1);  // the sum, too, is checked
    return counting_ ? data_ : data_ + offset;
  }

  typename B::template Pointer<std::byte> data_{};
  bool counting_ = true;
  Index used_ = 0;
};

/// Device memory that a consumer needs for a moment.
template <class B, class T>
struct Temporary {
  Buffer<B> memory;
  backend::DeviceMatrix<B, T> matrix;

  Temporary(const typename B::Queue& queue, Index rows, Index cols)
      : memory(queue, bytes_of(std::max<Index>(rows, 1), cols, 1, sizeof(T))),
        matrix{memory.template as<T>(), rows, cols, std::max<Index>(rows, 1), 0, 1} {}
};

}  // namespace qrane::dense
