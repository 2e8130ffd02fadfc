// SPDX-License-Identifier: Apache-2.0
// Tables that go to a device in one piece; or, while they are only counted, their size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dense/buffer.hpp"

namespace qrane::sparse {

class DeviceImage {
 public:
  explicit DeviceImage(bool counts = false) : counts_(counts) {}
  /// These return the table's byte offset, a multiple of 256.
  template <class U>
  Index add(const std::vector<U>& source) {
    const Index offset = reserve(source.size() * sizeof(U));
    if (!counts_ && !source.empty()) std::memcpy(bytes_.data() + offset, source.data(), source.size() * sizeof(U));
    return offset;
  }
  Index add_narrow(const std::vector<Index>& source) {
    if (counts_) return reserve(source.size() * sizeof(std::int32_t));
    return add(std::vector<std::int32_t>(source.begin(), source.end()));
  }
  Index reserve(std::size_t bytes) {
    const std::size_t offset = (size_ + 255) / 256 * 256;
    size_ = offset + std::max<std::size_t>(bytes, 1);
    if (!counts_) bytes_.resize(size_);
    return static_cast<Index>(offset);
  }
  Index size() const { return static_cast<Index>(size_); }

  template <class B>
  dense::Buffer<B> upload(typename B::Queue& queue) const {
    dense::Buffer<B> buffer(queue, size());
    queue.upload(bytes_.data(), buffer.template as<std::byte>(), size());
    return buffer;
  }

 private:
  bool counts_;
  std::size_t size_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace qrane::sparse
