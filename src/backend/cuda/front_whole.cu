// SPDX-License-Identifier: Apache-2.0
// factor_whole_fronts: a block per front, from layout to packed R, with the matrix in shared memory.
//
// A list may hold fronts of very different sizes, and what a block takes of a multiprocessor is fixed by its launch: so
// there is one launch for each class of sizes, in which blocks of other classes return at once.
#include "backend/cuda/front_blocked.cuh"

namespace qrane::backend::cuda {
namespace {

/// Fronts that a launch is for: at most so many rows, rows x columns.
struct SizeLimit {
  std::int64_t rows, elements;
  __device__ bool holds(std::int64_t front_rows, std::int64_t front_elements) const {
    return front_rows <= rows && front_elements <= elements;
  }
};

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

/// Dynamic shared memory: `capacity` elements.
template <class T, class C>
__global__ void __launch_bounds__(C::threads, C::blocks)
    whole_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f, const std::int32_t* list, SizeLimit smaller,
                 SizeLimit limit, int capacity, bool keep_q) {
  if (skipped(condition)) return;
  using Assembly = FrontAssembly<T, 32>;
  using Blocked = BlockedFront<T, C::warps, C::slabs>;
  __shared__ union {
    typename Assembly::Shared assembly;
    typename Blocked::Shared blocked;
  } shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T* const s_matrix = reinterpret_cast<T*>(dynamic);
  __shared__ FrontShape shape;
  const int front = list[blockIdx.x];
  load_shape(f, front, shape);
  const int all_cols = shape.cols + f.rhs_cols;
  const std::int64_t bound = std::int64_t{shape.rows_bound} * all_cols;
  if (smaller.holds(shape.rows_bound, bound) || !limit.holds(shape.rows_bound, bound)) return;
  const int rows = FrontLayout<T>(f, shape).run(0, 1);

  BlockedLayout layout(rows, true);
  if (layout.elements<T>(all_cols) > capacity) layout = BlockedLayout(rows, false);
  const bool blocked = layout.elements<T>(all_cols) <= capacity && rows <= warp_size * C::slabs &&
                       (!keep_q || f.panel % block_cols == 0);
  WholeFront<T> whole(f, shape, rows, s_matrix, blocked ? layout.ld : rows);
  whole.zero();
  __syncthreads();
  Assembly(f, shape, shared.assembly, s_matrix, whole.ld, 0, all_cols).run(rows);
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
                  const SizeLimit& smaller, const SizeLimit& limit, bool keep_q) {
  const auto kernel = whole_kernel<T, C>;
  constexpr std::int64_t static_bytes = 4 * 1024;
  const std::int64_t most = (shared_memory_limit() - static_bytes) / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t rows = std::min<std::int64_t>(limit.rows, list.max_rows);
  // with padding, where it is known what to pad, else with an eighth more
  const std::int64_t wanted =
      rows * list.max_cols <= limit.elements
          ? BlockedLayout(static_cast<int>(rows), true).elements<T>(list.max_cols)
          : limit.elements * 9 / 8 + BlockedLayout(static_cast<int>(rows), true).v_elements<T>();
  const std::int64_t capacity = std::max(std::min(wanted, most), limit.elements);
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(capacity);
  allow_shared_memory(kernel, bytes, "factor_whole_fronts");
  kernel<<<static_cast<unsigned>(list.count), C::threads, bytes, launch.stream>>>(
      launch.condition, fronts, list.tasks, smaller, limit, static_cast<int>(capacity), keep_q);
  check_launch("factor_whole_fronts");
}

}  // namespace

template <class T>
Index front_whole_elements() {
  constexpr Index slack_bytes = 27 * 1024;  // padding, reflectors beside the matrix
  return (shared_memory_limit() - slack_bytes) / static_cast<Index>(sizeof(T));
}

template <class T>
void launch_factor_whole_fronts(const Launch& launch, const Fronts<Cuda, T>& fronts,
                                const FrontTasks<Cuda, std::int32_t>& list, bool keep_q) {
  if (list.count == 0) return;
  detail::check(fronts.panel > 0 && fronts.panel <= warp_size, ErrorCode::invalid_argument,
                "factor_whole_fronts: panels of ", fronts.panel, " columns, 1 to 32 are possible");
  const Index elements = std::min(Index{list.max_rows} * list.max_cols, front_whole_elements<T>());
  const Index rows = list.max_rows;
  const auto at_most = [&](Index most_rows, Index most) { return SizeLimit{std::min(most_rows, rows), std::min(most, elements)}; };
  const SizeLimit none{-1, -1}, tiny = at_most(32, 768), small = at_most(128, 3072), medium = at_most(128, 8192),
                  large = at_most(rows, elements);
  const auto needed = [&](const SizeLimit& smaller) { return rows > smaller.rows || elements > smaller.elements; };
  if (needed(medium)) launch_class<Class<8, 8, 1>>(launch, fronts, list, medium, large, keep_q);
  if (needed(small)) launch_class<Class<4, 4, 3>>(launch, fronts, list, small, medium, keep_q);
  if (needed(tiny)) launch_class<Class<2, 4, 6>>(launch, fronts, list, tiny, small, keep_q);
  launch_class<Class<1, 1, 16>>(launch, fronts, list, none, tiny, keep_q);
}

#define QRANE_INSTANTIATE(T)                                                                             \
  template Index front_whole_elements<T>();                                                              \
  template void launch_factor_whole_fronts(const Launch&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, \
                                           bool);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
