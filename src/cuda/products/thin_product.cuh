// SPDX-License-Identifier: Apache-2.0
// A W for a tall A (m x n, n <= 192) and any W (n x n, double), products and sums in double on fp64 tensor cores, and
// then whatever an Epilogue does with each element. Reads A once, past 128 columns twice; 2 m n^2 flops.
//
// W lives in registers: a warp owns 8 columns of the product, or 16, and all of W that they need (16 halve what is read
// from shared memory, but leave few warps to hide an epilogue that reads). A block takes slabs of 32 rows of A: read
// one slab ahead into registers, widened once, and laid in shared memory in two buffers in turn, so that a slab costs
// one barrier.
//
//   A's slab in shared memory    column c at c * 32 doubles, rows 2u, 2u + 1 as 16 bytes at u ^ twist(c): a warp's
//   reads
//                                of four columns and rows 4g .. 4g + 3 are free of bank conflicts
//   products (mma.cuh)           lane (g, t): rows 4g .. 4g + 3, columns 2t and 2t + 1 of each 8
//
// An Epilogue has
//     struct Held;                                    what it reads of four rows of one column, before the products
//     Held fetch(Index i, Index j)                    i: first of the four rows, j < n
//     void store(Index i, Index j, const double (&x)[4], const Held&)
//     void finish()                                   once per thread, after the last row
#pragma once

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/mma.cuh"
#include "cuda/collectives/resident.cuh"

namespace qrane::backend::cuda {

namespace thin {

constexpr int slab = 32;

__device__ constexpr int twist(int c) { return (c & 1) | ((c & 2) << 1); }

/// Four consecutive elements of a column, zeros from `rows` on.
template <class T>
struct Four {
  T v[4];
};
template <class T>
__device__ Four<T> load_four(const T* column, Index i, Index rows, bool aligned) {
  constexpr int V = 16 / sizeof(T);
  Four<T> out{};
  if (aligned && i + 4 <= rows) {
#pragma unroll
    for (int h = 0; h < 4 / V; ++h) {
      const auto part = *reinterpret_cast<const Vector<T, V>*>(column + i + h * V);
#pragma unroll
      for (int v = 0; v < V; ++v) out.v[h * V + v] = part.v[v];
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (i + v < rows) out.v[v] = column[i + v];
  }
  return out;
}
template <class T>
__device__ void store_four(T* column, Index i, Index rows, bool aligned, const Four<T>& x) {
  constexpr int V = 16 / sizeof(T);
  if (aligned && i + 4 <= rows) {
#pragma unroll
    for (int h = 0; h < 4 / V; ++h) {
      Vector<T, V> part;
#pragma unroll
      for (int v = 0; v < V; ++v) part.v[v] = x.v[h * V + v];
      *reinterpret_cast<Vector<T, V>*>(column + i + h * V) = part;
    }
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v)
      if (i + v < rows) column[i + v] = x.v[v];
  }
}

constexpr int shared_bytes(int tiles) { return 2 * 8 * tiles * slab * 8; }

/// A slab on its way from memory to shared memory. tiles: of 8 columns.
template <class T, int tiles, int warps>
struct Passage {
  static constexpr int threads = 32 * warps, items = (8 * tiles * slab / 4 + threads - 1) / threads;
  Four<T> x[items];

  __device__ void fetch(const DeviceMatrix<Cuda, T>& a, Index first, bool aligned) {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int item = threadIdx.x + k * threads, c = item / 8;
      x[k] = {};
      if (c < a.cols && first < a.rows) x[k] = load_four(a.data + c * a.ld, first + item % 8 * 4, a.rows, aligned);
    }
  }
  __device__ void lay(double* s) const {
#pragma unroll
    for (int k = 0; k < items; ++k) {
      const int item = threadIdx.x + k * threads, c = item / 8, u = item % 8 * 2;
      if (c >= 8 * tiles) continue;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<Vector<double, 2>*>(s + c * slab + ((u + h) ^ twist(c)) * 2) =
            Vector<double, 2>{static_cast<double>(x[k].v[2 * h]), static_cast<double>(x[k].v[2 * h + 1])};
    }
  }
};

/// Thread map: a warp per `wide` times 8 columns of the product; blocks stride over slabs, and those of the next y go
/// on with the columns. Shared memory: shared_bytes(tiles).
template <class T, int tiles, int warps, int wide, class Epilogue>
__global__ void __launch_bounds__(32 * warps, 1)
    product_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, T> a, DeviceMatrix<Cuda, double> w, bool aligned,
                   Epilogue epilogue) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, n = static_cast<int>(a.cols);
  const int j0 = (static_cast<int>(blockIdx.y) * warps + static_cast<int>(threadIdx.x) / 32) * 8 * wide;
  const Index slabs = (a.rows + slab - 1) / slab;
  Passage<T, tiles, warps> passage;
  passage.fetch(a, blockIdx.x * Index(slab), aligned);
  double b[wide][tiles][2];
#pragma unroll
  for (int p = 0; p < wide; ++p)
#pragma unroll
    for (int k = 0; k < tiles; ++k)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = 8 * k + t + 4 * h, col = j0 + 8 * p + g;
        b[p][k][h] = row < n && col < n ? w.data[row + col * w.ld] : 0.0;
      }
  int turn = 0;
  for (Index at = blockIdx.x; at < slabs; at += gridDim.x, turn ^= 1) {
    double* const s = shared + turn * 8 * tiles * slab;
    passage.lay(s);
    __syncthreads();
    passage.fetch(a, (at + gridDim.x) * slab, aligned);
    const Index i = at * slab + 4 * g;
    const int j = j0 + 2 * t;
    typename Epilogue::Held held[wide][2];
#pragma unroll
    for (int p = 0; p < wide; ++p)
#pragma unroll
      for (int v = 0; v < 2; ++v)
        if (j + 8 * p + v < n) held[p][v] = epilogue.fetch(i, j + 8 * p + v);
    double c[wide][2][4] = {};  // rows 4g + 2h
    const int near = (2 * g ^ twist(t)) * 2, far = ((2 * g + 1) ^ twist(t)) * 2;
#pragma unroll
    for (int k = 0; k < tiles; ++k) {
      const double* const column = s + (8 * k + t) * slab;
      const auto x0 = *reinterpret_cast<const Vector<double, 2>*>(column + near);
      const auto x1 = *reinterpret_cast<const Vector<double, 2>*>(column + far);
      const auto x2 = *reinterpret_cast<const Vector<double, 2>*>(column + 4 * slab + near);
      const auto x3 = *reinterpret_cast<const Vector<double, 2>*>(column + 4 * slab + far);
      const double top[4] = {x0.v[0], x0.v[1], x2.v[0], x2.v[1]}, low[4] = {x1.v[0], x1.v[1], x3.v[0], x3.v[1]};
#pragma unroll
      for (int p = 0; p < wide; ++p) {
        mma_16x8x8(c[p][0], top, b[p][k][0], b[p][k][1]);
        mma_16x8x8(c[p][1], low, b[p][k][0], b[p][k][1]);
      }
    }
#pragma unroll
    for (int p = 0; p < wide; ++p)
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const double x[4] = {c[p][0][v], c[p][0][2 + v], c[p][1][v], c[p][1][2 + v]};
        if (j + 8 * p + v < n) epilogue.store(i, j + 8 * p + v, x, held[p][v]);
      }
  }
  epilogue.finish();
}

template <class T, int tiles, int warps = tiles, int wide = 1, class Epilogue>
int launch(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
           const Epilogue& epilogue, Index most_blocks) {
  constexpr int bytes = shared_bytes(tiles);
  constexpr unsigned parts = (tiles + warps * wide - 1) / (warps * wide);
  auto* const kernel = product_kernel<T, tiles, warps, wide, Epilogue>;
  const Index slabs = std::max<Index>((a.rows + slab - 1) / slab, 1);
  const Index resident = std::max<Index>(resident_blocks(kernel, 32 * warps, bytes, "thin product") / parts, 1);
  const auto blocks = static_cast<int>(std::min({slabs, resident, most_blocks}));
  kernel<<<dim3(static_cast<unsigned>(blocks), parts), 32 * warps, bytes, launch.stream>>>(
      launch.condition, a, w, is_aligned<16 / sizeof(T)>(a), epilogue);
  check_launch("thin product kernel");
  return blocks;
}

}  // namespace thin

/// The number of blocks, at most `most_blocks`; n <= max_thin_product.
template <class T, class Epilogue>
int launch_thin_product(const Launch& launch, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                        const Epilogue& epilogue, Index most_blocks) {
  if (a.cols <= 32) return thin::launch<T, 4>(launch, a, w, epilogue, most_blocks);
  if (a.cols <= 64) return thin::launch<T, 8>(launch, a, w, epilogue, most_blocks);
  if (a.cols <= 104) return thin::launch<T, 13>(launch, a, w, epilogue, most_blocks);
  return thin::launch<T, 16>(launch, a, w, epilogue, most_blocks);
}

}  // namespace qrane::backend::cuda
