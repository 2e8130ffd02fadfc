// SPDX-License-Identifier: Apache-2.0
#include "sparse/host/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace qrane::sparse {

namespace {
constexpr Index large_bytes = Index{4} << 20;  // mapped from this size on
constexpr Index large_page = Index{2} << 20;

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

void AlignedFree::operator()(std::byte* p) const {
#if defined(__linux__)
  if (mapped > 0) {
    munmap(p, mapped);
    return;
  }
#endif
  std::free(p);
}

AlignedBytes allocate_aligned(Index bytes, Index used) {
#if defined(__linux__)
  if (bytes >= large_bytes) {
    const Index size = round_up(bytes, large_page);
    void* const mapping = mmap(nullptr, size + large_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(mapping);
    const Index skipped = -static_cast<Index>(reinterpret_cast<std::intptr_t>(mapping)) & (large_page - 1);
    if (skipped > 0) munmap(begin, skipped);
    if (skipped < large_page) munmap(begin + skipped + size, large_page - skipped);
    AlignedBytes p(begin + skipped, AlignedFree{size});
    const Index surely = std::min(used, bytes) / large_page * large_page;
    if (surely > 0) madvise(p.get(), surely, MADV_HUGEPAGE);
    return p;
  }
#else
  static_cast<void>(used);
#endif
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(64, round_up(std::max<Index>(bytes, 1), 64))));
}

void give_back_freed(Index bytes) {
  static_cast<void>(bytes);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  if (mallinfo2().fordblks > static_cast<std::size_t>(bytes)) malloc_trim(0);
#endif
#endif
}

Region::Holes::node_type Region::new_hole() {
  Holes one;
  one.emplace(0, 0);
  return one.extract(one.begin());
}

std::byte* Region::take_bytes(Index bytes, bool may_grow) {
  bytes = round_up(std::max<Index>(bytes, 1), 64);
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0;; ++k) {
    if (k == segments_.size()) {
      if (!may_grow) return nullptr;
      Segment segment;
      segment.size = std::max(bytes, segment_bytes_);
      segment.data = allocate_aligned(segment.size, used_bytes_);
      if (!segment.data && segment.size > bytes) segment.data = allocate_aligned(segment.size = bytes);
      if (!segment.data) budget_.refuse(bytes);
      segment.free.emplace(0, segment.size);
      segments_.push_back(std::move(segment));
    }
    Segment& s = segments_[k];
    const auto hole =
        std::find_if(s.free.begin(), s.free.end(), [&](const auto& free) { return free.second >= bytes; });
    if (hole == s.free.end() || (!may_grow && hole->first + bytes > s.touched)) continue;
    const auto [offset, size] = *hole;
    std::byte* const p = s.data.get() + offset;
    const auto used = used_.emplace(p, Block{k, bytes, new_hole()}).first;
    try {
      if (offset + bytes > s.touched) budget_.add(offset + bytes - s.touched);
    } catch (...) {
      used_.erase(used);
      throw;
    }
    s.touched = std::max(s.touched, offset + bytes);
    Holes::node_type rest = s.free.extract(hole);
    if (size > bytes) {
      rest.key() = offset + bytes;
      rest.mapped() = size - bytes;
      s.free.insert(std::move(rest));
    }
    return p;
  }
}

void Region::give_back_bytes(std::byte* p) noexcept {
  const std::lock_guard lock(mutex_);
  const auto used = used_.find(p);
  Block block = std::move(used->second);
  used_.erase(used);
  Segment& s = segments_[block.segment];
  add_free(s, p - s.data.get(), p - s.data.get() + block.bytes, std::move(block.hole));
}

void Region::shrink_bytes(std::byte* p, Index bytes) {
  bytes = round_up(std::max<Index>(bytes, 1), 64);
  const std::lock_guard lock(mutex_);
  Block& block = used_.at(p);
  if (bytes >= block.bytes) return;
  Segment& s = segments_[block.segment];
  add_free(s, p - s.data.get() + bytes, p - s.data.get() + block.bytes, new_hole());
  block.bytes = bytes;
}

/// Adds a hole and merges it with its neighbours.
void Region::add_free(Segment& s, Index begin, Index end, Holes::node_type node) noexcept {
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
  node.key() = begin;
  node.mapped() = end - begin;
  s.free.insert(next, std::move(node));
}

std::byte* Arena::allocate_bytes(Index bytes) {
  bytes = round_up(bytes, 64);
  const bool large = bytes > chunk_bytes_ / 4;
  if (!large && bytes <= left_) {
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }
  const Index size = large ? bytes : chunk_bytes_;
  chunks_.reserve(chunks_.size() + 1);
  budget_->add(size);
  AlignedBytes chunk = allocate_aligned(size);
  if (!chunk) {
    budget_->remove(size);
    budget_->refuse(size);
  }
  std::byte* const p = chunk.get();
  chunks_.push_back(std::move(chunk));
  if (!large) {
    next_ = p + bytes;
    left_ = size - bytes;
  }
  return p;
}

}  // namespace qrane::sparse
