// SPDX-License-Identifier: Apache-2.0
// W := AᵀA, upper triangle, products and sums in double, for n <= 192 columns of float or double.
//
// A is read once. Rows are cut into one contiguous share per block; a block keeps its partial Gram
// matrix in the accumulators of fp64 tensor-core products (mma.cuh), writes it to scratch in tiles of
// 8 x 8, and a second kernel adds the blocks' partial matrices in a fixed order.
//
//   n <= 64   gram_narrow_kernel (gram_narrow.cuh): from memory straight into the products. Bound by memory.
//   n <= 128  gram_kernel: 16 rows at a time through shared memory, fetched some stages ahead by cp.async
//             and widened to double once. Each warp owns a pair of column blocks, 32 wide (WarpTile).
//             About m n^2 flops executed, half of a full product.
//   n <= 192  gram_wide_kernel (gram_wide.cuh).
#include <cuda_pipeline_primitives.h>

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/resident.cuh"
#include "cuda/products/gram_narrow.cuh"
#include "cuda/products/gram_wide.cuh"
#include "cuda/products/products.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/products.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int slab = 16;  // rows of A that gram_kernel handles at a time

int column_tiles(Index n) { return static_cast<int>((n + 7) / 8); }

/// Shared memory of one slab of A in double, in the order the products read it: element (row, col) belongs
/// to product row % 4, lane (g, t) = (col % 8, row / 4) of column tile col / 8. Products are padded by 4
/// doubles so that the rows of one column land in different banks.
struct Fragments {
  int tiles;
  __host__ __device__ int stride() const { return tiles * 32 + 4; }
  __host__ __device__ int size() const { return 4 * stride(); }
  __device__ int at(int product, int tile, int lane) const { return product * stride() + tile * 32 + lane; }
};

/// Copies rows r0 .. r0+15 of all columns to shared memory, zeros past the last row and column. float: as they
/// are, 16 rows per column; double: straight into fragments.
template <class T>
__device__ void fetch_slab(const DeviceMatrix<Cuda, T>& a, Index r0, Fragments f, T* s, bool aligned) {
  if (sizeof(T) == 4 && aligned) {
    for (int k = threadIdx.x; k < 8 * f.tiles * 4; k += blockDim.x) {
      const int j = k / 4, i = k % 4 * 4;
      const Index left = j < a.cols ? min(max(a.rows - r0 - i, Index(0)), Index(4)) : 0;
      __pipeline_memcpy_async(s + k * 4, left > 0 ? a.data + j * a.ld + r0 + i : a.data, 16,
                              16 - static_cast<int>(left) * 4);
    }
    return;
  }
  for (int k = threadIdx.x; k < 8 * f.tiles * slab; k += blockDim.x) {
    const int j = k / slab, i = k % slab;
    const bool valid = j < a.cols && r0 + i < a.rows;
    T* target = sizeof(T) == 4 ? s + k : s + f.at(i % 4, j / 8, j % 8 * 4 + i / 4);
    __pipeline_memcpy_async(target, valid ? a.data + j * a.ld + r0 + i : a.data, sizeof(T), valid ? 0 : sizeof(T));
  }
}

/// float: widens into fragments what this thread itself fetched, so no barrier is needed before.
__device__ void widen_slab(const float* s, Fragments f, double* fragments, bool aligned) {
  if (aligned) {
    for (int k = threadIdx.x; k < 8 * f.tiles * 4; k += blockDim.x) {
      const auto x = *reinterpret_cast<const Vector<float, 4>*>(s + k * 4);
#pragma unroll
      for (int v = 0; v < 4; ++v) fragments[f.at(v, k / 32, k % 32)] = x.v[v];
    }
  } else {
    for (int k = threadIdx.x; k < 8 * f.tiles * slab; k += blockDim.x) {
      const int j = k / slab, i = k % slab;
      fragments[f.at(i % 4, j / 8, j % 8 * 4 + i / 4)] = s[k];
    }
  }
}

/// What one warp computes: the 16 x 8 products of one pair of different column blocks, or those on and above
/// the diagonal of a block paired with itself.
struct WarpTile {
  static constexpr int rows = 2, cols = 4;
  static constexpr int values = rows * cols, on_diagonal = rows * (cols - rows + 1);
  double c[values][4] = {};
  int row_block = 0, col_block = 1;
  bool diagonal;
  std::uint32_t active = 0;  // bit e: c[e] lies on or above the diagonal and inside the matrix

  static __host__ __device__ constexpr int warps(int blocks) { return tile_count(blocks); }

  __device__ WarpTile(int warp, int tiles) {
    const int blocks = (tiles + cols - 1) / cols, pairs = tile_count(blocks - 1);
    diagonal = warp >= pairs;
    if (diagonal) {
      row_block = col_block = warp - pairs;
    } else {
      while (tile_count(col_block) <= warp) ++col_block;
      row_block = warp - tile_count(col_block - 1);
    }
    visit([&](int e, int row, int col) {
      if (col < tiles && row < tiles) active |= 1u << e;
    });
  }

  /// f(e, row, col) for every c[e], whose first tile of 8 x 8 is (row, col).
  template <class F>
  __device__ void visit(F f) const {
    if (!diagonal) {
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int x = 0; x < cols; ++x) f(r * cols + x, row_block * cols + 2 * r, col_block * cols + x);
      return;
    }
    int e = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int x = 2 * r; x < cols; ++x) f(e++, row_block * cols + 2 * r, row_block * cols + x);
  }

  /// Adds the products of a slab.
  __device__ void multiply(const double* s, Fragments f, int lane) {
    const int count = diagonal ? on_diagonal : values;
    const bool all = active == (1u << count) - 1;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      if (!diagonal) {
        all ? multiply_pair<true>(s, f, step, lane) : multiply_pair<false>(s, f, step, lane);
      } else {
        all ? multiply_diagonal<true>(s, f, step, lane) : multiply_diagonal<false>(s, f, step, lane);
      }
    }
  }

  /// One step is the products of rows `step` and step + 2 of the four of a slab: 8 of its 16 rows. Without `all`
  /// each product asks whether it is needed, which costs.
  template <bool all>
  __device__ void multiply_pair(const double* s, Fragments f, int step, int lane) {
    double b[cols][2];
#pragma unroll
    for (int x = 0; x < cols; ++x)
#pragma unroll
      for (int h = 0; h < 2; ++h) b[x][h] = s[f.at(step + 2 * h, col_block * cols + x, lane)];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      double a[4];
#pragma unroll
      for (int v = 0; v < 4; ++v) a[v] = s[f.at(step + v / 2 * 2, row_block * cols + 2 * r + v % 2, lane)];
#pragma unroll
      for (int x = 0; x < cols; ++x)
        if (all || (active >> (r * cols + x) & 1)) mma_16x8x8(c[r * cols + x], a, b[x][0], b[x][1]);
    }
  }

  template <bool all>
  __device__ void multiply_diagonal(const double* s, Fragments f, int step, int lane) {
    double b[cols][2];
#pragma unroll
    for (int x = 0; x < cols; ++x)
#pragma unroll
      for (int h = 0; h < 2; ++h) b[x][h] = s[f.at(step + 2 * h, row_block * cols + x, lane)];
    int e = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const double a[4] = {b[2 * r][0], b[2 * r + 1][0], b[2 * r][1], b[2 * r + 1][1]};
#pragma unroll
      for (int x = 2 * r; x < cols; ++x, ++e)
        if (all || (active >> e & 1)) mma_16x8x8(c[e], a, b[x][0], b[x][1]);
    }
  }

  __device__ void store(double* partial, int tiles, int lane) const {
    visit([&](int e, int row, int col) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row + h > col || col >= tiles) continue;
        const Vector<double, 2> pair{c[e][2 * h], c[e][2 * h + 1]};
        *reinterpret_cast<Vector<double, 2>*>(partial + tile_index(row + h, col) * 64 + lane * 2) = pair;
      }
    });
  }
};

constexpr int max_blocks = 4;  // of 32 columns

/// `stages` slabs are in flight. Shared memory: stages slabs as fetched, and for float two slabs of fragments.
template <class T, int stages>
__global__ void __launch_bounds__(32 * WarpTile::warps(max_blocks), 2)
    gram_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, int padded_tiles, bool aligned,
                double* partial) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  constexpr bool widens = sizeof(T) == 4;
  const Fragments f{padded_tiles};
  const int tiles = static_cast<int>((a.cols + 7) / 8);
  const int slab_size = widens ? 8 * f.tiles * slab : f.size();
  double* const fragments = shared;  // widens: two of them
  T* const fetched = reinterpret_cast<T*>(shared + (widens ? 2 * f.size() : 0));
  const int lane = threadIdx.x % 32;
  WarpTile tile(threadIdx.x / 32, tiles);

  const Index slabs = (a.rows + slab - 1) / slab;
  const Index first = slabs * blockIdx.x / gridDim.x, last = slabs * (blockIdx.x + 1) / gridDim.x;
  const int count = static_cast<int>(last - first);
  const auto fetch = [&](int k) {
    if (k < count) fetch_slab(a, (first + k) * slab, f, fetched + (k % stages) * slab_size, aligned);
    __pipeline_commit();
  };
  const auto fragments_of = [&](int k) {
    return widens ? fragments + (k % 2) * f.size() : reinterpret_cast<double*>(fetched + (k % stages) * slab_size);
  };
  const auto widen = [&](int k) {
    if constexpr (widens)
      if (k < count) widen_slab(fetched + (k % stages) * slab_size, f, fragments_of(k), aligned);
  };
#pragma unroll
  for (int k = 0; k < stages - 1; ++k) fetch(k);
  __pipeline_wait_prior(stages - 2);
  widen(0);
  __syncthreads();
  // Half of the warps of each scheduler prepare the next slab before the products of this one, half after them,
  // so that the tensor cores always have somebody's work.
  const bool early = threadIdx.x / 32 / 4 % 2 == 0;
  const auto prepare = [&](int k) {
    __pipeline_wait_prior(stages - 3);
    widen(k);
    fetch(k + stages - 2);
  };
  for (int k = 0; k < count; ++k) {
    if (early) prepare(k + 1);
    tile.multiply(fragments_of(k), f, lane);
    if (!early) prepare(k + 1);
    __syncthreads();  // slab k + 1 is complete, and nobody reads slab k any more
  }
  tile.store(partial + std::size_t(blockIdx.x) * tile_count(tiles) * 64, tiles, lane);
}

// ---------------------------------------------------------------------------------------------------------

/// Adds the blocks' partial matrices: threads 32 x 32, x one element, y the partial matrices y, y + 32, ...
__global__ void __launch_bounds__(1024) sum_partial_kernel(const std::int32_t* condition, const double* partial,
                                                           int count, int elements, DeviceMatrix<Cuda, double> w) {
  if (skipped(condition)) return;
  __shared__ double s[32][33];
  const int e = blockIdx.x * 32 + threadIdx.x;
  double sum = 0;
#pragma unroll 4
  for (int p = threadIdx.y; p < count; p += 32) sum += partial[std::size_t(p) * elements + e];
  s[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0) return;
  sum = 0;
#pragma unroll
  for (int y = 0; y < 32; ++y) sum += s[y][threadIdx.x];
  const int tile = e / 64, lane = e % 64 / 2;
  int col_tile = 0;
  while (tile_count(col_tile + 1) <= tile) ++col_tile;
  const int row = 8 * (tile - tile_count(col_tile)) + lane / 4, col = 8 * col_tile + lane % 4 * 2 + e % 2;
  if (row <= col && col < w.cols) w.data[row + col * w.ld] = sum;
}

/// A kernel for n columns and how to launch it.
template <class T>
struct Choice {
  using Narrow = void (*)(const std::int32_t*, DeviceMatrix<Cuda, T>, double*);
  using Middle = void (*)(const std::int32_t*, DeviceMatrix<Cuda, T>, int, bool, double*);
  Narrow narrow = nullptr;  // also for the widest
  Middle middle = nullptr;
  int threads = narrow_threads, shared_bytes = 0, padded_tiles = 0;
  Index least_rows = 0;  // below which a block is not worth starting
  Index resident = 0;
};

template <class T, int CT>
Choice<T> choose_narrow(bool aligned) {
  Choice<T> choice;
  choice.narrow = aligned ? gram_narrow_kernel<T, CT, true> : gram_narrow_kernel<T, CT, false>;
  choice.least_rows = narrow_threads / 32 * narrow_unroll<CT> * 4 * Index(16 / sizeof(T));
  choice.resident = resident_blocks(choice.narrow, narrow_threads, 0, "gram");
  return choice;
}

template <class T>
Choice<T> choose_middle(Index n) {
  constexpr int stages = 5;
  const int blocks = static_cast<int>((n + 31) / 32);
  const Fragments f{blocks * 4};
  Choice<T> choice;
  choice.middle = gram_kernel<T, stages>;
  choice.threads = WarpTile::warps(blocks) * 32;
  choice.padded_tiles = f.tiles;
  choice.shared_bytes = sizeof(T) == 4 ? stages * 8 * f.tiles * slab * 4 + 2 * f.size() * 8 : stages * f.size() * 8;
  choice.least_rows = 2 * slab;
  choice.resident = resident_blocks(choice.middle, choice.threads, choice.shared_bytes, "gram");
  return choice;
}

template <class T, int stages>
Choice<T> choose_wide(bool aligned) {
  Choice<T> choice;
  choice.narrow =
      aligned ? gram_wide::gram_wide_kernel<T, stages, true> : gram_wide::gram_wide_kernel<T, stages, false>;
  choice.threads = gram_wide::threads;
  choice.shared_bytes = stages * gram_wide::stage_bytes;
  choice.least_rows = 2 * gram_wide::stage_rows<T>;
  choice.resident = resident_blocks(choice.narrow, choice.threads, choice.shared_bytes, "gram");
  return choice;
}

template <class T>
Choice<T> choose(Index n, bool aligned) {
  if (n <= 8) return choose_narrow<T, 1>(aligned);
  if (n <= 16) return choose_narrow<T, 2>(aligned);
  if (n <= 32) return choose_narrow<T, 4>(aligned);
  if (n <= max_narrow) return choose_narrow<T, 8>(aligned);
  if (n <= 32 * max_blocks) return choose_middle<T>(n);
  return 8 * gram_wide::stage_bytes <= shared_memory_limit() ? choose_wide<T, 8>(aligned) : choose_wide<T, 3>(aligned);
}

/// Column tiles in a partial matrix: the narrow kernels' are rounded up.
int partial_tiles(Index n) {
  if (n > max_narrow) return column_tiles(n);
  int tiles = 1;
  while (8 * tiles < n) tiles *= 2;
  return tiles;
}

}  // namespace

std::int64_t gram_partial_bytes(Index n) { return std::int64_t(tile_count(partial_tiles(n))) * 64 * 8; }

template <class T>
void launch_gram(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                 const Scratch<Cuda>& scratch) {
  if (a.cols == 0) return;
  const Index most = scratch.bytes / gram_partial_bytes(a.cols);
  detail::check(most >= 1, ErrorCode::invalid_argument, "gram of ", a.cols, " columns needs ",
                gram_partial_bytes(a.cols), " bytes of scratch or more, got ", scratch.bytes);
  auto* partial = reinterpret_cast<double*>(scratch.data);
  const bool aligned = is_aligned<16 / sizeof(T)>(a);
  const Choice<T> choice = choose<T>(a.cols, aligned);
  const Index useful = std::max<Index>((a.rows + choice.least_rows - 1) / choice.least_rows, 1);
  // The roundings of a long sum on the tensor cores add up: double columns of many rows take more and shorter ones.
  const Index waves = sizeof(T) == 8 && a.cols <= max_narrow ? std::clamp<Index>(a.rows >> 18, 1, 8) : 1;
  const auto blocks = static_cast<int>(std::min({most, useful, waves * choice.resident}));
  if (choice.narrow != nullptr) {
    choice.narrow<<<blocks, choice.threads, choice.shared_bytes, launch.stream>>>(launch.condition, a, partial);
  } else {
    choice.middle<<<blocks, choice.threads, choice.shared_bytes, launch.stream>>>(
        launch.condition, a, choice.padded_tiles, aligned, partial);
  }
  check_launch("gram kernel");
  const int elements = static_cast<int>(gram_partial_bytes(a.cols) / 8);
  sum_partial_kernel<<<elements / 32, dim3(32, 32), 0, launch.stream>>>(launch.condition, partial, blocks, elements, w);
  check_launch("gram's last kernel");
}

template void launch_gram(const Launch&, const DeviceMatrix<Cuda, float>&, const DeviceMatrix<Cuda, double>&,
                          const Scratch<Cuda>&);
template void launch_gram(const Launch&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, double>&,
                          const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
