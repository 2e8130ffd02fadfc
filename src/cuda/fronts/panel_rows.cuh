// SPDX-License-Identifier: Apache-2.0
// A front's panel (panel.cu): the rows of a block, in device or shared memory or a strip of them in registers.
#pragma once

#include "cuda/fronts/panel.cuh"

namespace qrane::backend::cuda::front_panel {

/// The panel's rows of this block, in device or in shared memory; (row, col) counts from the block's first row.
/// `whole`: all of what is asked for is there.
template <class T, bool whole>
struct GlobalRows {
  T* a;
  std::int64_t ld;
  int rows, cols;

  __device__ double operator()(int row, int col) const {
    return whole || (row < rows && col < cols) ? static_cast<double>(a[row + col * ld]) : 0.0;
  }
  __device__ void set(int row, int col, double x) const {
    if (whole || (row < rows && col < cols)) a[row + col * ld] = static_cast<T>(x);
  }
  __device__ GlobalRows<T, true> all() const { return {a, ld, rows, cols}; }
  __device__ GlobalRows from(int col) const { return {a + col * ld, ld, rows, cols - col}; }
};
struct SharedRows {
  double* a;
  int ld;  // 4 more than a multiple of 16: lanes (g, t) at row t of column g meet no bank twice

  __device__ double operator()(int row, int col) const { return a[row + col * ld]; }
  __device__ void set(int row, int col, double x) const { a[row + col * ld] = x; }
  __device__ SharedRows from(int col) const { return {a + col * ld, ld}; }
};

/// A panel and how far it has come; the same in all threads.
template <class T>
struct Panel {
  GlobalRows<T, false> device;  // this block's rows
  T *corner, *t;                // of the panel's columns
  int rows;                     // of this block
  int room;                     // rows of the front from the panel's first one on
  int cols, ld_corner;
  int stair_of_lane;      // lane j: of column j, counted from the panel's first row
  int live = 0;           // columns
  unsigned live_set = 0;  // which

  __device__ int live_before(int col) const { return __popc(live_set & ((1u << col) - 1)); }
  __device__ bool is_live(int col) const { return (live_set >> col & 1) != 0; }
  __device__ void count(int col, bool is_live) {
    live += is_live;
    live_set |= static_cast<unsigned>(is_live) << col;
  }
  __device__ void take_back(int col) {
    live -= is_live(col);
    live_set &= ~(1u << col);
  }
};

/// The panel but for its first strip into shared memory, with zeros up to a multiple of 8 rows; there after a barrier,
/// and where it says true after b.copy_box: columns that begin at multiples of 16 bytes are copied by one thread.
template <class T, int warps>
__device__ bool load_rows(const Panel<T>& panel, Block<warps>& b, const SharedRows& p) {
  const T* const source = panel.device.a;
  const bool bulk = BulkCopy::exists && sizeof(T) == 8 && reinterpret_cast<std::uint64_t>(source) % 16 == 0 &&
                    panel.device.ld % 2 == 0 && panel.rows > 1 && panel.cols > width;
  const int rounded = (panel.rows + 7) / 8 * 8, copied = bulk ? panel.rows / 2 * 2 : 0;
  if (bulk && threadIdx.x == 0) {
    const BulkCopy copy{b.copy_box};
    b.copy_box.expect((panel.cols - width) * copied * 8);
    for (int col = width; col < panel.cols; ++col) copy(p.a + col * p.ld, source + col * panel.device.ld, copied * 8);
  }
  for (int row = copied + threadIdx.x; row < rounded; row += warps * 32) {
#pragma unroll 24
    for (int col = width; col < panel.cols; ++col) p.set(row, col, panel.device(row, col));
  }
  return bulk;
}

/// A strip in registers: R rows of a thread.
template <int R, int warps, class Rows>
__device__ void load_strip(const Rows& strip, int rows, double (&a)[R][width]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int row = r * warps * 32 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < width; ++k) a[r][k] = row < rows ? strip(row, k) : 0.0;
  }
}

/// V of a strip to device memory and, with zeros up to a multiple of 8 rows, to shared memory.
template <int R, int warps, class T>
__device__ void store_strip(const GlobalRows<T, false>& device, const SharedRows& shared, const double (&a)[R][width]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int row = r * warps * 32 + threadIdx.x;
    if (row >= (device.rows + 7) / 8 * 8) break;
    T* target = device.a + row;
#pragma unroll
    for (int k = 0; k < width; ++k, target += device.ld) {
      shared.set(row, k, a[r][k]);
      if (row < device.rows && k < device.cols) *target = static_cast<T>(a[r][k]);
    }
  }
}

}  // namespace qrane::backend::cuda::front_panel
