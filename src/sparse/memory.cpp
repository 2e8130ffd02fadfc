// SPDX-License-Identifier: Apache-2.0
#include "sparse/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <qrane/error.hpp>

namespace qrane::sparse {

namespace {
constexpr Index header = 64;             // holds the block's size, keeps the alignment
constexpr Index chunk = Index{1} << 20;  // what arenas cut up
constexpr Index large = Index{4} << 20;  // worth large pages
Index& size_of(std::byte* p) { return *reinterpret_cast<Index*>(p - header); }
}  // namespace

Pool::~Pool() { release_kept(); }

void Pool::release_kept() {
  for (const auto& [size, p] : kept_) {
    bytes_ -= size + header;
    std::free(p - header);
  }
  kept_.clear();
}

std::byte* Pool::take(Index bytes) {
  bytes = (std::max<Index>(bytes, 1) + 63) / 64 * 64;
  const std::lock_guard lock(mutex_);
  // the smallest that fits, unless most of it would be wasted
  if (const auto found = kept_.lower_bound(bytes); found != kept_.end() && found->first <= bytes + bytes / 4 + 4096) {
    std::byte* const p = found->second;
    kept_.erase(found);
    return p;
  }
  if (limit_ > 0 && bytes_ + bytes + header > limit_) release_kept();
  detail::check(limit_ == 0 || bytes_ + bytes + header <= limit_, ErrorCode::out_of_memory,
                "out of memory for a sparse factorization: needed ", bytes, " bytes beside ", bytes_, " in use, limit ",
                limit_);
  const bool huge = bytes >= large;
  const Index alignment = huge ? Index{2} << 20 : 64, total = (bytes + header + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(total));
  if (!memory) {
    release_kept();
    memory = std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(total));
  }
  detail::check(memory != nullptr, ErrorCode::out_of_memory, "out of memory for a sparse factorization: needed ", bytes,
                " bytes beside ", bytes_, " in use");
#if defined(__linux__)
  if (huge) madvise(memory, static_cast<std::size_t>(total), MADV_HUGEPAGE);
#endif
  std::byte* const p = static_cast<std::byte*>(memory) + header;
  size_of(p) = bytes;
  bytes_ += bytes + header;
  peak_ = std::max(peak_, bytes_);
  return p;
}

void Pool::give_back(std::byte* p) noexcept {
  if (!p) return;
  const std::lock_guard lock(mutex_);
  try {
    kept_.emplace(size_of(p), p);
  } catch (...) {
    bytes_ -= size_of(p) + header;
    std::free(p - header);
  }
}

Index Pool::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}
Index Pool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

Arena::Arena(Arena&& other) noexcept
    : pool_(other.pool_),
      blocks_(std::move(other.blocks_)),
      next_(std::exchange(other.next_, nullptr)),
      left_(std::exchange(other.left_, 0)) {
  other.blocks_.clear();
}

std::byte* Arena::allocate_bytes(Index bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (bytes > chunk / 4) {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(pool_->take(bytes));
    return blocks_.back();
  }
  if (bytes > left_) {
    blocks_.reserve(blocks_.size() + 1);
    next_ = pool_->take(chunk);
    blocks_.push_back(next_);
    left_ = chunk;
  }
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
}

void Arena::clear() noexcept {
  for (std::byte* p : blocks_) pool_->give_back(p);
  blocks_.clear();
  next_ = nullptr;
  left_ = 0;
}

template <class T>
Stack<T>::Stack(Stack&& other) noexcept
    : pool_(other.pool_),
      first_segment_(other.first_segment_),
      segments_(std::move(other.segments_)),
      top_(std::exchange(other.top_, 0)) {
  other.segments_.clear();
}

template <class T>
Stack<T>::~Stack() {
  for (Segment& s : segments_) pool_->give_back_array(s.data);
}

template <class T>
T* Stack<T>::push(Index count) {
  count = (count + 7) / 8 * 8;
  while (top_ < segments_.size() && segments_[top_].used + count > segments_[top_].size) {
    if (segments_[top_].used == 0) {  // empty and too small: a larger one in its place
      pool_->give_back_array(segments_[top_].data);
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(top_));
    } else {
      ++top_;
    }
  }
  if (top_ == segments_.size()) {
    const Index size = std::max(count, segments_.empty() ? first_segment_ : segments_.back().size);
    segments_.reserve(segments_.size() + 1);
    segments_.push_back({pool_->take_array<T>(size), size, 0});
  }
  Segment& s = segments_[top_];
  s.used += count;
  return s.data + (s.used - count);
}

template <class T>
void Stack<T>::pop(Index count) {
  count = (count + 7) / 8 * 8;
  if (count == 0) return;
  while (segments_[top_].used == 0) --top_;
  segments_[top_].used -= count;
  while (top_ > 0 && segments_[top_].used == 0) --top_;
}

template <class T>
void Stack<T>::clear() noexcept {
  for (Segment& s : segments_) s.used = 0;
  top_ = 0;
}

template class Stack<float>;
template class Stack<double>;

}  // namespace qrane::sparse
