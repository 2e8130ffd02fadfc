// SPDX-License-Identifier: Apache-2.0
// Data movement of the vocabulary: copy, narrow, widen (one kernel: read S, convert, write D),
// rows by lists, fill, and transpose through 32 x 32 tiles in shared memory. Cost: each element read once and
// written once; 16-byte accesses where pointers and leading dimensions allow.
#include "cuda/collectives/kernel.cuh"
#include "cuda/queue/launch.hpp"
#include "vocabulary/movement.hpp"

namespace qrane::backend::cuda {
namespace {

template <class S, class D>
struct Conversion {
  const S* source;
  D* target;
  Index rows, cols, source_ld, target_ld, source_stride, target_stride, count;
};

template <class S, class D>
__device__ void convert_element(const S* s, D* d, Index i, Index j, Part part) {
  const bool upper = i <= j;
  if (part == Part::unit_lower) {
    *d = !upper ? static_cast<D>(*s) : (i == j ? D(1) : D(0));
  } else if (part == Part::all || upper) {
    *d = static_cast<D>(*s);
  } else if (part == Part::upper) {
    *d = D(0);
  }
}

constexpr int batch = 4;  // loads that a thread has in flight

/// Thread map: x along chunks of V rows, y over columns, z over the batch. V > 1 only for Part::all.
template <class S, class D, int V>
__global__ void __launch_bounds__(256) convert_kernel(const std::int32_t* condition, Conversion<S, D> a, Part part) {
  if (skipped(condition)) return;
  const Index whole = V > 1 ? a.rows / V : 0;
  for (Index b = blockIdx.z; b < a.count; b += gridDim.z) {
    for (Index j = blockIdx.y * Index(blockDim.y) + threadIdx.y; j < a.cols; j += Index(gridDim.y) * blockDim.y) {
      const S* source = a.source + b * a.source_stride + j * a.source_ld;
      D* target = a.target + b * a.target_stride + j * a.target_ld;
      for (Index c = blockIdx.x * Index(batch * blockDim.x) + threadIdx.x; c < whole;
           c += Index(gridDim.x) * (batch * blockDim.x)) {
        Vector<S, V> in[batch];
#pragma unroll
        for (int u = 0; u < batch; ++u)
          if (c + u * blockDim.x < whole) in[u] = reinterpret_cast<const Vector<S, V>*>(source)[c + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < batch; ++u) {
          if (c + u * blockDim.x >= whole) break;
          Vector<D, V> out;
#pragma unroll
          for (int v = 0; v < V; ++v) out.v[v] = static_cast<D>(in[u].v[v]);
          reinterpret_cast<Vector<D, V>*>(target)[c + u * blockDim.x] = out;
        }
      }
      for (Index i = whole * V + blockIdx.x * Index(blockDim.x) + threadIdx.x; i < a.rows;
           i += Index(gridDim.x) * blockDim.x)
        convert_element(source + i, target + i, i, j, part);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(256)
    fill_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, T value, T diagonal) {
  if (skipped(condition)) return;
  for (Index b = blockIdx.z; b < a.count; b += gridDim.z)
    for (Index j = blockIdx.y * Index(blockDim.y) + threadIdx.y; j < a.cols; j += Index(gridDim.y) * blockDim.y)
      for (Index i = blockIdx.x * Index(blockDim.x) + threadIdx.x; i < a.rows; i += Index(gridDim.x) * blockDim.x)
        a.data[b * a.stride + j * a.ld + i] = i == j ? diagonal : value;
}

/// Thread map: one block over the flags.
__global__ void set_flags_kernel(const std::int32_t* condition, std::int32_t* flags, Index count, std::int32_t value) {
  if (skipped(condition)) return;
  for (Index i = threadIdx.x; i < count; i += blockDim.x) flags[i] = value;
}

/// Thread map: x along the listed rows, y over columns, z over the batch.
template <class T>
__global__ void __launch_bounds__(256)
    copy_rows_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> source, const std::int64_t* sources,
                     DeviceMatrix<Cuda, T> target, const std::int64_t* targets, Index count) {
  if (skipped(condition)) return;
  for (Index b = blockIdx.z; b < source.count; b += gridDim.z)
    for (Index j = blockIdx.y * Index(blockDim.y) + threadIdx.y; j < source.cols; j += Index(gridDim.y) * blockDim.y)
      for (Index i = blockIdx.x * Index(blockDim.x) + threadIdx.x; i < count; i += Index(gridDim.x) * blockDim.x)
        target.data[b * target.stride + j * target.ld + (targets != nullptr ? targets[i] : i)] =
            source.data[b * source.stride + j * source.ld + (sources != nullptr ? sources[i] : i)];
}

constexpr int tile = 32;

/// One 32 x 32 tile at a time; tiles are numbered down the columns of the source, then over the batch.
/// Threads 32 x 8; shared memory 33 * 32 scalars (the odd leading dimension avoids bank conflicts).
template <class T>
__global__ void __launch_bounds__(256)
    transpose_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, T> c) {
  if (skipped(condition)) return;
  __shared__ T s[tile][tile + 1];
  const Index row_tiles = (a.rows + tile - 1) / tile;
  const Index matrix_tiles = row_tiles * ((a.cols + tile - 1) / tile);
  for (Index k = blockIdx.x; k < matrix_tiles * a.count; k += gridDim.x) {
    const Index b = k / matrix_tiles, in_matrix = k % matrix_tiles;
    const Index i0 = in_matrix % row_tiles * tile, j0 = in_matrix / row_tiles * tile;
    const T* source = a.data + b * a.stride;
    T* target = c.data + b * c.stride;
    for (int y = threadIdx.y; y < tile; y += 8) {
      const Index i = i0 + threadIdx.x, j = j0 + y;
      if (i < a.rows && j < a.cols) s[y][threadIdx.x] = source[i + j * a.ld];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < tile; y += 8) {
      const Index i = i0 + y, j = j0 + threadIdx.x;
      if (i < a.rows && j < a.cols) target[j + i * c.ld] = s[threadIdx.x][y];
    }
    __syncthreads();
  }
}

/// Blocks at most: all there may be, but under a condition, which mostly says no, so few that the refusal is quick.
Index most_blocks(const Launch& launch) {
  return launch.condition == nullptr ? Index(1) << 30 : Index(16) * multiprocessors();
}

template <int V, class S, class D>
void run_convert(const Launch& launch, const DeviceMatrix<Cuda, S>& a, const DeviceMatrix<Cuda, D>& c, Part part) {
  const Walk walk = plan_walk(V > 1 ? (a.rows / V + batch - 1) / batch : a.rows, a.cols, a.count, most_blocks(launch));
  const Conversion<S, D> conversion{a.data, c.data, a.rows, a.cols, a.ld, c.ld, a.stride, c.stride, a.count};
  convert_kernel<S, D, V><<<walk.grid, walk.block, 0, launch.stream>>>(launch.condition, conversion, part);
  check_launch("copy kernel");
}

/// Parts only where S is at least as wide as D.
template <class S, class D>
void convert(const Launch& launch, const DeviceMatrix<Cuda, S>& source, const DeviceMatrix<Cuda, D>& target,
             Part part) {
  if (source.rows == 0 || source.cols == 0 || source.count == 0) return;
  DeviceMatrix<Cuda, S> a = source;
  DeviceMatrix<Cuda, D> c = target;
  constexpr int width = 16 / (sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D));
  if (part != Part::all) return run_convert<1>(launch, a, c, part);
  if (is_contiguous(a) && is_contiguous(c)) a = as_column(a), c = as_column(c);
  if (is_aligned<width>(a) && is_aligned<width>(c)) return run_convert<width>(launch, a, c, part);
  run_convert<1>(launch, a, c, part);
}

}  // namespace

template <class T>
void copy(const Queue& queue, const DeviceMatrix<Cuda, T>& source, const DeviceMatrix<Cuda, T>& target, Part part) {
  convert(Launch(queue), source, target, part);
}

template <class T>
void narrow(const Queue& queue, const DeviceMatrix<Cuda, double>& source, const DeviceMatrix<Cuda, T>& target,
            Part part) {
  convert(Launch(queue), source, target, part);
}

template <class T>
void widen(const Queue& queue, const DeviceMatrix<Cuda, T>& source, const DeviceMatrix<Cuda, double>& target) {
  convert(Launch(queue), source, target, Part::all);
}

template <class T>
void fill(const Queue& queue, const DeviceMatrix<Cuda, T>& a, T value, T diagonal) {
  const Launch launch(queue);
  if (a.rows == 0 || a.cols == 0 || a.count == 0) return;
  const Walk walk = plan_walk(a.rows, a.cols, a.count, most_blocks(launch));
  fill_kernel<T><<<walk.grid, walk.block, 0, launch.stream>>>(launch.condition, a, value, diagonal);
  check_launch("fill kernel");
}

void set_flags(const Queue& queue, std::int32_t* flags, Index count, std::int32_t value) {
  const Launch launch(queue);
  if (count == 0) return;
  set_flags_kernel<<<1, 128, 0, launch.stream>>>(launch.condition, flags, count, value);
  check_launch("set_flags kernel");
}

template <class T>
void transpose(const Queue& queue, const DeviceMatrix<Cuda, T>& source, const DeviceMatrix<Cuda, T>& target) {
  const Launch launch(queue);
  if (source.rows == 0 || source.cols == 0 || source.count == 0) return;
  const Index tiles = ((source.rows + tile - 1) / tile) * ((source.cols + tile - 1) / tile) * source.count;
  const auto blocks = static_cast<unsigned>(std::min<Index>(tiles, 1 << 20));
  transpose_kernel<T><<<blocks, dim3(tile, 8), 0, launch.stream>>>(launch.condition, source, target);
  check_launch("transpose kernel");
}

template <class T>
void copy_rows(const Queue& queue, const DeviceMatrix<Cuda, T>& source, std::int64_t* sources,
               const DeviceMatrix<Cuda, T>& target, std::int64_t* targets, Index count) {
  const Launch launch(queue);
  if (count == 0 || source.cols == 0 || source.count == 0) return;
  const Walk walk = plan_walk(count, source.cols, source.count, most_blocks(launch));
  copy_rows_kernel<T>
      <<<walk.grid, walk.block, 0, launch.stream>>>(launch.condition, source, sources, target, targets, count);
  check_launch("copy_rows kernel");
}

#define QRANE_INSTANTIATE(T)                                                                                       \
  template void copy(const Queue&, const DeviceMatrix<Cuda, T>&, const DeviceMatrix<Cuda, T>&, Part);              \
  template void narrow(const Queue&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, T>&, Part);       \
  template void widen(const Queue&, const DeviceMatrix<Cuda, T>&, const DeviceMatrix<Cuda, double>&);              \
  template void copy_rows(const Queue&, const DeviceMatrix<Cuda, T>&, std::int64_t*, const DeviceMatrix<Cuda, T>&, \
                          std::int64_t*, Index);                                                                   \
  template void fill(const Queue&, const DeviceMatrix<Cuda, T>&, T, T);                                            \
  template void transpose(const Queue&, const DeviceMatrix<Cuda, T>&, const DeviceMatrix<Cuda, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cuda
