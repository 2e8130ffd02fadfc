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
//   synchronize()                waits; earlier faults surface here as Error{device}
//   when(flag)                   the same queue with a condition: operations given to it do nothing unless *flag != 0
//   when
//                                they run. gemm and trsm need not take a condition: no fall-back uses them.
//   limits(T{})                  Limits for a scalar
//   side()                       a second queue of the same device, always the same one; may be this one
//   follow(queue)                what this queue is given from now on runs after all that the other has been given so
//   far record(), elapsed_ms(a, b)   time marks, for benchmarks
//
// Operations are asynchronous where the backend is. None allocates or waits unless its page says so.
#pragma once

#include <cstdint>
#include <limits>

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

/// work(q) queues what is done only where *flag != 0 at this place in the queue's work; the flag stays as it is until
/// then.
template <class Queue, class Flag, class Work>
void guarded(Queue& queue, Flag flag, Work work) {
  if constexpr (requires { queue.guarded(flag, work); }) {
    queue.guarded(flag, work);
  } else {
    Queue conditional = queue.when(flag);
    work(conditional);
  }
}

}  // namespace qrane::backend
