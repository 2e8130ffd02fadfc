// SPDX-License-Identifier: Apache-2.0
// factor_whole_fronts: a block per front, from layout to packed R, with the matrix in shared memory.
//
// What a block takes of a multiprocessor is fixed by its launch: a list is done by a class that takes all of its
// fronts, so that callers had better not mix sizes. Whether a front goes by blocks of columns follows from its own
// bounds, and its bits from that alone.
#include "cuda/fronts/blocked.cuh"
#include "cuda/fronts/layout.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/fronts.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::backend::cuda {
namespace {

/// A class takes fronts of at most so many rows, rows x columns.
struct SizeLimit {
  std::int64_t rows, elements;
  __host__ __device__ bool holds(std::int64_t front_rows, std::int64_t front_elements) const {
    return front_rows <= rows && front_elements <= elements;
  }
};
constexpr SizeLimit tiny{32, 768}, small{128, 3072}, medium{128, 8192};

/// Shared memory for a front of these sizes by blocks of columns: that of its class with an eighth for padding.
template <class T>
__host__ __device__ std::int64_t blocked_capacity(std::int64_t rows, std::int64_t elements, std::int64_t most) {
  for (const SizeLimit& limit : {tiny, small, medium})
    if (limit.holds(rows, elements))
      return limit.elements * 9 / 8 + BlockedLayout(static_cast<int>(limit.rows), true).v_elements<T>();
  return most;
}

constexpr int most_blocked_rows = static_cast<int>(front_whole_rows);

/// How fronts of a class are worked on. slabs: of 32 rows, that a warp's registers hold.
template <int warps_, int slabs_, int blocks_>
struct Class {
  static constexpr int warps = warps_, slabs = slabs_, blocks = blocks_, threads = 32 * warps;
};

/// To shared memory: registers are short.
template <class T>
__device__ void load_shape(const Fronts<Cuda, T>& f, int front, FrontShape& shape) {
  constexpr int words = sizeof(FrontShape) / sizeof(std::int64_t);
  static_assert(words <= warp_size && sizeof(FrontShape) % sizeof(std::int64_t) == 0);
  if (threadIdx.x < words)
    reinterpret_cast<std::int64_t*>(&shape)[threadIdx.x] =
        reinterpret_cast<const std::int64_t*>(f.shapes + front)[threadIdx.x];
  __syncthreads();
}

/// Dynamic shared memory: `capacity` elements, `most` of a front by blocks in the largest class.
template <class T, class C>
__global__ void __launch_bounds__(C::threads, C::blocks)
    whole_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const std::int32_t* list, int capacity,
                 int most, bool keep_q) {
  if (skipped(condition)) return;
  using Assembly = FrontAssembly<T, 32>;
  using Blocked = BlockedFront<T, C::warps, C::slabs>;
  using Layout = FrontLayout<T, 32>;
  __shared__ union {
    typename Layout::Shared layout;
    typename Assembly::Shared assembly;
    typename Blocked::Shared blocked;
  } shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T* const s_matrix = reinterpret_cast<T*>(dynamic);
  __shared__ FrontShape shape;
  __shared__ WholeColumns near;
  const int front = list[blockIdx.x];
  load_shape(f, front, shape);
  const int all_cols = shape.cols + f.rhs_cols;
  const int rows = Layout(f, shape, shared.layout, reinterpret_cast<std::int32_t*>(dynamic),
                          capacity * static_cast<int>(sizeof(T) / sizeof(std::int32_t)))
                       .run(0, 1);

  const BlockedLayout bound(shape.rows_bound, false);
  const bool blocked = bound.elements<T>(all_cols) <=
                           blocked_capacity<T>(shape.rows_bound, std::int64_t{shape.rows_bound} * all_cols, most) &&
                       shape.rows_bound <= most_blocked_rows && (!keep_q || f.panel % block_cols == 0);
  BlockedLayout layout(rows, true);
  if (layout.elements<T>(all_cols) > capacity) layout = BlockedLayout(rows, false);
  WholeFront<T> whole(f, shape, rows, s_matrix, blocked ? layout.ld : rows, near);
  Assembly(f, shape, shared.assembly, s_matrix, whole.ld, 0, all_cols).run(rows, [&] { whole.zero(); });
  __syncthreads();
  if (blocked) {
    Blocked(whole, layout, shared.blocked).factor(keep_q);
  } else {
    whole.factor(keep_q);
  }
  whole.store(front, keep_q);
  if (keep_q) {
    if (blocked)
      Blocked(whole, layout, shared.blocked).make_t();
    else
      whole.make_t();
  }
}

template <class C, class T>
void launch_class(const Launch& launch, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list,
                  std::int64_t elements, bool keep_q) {
  const auto kernel = whole_kernel<T, C>;
  constexpr std::int64_t static_bytes = 5 * 1024;
  const std::int64_t most = (shared_memory_limit() - static_bytes) / static_cast<std::int64_t>(sizeof(T));
  // what the class may take, or all that these can
  const std::int64_t capacity =
      std::max(elements, std::min({most, blocked_capacity<T>(list.max_rows, elements, most),
                                   BlockedLayout(list.max_rows, true).elements<T>(list.max_cols)}));
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(capacity);
  allow_shared_memory(kernel, bytes, "factor_whole_fronts");
  kernel<<<static_cast<unsigned>(list.count), C::threads, bytes, launch.stream>>>(
      launch.condition, fronts, list.tasks, static_cast<int>(capacity), static_cast<int>(most), keep_q);
  check_launch("factor_whole_fronts");
}

}  // namespace

template <class T>
Index front_whole_elements() {
  constexpr Index slack_bytes = 28 * 1024;  // padding, reflectors beside the matrix
  const Index room = (shared_memory_limit() - slack_bytes) / static_cast<Index>(sizeof(T));
  constexpr Index worthwhile = 12 * 1024;  // in float larger ones are done sooner by panels
  return sizeof(T) == 4 ? std::min(room, worthwhile) : room;
}

template <class T>
void factor_whole_fronts(const Queue& queue, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list,
                         bool keep_q) {
  const Launch launch(queue);
  if (list.count == 0) return;
  detail::check(fronts.panel > 0 && fronts.panel <= warp_size, ErrorCode::invalid_argument,
                "factor_whole_fronts: panels of ", fronts.panel, " columns, 1 to 32 are possible");
  const Index product = Index{list.max_rows} * list.max_cols;
  const Index elements = std::min(list.max_elements > 0 ? list.max_elements : product, front_whole_elements<T>());
  // more warps than a class needs, where there are multiprocessors for all of its fronts
  const Index seats = device_attribute(cudaDevAttrMultiProcessorCount);
  const auto is = [&](const SizeLimit& limit) { return limit.holds(list.max_rows, elements); };
  if (!is(medium) || list.count <= seats)
    return launch_class<Class<8, most_blocked_rows / warp_size, 1>>(launch, fronts, list, elements, keep_q);
  if (!is(small) || list.count <= 3 * seats)
    return launch_class<Class<4, 4, 3>>(launch, fronts, list, elements, keep_q);
  if (!is(tiny) || list.count <= 6 * seats) return launch_class<Class<2, 4, 6>>(launch, fronts, list, elements, keep_q);
  launch_class<Class<1, 1, 16>>(launch, fronts, list, elements, keep_q);
}

#define QRANE_INSTANTIATE(T)                \
  template Index front_whole_elements<T>(); \
  template void factor_whole_fronts(const Queue&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, bool);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
