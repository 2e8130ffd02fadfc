// SPDX-License-Identifier: Apache-2.0
// Frontal matrices as one block of threads sees them (vocabulary/fronts.hpp has the vocabulary): where elements of R
// lie, how rows are laid out, how a matrix is assembled. For kernels that work on a front in global memory and for
// those that hold it in shared memory. Blocks are one-dimensional, a multiple of 32 threads and at most 1024.
#pragma once

#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/tile.cuh"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda {

/// A column's elements of R, row by row: above its panel's first row in the matrix, from there on in the corner.
template <class T>
struct RColumn {
  const T* above;
  const T* below;
  int border;

  __device__ RColumn(const Fronts<Cuda, T>& f, const FrontShape& shape, int col)
      : above(f.storage + shape.matrix + static_cast<std::int64_t>(col) * shape.ld),
        border(f.panels[shape.panels + col / f.panel].first_row) {
    below = f.storage + shape.corner + static_cast<std::int64_t>(col) * f.panel - border;
  }
  __device__ RColumn(const T* elements, int rows) : above(elements), below(elements), border(rows) {}
  __device__ T operator[](int row) const { return row < border ? above[row] : below[row]; }
};

template <class T>
__device__ double tolerance_of(const Fronts<Cuda, T>& f) {
  return f.device_tolerance != nullptr ? *f.device_tolerance : f.tolerance;
}

/// The norm at or below which a column that was multiplied by 2^exponent is dropped; negative: never.
template <class T>
__device__ double drop_limit(const Fronts<Cuda, T>& f, double tolerance, int exponent) {
  return exponent == 0 || f.scaled_tolerance != 0 ? tolerance : ldexp(tolerance, exponent);
}

/// Offset of pivotal column j in a front's packed rows of R.
__device__ inline std::int64_t packed_offset(std::int64_t j, std::int64_t r_bound) {
  const std::int64_t whole = min(j, r_bound);
  return whole * (whole + 1) / 2 + (j - whole) * r_bound;
}

/// Column col of a front's contribution block, wherever it is; its row 0 is row r_rows here.
template <class T>
__device__ RColumn<T> block_column(const Fronts<Cuda, T>& f, const FrontShape& shape, int r_rows, int col) {
  if (shape.packed <= 0) return RColumn<T>(f, shape, shape.pivots + col);
  return RColumn<T>(f.storage + shape.packed + packed_offset(col, shape.cb_bound) - r_rows, r_rows + shape.cb_bound);
}

/// Live columns among the first j + 1, asked by a whole warp: live columns have consecutive pivot rows.
__device__ inline int live_columns(const std::int32_t* pivot, int j) {
  for (const int lane = threadIdx.x % warp_size; j >= 0; j -= warp_size) {
    const int row = j >= lane ? pivot[j - lane] : -1;
    const unsigned live = __ballot_sync(full_warp, row >= 0);
    if (live != 0) return __shfl_sync(full_warp, row, __ffs(live) - 1) + 1;
  }
  return 0;
}

/// Inclusive prefix sum of one value per thread, with `total` of all of them; every thread of the block calls it.
__device__ inline int block_scan(int value, int& total) {
  __shared__ int s_sums[warp_size];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size, warps = blockDim.x / warp_size;
#pragma unroll
  for (int width = 1; width < warp_size; width *= 2) {
    const int other = __shfl_up_sync(full_warp, value, width);
    if (lane >= width) value += other;
  }
  __syncthreads();  // s_sums may still be read from the last call
  if (lane == warp_size - 1) s_sums[warp] = value;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < warps; ++w) {
    if (w == warp) before = total;
    total += s_sums[w];
  }
  return value + before;
}

/// Columns [first, last) of a front's matrix, column `first` at `a`, taking at most `batch` children at a time.
template <class T, int batch>
class FrontAssembly {
 public:
  struct Shared {
    std::int32_t child[batch];
    std::int32_t first_col[batch];  // of the contribution block, within [first, last)
    std::int32_t cols[batch];
    std::int32_t begin[batch + 1];  // of its units of work
  };

  __device__ FrontAssembly(const Fronts<Cuda, T>& fronts, const FrontShape& front, Shared& s, T* target,
                           std::int64_t target_ld, int first_col, int last_col)
      : f(fronts), shape(front), shared(s), a(target), ld(target_ld), first(first_col), last(last_col) {}

  /// zero() writes zeros to all of it; the rest follows. No two elements meet: every row of a front comes from one
  /// place.
  template <class Zero>
  __device__ void run(int rows, Zero&& zero) {
    const int at_once = min(batch, static_cast<int>(blockDim.x));
    int units = units_of(0);  // loads that follow each other, beside the zeros
    zero();
    __syncthreads();
    own_rows();
    for (int base = 0; base < shape.child_count; base += at_once) {
      if (base > 0) units = units_of(base);
      take_units(units, at_once);
    }
    right_hand_sides(rows);
  }

 private:
  static constexpr int unit_cols = 4, unit_rows = 512;

  __device__ T* column(int j) const { return a + (j - first) * ld; }

  /// Rows of A, 32 of them to a warp, whose lanes take their entries in turn.
  __device__ void own_rows() const {
    const int lane = threadIdx.x % warp_size;
    for (int base = static_cast<int>(threadIdx.x) / warp_size * warp_size; base < shape.own_rows; base += blockDim.x) {
      const std::int64_t row = shape.first_row + base;
      if (f.own_column[row] >= last) break;  // ascending
      const int mine = min(lane, shape.own_rows - base - 1);
      const int slot = f.own_slot[row + mine];
      const std::int64_t begin = f.row_begin[row];
      const int end = static_cast<int>(f.row_begin[row + mine + 1] - begin);
      const int entries = __shfl_sync(full_warp, end, warp_size - 1);
#pragma unroll 2
      for (int base_entry = 0; base_entry < entries; base_entry += warp_size) {
        const int e = base_entry + lane;
        int owner = 0;  // rows that end at or before entry e
#pragma unroll
        for (int width = warp_size / 2; width > 0; width /= 2)
          if (__shfl_sync(full_warp, end, owner + width - 1) <= e) owner += width;
        const int target = __shfl_sync(full_warp, slot, owner);
        if (e < entries) {
          const int col = f.entry_col[begin + e];
          if (col >= first && col < last) column(col)[target] = f.values[begin + e];
        }
      }
    }
  }

  /// First of n ascending numbers that is not below x.
  static __device__ int lower_bound(const std::int32_t* numbers, int n, int x) {
    int low = 0, high = n;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (numbers[middle] < x)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /// What a child of a batch, one to a thread, has in these columns is cut into units of a few columns by some rows.
  __device__ int units_of(int base) {
    const int thread = threadIdx.x;
    if (thread >= batch || base + thread >= shape.child_count) return 0;
    const int child = f.children[shape.children + base + thread];
    const FrontShape& from = f.shapes[child];
    const int cb_rows = from.packed < 0 ? 0 : f.states[child].cb_rows, cb_cols = from.cols - from.pivots;
    if (cb_rows == 0) return 0;
    const std::int32_t* const columns = f.parent_col + from.columns + from.pivots;
    const int begin = first > 0 ? lower_bound(columns, cb_cols, first) : 0;
    const int end = last < shape.cols ? lower_bound(columns, cb_cols, last) : cb_cols;
    shared.child[thread] = child;
    shared.first_col[thread] = begin;
    shared.cols[thread] = end - begin;
    return ((end - begin + unit_cols - 1) / unit_cols) * ((min(cb_rows, end) + unit_rows - 1) / unit_rows);
  }

  /// All units of a batch, a warp to each; units: of this thread's child. Ends with a barrier.
  __device__ void take_units(int units, int at_once) {
    const int warps = static_cast<int>(blockDim.x) / warp_size, thread = threadIdx.x;
    int total;
    const int scanned = block_scan(units, total);
    if (thread < at_once) shared.begin[thread + 1] = scanned;
    if (thread == 0) shared.begin[0] = 0;
    __syncthreads();
    for (int u = thread / warp_size; u < total; u += warps) {
      int low = 0, high = at_once - 1;  // the last child that begins at or before u
      while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (shared.begin[middle] <= u)
          low = middle;
        else
          high = middle - 1;
      }
      const int groups = (shared.cols[low] + unit_cols - 1) / unit_cols, unit = u - shared.begin[low];
      const int col = shared.first_col[low] + unit % groups * unit_cols;
      take(shared.child[low], col, min(unit_cols, shared.first_col[low] + shared.cols[low] - col),
           unit / groups * unit_rows);
    }
    __syncthreads();
  }

  /// Rows first_row and following of columns col .. col + count - 1 of a child's contribution block, by one warp.
  __device__ void take(int child, int col, int count, int first_row) const {
    const FrontShape& from = f.shapes[child];
    const FrontState& state = f.states[child];
    const std::int32_t* const slots = f.cb_slot + from.slots;
    const std::int32_t* const columns = f.parent_col + from.columns + from.pivots;
    const int end = min(min(first_row + unit_rows, state.cb_rows), col + count);
    const int r_rows = state.r_rows, lane = threadIdx.x % warp_size;
    if (count == unit_cols) {
      const RColumn<T> r0 = block_column(f, from, r_rows, col), r1 = block_column(f, from, r_rows, col + 1),
                       r2 = block_column(f, from, r_rows, col + 2), r3 = block_column(f, from, r_rows, col + 3);
      T *const a0 = column(columns[col]), *const a1 = column(columns[col + 1]), *const a2 = column(columns[col + 2]),
               *const a3 = column(columns[col + 3]);
#pragma unroll 2
      for (int i = first_row + lane; i < end; i += warp_size) {
        const int slot = slots[i];
        const T x1 = i <= col + 1 ? r1[r_rows + i] : T(0), x2 = i <= col + 2 ? r2[r_rows + i] : T(0);
        const T x0 = i <= col ? r0[r_rows + i] : T(0), x3 = r3[r_rows + i];
        if (i <= col) a0[slot] = x0;
        if (i <= col + 1) a1[slot] = x1;
        if (i <= col + 2) a2[slot] = x2;
        a3[slot] = x3;
      }
    } else {
      for (int k = 0; k < count; ++k) {
        const RColumn<T> r = block_column(f, from, r_rows, col + k);
        T* const target = column(columns[col + k]);
        for (int i = first_row + lane; i < min(end, col + k + 1); i += warp_size) target[slots[i]] = r[r_rows + i];
      }
    }
  }

  __device__ void right_hand_sides(int rows) const {
    const std::int32_t* const ids = f.row_ids + shape.row_ids;
    for (int j = max(first, shape.cols); j < last; ++j) {
      const T* const rhs = f.rhs + (j - shape.cols) * f.rhs_ld;
      for (int i = threadIdx.x; i < rows; i += blockDim.x) column(j)[i] = rhs[ids[i]];
    }
  }

  const Fronts<Cuda, T>& f;
  const FrontShape& shape;
  Shared& shared;
  T* const a;
  const std::int64_t ld;
  const int first, last;
};

}  // namespace qrane::backend::cuda
