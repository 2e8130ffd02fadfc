// SPDX-License-Identifier: Apache-2.0
// lay_out_fronts, assemble_fronts, finish_fronts: what surrounds the factorization of fronts in global memory. All of
// it moves data: a front is written once as zeros, its children's contribution blocks are read once and written once.
#include "cuda/fronts/layout.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int most_threads = 256;

/// Block x: a front. Blocks y share its rows and children. Dynamic shared memory: `capacity` numbers.
template <class T>
__global__ void lay_out_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const std::int32_t* list,
                               int capacity) {
  if (skipped(condition)) return;
  using Layout = FrontLayout<T, 256>;
  __shared__ typename Layout::Shared shared;
  extern __shared__ std::int32_t s_work[];
  const int front = list[blockIdx.x];
  const FrontShape shape = f.shapes[front];
  const int rows = Layout(f, shape, shared, s_work, capacity).run(blockIdx.y, gridDim.y);
  if (blockIdx.y == 0 && threadIdx.x == 0) f.states[front] = {0, rows, 0, 0, 0};
}

/// Zeros in rows 0 .. rows - 1 of columns [first, last); a warp per column.
template <class T>
__device__ void zero_columns(T* a, std::int64_t ld, int rows, int first, int last) {
  constexpr int V = 16 / static_cast<int>(sizeof(T));
  const int lane = threadIdx.x % warp_size, warps = static_cast<int>(blockDim.x) / warp_size;
  const bool whole = reinterpret_cast<std::uintptr_t>(a) % 16 == 0 && ld % V == 0;
  for (int j = first + static_cast<int>(threadIdx.x) / warp_size; j < last; j += warps) {
    T* const column = a + j * ld;
    if (whole) {
      const Vector<T, V> zero{};
      for (int i = lane; i < rows / V; i += warp_size) reinterpret_cast<Vector<T, V>*>(column)[i] = zero;
      for (int i = rows / V * V + lane; i < rows; i += warp_size) column[i] = T(0);
    } else {
      for (int i = lane; i < rows; i += warp_size) column[i] = T(0);
    }
  }
}

/// Columns [first, last) of a share.
struct ShareOfColumns {
  int first, last;
  __device__ ShareOfColumns(const FrontShare& share, int cols)
      : first(static_cast<int>(std::int64_t{cols} * share.part / share.parts)),
        last(static_cast<int>(std::int64_t{cols} * (share.part + 1) / share.parts)) {}
};

template <class T>
__global__ void assemble_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const FrontShare* tasks) {
  if (skipped(condition)) return;
  using Assembly = FrontAssembly<T, most_threads>;
  __shared__ typename Assembly::Shared shared;
  const FrontShare share = tasks[blockIdx.x];
  const FrontShape shape = f.shapes[share.front];
  const ShareOfColumns columns(share, shape.cols + f.rhs_cols);
  const int rows = f.states[share.front].rows;
  T* const a = f.storage + shape.matrix;
  Assembly(f, shape, shared, a + columns.first * std::int64_t{shape.ld}, shape.ld, columns.first, columns.last)
      .run(rows, [&] { zero_columns(a, shape.ld, min(shape.ld, (rows + 31) / 32 * 32), columns.first, columns.last); });
}

template <class T>
__global__ void finish_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const FrontShare* tasks) {
  if (skipped(condition)) return;
  const FrontShare share = tasks[blockIdx.x];
  const FrontShape shape = f.shapes[share.front];
  const ShareOfColumns columns(share, shape.cols + f.rhs_cols);
  const int rows = f.states[share.front].rows, r_rows = f.states[share.front].r_rows;
  if (share.part == 0 && threadIdx.x == 0)
    f.states[share.front].cb_rows = min(rows - r_rows, shape.cols - shape.pivots);
  const int lane = threadIdx.x % warp_size, warps = static_cast<int>(blockDim.x) / warp_size;
  T* const packed = f.r + shape.r;
  for (int j = columns.first + static_cast<int>(threadIdx.x) / warp_size; j < min(columns.last, shape.cols);
       j += warps) {
    const int pivotal = min(j, shape.pivots);
    T* const target = packed + packed_offset(pivotal, shape.r_bound) + std::int64_t{j - pivotal} * shape.r_bound;
    const int count = j < shape.pivots ? live_columns(f.pivot + shape.columns, j) : r_rows;
    const RColumn<T> r(f, shape, j);
#pragma unroll 4
    for (int i = lane; i < count; i += warp_size) target[i] = r[i];
  }
  const std::int32_t* const ids = f.row_ids + shape.row_ids;
  for (int j = max(columns.first, shape.cols); j < columns.last; ++j) {
    const T* const column = f.storage + shape.matrix + j * std::int64_t{shape.ld};
    T* const rhs = f.rhs + (j - shape.cols) * f.rhs_ld;
    for (int i = threadIdx.x; i < rows; i += blockDim.x) rhs[ids[i]] = column[i];
  }
}

/// Columns of a piece, a warp to each, or where they are few the whole block: visit(column, element of the piece at
/// which it begins, thread's first row, step).
template <class Visit>
__device__ void for_piece(const FrontPieceTask& piece, int bound, Visit&& visit) {
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  const int width = piece.cols < warps ? static_cast<int>(blockDim.x) : warp_size;
  const int thread = static_cast<int>(threadIdx.x), groups = static_cast<int>(blockDim.x) / width;
  const std::int64_t before = packed_offset(piece.first, bound);
  for (int j = piece.first + thread / width; j < piece.first + piece.cols; j += groups)
    visit(j, packed_offset(j, bound) - before, thread % width, width);
}

template <class T>
__global__ void pack_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const FrontPieceTask* tasks) {
  if (skipped(condition)) return;
  const FrontPieceTask piece = tasks[blockIdx.x];
  const FrontShape& shape = f.shapes[piece.front];
  const int r_rows = f.states[piece.front].r_rows, cb_rows = f.states[piece.front].cb_rows;
  for_piece(piece, shape.cb_bound, [&](int j, std::int64_t offset, int first, int step) {
    const RColumn<T> r(f, shape, shape.pivots + j);
    T* const target = f.storage + piece.place + offset;
#pragma unroll 4
    for (int i = first; i < min(j + 1, cb_rows); i += step) target[i] = r[r_rows + i];
  });
}

template <class T>
__global__ void unpack_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const FrontPieceTask* tasks) {
  if (skipped(condition)) return;
  const FrontPieceTask piece = tasks[blockIdx.x];
  const FrontShape& shape = f.shapes[piece.front];
  const FrontShape& parent = f.shapes[piece.parent];
  const int cb_rows = f.states[piece.front].cb_rows;
  const std::int32_t* const slots = f.cb_slot + shape.slots;
  const std::int32_t* const columns = f.parent_col + shape.columns + shape.pivots;
  for_piece(piece, shape.cb_bound, [&](int j, std::int64_t offset, int first, int step) {
    const T* const source = f.storage + piece.place + offset;
    T* const target = f.storage + parent.matrix + columns[j] * std::int64_t{parent.ld};
#pragma unroll 4
    for (int i = first; i < min(j + 1, cb_rows); i += step) target[slots[i]] = source[i];
  });
}

/// Threads of a block for fronts of that size.
template <class Task>
unsigned threads_for(const FrontTasks<Cuda, Task>& tasks) {
  const std::int64_t elements = std::int64_t{tasks.max_rows} * tasks.max_cols;
  return elements <= 1024 ? 64 : elements <= 16384 ? 128 : most_threads;
}

}  // namespace

template <class T>
void lay_out_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list) {
  const Launch launch(queue);
  if (list.count == 0) return;
  constexpr std::int32_t rows_of_block = 8192;
  constexpr Index most_work = Index{1} << 14;  // numbers
  const auto blocks = static_cast<unsigned>(std::clamp<Index>(list.max_rows / rows_of_block, 1, 16));
  const Index work = std::min(list.max_rows + 2 * Index{list.max_cols}, most_work);
  const std::size_t bytes = sizeof(std::int32_t) * static_cast<std::size_t>(work);
  const unsigned threads = list.max_rows > 1024 ? 1024 : list.max_rows > 256 ? 512 : 128;
  const auto kernel = lay_out_kernel<T>;
  allow_shared_memory(kernel, bytes, "lay_out_fronts");
  kernel<<<dim3(static_cast<unsigned>(list.count), blocks), threads, bytes, launch.stream>>>(
      launch.condition, fronts, list.tasks, static_cast<int>(work));
  check_launch("lay_out_fronts");
}

template <class T>
void assemble_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0) return;
  assemble_kernel<<<static_cast<unsigned>(tasks.count), threads_for(tasks), 0, launch.stream>>>(launch.condition,
                                                                                                fronts, tasks.tasks);
  check_launch("assemble_fronts");
}

template <class T>
void finish_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontShare>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0) return;
  finish_kernel<<<static_cast<unsigned>(tasks.count), threads_for(tasks), 0, launch.stream>>>(launch.condition, fronts,
                                                                                              tasks.tasks);
  check_launch("finish_fronts");
}

template <class T>
void pack_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0) return;
  pack_kernel<<<static_cast<unsigned>(tasks.count), threads_for(tasks), 0, launch.stream>>>(launch.condition, fronts,
                                                                                            tasks.tasks);
  check_launch("pack_fronts");
}

template <class T>
void unpack_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, FrontPieceTask>& tasks) {
  const Launch launch(queue);
  if (tasks.count == 0) return;
  unpack_kernel<<<static_cast<unsigned>(tasks.count), threads_for(tasks), 0, launch.stream>>>(launch.condition, fronts,
                                                                                              tasks.tasks);
  check_launch("unpack_fronts");
}

#define QRANE_INSTANTIATE(T)                                                                                  \
  template void pack_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontPieceTask>&);   \
  template void unpack_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontPieceTask>&); \
  template void lay_out_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&);  \
  template void assemble_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontShare>&);   \
  template void finish_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, FrontShare>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
