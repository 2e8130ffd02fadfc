// SPDX-License-Identifier: Apache-2.0
// Memory of a factorization: blocks that are kept when they are given back, so that factoring again allocates nothing,
// and arenas that cut blocks up and are emptied as a whole.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::sparse {

/// Host memory in blocks of 64-byte alignment. Safe to use from several threads.
class Pool {
 public:
  explicit Pool(Index limit_bytes = 0) : limit_(limit_bytes) {}  ///< 0: the machine's
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Throws Error{out_of_memory} with the bytes needed and in use.
  std::byte* take(Index bytes);
  void give_back(std::byte* p) noexcept;
  template <class T>
  T* take_array(Index count) {
    return reinterpret_cast<T*>(take(count * static_cast<Index>(sizeof(T))));
  }
  template <class T>
  void give_back_array(T* p) noexcept {
    give_back(reinterpret_cast<std::byte*>(p));
  }

  /// Of the system, used or kept; the most there were.
  Index bytes() const;
  Index peak_bytes() const;

 private:
  void release_kept();

  mutable std::mutex mutex_;
  std::multimap<Index, std::byte*> kept_;  // by size
  Index limit_ = 0, bytes_ = 0, peak_ = 0;
};

/// Pieces that live until all are given back at once. One thread at a time.
class Arena {
 public:
  explicit Arena(Pool& pool) : pool_(&pool) {}
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena() { clear(); }

  template <class T>
  T* allocate(Index count) {
    return reinterpret_cast<T*>(allocate_bytes(count * static_cast<Index>(sizeof(T))));
  }
  void clear() noexcept;

 private:
  std::byte* allocate_bytes(Index bytes);

  Pool* pool_;
  std::vector<std::byte*> blocks_;
  std::byte* next_ = nullptr;
  Index left_ = 0;
};

/// Last in, first out: contribution blocks of a postorder. One thread at a time.
template <class T>
class Stack {
 public:
  explicit Stack(Pool& pool, Index first_segment) : pool_(&pool), first_segment_(first_segment) {}
  Stack(Stack&& other) noexcept;
  Stack& operator=(Stack&&) = delete;
  ~Stack();

  T* push(Index count);
  /// Gives back what was pushed last; counts as they were pushed.
  void pop(Index count);
  void clear() noexcept;

 private:
  struct Segment {
    T* data;
    Index size, used;
  };
  Pool* pool_;
  Index first_segment_;
  std::vector<Segment> segments_;
  std::size_t top_ = 0;  // the segment that is filled
};

}  // namespace qrane::sparse
