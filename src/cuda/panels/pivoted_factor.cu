// SPDX-License-Identifier: Apache-2.0
// pivoted_factor: column-pivoted Householder QR (Businger, Golub 1965; LAPACK's geqp3) as one persistent kernel.
//
// Columns are dealt to the blocks in turn and stay in their shared memory (in global memory where they do not fit).
// Every column carries a power of two that puts its largest element between 1 and 2: QR commutes with that, and norms
// neither overflow nor vanish. A step:
//
//   offer      each block's best column: its key (norm and power of two, as an ordered integer), its rows j.. in global
//              memory, then a flag
//   choose     each block waits for all flags and takes the largest key; ties go to the first position, as in LAPACK
//   reflect    each block makes the same reflector from the offered column, and applies it to its own columns; the pass
//              that updates a column sums its squares, so norms are never downdated and need no safeguard
//
// One exchange through global memory a step and no other synchronization of the grid; offers alternate between two
// places, since a block offers again only after all have read the offer before the last. One block is enough where it
// holds the whole matrix, and exchanges nothing.
// Cost: 4 m n k flops and k steps, each of some 3 us (32 columns) to 7 us (1024) on an H200, plus the columns' way
// through shared memory twice. Limits: rows below 2^31.
#include "cuda/panels/pivoted_factor.cuh"

#include "cuda/queue/launch.hpp"

namespace qrane::backend::cuda {
namespace {

/// How a matrix is dealt to blocks.
struct Deal {
  int blocks, columns_per_block, lanes, bytes;
  bool in_shared, v_in_shared;
};

template <class T>
Deal deal(Index rows, Index cols) {
  const Index room = shared_memory_limit() - reserved_bytes;
  const auto needed = [&](Index per_block, bool columns, bool v) {
    return per_block * 16 + (columns ? per_block * padded(rows) : 0) * Index(sizeof(T)) +
           (v ? rows : 0) * Index(sizeof(T));
  };
  Deal d{};
  d.blocks =
      needed(cols, true, true) <= room ? 1 : static_cast<int>(std::min<Index>({multiprocessors(), most_blocks, cols}));
  const Index per_block = (cols + d.blocks - 1) / d.blocks;
  d.columns_per_block = static_cast<int>(per_block);
  d.in_shared = needed(per_block, true, true) <= room;
  d.v_in_shared = needed(per_block, d.in_shared, true) <= room;
  d.bytes = static_cast<int>(needed(per_block, d.in_shared, d.v_in_shared));
  d.lanes = d.in_shared ? 8 : 32;
  while (d.lanes < threads && d.lanes * 2 * per_block <= threads && d.lanes * 8 < rows) d.lanes *= 2;
  return d;
}

Index aligned(Index bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

template <class T>
Index pivoted_factor_scratch_bytes(const Queue& queue, Index rows, Index cols, T) {
  const Launch launch(queue);
  if (cols == 0) return 256;
  const Deal d = deal<T>(rows, cols);
  return aligned(d.blocks * 4) + aligned(2 * d.blocks * Index(sizeof(Offer))) +
         aligned((d.v_in_shared ? 2 : 3) * d.blocks * rows * Index(sizeof(T)));
}

template <class T>
void pivoted_factor(const Queue& queue, const PivotedFactor<Cuda, T>& p, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  if (p.a.cols == 0 || p.a.rows == 0) {
    check_cuda(cudaMemsetAsync(p.rank, 0, 4, launch.stream), "cudaMemsetAsync");
    return;
  }
  detail::check(p.a.rows < (Index(1) << 31) && p.a.cols < (Index(1) << 31), ErrorCode::invalid_argument,
                "pivoted_factor of ", p.a.rows, " x ", p.a.cols, ": at most 2^31 - 1 each");
  const Deal d = deal<T>(p.a.rows, p.a.cols);
  const Index needed = pivoted_factor_scratch_bytes(queue, p.a.rows, p.a.cols, T{});
  detail::check(scratch.bytes >= needed, ErrorCode::invalid_argument, "pivoted_factor needs ", needed,
                " bytes of scratch, got ", scratch.bytes);
  Task<T> task{p.a,
               p.packed,
               p.columns,
               p.inverse_tau,
               p.rank,
               p.tolerance,
               p.truncate,
               static_cast<int>(p.steps),
               d.columns_per_block,
               d.lanes,
               d.in_shared,
               d.v_in_shared};
  task.flags = reinterpret_cast<int*>(scratch.data);
  task.offers = reinterpret_cast<Offer*>(scratch.data + aligned(d.blocks * 4));
  task.offered =
      reinterpret_cast<T*>(scratch.data + aligned(d.blocks * 4) + aligned(2 * d.blocks * Index(sizeof(Offer))));
  check_cuda(cudaMemsetAsync(task.flags, 0, static_cast<std::size_t>(d.blocks) * 4, launch.stream), "cudaMemsetAsync");
  check_cuda(cudaFuncSetAttribute(pivoted_factor_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, d.bytes),
             "cudaFuncSetAttribute(pivoted_factor)");
  const std::int32_t* condition = launch.condition;
  void* arguments[] = {&condition, &task};
  check_cuda(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&pivoted_factor_kernel<T>),
                                         dim3(static_cast<unsigned>(d.blocks)), dim3(threads), arguments,
                                         static_cast<std::size_t>(d.bytes), launch.stream),
             "pivoted_factor kernel");
}

#define QRANE_INSTANTIATE(T)                                                  \
  template Index pivoted_factor_scratch_bytes(const Queue&, Index, Index, T); \
  template void pivoted_factor(const Queue&, const PivotedFactor<Cuda, T>&, const Scratch<Cuda>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
