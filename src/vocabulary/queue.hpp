// SPDX-License-Identifier: Apache-2.0
// Ordered work on one device.
//
// A backend's Queue is a handle: copies share the device, the stream and the memory. Its members, beside a constructor:
//
//   allocate(bytes)              Pointer<std::byte>, 256-byte aligned; throws Error{out_of_memory} with needed and free
//   release(p)                   after the work that may use it; null is fine
//   available_bytes()            of the device, or of the limit, that allocations may still take
//   upload(source, p, n)         host to device; `source` may be reused on return
//   download(p, target, n)       device to host; waits
//   allocate_host(bytes)         host memory that copies reach directly, 256-byte aligned on a GPU; throws
//   release_host(p)              Error{out_of_memory}
//   download_later(p, target, n) copies to such memory and from it that are only queued, where the backend can do that
//   upload_later(source, p, n)
//   synchronize()                waits; earlier faults surface here as Error{device}
//   when(flag)                   the same queue with a condition: operations given to it do nothing unless *flag != 0
//                                when they run. gemm and trsm need not take a condition: no fall-back uses them.
//   guarded(flag, work)          work(when(flag)), in a recording as one node. What `work` queues must be on the queue
//                                it gets, or have been followed by it; the flag must not depend on it.
//   limits(T{})                  Limits for a scalar
//   side()                       a second queue of the same device, always the same one; may be this one
//   lane(number, urgent)         queue `number` beside this one, for kernels and copies alone; may be this one. The
//                                same number is always urgent or never; urgent ones go first where both have work.
//   follow(queue)                later work of this queue runs after all that the other has been given so far
//   Mark, mark(m), follow(m)     a place in a queue's work, made where there is none, that other queues can follow
//   recorded(work, products)     a Recording of what `work` gives to the queue that it is called with and to lanes that
//                                follow this one and that it follows in the end; nothing is done. products: `work`
//                                calls gemm. False, and `work` is not called, where the backend keeps no recordings.
//   replay(recording)            queues all of it
//   captured()                   whether the user captures this queue's stream, whose graph is to hold the launches
//   record(), elapsed_ms(a, b)   time marks, for benchmarks
//
// Operations are asynchronous where the backend is. None allocates or waits unless its page says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// What plans need to know of a device; a plain value.
struct Limits {
  std::int32_t max_panel_cols = 32;   // widest panel of factor / factor_tree
  std::int32_t max_block_rows = 256;  // tallest contiguous block, or heads * cols, for the widest panel and scalar
  std::int64_t max_allocation_bytes = 0;
  std::int32_t max_absorbed = 0;  // widest matrix of absorb; 0 when the backend has none
  std::int32_t max_formed = 0;    // and of form_absorbed
  std::int32_t units = 0;         // multiprocessors, where absorb exists
  std::int32_t max_cholesky = 0;  // largest n of guarded_cholesky; 0 when the backend has no double
  bool has_double = true;
  // Batches; 0 where the backend has no kernels of its own.
  std::int32_t small_elements = 0;        // factor_small: rows x (8, 16 or 32 columns) of one matrix, at most
  std::int32_t small_rows = 0;            // and its rows
  std::int32_t whole_panel_elements = 0;  // factor_panel: rows, rounded up to a power of two, x columns, at most
  std::int32_t whole_panel_rows = 0;      // and its rows
  // The reach of operations that have a default; 0 where the backend does not do them whole.
  std::int32_t max_reflect_cols = 0;      // reflect_panel and householder_panel: columns
  std::int64_t max_householder_rows = 0;  // householder_panel: rows
  std::int32_t host_pivot_cols = 64;      // triangles up to this are pivoted on the host when a solve asks for rank
  std::int32_t max_multiply_full = 0;     // multiply_full: columns
  std::int32_t max_small_svd = 0;         // small_svd: columns
  std::int32_t max_solve_gram = 0;        // solve_gram: columns
  std::int32_t max_residual_columns = 0;  // residual_squares: columns of A
  std::int32_t max_rpca_step = 0;         // robust_pca_step: columns
  std::int32_t max_sweep_carry = 0;       // sweep: columns of the carry
  std::int32_t max_sweep_block = 0;       // sweep: columns of a block
  std::int32_t max_update_cols = 0;       // update_rows: columns
  std::int32_t max_update_rows = 0;       // update_rows: rows in and out together
  // Frontal matrices.
  std::int32_t front_update_cols = 0;       // columns of one task of update_fronts
  std::int32_t front_update_blocks = 1;     // that share the rows of one task
  std::int32_t front_update_pair_cols = 0;  // of update_fronts_pair; 0 where two updates are as fast
  std::int64_t front_whole_elements = 0;    // factor_whole_fronts: rows_bound x (cols + rhs_cols) of one front
  std::int64_t front_whole_rows = std::numeric_limits<std::int64_t>::max();  // and its rows_bound
};

/// What a queue without others beside it has: its work is done in the order that it is given, and none is recorded.
template <class Queue>
class InOrder {
 public:
  struct Mark {};
  struct Recording {
    explicit operator bool() const { return false; }
  };

  Queue side() const { return self(); }
  Queue lane(int, bool) const { return self(); }
  void follow(const Queue&) {}
  void mark(Mark&) {}
  void follow(const Mark&) {}
  template <class Work>
  Recording recorded(const Work&, bool = false) const {
    return {};
  }
  void replay(const Recording&) {}
  bool captured() const { return false; }
  template <class Flag, class Work>
  void guarded(Flag flag, const Work& work) {
    Queue conditional = self().when(flag);
    work(conditional);
  }

  std::byte* allocate_host(Index bytes) const {
    auto* const p = new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)];
    if (!p) throw Error(ErrorCode::out_of_memory, detail::concat("no memory on the host for ", bytes, " bytes"));
    return p;
  }
  void release_host(std::byte* p) const noexcept { delete[] p; }
  template <class Pointer, class T>
  void download_later(Pointer source, T* target, Index count) const {
    self().download(source, target, count);
  }
  template <class T, class Pointer>
  void upload_later(const T* source, Pointer target, Index count) const {
    self().upload(source, target, count);
  }

 private:
  const Queue& self() const { return static_cast<const Queue&>(*this); }
};

}  // namespace qrane::backend
