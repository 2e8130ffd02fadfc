// SPDX-License-Identifier: Apache-2.0
// Memory of a factorization. Freed memory is kept for reuse: refactoring allocates nothing, except triangles of panels
// when several threads take fronts in another order than before.
//
//   Region   allocator for fronts: blocks of any size, first fit, neighbours merge. Segments have the size that the
//            analysis predicts; the system provides pages only where blocks have been.
//   Arena    allocations that live as long as the factor (R, Q), cut from chunks.
//   Stack    last in, first out: contribution blocks of a postorder.
#pragma once

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

/// Counts the bytes of one factorization against its limit. Thread-safe.
class Budget {
 public:
  explicit Budget(Index limit_bytes) : limit_(limit_bytes) {}  ///< 0: the machine's memory
  /// Throws Error{out_of_memory} with the bytes needed and in use if they exceed the limit; then counts nothing.
  void add(Index bytes);
  void remove(Index bytes) noexcept;
  /// Throws Error{out_of_memory} for bytes that the system refused.
  [[noreturn]] void refuse(Index bytes) const;
  Index bytes() const;
  Index peak_bytes() const;

 private:
  mutable std::mutex mutex_;
  Index limit_, bytes_ = 0, peak_ = 0;
};

struct AlignedFree {
  Index mapped = 0;  ///< bytes of an own mapping; 0: on the heap
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;
/// 64-byte aligned. Large blocks are mapped outside the heap; their first `used` bytes, which will be touched, use huge
/// pages where available. Null when the system has no memory.
AlignedBytes allocate_aligned(Index bytes, Index used);
inline AlignedBytes allocate_aligned(Index bytes) { return allocate_aligned(bytes, bytes); }

/// Returns freed heap memory to the system (glibc only) if it is more than this many bytes.
void give_back_freed(Index bytes);

/// High-water mark of a segment; memory is counted when it is touched first. Thread-safe.
class Mark {
 public:
  /// `end` elements of this many bytes are in use; throws as Budget::add.
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

/// Thread-safe. The budget counts a segment up to the highest byte that was ever in a block.
class Region {
 public:
  /// used_bytes: bytes of a segment that are certain to be used.
  Region(Budget& budget, Index segment_bytes, Index used_bytes)
      : budget_(budget), segment_bytes_(segment_bytes), used_bytes_(used_bytes) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Null if no hole is large enough and the region may not grow.
  template <class T>
  T* take(Index count, bool may_grow) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<Index>(sizeof(T)), may_grow));
  }
  template <class T>
  void give_back(T* p) noexcept {
    if (p) give_back_bytes(reinterpret_cast<std::byte*>(p));
  }
  /// Frees all but a block's first elements.
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
    Holes::node_type hole;  // its node as a hole, so that freeing allocates nothing
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

/// Allocations that live as long as the arena. Not thread-safe.
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

/// An allocation of an arena that is reused by later factorizations.
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

/// Last in, first out, in memory of a fixed size. Not thread-safe.
template <class T>
class Stack {
 public:
  Stack() = default;
  /// Throws std::bad_alloc. A capacity of 0 allocates nothing.
  explicit Stack(Index capacity) {
    if (capacity == 0) return;
    owned_ = allocate_aligned(capacity * static_cast<Index>(sizeof(T)));
    if (!owned_) throw std::bad_alloc();
    lend(reinterpret_cast<T*>(owned_.get()), capacity);
  }
  /// Uses memory of the caller's, which must outlive the stack's use.
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
