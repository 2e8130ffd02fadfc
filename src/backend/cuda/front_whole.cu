// SPDX-License-Identifier: Apache-2.0
// factor_whole_fronts: a block per front, from layout to packed R, with the matrix in shared memory.
//
// A list may hold fronts of very different sizes, and what a block takes of a multiprocessor is fixed by its launch: so
// there is one launch for each class of sizes, in which blocks of other classes return at once.
#include "backend/cuda/front_whole.cuh"

namespace qrane::backend::cuda {
namespace {

/// Fronts of more than `above` elements, at most `most`.
struct SizeClass {
  std::int64_t above, most;
};

/// Dynamic shared memory: the matrix.
template <class T, int threads>
__global__ void __launch_bounds__(threads) whole_kernel(const std::int32_t* condition, const Fronts<Cuda, T> f,
                                                        const std::int32_t* list, SizeClass size, bool keep_q) {
  if (skipped(condition)) return;
  using Assembly = FrontAssembly<T, threads>;
  __shared__ typename Assembly::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T* const s_matrix = reinterpret_cast<T*>(dynamic);
  const int front = list[blockIdx.x];
  const FrontShape shape = f.shapes[front];
  const int all_cols = shape.cols + f.rhs_cols;
  const std::int64_t elements = std::int64_t{shape.rows_bound} * all_cols;
  if (elements <= size.above || elements > size.most) return;
  const int rows = FrontLayout<T>(f, shape).run(0, 1);
  WholeFront<T> whole(f, shape, rows, s_matrix, rows);
  whole.zero();
  __syncthreads();
  Assembly(f, shape, shared, s_matrix, rows, 0, all_cols).run(rows);
  whole.factor(keep_q);
  whole.store(front, keep_q);
}

template <class T, int threads>
void launch_class(const Launch& launch, const Fronts<Cuda, T>& fronts, const FrontTasks<Cuda, std::int32_t>& list,
                  const SizeClass& size, bool keep_q) {
  const auto kernel = whole_kernel<T, threads>;
  const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(size.most);
  allow_shared_memory(kernel, bytes, "factor_whole_fronts");
  kernel<<<static_cast<unsigned>(list.count), threads, bytes, launch.stream>>>(launch.condition, fronts, list.tasks, size,
                                                                             keep_q);
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
  constexpr Index tiny = 768, small = 6144, medium = 14000;
  const Index largest = std::min(Index{list.max_rows} * list.max_cols, front_whole_elements<T>());
  if (largest > medium) launch_class<T, 512>(launch, fronts, list, {medium, largest}, keep_q);
  if (largest > small) launch_class<T, 256>(launch, fronts, list, {small, std::min(medium, largest)}, keep_q);
  if (largest > tiny) launch_class<T, 128>(launch, fronts, list, {tiny, std::min(small, largest)}, keep_q);
  launch_class<T, 32>(launch, fronts, list, {-1, std::min(tiny, largest)}, keep_q);
}

#define QRANE_INSTANTIATE(T)                                                                             \
  template Index front_whole_elements<T>();                                                              \
  template void launch_factor_whole_fronts(const Launch&, const Fronts<Cuda, T>&, const FrontTasks<Cuda, std::int32_t>&, \
                                           bool);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cuda
