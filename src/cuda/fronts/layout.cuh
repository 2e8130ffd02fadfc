// SPDX-License-Identifier: Apache-2.0
// How the rows of a front are laid out (lay_out_fronts), by one block of threads or several.
#pragma once

#include "cuda/fronts/front.cuh"

namespace qrane::backend::cuda {

/// Row layout of one front. Blocks share the copying of a layout that is as the analysis said; any other is made by
/// block 0 of them alone. `work`: shared memory for `capacity` numbers, where that is enough for tables of the rows and
/// columns; children are taken `batch` at a time.
template <class T, int batch>
class FrontLayout {
 public:
  struct Shared {
    std::int64_t columns[batch], slots[batch], full_slots[batch], ids[batch];  // where those of its rows begin
    std::int32_t begin[batch + 1];                                             // of its rows among those of the batch
  };

  __device__ FrontLayout(const Fronts<Cuda, T>& fronts, const FrontShape& front, Shared& s, std::int32_t* work,
                         int capacity)
      : f(fronts),
        shape(front),
        shared(s),
        stair(f.stair + shape.columns),
        own_slot(f.own_slot + shape.first_row),
        row_ids(f.row_ids + shape.row_ids) {
    const bool fits = shape.rows_bound + 2 * shape.cols <= capacity;
    key = fits ? work : row_ids;
    cursor = fits ? work + shape.rows_bound : f.pivot + shape.columns;  // pivot: nobody has written it yet
    end = fits ? cursor + shape.cols : stair;
  }

  /// Rows of the front; -1 in blocks that have nothing to do with it. Ends with a barrier.
  __device__ int run(int block, int blocks) {
    bool same = true;
    for (int c = threadIdx.x; c < shape.child_count; c += blockDim.x) {
      const int child = f.children[shape.children + c];
      same = same && f.states[child].cb_rows == f.shapes[child].cb_rows;
    }
    int rows = shape.full_rows;
    if (__syncthreads_and(same)) {
      copy(block, blocks);
    } else {
      if (block > 0) return -1;
      rows = count_rows();
      place();
    }
    __syncthreads();
    return rows;
  }

 private:
  static constexpr int own_key = -1;

  /// visit(child's place in `shared`, its number among the children, row of its contribution block) by a thread for
  /// each row. The blocks share the rows.
  template <class Visit>
  __device__ void for_child_rows(int block, int blocks, Visit&& visit) const {
    const int thread = threadIdx.x, at_once = min(batch, static_cast<int>(blockDim.x));
    for (int base = 0; base < shape.child_count; base += at_once) {
      int rows = 0;
      if (thread < at_once && base + thread < shape.child_count) {
        const int child = f.children[shape.children + base + thread];
        const FrontShape& from = f.shapes[child];
        const FrontState& state = f.states[child];
        rows = state.cb_rows;
        shared.columns[thread] = from.columns + from.pivots;
        shared.slots[thread] = from.slots;
        shared.full_slots[thread] = from.full_slots;
        shared.ids[thread] = from.row_ids + state.r_rows;
      }
      int total;
      const int scanned = block_scan(rows, total);
      if (thread < at_once) shared.begin[thread + 1] = scanned;
      if (thread == 0) shared.begin[0] = 0;
      __syncthreads();
      for (int row = block * blockDim.x + thread; row < total; row += blocks * blockDim.x) {
        int low = 0, high = at_once - 1;  // the last child that begins at or before this row
        while (low < high) {
          const int middle = (low + high + 1) / 2;
          if (shared.begin[middle] <= row)
            low = middle;
          else
            high = middle - 1;
        }
        visit(low, base + low, row - shared.begin[low]);
      }
      __syncthreads();
    }
  }
  __device__ int column_of(int place, int row) const { return f.parent_col[shared.columns[place] + row]; }

  /// The analysis's layout, and row numbers.
  __device__ void copy(int block, int blocks) {
    const int first = block * blockDim.x + threadIdx.x, step = blocks * blockDim.x;
    for (int j = first; j < shape.cols; j += step) stair[j] = f.full_stair[shape.columns + j];
    for (int r = first; r < shape.own_rows; r += step) {
      const int slot = f.full_own_slot[shape.first_row + r];
      own_slot[r] = slot;
      row_ids[slot] = static_cast<std::int32_t>(shape.first_row) + r;
    }
    for_child_rows(block, blocks, [&](int place, int, int row) {
      const int slot = f.full_cb_slot[shared.full_slots[place] + row];
      f.cb_slot[shared.slots[place] + row] = slot;
      row_ids[slot] = f.row_ids[shared.ids[place] + row];
    });
  }

  /// The staircase by counting; `cursor` of a column becomes its first row.
  __device__ int count_rows() {
    for (int j = threadIdx.x; j < shape.cols; j += blockDim.x) end[j] = 0;
    __syncthreads();
    for (int r = threadIdx.x; r < shape.own_rows; r += blockDim.x)
      atomicAdd(&end[f.own_column[shape.first_row + r]], 1);
    for_child_rows(0, 1, [&](int place, int, int row) { atomicAdd(&end[column_of(place, row)], 1); });
    __syncthreads();
    int rows = 0;
    for (int first = 0; first < shape.cols; first += blockDim.x) {
      const int j = first + static_cast<int>(threadIdx.x);
      const int count = j < shape.cols ? end[j] : 0;
      int total;
      const int last = rows + block_scan(count, total);
      if (j < shape.cols) stair[j] = end[j] = last, cursor[j] = last - count;
      rows += total;
    }
    __syncthreads();
    return rows;
  }

  /// Rows of one column in their order: own ones first, then by child. A child has one row of each column at most, so
  /// its place among the others of its column is found by their numbers, the keys.
  __device__ void place() {
    for (int r = threadIdx.x; r < shape.own_rows; r += blockDim.x) {
      const int col = f.own_column[shape.first_row + r];
      const std::int32_t* const full_stair = f.full_stair + shape.columns;
      const int in_column = f.full_own_slot[shape.first_row + r] - (col > 0 ? full_stair[col - 1] : 0);
      const int slot = (col > 0 ? end[col - 1] : 0) + in_column;
      own_slot[r] = slot;
      key[slot] = own_key;
      atomicAdd(&cursor[col], 1);
    }
    __syncthreads();
    for_child_rows(0, 1, [&](int place, int c, int row) { key[atomicAdd(&cursor[column_of(place, row)], 1)] = c; });
    __syncthreads();
    for_child_rows(0, 1, [&](int place, int c, int row) {
      const int col = column_of(place, row), first = col > 0 ? end[col - 1] : 0;
      int later = 0;
      for (int p = end[col] - 1; p >= first; --p) {
        const int other = key[p];
        if (other == own_key) break;
        later += other > c;
      }
      f.cb_slot[shared.slots[place] + row] = end[col] - 1 - later;
    });
    __syncthreads();
    for (int r = threadIdx.x; r < shape.own_rows; r += blockDim.x)
      row_ids[own_slot[r]] = static_cast<std::int32_t>(shape.first_row) + r;
    for_child_rows(0, 1, [&](int place, int, int row) {
      row_ids[f.cb_slot[shared.slots[place] + row]] = f.row_ids[shared.ids[place] + row];
    });
  }

  const Fronts<Cuda, T>& f;
  const FrontShape& shape;
  Shared& shared;
  std::int32_t* const stair;
  std::int32_t* const own_slot;
  std::int32_t* const row_ids;
  std::int32_t *key, *cursor, *end;  // of rows; of columns
};

}  // namespace qrane::backend::cuda
