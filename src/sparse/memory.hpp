// SPDX-License-Identifier: Apache-2.0
// Memory of a factorization. All of it is kept when it is given back, so that factoring again allocates nothing.
//
//   Region   blocks of any size that come and go (fronts, contribution blocks): lowest address first, neighbours merge.
//            Segments are as large as the analysis says, but the system gives pages only where blocks have been.
//   Arena    pieces that all live until the next factorization (R, Q), cut from chunks.
//   Stack    last in, first out: contribution blocks of a postorder.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

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
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;
/// 64-byte aligned; large ones on large pages where there are such. Null where there is no memory.
AlignedBytes allocate_aligned(Index bytes);

/// Safe to use from several threads. The budget counts a segment up to the highest byte that was ever in a block.
class Region {
 public:
  Region(Budget& budget, Index segment_bytes) : budget_(budget), segment_bytes_(segment_bytes) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  template <class T>
  T* take(Index count) {
    return reinterpret_cast<T*>(take_bytes(count * static_cast<Index>(sizeof(T))));
  }
  template <class T>
  void give_back(T* p) noexcept {
    if (p) give_back_bytes(reinterpret_cast<std::byte*>(p));
  }

 private:
  struct Segment {
    AlignedBytes data;
    Index size = 0;
    Index touched = 0;
    std::map<Index, Index> free;  // offset: bytes
  };
  std::byte* take_bytes(Index bytes);
  void give_back_bytes(std::byte* p) noexcept;

  Budget& budget_;
  Index segment_bytes_;
  std::mutex mutex_;
  std::vector<Segment> segments_;
  std::map<std::byte*, std::pair<std::size_t, Index>> used_;  // segment, bytes
};

/// What arenas are made of. Safe to use from several threads.
class Chunks {
 public:
  explicit Chunks(Budget& budget) : budget_(budget) {}
  struct Chunk {
    AlignedBytes data;
    Index size = 0;
  };
  Chunk take(Index bytes);
  void give_back(Chunk chunk) noexcept;

 private:
  Budget& budget_;
  std::mutex mutex_;
  std::multimap<Index, AlignedBytes> kept_;  // by size
};

/// One thread at a time.
class Arena {
 public:
  explicit Arena(Chunks& chunks) : source_(&chunks) {}
  Arena(Arena&&) noexcept = default;
  Arena& operator=(Arena&&) = delete;
  ~Arena() { clear(); }

  template <class T>
  T* allocate(Index count) {
    return reinterpret_cast<T*>(allocate_bytes(count * static_cast<Index>(sizeof(T))));
  }
  /// All pieces are gone.
  void clear() noexcept;

 private:
  std::byte* allocate_bytes(Index bytes);

  Chunks* source_;
  std::vector<Chunks::Chunk> chunks_;
  std::byte* next_ = nullptr;
  Index left_ = 0;
};

/// One thread at a time.
template <class T>
class Stack {
 public:
  Stack(Region& region, Index first_segment) : region_(&region), first_segment_(first_segment) {}
  Stack(Stack&& other) noexcept;
  Stack& operator=(Stack&&) = delete;
  ~Stack();

  T* push(Index count);
  /// Gives back what was pushed last; counts as they were pushed.
  void pop(Index count);
  void clear() noexcept;
  /// Its memory to the region; must be empty.
  void give_back() noexcept;

 private:
  struct Segment {
    T* data;
    Index size, used;
  };
  Region* region_;
  Index first_segment_;
  std::vector<Segment> segments_;
  std::size_t top_ = 0;  // the segment that is filled
};

}  // namespace qrane::sparse
