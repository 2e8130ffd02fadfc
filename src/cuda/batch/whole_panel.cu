// SPDX-License-Identifier: Apache-2.0
// factor_panel: Householder QR of one whole panel of every matrix of a batch, one CTA each, LAPACK-shaped, with the T
// of its compact WY form; no tree, so no reconstruction.
//
// Column c lies in the registers of warp c % W, slot c / W; lane l holds every 32nd chunk of 16 bytes of its rows, so
// rows need no barrier to be summed and global memory is read 512 bytes at a time:
//
//              warp 0   warp 1       warp 0   warp 1            C slots a warp, W warps, R rows a lane:
//     slot     0        0            1        1                 at most C W columns of 32 R rows
//     column   0        1    ...     W        W+1   ...
//
// Step j: the warp of column j makes its reflector and leaves v (ones and zeros included) in shared memory; after one
// barrier every warp forms v^T of its columns, which gives both the update's coefficients of the columns at the right
// and row j of V^T V from those at the left, whence T. The owner of column j + 1 is then the first to go on.
//
// Columns are scaled to a largest magnitude near 1 by exact powers of two until they are finished. Sums are formed in a
// fixed order. About 3 m n^2 flops; reads and writes the panel once.
#include "cuda/collectives/panel.cuh"
#include "cuda/collectives/warp.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/batch.hpp"

namespace qrane::backend::cuda {
namespace {

template <class T>
inline constexpr int chunk_rows = 16 / static_cast<int>(sizeof(T));
template <class T>
using Chunk = Vector<T, chunk_rows<T>>;

/// Sums of C values over the lanes of a warp; every lane gets all of them.
template <class T, int C>
__device__ void sum_slots(T (&s)[C]) {
  const T total = sum_slot_of_lane(s);
#pragma unroll
  for (int i = 0; i < C; ++i) s[i] = __shfl_sync(full_warp, total, i);
}

template <class T, int R_, int C_, int W_>
struct PanelShape {
  using Scalar = T;
  static constexpr int R = R_, C = C_, W = W_, V = chunk_rows<T>;
  static constexpr int rows = 32 * R, cols = C * W;
  static_assert(cols <= 32 && cols <= 32 * V && R % V == 0);
};

template <class Shape>
struct WholePanelShared {
  using T = typename Shape::Scalar;
  Chunk<T> v[2][Shape::rows / Shape::V];
  T gram[Shape::cols][Shape::cols + 1];  // gram[j][c] = v_j^T v_c for c < j
  T tau[Shape::cols];
};

template <class Shape>
struct WholePanelTile {
  using T = typename Shape::Scalar;
  static constexpr int R = Shape::R, C = Shape::C, W = Shape::W, V = Shape::V;

  T a[C][R];
  int exponent[C];
  WholePanelShared<Shape>& shared;
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;

  __device__ explicit WholePanelTile(WholePanelShared<Shape>& s) : shared(s) {}
  __device__ int column(int slot) const { return warp + W * slot; }
  __device__ int row(int r) const { return (r / V * warp_size + lane) * V + r % V; }

  __device__ __forceinline__ void load(const T* g, std::int64_t ld, int rows, int cols, bool whole) {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      const T* g_column = g + column(slot) * ld;
#pragma unroll
      for (int q = 0; q < R / V; ++q) {
        const int first = row(q * V);
        const bool there = column(slot) < cols;
        if (whole) {
          Chunk<T> x{};
          if (there && first < rows) x = *reinterpret_cast<const Chunk<T>*>(g_column + first);
#pragma unroll
          for (int e = 0; e < V; ++e) a[slot][q * V + e] = x.v[e];
        } else {
#pragma unroll
          for (int e = 0; e < V; ++e) a[slot][q * V + e] = there && first + e < rows ? g_column[first + e] : T(0);
        }
      }
    }
  }

  __device__ void store_chunk(T* g_column, int first, int rows, const T (&x)[V], bool whole) const {
    if (whole) {
      Chunk<T> chunk;
#pragma unroll
      for (int e = 0; e < V; ++e) chunk.v[e] = x[e];
      if (first < rows) *reinterpret_cast<Chunk<T>*>(g_column + first) = chunk;
    } else {
#pragma unroll
      for (int e = 0; e < V; ++e)
        if (first + e < rows) g_column[first + e] = x[e];
    }
  }

  /// R and V in place.
  __device__ __forceinline__ void store(T* g, std::int64_t ld, int rows, int cols, bool whole) const {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (column(slot) < cols) {
#pragma unroll
        for (int q = 0; q < R / V; ++q) {
          T x[V];
#pragma unroll
          for (int e = 0; e < V; ++e) x[e] = a[slot][q * V + e];
          store_chunk(g + column(slot) * ld, row(q * V), rows, x, whole);
        }
      }
    }
  }

  /// V alone, with its ones and zeros.
  __device__ __forceinline__ void store_v(T* g, std::int64_t ld, int rows, int cols, bool whole) const {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      const int c = column(slot);
      if (c < cols) {
#pragma unroll
        for (int q = 0; q < R / V; ++q) {
          const int first = row(q * V);
          T x[V];
#pragma unroll
          for (int e = 0; e < V; ++e) x[e] = first + e > c ? a[slot][q * V + e] : T(first + e == c ? 1 : 0);
          store_chunk(g + c * ld, first, rows, x, whole);
        }
      }
    }
  }

  /// Reflector j of column j, which is this warp's `slot`: v to shared memory, and the finished column.
  __device__ __forceinline__ void reflect(int slot_index, int j) {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (slot == slot_index) reflect_slot(slot, j);
    }
  }

  __device__ __forceinline__ void reflect_slot(int slot, int j) {
    T head = a[slot][0];
#pragma unroll
    for (int e = 1; e < V; ++e) head = row(e) == j ? a[slot][e] : head;
    const T alpha = __shfl_sync(full_warp, head, j / V);
    T tail_squares[1] = {T(0)};
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const T x = r < V && row(r) <= j ? T(0) : a[slot][r];
      tail_squares[0] = fma(x, x, tail_squares[0]);
    }
    sum_slots<T, 1>(tail_squares);
    // Comparisons are written so that NaN makes a reflector of NaN rather than none.
    const T squares = fma(alpha, alpha, tail_squares[0]);
    const T root = reciprocal_root(squares);
    const T norm = squares * root;
    const bool reflects = !(tail_squares[0] == T(0)) && !(squares < negligible<T>);
    const T beta = reflects ? -copysign(norm, alpha) : alpha;
    const T inverse = reflects ? copysign(reciprocal(abs(alpha) + norm), alpha) : T(0);
    if (lane == 0) shared.tau[j] = reflects ? fma(abs(alpha), root, T(1)) : T(0);
    const T unscale = Bits<T>::power_of_two(exponent[slot]);
#pragma unroll
    for (int q = 0; q < R / V; ++q) {
      Chunk<T> v;
#pragma unroll
      for (int e = 0; e < V; ++e) {
        T& x = a[slot][q * V + e];
        if (q > 0) {
          x *= inverse;
          v.v[e] = x;
        } else {
          const int i = row(e);
          x = i > j ? x * inverse : (i == j ? beta : x) * unscale;
          v.v[e] = i > j ? x : T(i == j ? 1 : 0);
        }
      }
      shared.v[j & 1][q * warp_size + lane] = v;
    }
  }

  /// v^T of all columns, and the update of those at the right of j.
  __device__ __forceinline__ void apply(int j) {
    T sums[C] = {};
    const auto& s_v = shared.v[j & 1];
#pragma unroll
    for (int q = 0; q < R / V; ++q) {
      const Chunk<T> v = s_v[q * warp_size + lane];
#pragma unroll
      for (int slot = 0; slot < C; ++slot) {
#pragma unroll
        for (int e = 0; e < V; ++e) sums[slot] = fma(v.v[e], a[slot][q * V + e], sums[slot]);
      }
    }
    sum_slots(sums);
    const T tau = shared.tau[j];
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      if (column(slot) < j && lane == 0) shared.gram[j][column(slot)] = sums[slot];
      sums[slot] = column(slot) > j ? -tau * sums[slot] : T(0);
    }
#pragma unroll
    for (int q = 0; q < R / V; ++q) {
      const Chunk<T> v = s_v[q * warp_size + lane];
#pragma unroll
      for (int slot = 0; slot < C; ++slot) {
        if (column(slot) > j) {
#pragma unroll
          for (int e = 0; e < V; ++e) a[slot][q * V + e] = fma(sums[slot], v.v[e], a[slot][q * V + e]);
        }
      }
    }
  }

  __device__ __forceinline__ void factor(int steps) {
    for (int j = 0; j < steps; ++j) {
      if (j % W == warp) reflect(j / W, j);
      __syncthreads();
      apply(j);
    }
    __syncthreads();
  }

  /// Columns beyond the last reflector are still scaled.
  __device__ __forceinline__ void unscale_rest(int steps) {
#pragma unroll
    for (int slot = 0; slot < C; ++slot) {
      const T unscale = column(slot) < steps ? T(1) : Bits<T>::power_of_two(exponent[slot]);
#pragma unroll
      for (int r = 0; r < R; ++r) a[slot][r] *= unscale;
    }
  }
};

/// T = (I + diag(tau) U)^-1 diag(tau) from U = striu(V^T V), one warp, lane c solving for column c (panel.cuh).
template <class Shape>
__device__ void build_whole_t(const WholePanelShared<Shape>& shared, typename Shape::Scalar* t, std::int64_t ld,
                              int steps, int cols) {
  using T = typename Shape::Scalar;
  constexpr int NB = Shape::cols;
  const int column = threadIdx.x % warp_size;
  T sums[NB];
#pragma unroll
  for (int i = 0; i < NB; ++i) sums[i] = T(0);
#pragma unroll
  for (int k = NB - 1; k >= 0; --k) {
    const T tau = k < steps ? shared.tau[k] : T(0);
    const T value = k == column ? tau : (k < column ? -tau * sums[k] : T(0));
    if (k < cols && column < cols) t[k + column * ld] = value;
    if (k < steps) {
#pragma unroll
      for (int i = 0; i < k; ++i) sums[i] = fma(shared.gram[k][i], value, sums[i]);
    }
  }
}

/// Thread map: see the head. Dynamic shared memory: WholePanelShared.
template <class Shape>
__global__ void __launch_bounds__(32 * Shape::W)
    factor_panel_kernel(const std::int32_t* condition, WholePanel<Cuda, typename Shape::Scalar> task, bool whole) {
  if (skipped(condition)) return;
  using T = typename Shape::Scalar;
  extern __shared__ __align__(16) unsigned char dynamic[];
  auto& shared = *reinterpret_cast<WholePanelShared<Shape>*>(dynamic);
  const Index index = blockIdx.x;
  const int rows = static_cast<int>(task.a.rows), cols = static_cast<int>(task.a.cols), steps = min(rows, cols);
  T* const g_a = task.a.data + index * task.a.stride;
  WholePanelTile<Shape> tile(shared);
  tile.load(g_a, task.a.ld, rows, cols, whole);
  scale_columns<warp_size>(tile.a, tile.exponent);
  tile.factor(steps);
  tile.unscale_rest(steps);
  tile.store(g_a, task.a.ld, rows, cols, whole);
  if (task.v.data != nullptr) tile.store_v(task.v.data + index * task.v.stride, task.v.ld, rows, cols, whole);
  if (tile.warp == 0) build_whole_t<Shape>(shared, task.t.data + index * task.t.stride, task.t.ld, steps, cols);
}

template <class Shape, class T>
void launch_shape(const Launch& launch, const WholePanel<Cuda, T>& task) {
  const auto kernel = factor_panel_kernel<Shape>;
  const std::size_t bytes = sizeof(WholePanelShared<Shape>);
  allow_shared_memory(kernel, bytes, "factor_panel");
  const bool whole = task.a.rows % chunk_rows<T> == 0 && is_aligned<chunk_rows<T>>(task.a) &&
                     (task.v.data == nullptr || is_aligned<chunk_rows<T>>(task.v));
  kernel<<<static_cast<unsigned>(task.a.count), 32 * Shape::W, bytes, launch.stream>>>(launch.condition, task, whole);
  check_launch("factor_panel");
}

/// launch(shape) with the first shape that holds `rows`; false when there is none.
template <class T, class Launcher>
bool with_shape(Index rows, Launcher launch) {
  if constexpr (sizeof(T) == 4) {
    if (rows <= 128) return launch(PanelShape<T, 4, 8, 4>{});
    if (rows <= 256) return launch(PanelShape<T, 8, 8, 4>{});
    if (rows <= 512) return launch(PanelShape<T, 16, 4, 8>{});
    if (rows <= 1024) return launch(PanelShape<T, 32, 2, 16>{});
    if (rows <= 2048) return launch(PanelShape<T, 64, 1, 16>{});
  } else {
    if (rows <= 64) return launch(PanelShape<T, 2, 8, 4>{});
    if (rows <= 128) return launch(PanelShape<T, 4, 8, 4>{});
    if (rows <= 256) return launch(PanelShape<T, 8, 4, 8>{});
    if (rows <= 512) return launch(PanelShape<T, 16, 2, 16>{});
    if (rows <= 1024) return launch(PanelShape<T, 32, 1, 16>{});
    if (rows <= 2048) return launch(PanelShape<T, 64, 1, 8>{});
  }
  return false;
}

}  // namespace

template <class T>
std::int32_t widest_whole_panel(Index rows) {
  std::int32_t cols = 0;
  with_shape<T>(rows, [&](auto shape) {
    cols = decltype(shape)::cols;
    return true;
  });
  return cols;
}

template <class T>
void factor_whole_panel(const Queue& queue, const WholePanel<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.a.count == 0 || task.a.rows == 0 || task.a.cols == 0) return;
  detail::check(task.a.cols <= widest_whole_panel<T>(task.a.rows), ErrorCode::invalid_argument,
                "factor_panel: ", task.a.rows, " x ", task.a.cols, " does not fit one block");
  with_shape<T>(task.a.rows, [&](auto shape) {
    launch_shape<decltype(shape)>(launch, task);
    return true;
  });
}

template std::int32_t widest_whole_panel<float>(Index);
template std::int32_t widest_whole_panel<double>(Index);
template void factor_whole_panel<float>(const Queue&, const WholePanel<Cuda, float>&);
template void factor_whole_panel<double>(const Queue&, const WholePanel<Cuda, double>&);

}  // namespace qrane::backend::cuda
