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
constexpr Index chunk_bytes = Index{1} << 20;  // of arenas
constexpr Index large_bytes = Index{4} << 20;  // worth large pages

constexpr Index round_up(Index n, Index to) { return (n + to - 1) / to * to; }
}  // namespace

void Budget::add(Index bytes) {
  const std::lock_guard lock(mutex_);
  detail::check(limit_ == 0 || bytes_ + bytes <= limit_, ErrorCode::out_of_memory,
                "out of memory for a sparse factorization: needed ", bytes, " bytes beside ", bytes_,
                " in use, the limit is ", limit_);
  bytes_ += bytes;
  peak_ = std::max(peak_, bytes_);
}

void Budget::remove(Index bytes) noexcept {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
}

void Budget::refuse(Index bytes) const {
  throw Error(ErrorCode::out_of_memory, detail::concat("out of memory for a sparse factorization: needed ", bytes,
                                                       " bytes beside ", this->bytes(), " in use"));
}

Index Budget::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}
Index Budget::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void AlignedFree::operator()(std::byte* p) const { std::free(p); }

AlignedBytes allocate_aligned(Index bytes) {
  const Index alignment = bytes >= large_bytes ? Index{2} << 20 : 64, total = round_up(bytes, alignment);
  AlignedBytes p(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(total))));
#if defined(__linux__)
  if (p && bytes >= large_bytes) madvise(p.get(), static_cast<std::size_t>(total), MADV_HUGEPAGE);
#endif
  return p;
}

std::byte* Region::take_bytes(Index bytes) {
  bytes = round_up(std::max<Index>(bytes, 1), 64);
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0;; ++k) {
    if (k == segments_.size()) {
      Segment segment;
      segment.size = std::max(bytes, segment_bytes_);
      segment.data = allocate_aligned(segment.size);
      if (!segment.data && segment.size > bytes) segment.data = allocate_aligned(segment.size = bytes);
      if (!segment.data) budget_.refuse(bytes);
      segment.free.emplace(0, segment.size);
      segments_.push_back(std::move(segment));
    }
    Segment& s = segments_[k];
    const auto hole =
        std::find_if(s.free.begin(), s.free.end(), [&](const auto& free) { return free.second >= bytes; });
    if (hole == s.free.end()) continue;
    const auto [offset, size] = *hole;
    if (offset + bytes > s.touched) {
      budget_.add(offset + bytes - s.touched);
      s.touched = offset + bytes;
    }
    std::byte* const p = s.data.get() + offset;
    used_.emplace(p, std::pair(k, bytes));
    if (size > bytes) s.free.emplace(offset + bytes, size - bytes);
    s.free.erase(offset);
    return p;
  }
}

void Region::give_back_bytes(std::byte* p) noexcept {
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(p);
  const auto [k, bytes] = used->second;
  used_.erase(used);
  Segment& s = segments_[k];
  const Index begin = p - s.data.get();
  Index end = begin + bytes;
  auto next = s.free.lower_bound(begin);
  if (next != s.free.end() && next->first == end) {
    end += next->second;
    next = s.free.erase(next);
  }
  if (next != s.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second = end - before->first;
      return;
    }
  }
  s.free.emplace_hint(next, begin, end - begin);
}

Chunks::Chunk Chunks::take(Index bytes) {
  {
    const std::lock_guard lock(mutex_);
    // the smallest that fits, unless too much of it would be wasted
    if (const auto found = kept_.lower_bound(bytes); found != kept_.end() && found->first <= bytes + bytes / 4) {
      Chunk chunk{std::move(found->second), found->first};
      kept_.erase(found);
      return chunk;
    }
  }
  budget_.add(bytes);
  Chunk chunk{allocate_aligned(bytes), bytes};
  if (!chunk.data) {
    budget_.remove(bytes);
    budget_.refuse(bytes);
  }
  return chunk;
}

void Chunks::give_back(Chunk chunk) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    kept_.emplace(chunk.size, std::move(chunk.data));
  } catch (...) {
    budget_.remove(chunk.size);
  }
}

std::byte* Arena::allocate_bytes(Index bytes) {
  bytes = round_up(bytes, 64);
  const bool large = bytes > chunk_bytes / 4;
  if (!large && bytes <= left_) {
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }
  chunks_.reserve(chunks_.size() + 1);
  chunks_.push_back(source_->take(large ? bytes : chunk_bytes));
  std::byte* const p = chunks_.back().data.get();
  if (!large) {
    next_ = p + bytes;
    left_ = chunk_bytes - bytes;
  }
  return p;
}

void Arena::clear() noexcept {
  for (Chunks::Chunk& chunk : chunks_) source_->give_back(std::move(chunk));
  chunks_.clear();
  next_ = nullptr;
  left_ = 0;
}

template <class T>
Stack<T>::Stack(Stack&& other) noexcept
    : region_(other.region_),
      first_segment_(other.first_segment_),
      segments_(std::move(other.segments_)),
      top_(std::exchange(other.top_, 0)) {
  other.segments_.clear();
}

template <class T>
Stack<T>::~Stack() {
  give_back();
}

template <class T>
void Stack<T>::give_back() noexcept {
  for (Segment& s : segments_) region_->give_back(s.data);
  segments_.clear();
  top_ = 0;
}

template <class T>
T* Stack<T>::push(Index count) {
  count = round_up(count, 8);
  while (top_ < segments_.size() && segments_[top_].used + count > segments_[top_].size) {
    if (segments_[top_].used == 0) {  // empty and too small: a larger one in its place
      region_->give_back(segments_[top_].data);
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(top_));
    } else {
      ++top_;
    }
  }
  if (top_ == segments_.size()) {
    const Index size = std::max(count, segments_.empty() ? first_segment_ : segments_.back().size);
    segments_.reserve(segments_.size() + 1);
    segments_.push_back({region_->template take<T>(size), size, 0});
  }
  Segment& s = segments_[top_];
  s.used += count;
  return s.data + (s.used - count);
}

template <class T>
void Stack<T>::pop(Index count) {
  count = round_up(count, 8);
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
