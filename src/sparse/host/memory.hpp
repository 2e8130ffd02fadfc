// SPDX-License-Identifier: Apache-2.0
// Memory of a factorization. All of it is kept when it is given back, so that factoring again allocates nothing, but
// for triangles of panels where several threads meet fronts in another order than before.
//
//   Region   blocks of any size that come and go (fronts): lowest address first, neighbours merge. Segments are as
//   large
//            as the analysis says, but the system gives pages only where blocks have been.
//   Arena    pieces that stay (R, Q), cut from chunks.
//   Stack    last in, first out: contribution blocks of a postorder.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <qrane/error.hpp>
#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// Bytes of one factorization against its limit. Safe to use from several threads.
class Budget {
 public:
  explicit Budget(Index limit_bytes) : limit_(limit_bytes) {}  ///< 0: the machine's
  /// Throws Error{out_of_memory} with the bytes needed and in use, and counts nothing, where they pass the limit.
  void add(Index bytes);
  void remove(Index bytes) noexcept;
  /// Error{out_of_memory} for bytes that the system did not give.
  [[noreturn]] void refuse(Index bytes) const;
  Index bytes() const;
  Index peak_bytes() const;

 private:
  mutable std::mutex mutex_;
  Index limit_, bytes_ = 0, peak_ = 0;
};

struct AlignedFree {
  Index mapped = 0;  ///< bytes of a mapping of its own; 0: of the heap
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;
/// 64-byte aligned. Large ones are no part of the heap, and the first `used` bytes of them, which are sure to be
/// touched, on large pages where there are such. Null where there is no memory.
AlignedBytes allocate_aligned(Index bytes, Index used);
inline AlignedBytes allocate_aligned(Index bytes) { return allocate_aligned(bytes, bytes); }

/// What this process has freed goes back to the system where that can be said (glibc), if it is more than so much.
void give_back_freed(Index bytes);

/// Counts memory as it is touched for the first time, from its begin on. Safe to use from several threads.
class Mark {
 public:
  /// `end` elements are in use, each of so many bytes; throws as Budget::add.
  void raise(Index end, Index bytes, Budget& budget) {
    if (end <= mark_.load()) return;
    const std::lock_guard lock(mutex_);
    const Index mark = mark_.load();
    if (end <= mark) return;
    budget.add((end - mark) * bytes);
    mark_.store(end);
  }

 private:
  std::atomic<Index> mark_{0};
  std::mutex mutex_;
};

/// Safe to use from several threads. The budget counts a segment up to the highest byte that was ever in a block.
class Region {
 public:
  /// used_bytes: of a segment, sure to be in use at some time.
  Region(Budget& budget, Index segment_bytes, Index used_bytes)
      : budget_(budget), segment_bytes_(segment_bytes), used_bytes_(used_bytes) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Null where there is no room in what was used before, unless it may grow.
  template <class T>
  T* take(Index count, bool may_grow) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<Index>(sizeof(T)), may_grow));
  }
  template <class T>
  void give_back(T* p) noexcept {
    if (p) give_back_bytes(reinterpret_cast<std::byte*>(p));
  }
  /// A block keeps its first elements only.
  template <class T>
  void shrink(T* p, Index count) {
    shrink_bytes(reinterpret_cast<std::byte*>(p), count * static_cast<Index>(sizeof(T)));
  }

 private:
  using Holes = std::map<Index, Index>;  // offset: bytes
  struct Segment {
    AlignedBytes data;
    Index size = 0;
    Index touched = 0;
    Holes free;
  };
  struct Block {
    std::size_t segment = 0;
    Index bytes = 0;
    Holes::node_type hole;  // what it becomes: giving back takes no memory
  };
  static Holes::node_type new_hole();
  std::byte* take_bytes(Index bytes, bool may_grow);
  void give_back_bytes(std::byte* p) noexcept;
  void shrink_bytes(std::byte* p, Index bytes);
  void add_free(Segment& s, Index begin, Index end, Holes::node_type node) noexcept;

  Budget& budget_;
  Index segment_bytes_, used_bytes_;
  std::mutex mutex_;
  std::vector<Segment> segments_;
  std::map<std::byte*, Block> used_;
};

/// Pieces that live as long as the arena. One thread at a time.
class Arena {
 public:
  Arena(Budget& budget, Index chunk_bytes) : budget_(&budget), chunk_bytes_(chunk_bytes) {}

  template <class T>
  T* allocate(Index count) {
    return reinterpret_cast<T*>(allocate_bytes(count * static_cast<Index>(sizeof(T))));
  }

 private:
  std::byte* allocate_bytes(Index bytes);

  Budget* budget_;
  Index chunk_bytes_;
  std::vector<AlignedBytes> chunks_;
  std::byte* next_ = nullptr;
  Index left_ = 0;
};

/// A piece of an arena that is used again from factorization to factorization.
template <class T>
struct Kept {
  T* data = nullptr;
  Index capacity = 0;

  T* of(Arena& arena, Index count) {
    if (count > capacity) {
      data = arena.allocate<T>(count);
      capacity = count;
    }
    return data;
  }
};

/// Last in, first out, in memory of a fixed size. One thread at a time.
template <class T>
class Stack {
 public:
  Stack() = default;
  /// Throws std::bad_alloc. One without room has no memory of its own.
  explicit Stack(Index capacity) {
    if (capacity == 0) return;
    owned_ = allocate_aligned(capacity * static_cast<Index>(sizeof(T)));
    if (!owned_) throw std::bad_alloc();
    lend(reinterpret_cast<T*>(owned_.get()), capacity);
  }
  /// Memory of somebody else, for as long as the stack is used.
  void lend(T* memory, Index capacity) {
    data_ = memory;
    capacity_ = capacity;
    used_ = 0;
  }
  T* data() const { return data_; }
  T* push(Index count) {
    detail::check(fits(count), ErrorCode::device, "sparse factorization: more than ", capacity_,
                  " elements of contribution blocks");
    used_ += count;
    return data_ + (used_ - count);
  }
  bool fits(Index count) const { return used_ + count <= capacity_; }
  void pop(Index count) { used_ -= count; }
  void clear() { used_ = 0; }
  Index used() const { return used_; }

 private:
  AlignedBytes owned_;
  T* data_ = nullptr;
  Index capacity_ = 0, used_ = 0;
};

}  // namespace qrane::sparse
