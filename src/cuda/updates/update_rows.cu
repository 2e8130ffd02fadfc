// SPDX-License-Identifier: Apache-2.0
// Rows in and out of small factorizations of which R and d are kept (RowUpdate in vocabulary/updates.hpp): one block
// per matrix, [R d] in shared memory, by rows, from the first row that comes to the last that goes.
//
// A row in is a chain of n rotations, each of which needs the row as the one before left it: one warp takes it, columns
// across its lanes, so that a step is a broadcast, a reciprocal root and two fused products. The next row in is the
// next warp's, two rows of R behind, where a barrier a step keeps it. Rows out, after Saunders, have their chain in a
// triangular solve, whose steps are shorter; the rotations are then sums of squares from the bottom up, found at once,
// and every column of R is a thread's. d follows with the rotations kept, a thread per right-hand side. What would
// overflow or vanish when squared is scaled by powers of two first: whole columns where any number is extreme, each
// rotation's two numbers where cancellation has made them so.
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/updates.hpp"
#include "cuda/updates/rotation.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256;
constexpr int d_cols = 16;  // of d in shared memory at a time

/// Where things lie in shared memory.
template <class T>
struct Space {
  T *r, *d, *a, *unscale, *inverse, *alpha;
  T* rows;                 // n per row, likewise
  Rotation<T>* rotations;  // n per row, of rows in and then of rows out

  static __host__ __device__ int ld(int n) { return n | 1; }
  static std::size_t bytes(int n, int in, int out) {
    return sizeof(T) *
           static_cast<std::size_t>(3 * n * (in + out) + n * ld(n) + n * (d_cols + 1) + n * out + 2 * n + out);
  }
  __device__ Space(unsigned char* shared, int n, int in, int out) {
    rotations = reinterpret_cast<Rotation<T>*>(shared);
    r = reinterpret_cast<T*>(rotations + n * (in + out));
    d = r + n * ld(n);
    a = d + n * (d_cols + 1);
    unscale = a + n * out;
    inverse = unscale + n;
    alpha = inverse + n;
    rows = alpha + out;
  }
};

template <class T>
__device__ const T* of_batch(const DeviceMatrix<Cuda, T>& a) {
  return a.data + blockIdx.x * a.stride;
}

/// R by rows, zeros below, and the rows that come and go; whether anything in them is extreme.
template <class T>
__device__ bool load_r(const RowUpdate<Cuda, T>& task, const Space<T>& s, int n) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, ld = Space<T>::ld(n);
  const T* g_r = of_batch(task.r);
  bool extreme = false;
#pragma unroll 4
  for (int j = warp; j < n; j += threads / 32) {
#pragma unroll
    for (int i = lane; i < 128; i += 32) {
      if (i >= n) break;
      const T x = i <= j ? g_r[i + j * task.r.ld] : T(0);
      extreme |= is_extreme(x);
      s.r[i * ld + j] = x;
    }
  }
  const auto load = [&](const DeviceMatrix<Cuda, T>& rows, T* s_rows) {
    for (int e = threadIdx.x; e < rows.rows * n; e += threads) {
      const T x = of_batch(rows)[e / n + e % n * rows.ld];
      extreme |= is_extreme(x);
      s_rows[e] = x;
    }
  };
  load(task.rows_in, s.rows);
  load(task.rows_out, s.rows + task.rows_in.rows * n);
  return extreme;
}

/// Columns of R scaled to a largest magnitude near 1, over the rows that come and go as well.
template <class T>
__device__ void scale_columns(const Space<T>& s, int n, int rows) {
  for (int j = threadIdx.x; j < n; j += threads) {
    int largest = 0;
    for (int i = 0; i <= j; ++i) largest = max(largest, magnitude(s.r[i * s.ld(n) + j]));
    for (int i = 0; i < rows; ++i) largest = max(largest, magnitude(s.rows[i * n + j]));
    const int e = scale_exponent<T>(largest);
    const T scale = Bits<T>::power_of_two(-e);
    for (int i = 0; i <= j; ++i) s.r[i * s.ld(n) + j] *= scale;
    for (int i = 0; i < rows; ++i) s.rows[i * n + j] *= scale;
    s.unscale[j] = Bits<T>::power_of_two(e);
  }
}

/// This lane's numbers of a row: columns lane, lane + 32, ...
template <class T, int C>
__device__ void read(T (&x)[C], const T* s_row, int n) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    const int j = threadIdx.x % 32 + 32 * c;
    x[c] = j < n ? s_row[j] : T(0);
  }
}

/// The block, whose warps come to the barrier as a whole: lanes that part ways on the way there are together again.
__device__ inline void all_here() {
  __syncwarp();
  __syncthreads();
}

/// The end of a step of row_in: with one row its warp waits for nobody.
__device__ inline void end_step(int in) {
  if (in > 1)
    all_here();
  else
    __syncwarp();
}

/// Warp w: row first + w comes in, of `in` that come at once. In step t it turns row t - 2 w of R, with the next one on
/// its way: the warp before has left that one a step ago. Where several come, warps without a row keep step (a barrier
/// of the others alone is one that racecheck does not follow).
template <class T, int C>
__device__ void row_in(const Space<T>& s, int n, int first, int in) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, which = first + warp, ld = s.ld(n);
  if (warp >= in) {
    for (int step = 0; in > 1 && step < n + 2 * (in - 1); ++step) end_step(in);
    return;
  }
  T x[C], r[C];
  read(x, s.rows + which * n, n);
  for (int step = 0; step < 2 * warp; ++step) end_step(in);
  read(r, s.r, n);
#pragma unroll
  for (int slot = 0; slot < C; ++slot)
    for (int k = 32 * slot; k < min(n, 32 * slot + 32); ++k) {
      T next[C];
      if (k + 1 < n) read(next, s.r + (k + 1) * ld, n);
      T h;
      const Rotation<T> rotation =
          make_rotation(__shfl_sync(full_warp, r[slot], k % 32), __shfl_sync(full_warp, x[slot], k % 32), h);
#pragma unroll
      for (int c = slot; c < C; ++c) {
        const int j = lane + 32 * c;
        const T a = rotation.c * r[c] + rotation.s * x[c];
        x[c] = j == k ? T(0) : rotation.c * x[c] - rotation.s * r[c];
        if (j < n) s.r[k * ld + j] = j == k ? h : a;
        r[c] = next[c];
      }
#pragma unroll
      for (int c = 0; c < slot; ++c) r[c] = next[c];
      if (lane == 0) s.rotations[which * n + k] = rotation;
      end_step(in);
    }
  for (int step = 2 * warp; step < 2 * (in - 1); ++step) end_step(in);
}

/// One warp: a with Rᵀ a = row `which` (those that come counted), and the rotations that it asks for; false where
/// nothing is left.
template <class T, int C>
__device__ bool solve_out(const Space<T>& s, int n, int in, int which) {
  const int lane = threadIdx.x % 32, ld = s.ld(n);
  T x[C], r[C], a[C];
  read(x, s.rows + which * n, n);
  read(r, s.r, n);
#pragma unroll
  for (int slot = 0; slot < C; ++slot) {
    a[slot] = 0;
    for (int k = 32 * slot; k < min(n, 32 * slot + 32); ++k) {
      T next[C] = {};
      if (k + 1 < n) read(next, s.r + (k + 1) * ld, n);
      const T left = __shfl_sync(full_warp, x[slot], k % 32), one = left == T(0) ? T(0) : left * s.inverse[k];
      if (lane == k % 32) a[slot] = one;
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (c >= slot) x[c] -= one * r[c];
        r[c] = next[c];
      }
    }
  }
  T before[C], after[C];  // sums of a's squares ahead of each of mine, and from it on
  T total = 0, rest = 0;
#pragma unroll
  for (int c = 0; c < C; ++c) {
    T sum = a[c] * a[c];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const T other = __shfl_up_sync(full_warp, sum, step);
      if (lane >= step) sum += other;
    }
    const T ahead = __shfl_up_sync(full_warp, sum, 1);
    before[c] = total + (lane > 0 ? ahead : T(0));
    total += __shfl_sync(full_warp, sum, 31);
  }
#pragma unroll
  for (int c = C - 1; c >= 0; --c) {
    T sum = a[c] * a[c];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const T other = __shfl_down_sync(full_warp, sum, step);
      if (lane + step < 32) sum += other;
    }
    after[c] = rest + sum;
    rest += __shfl_sync(full_warp, sum, 0);
  }
  const T left = 1 - total;
  if (!(left > static_cast<T>(RowUpdate<Cuda, T>::least_left(n)))) return false;
  // What a_0 .. a_(k-1) leave of 1, from whichever end is the more accurate. (Near 1 a root of a sum from the other end
  // is rounded down more often than up, and R's first columns would grow in a long window.)
  T root[C];
#pragma unroll
  for (int c = 0; c < C; ++c) root[c] = sqrt(before[c] < T(0.5) ? 1 - before[c] : left + after[c]);
#pragma unroll
  for (int c = 0; c < C; ++c) {
    const T below = __shfl_down_sync(full_warp, root[c], 1);
    const T beyond = c + 1 < C ? __shfl_sync(full_warp, root[c + 1 < C ? c + 1 : c], 0) : sqrt(left);
    const int k = lane + 32 * c;
    if (k >= n) continue;
    const T next = k + 1 == n ? sqrt(left) : lane < 31 ? below : beyond;
    s.rotations[which * n + k] = {next / root[c], a[c] / root[c]};
    s.a[(which - in) * n + k] = a[c];
  }
  if (lane == 0) s.alpha[which - in] = sqrt(left);
  return true;
}

/// Column of R or d: (value, y) := rotation from the bottom up, over rows `last` .. 0.
template <class T>
__device__ void turn_up(T* s_column, int ld, const Rotation<T>* s_rotations, int last, T y) {
  constexpr int batch = 8;
  for (int i0 = last; i0 >= 0; i0 -= batch) {
    T x[batch];
    Rotation<T> rotation[batch];
#pragma unroll
    for (int v = 0; v < batch; ++v) {
      x[v] = i0 >= v ? s_column[(i0 - v) * ld] : T(0);
      rotation[v] = i0 >= v ? s_rotations[i0 - v] : Rotation<T>{T(1), T(0)};
    }
#pragma unroll
    for (int v = 0; v < batch; ++v) {
      const T fresh = rotation[v].c * x[v] - rotation[v].s * y;
      y = rotation[v].c * y + rotation[v].s * x[v];
      if (i0 >= v) s_column[(i0 - v) * ld] = fresh;
    }
  }
}

/// d's columns first .. first + d_cols - 1: between memory and s_d, by rows.
template <bool store, class T>
__device__ void move_d(const RowUpdate<Cuda, T>& task, T* s_d, int n, Index first) {
  const int cols = static_cast<int>(min(Index(d_cols), task.d.cols - first));
  T* g_d = task.d.data + blockIdx.x * task.d.stride + first * task.d.ld;
  for (int e = threadIdx.x; e < cols * n; e += threads) {
    T& memory = g_d[e % n + e / n * task.d.ld];
    T& shared = s_d[e % n * (d_cols + 1) + e / n];
    if constexpr (store)
      memory = shared;
    else
      shared = memory;
  }
}

/// One thread: all that comes and goes, for right-hand side `first + col`.
template <class T>
__device__ void update_d(const RowUpdate<Cuda, T>& task, const Space<T>& s, int n, Index first, int col) {
  constexpr int ld = d_cols + 1;
  T* const s_d = s.d + col;
  const int in = static_cast<int>(task.rows_in.rows), out = static_cast<int>(task.rows_out.rows);
  const T* e_in = of_batch(task.e_in) + (first + col) * task.e_in.ld;
  const T* e_out = of_batch(task.e_out) + (first + col) * task.e_out.ld;
  int largest = 0;
  for (int i = 0; i < n; ++i) largest = max(largest, magnitude(s_d[i * ld]));
  for (int i = 0; i < in; ++i) largest = max(largest, magnitude(e_in[i]));
  for (int i = 0; i < out; ++i) largest = max(largest, magnitude(e_out[i]));
  const int exponent = scale_exponent<T>(largest);
  const T scale = Bits<T>::power_of_two(-exponent), unscale = Bits<T>::power_of_two(exponent);
  for (int i = 0; i < n; ++i) s_d[i * ld] *= scale;
  double change = 0;
  for (int row = 0; row < in; ++row) {
    T y = e_in[row] * scale;
#pragma unroll 8
    for (int k = 0; k < n; ++k) {
      const Rotation<T> rotation = s.rotations[row * n + k];
      const T x = s_d[k * ld];
      s_d[k * ld] = rotation.c * x + rotation.s * y;
      y = rotation.c * y - rotation.s * x;
    }
    change += static_cast<double>(y) * y;
  }
  for (int row = 0; row < out; ++row) {
    T y = e_out[row] * scale;
#pragma unroll 8
    for (int k = 0; k < n; ++k) y -= s.a[row * n + k] * s_d[k * ld];
    y /= s.alpha[row];
    turn_up(s_d, ld, s.rotations + (in + row) * n, n - 1, y);
    change -= static_cast<double>(y) * y;
  }
  for (int i = 0; i < n; ++i) s_d[i * ld] *= unscale;
  if (task.squares != nullptr) {
    double& square = task.squares[blockIdx.x * task.d.cols + first + col];
    square = fmax(0.0, square + change * unscale * unscale);
  }
}

template <class T, int C>
__global__ void __launch_bounds__(threads) update_rows_kernel(const std::int32_t* condition, RowUpdate<Cuda, T> task) {
  if (skipped(condition)) return;
  extern __shared__ __align__(16) unsigned char shared[];
  const int n = static_cast<int>(task.r.cols), warp = threadIdx.x / 32;
  const int in = static_cast<int>(task.rows_in.rows), out = static_cast<int>(task.rows_out.rows);
  const Space<T> s(shared, n, in, out);
  __shared__ bool s_taken;
  if (threadIdx.x == 0) s_taken = true;
  for (int j = threadIdx.x; j < n; j += threads) s.unscale[j] = 1;
  if (task.d.cols > 0) move_d<false>(task, s.d, n, 0);
  const bool extreme = load_r(task, s, n);
  __syncwarp();
  if (__syncthreads_or(extreme)) {
    scale_columns(s, n, in + out);
    all_here();
  }
  for (int first = 0; first < in; first += threads / 32) {
    const int together = min(in - first, threads / 32);
    if (first > 0) all_here();
    row_in<T, C>(s, n, first, together);
  }
  for (int row = 0; row < out; ++row) {
    all_here();
    if (threadIdx.x < n) s.inverse[threadIdx.x] = 1 / s.r[threadIdx.x * s.ld(n) + threadIdx.x];
    all_here();
    if (warp == 0 && !solve_out<T, C>(s, n, in, in + row)) s_taken = false;
    all_here();
    if (!s_taken) {
      if (threadIdx.x == 0 && task.refused != nullptr) ++task.refused[blockIdx.x];
      return;
    }
    // rows below a column's own are zero, and its warp's columns may as well share a length
    const int last = min(n, static_cast<int>(threadIdx.x | 31u) + 1) - 1;
    if (threadIdx.x < n) turn_up(s.r + threadIdx.x, s.ld(n), s.rotations + (in + row) * n, last, T(0));
  }
  // threads that have no column of R bring the first columns of d up to date meanwhile
  if (out == 0) all_here();
  const int d_col = static_cast<int>(threadIdx.x) - max_update_cols;
  if (d_col >= 0 && d_col < min(Index(d_cols), task.d.cols)) update_d(task, s, n, 0, d_col);
  if (out > 0) all_here();
  T* g_r = task.r.data + blockIdx.x * task.r.stride;
  for (int j = warp; j < n; j += threads / 32)
    for (int i = threadIdx.x % 32; i <= j; i += 32) g_r[i + j * task.r.ld] = s.r[i * s.ld(n) + j] * s.unscale[j];
  for (Index first = 0; first < task.d.cols; first += d_cols) {
    if (first > 0) {
      move_d<false>(task, s.d, n, first);
      all_here();
      if (threadIdx.x < min(Index(d_cols), task.d.cols - first)) update_d(task, s, n, first, threadIdx.x);
    }
    all_here();
    move_d<true>(task, s.d, n, first);
    all_here();
  }
}

template <class T, int C>
void run(const Launch& launch, const RowUpdate<Cuda, T>& task) {
  const std::size_t bytes = Space<T>::bytes(static_cast<int>(task.r.cols), static_cast<int>(task.rows_in.rows),
                                            static_cast<int>(task.rows_out.rows));
  allow_shared_memory(update_rows_kernel<T, C>, bytes, "cudaFuncSetAttribute of update_rows");
  update_rows_kernel<T, C>
      <<<static_cast<unsigned>(task.r.count), threads, bytes, launch.stream>>>(launch.condition, task);
  check_launch("update_rows kernel");
}

}  // namespace

template <class T>
void update_rows(const Queue& queue, const RowUpdate<Cuda, T>& task) {
  const Launch launch(queue);
  const Index n = task.r.cols, rows = task.rows_in.rows + task.rows_out.rows;
  detail::check(n <= max_update_cols, ErrorCode::invalid_argument, "update_rows: ", n, " columns, at most ",
                max_update_cols, " are possible");
  detail::check(rows <= max_update_rows, ErrorCode::invalid_argument, "update_rows: ", rows, " rows, at most ",
                max_update_rows, " are possible");
  if (n == 0 || rows == 0 || task.r.count == 0) return;
  if (n <= 32) return run<T, 1>(launch, task);
  if (n <= 64) return run<T, 2>(launch, task);
  run<T, 4>(launch, task);
}

template void update_rows(const Queue&, const RowUpdate<Cuda, float>&);
template void update_rows(const Queue&, const RowUpdate<Cuda, double>&);

}  // namespace qrane::backend::cuda
