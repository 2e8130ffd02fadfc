// SPDX-License-Identifier: Apache-2.0
// A front in the shared memory of one block, factored column by column, and what goes back to global memory. In shared
// memory column j has R in its first rows and, below row pivot[j], its reflector without the leading one.
// blocked.cuh factors most fronts faster; this way takes any.
#pragma once

#include "cuda/collectives/panel.cuh"
#include "cuda/collectives/warp.cuh"
#include "cuda/fronts/front.cuh"

namespace qrane::backend::cuda {

/// What step j of a Householder QR does, found from its column alone. The same decisions as sparse/host/front_qr.cpp.
template <class T>
class Reflection {
 public:
  T beta = 0, tau = 0, inverse = 0;  // v = [1; x inverse]
  double dropped = 0;                // square of the norm of what was dropped
  bool live = true;

  /// alpha and the sum of squares below it, of a column that was multiplied by 2^exponent; limit < 0: it stays.
  __device__ Reflection(T alpha, T tail, double limit, int exponent) : beta(alpha) {
    constexpr T least = sizeof(T) == 4 ? T(1e-34) : T(1e-290);  // squares below this underflow
    const T squares = fma(alpha, alpha, tail);
    const Roots roots = roots_of(squares, abs(alpha));
    const T norm = tail <= least ? sqrt(squares) : squares * roots.norm;
    if (static_cast<double>(norm) <= limit) {
      const double true_norm = ldexp(static_cast<double>(norm), -exponent);
      live = false;
      beta = 0;
      dropped = true_norm * true_norm;
      return;
    }
    if (tail <= least) return;  // H = I; NaN goes on and spreads
    beta = -copysign(norm, alpha);
    tau = roots.tau;
    inverse = copysign(roots.inverse, alpha);
  }

 private:
  struct Roots {
    T norm, tau, inverse;  // 1 / norm; (beta - alpha) / beta; 1 / (size + norm)
  };
  __device__ static Roots roots_of(T squares, T size) {
    if constexpr (sizeof(T) == 4) {
      const T root = reciprocal_root(squares);
      return {root, fma(size, root, T(1)), reciprocal(fma(squares, root, size))};
    } else {  // both reciprocals begin from what 20 bits of the root say: everything waits for them
      double rough, reciprocal;
      asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(squares));
      asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(reciprocal) : "d"(fma(size, rough, 1.0)));
      const double e = fma(-squares * rough, rough, 1.0);
      const double root = fma(fma(0.375, e, 0.5), rough * e, rough), tau = fma(size, root, 1.0);
      const double f = fma(-tau, reciprocal, 1.0);
      return {root, tau, root * fma(fma(f, f, f), reciprocal, reciprocal)};
    }
  }
};

/// What steps and warps ask for again and again, of a front that has at most so many columns.
struct WholeColumns {
  static constexpr int most = 256;
  std::int32_t pivot[most], stair[most];
};

/// How far the factorization of a front has come, or what came of it.
struct FrontProgress {
  int row = 0;        // of the next pivot
  int r_rows = 0;     // live pivotal columns
  int full_from = 0;  // no rows are left from that column on
  double dropped = 0;
};

/// The front of a block. All threads call every member together.
template <class T>
class WholeFront {
 public:
  /// near: shared memory for what is known of columns, if there are so few of them.
  __device__ WholeFront(const Fronts<Cuda, T>& fronts, const FrontShape& front_shape, int front_rows, T* s_matrix,
                        int s_ld, WholeColumns& near)
      : f(fronts),
        shape(front_shape),
        a(s_matrix),
        ld(s_ld),
        rows(front_rows),
        all_cols(front_shape.cols + fronts.rhs_cols),
        tolerance(tolerance_of(fronts)),
        pivot(is_near() ? near.pivot : f.pivot + shape.columns),
        stair(is_near() ? near.stair : f.stair + shape.columns) {
    if (is_near())
      for (int j = threadIdx.x; j < shape.cols; j += blockDim.x) near.stair[j] = f.stair[shape.columns + j];
  }

  __device__ void zero() const {
    for (int i = threadIdx.x; i < all_cols * ld; i += blockDim.x) a[i] = T(0);
  }

  /// Column by column: every warp finds the reflector for itself and applies it to its columns, so that one barrier a
  /// column is enough. The column itself is finished one step later, when no warp reads it any more.
  __device__ void factor(bool keep_q) {
    Step last;
    int j = 0;
    for (; j < shape.cols && progress.row < rows; ++j) {
      __syncthreads();
      finish_column(last);
      const int row = progress.row, height = min(rows, max(stair[j], row + 1));
      const T* const x = a + j * ld;
      T tail = 0;
      for (int i = row + 1 + lane; i < height; i += warp_size) tail = fma(x[i], x[i], tail);
      const bool pivotal = j < shape.pivots;
      const int exponent = pivotal && f.exponents != nullptr ? f.exponents[shape.first_col + j] : 0;
      const Reflection<T> h(x[row], warp_sum(tail), pivotal ? drop_limit(f, tolerance, exponent) : -1.0, exponent);
      if (h.tau != T(0)) reflect(j, row, height, h);
      last = {j, row, height, h.beta, h.inverse};
      if (threadIdx.x == 0) {
        pivot[j] = h.live ? row : -1;
        if (keep_q) t_column(j)[j % f.panel] = h.tau;
      }
      progress.dropped += h.dropped;
      progress.row += h.live;
      if (pivotal) progress.r_rows = progress.row;
    }
    __syncthreads();
    finish_column(last);
    progress.full_from = j;
  }

  /// Everything to global memory, but for T, of which there will be zeros in columns that have no rows.
  __device__ void store(int front, bool keep_q) {
    for (int j = progress.full_from + warp; j < shape.cols; j += warps) {
      if (lane == 0) pivot[j] = -1;
      if (keep_q && lane < f.panel) t_column(j)[lane] = T(0);
    }
    __syncthreads();
    store_panels();
    __syncthreads();
    if (is_near())
      for (int j = threadIdx.x; j < shape.cols; j += blockDim.x) f.pivot[shape.columns + j] = pivot[j];
    for (int j = warp; j < shape.cols; j += warps) store_column(j, keep_q);
    const std::int32_t* const ids = f.row_ids + shape.row_ids;
    for (int j = shape.cols; j < all_cols; ++j) {
      T* const rhs = f.rhs + (j - shape.cols) * f.rhs_ld;
      for (int i = threadIdx.x; i < rows; i += blockDim.x) rhs[ids[i]] = a[j * ld + i];
    }
    if (threadIdx.x == 0)
      f.states[front] = {progress.dropped, rows, progress.row, progress.r_rows,
                         min(rows - progress.r_rows, shape.cols - shape.pivots)};
  }

  /// T of every panel from tau, which factor() left on its diagonal: T(0:j, j) = -tau_j T(0:j, 0:j) V(:, 0:j)^T v_j.
  __device__ void make_t() const {
    for (int j = warp; j < shape.cols; j += warps) {
      T* const t = t_column(j);
      const int first = j / f.panel * f.panel, p = pivot[j];
      for (int c = first; c < j; ++c) {
        T sum = 0;
        if (p >= 0 && pivot[c] >= 0) {
          for (int i = p + lane; i < rows; i += warp_size) sum = fma(i == p ? T(1) : a[j * ld + i], a[c * ld + i], sum);
          sum = warp_sum(sum);
        }
        if (lane == 0) t[c - first] = sum;
      }
      for (int i = j - first + 1 + lane; i < f.panel; i += warp_size) t[i] = T(0);
    }
    __syncthreads();
    for (int first = warp * f.panel; first < shape.cols; first += warps * f.panel) {
      for (int j = 1; j < min(f.panel, shape.cols - first); ++j) {
        T* const t = t_column(first + j);
        const T tau = t[j];
        T sum = 0;
        for (int k = 0; k < j; ++k)
          if (lane <= k) sum = fma(t_column(first + k)[lane], t[k], sum);
        __syncwarp();
        if (lane < j) t[lane] = -tau * sum;
        __syncwarp();
      }
    }
  }

  const Fronts<Cuda, T>& f;
  const FrontShape& shape;
  T* const a;
  const int ld, rows, all_cols;
  const double tolerance;
  std::int32_t* const pivot;
  const std::int32_t* const stair;
  FrontProgress progress;

  __device__ T* t_column(int j) const { return f.storage + shape.t + static_cast<std::int64_t>(j) * f.panel; }

 private:
  struct Step {
    int col = -1, row = 0, height = 0;
    T beta = 0, inverse = 0;
  };

  __device__ void finish_column(const Step& step) const {
    if (step.col < 0 || step.col % warps != warp) return;
    T* const x = a + step.col * ld;
    for (int i = step.row + 1 + lane; i < step.height; i += warp_size) x[i] *= step.inverse;
    if (lane == 0) x[step.row] = step.beta;
  }

  /// H = I - tau v v^T on this warp's columns right of j, four at a time.
  __device__ void reflect(int j, int row, int height, const Reflection<T>& h) const {
    constexpr int C = 4;
    const T* const x = a + j * ld;
    const int next = j + 1 + (warp - (j + 1) % warps + warps) % warps;
    for (int c = next; c < all_cols; c += C * warps) {
      T* const column = a + c * ld;
      const int step = warps * ld, count = min(C, (all_cols - c + warps - 1) / warps);
      T sums[C] = {};
      for (int i = row + 1 + lane; i < height; i += warp_size) {
#pragma unroll
        for (int k = 0; k < C; ++k)
          if (k < count) sums[k] = fma(x[i], column[k * step + i], sums[k]);
      }
#pragma unroll
      for (int k = 0; k < C; ++k) {
        const T head = k < count ? column[k * step + row] : T(0);
        const T w = h.tau * fma(warp_sum(sums[k]), h.inverse, head);
        __syncwarp();
        if (lane == 0 && k < count) column[k * step + row] = head - w;
        sums[k] = -w * h.inverse;
      }
      for (int i = row + 1 + lane; i < height; i += warp_size) {
#pragma unroll
        for (int k = 0; k < C; ++k)
          if (k < count) column[k * step + i] = fma(sums[k], x[i], column[k * step + i]);
      }
    }
  }

  /// Rows of R of column j, asked by a whole warp.
  __device__ int rows_of_r(int j) const { return j >= progress.full_from ? rows : live_columns(pivot, j); }

  __device__ bool is_near() const { return shape.cols <= WholeColumns::most; }

  __device__ void store_panels() const {
    for (int first = warp * f.panel; first < shape.cols; first += warps * f.panel) {
      const int last = min(first + f.panel, shape.cols) - 1;
      const int first_row = rows_of_r(first - 1), end = rows_of_r(last), before_last = rows_of_r(last - 1);
      const int height = before_last < rows ? max(end, min(rows, max(stair[last], before_last + 1))) : rows;
      if (lane == 0) f.panels[shape.panels + first / f.panel] = {first_row, height - first_row, end - first_row, 0};
    }
  }

  /// R packed, the contribution block, and V with its ones and zeros; a warp.
  __device__ void store_column(int j, bool keep_q) const {
    const int first_row = rows_of_r(j / f.panel * f.panel - 1);
    const T* const x = a + j * ld;
    const int count = rows_of_r(j), p = pivot[j];
    const bool pivotal = j < shape.pivots;
    const int first = min(j, shape.pivots);
    T* const packed = f.r + shape.r + packed_offset(first, shape.r_bound) + std::int64_t{j - first} * shape.r_bound;
    for (int i = lane; i < (pivotal ? count : progress.r_rows); i += warp_size) packed[i] = x[i];
    T* const matrix = f.storage + shape.matrix + static_cast<std::int64_t>(j) * shape.ld;
    T* const corner = f.storage + shape.corner + static_cast<std::int64_t>(j) * f.panel - first_row;
    for (int i = (keep_q ? 0 : pivotal ? count : progress.r_rows) + lane; i < count; i += warp_size)
      (i < first_row ? matrix : corner)[i] = x[i];
    if (!keep_q) return;
    const int height = f.panels[shape.panels + j / f.panel].height;
    for (int i = first_row + lane; i < first_row + height; i += warp_size)
      matrix[i] = i < count - 1 || p < 0 ? T(0) : i == p ? T(1) : x[i];
  }

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int warps = static_cast<int>(blockDim.x) / warp_size;
};

}  // namespace qrane::backend::cuda
