// SPDX-License-Identifier: Apache-2.0
// Wavefronts of Givens rotations (Andrew, Dingle, "Implementing QR factorization updating algorithms on GPUs", 2014,
// figure 1), all of a group of fronts in two launches instead of two a stage.
//
// make_rotations: one block. At time t front j turns columns heights - t + 2j - 1 and the one right of it, so fronts
// work on pairs of columns of their own. Thread (j, r) of waves x waves turns row r for front j; the columns between
// the first front and the last lie in shared memory, a ring of ring_cols, with what comes next loaded a chunk ahead.
// Time: heights + waves steps of a reciprocal square root and two barriers, 0.4 to 0.5 microseconds each on an H200.
//
// One front alone needs no steps: the rotations follow from the norms of the row's tails, which a scan over the columns
// gives. Thread t has columns t, ... of its own chunk; c and s are normalized again, so that only the scan's rounding,
// at that of the row's norm, is left in the row.
//
// rotate: a thread has a row of X and, in registers, the waves + 1 columns that the fronts stand on; a column is read
// once and written once for all fronts. Rotations go through shared memory. Bytes: 2 rows heights elements.

#include "cuda/collectives/kernel.cuh"
#include "cuda/queue/launch.hpp"
#include "paper/cuda.hpp"

namespace qrane::backend::cuda {
namespace {

constexpr int rotate_threads = 64;
constexpr int rotate_chunk = 32;  // steps whose rotations are in shared memory
constexpr int ahead = 8;          // columns loaded before they are needed
constexpr int front_threads = 1024;
constexpr int ring_cols = 64;
constexpr int ring_chunk = 16;  // columns loaded at a time; 2 waves + 2 chunks fit the ring

/// c and s with c f + s g = r >= 0, c g - s f = 0; returns r. No overflow but of r itself: what is far from 1 is
/// scaled.
template <class T>
__device__ T givens(T f, T g, T& c, T& s) {
  constexpr T huge = sizeof(T) == 8 ? T(1e150) : T(1e18f), tiny = 1 / huge;
  c = 1, s = 0;
  if (g == T(0)) return f;
  const T most = max(abs(f), abs(g));
  const T scale = most < huge && most > tiny ? T(1) : most;
  if (scale != T(1)) f /= scale, g /= scale;
  const T square = f * f + g * g, inverse = rsqrt(square);
  c = f * inverse, s = g * inverse;
  return scale * (square * inverse);
}

template <class T, int W>
__global__ void __launch_bounds__(W* W < 32 ? 32 : W * W)
    make_rotations_kernel(const std::int32_t* condition, Rotations<Cuda, T> task) {
  if (skipped(condition)) return;
  __shared__ T ring[ring_cols][W];
  __shared__ T turn[2][W];
  const int threads = blockDim.x, tid = threadIdx.x, j = tid / W, r = tid % W;
  const Index heights = task.heights, cols = task.strip.cols, ld = task.strip.ld;
  T* const strip = task.strip.data;
  const auto load = [&](Index first, Index count) {  // columns first .. first+count-1 of the strip
    for (Index e = tid; e < count * W; e += threads) {
      const Index column = first + e / W;
      if (column >= 0 && column < cols) ring[column % ring_cols][e % W] = strip[e % W + column * ld];
    }
  };
  load(heights - 1, W + 1);
  for (Index base = 0; base < heights + W - 1; base += ring_chunk) {
    load(heights - 1 - base - ring_chunk, ring_chunk);
    __syncthreads();
    const Index end = min(base + ring_chunk, heights + W - 1);
    for (Index t = base; t < end; ++t) {
      const Index i = heights - t + j, left = i - 1 + j;  // of this thread's front
      const bool on = j < W && i >= 1 && i <= heights, there = left + 1 < cols;
      if (on && r == j) {
        T c = 1, s = 0;
        if (there) {
          T *a = ring[left % ring_cols], *b = ring[(left + 1) % ring_cols];
          a[j] = givens(a[j], b[j], c, s);
          b[j] = 0;
        }
        turn[0][j] = c, turn[1][j] = s;
        T* cs = task.cs + 2 * ((heights - i) * W + j);
        cs[0] = c, cs[1] = s;
      }
      __syncthreads();
      if (on && there && r > j) {
        T *a = ring[left % ring_cols], *b = ring[(left + 1) % ring_cols];
        const T c = turn[0][j], s = turn[1][j], x = a[r], y = b[r];
        a[r] = c * x + s * y;
        b[r] = c * y - s * x;
      }
      __syncthreads();
      const Index done =
          heights - t + 2 * W - 2;  // no front comes back to it; right of all diagonals but for small ones
      if (tid < W && done >= W && done < cols && done < heights + W)
        strip[tid + done * ld] = ring[done % ring_cols][tid];
    }
  }
  for (int e = tid; e < W * W; e += threads)
    if (e / W < cols) strip[e % W + e / W * ld] = ring[e / W][e % W];
}

/// The sum of x over all threads behind this one; `all` becomes that over all of them.
template <class T>
__device__ T tail_sum(T x, T* warps, T& all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T sum = x;  // of this lane and those behind it
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T more = __shfl_down_sync(0xffffffffu, sum, step);
    if (lane + step < 32) sum += more;
  }
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  T behind = 0;
  for (int w = front_threads / 32 - 1; w > warp; --w) behind += warps[w];
  all = behind;
  for (int w = warp; w >= 0; --w) all += warps[w];
  return behind + (sum - x);
}

template <class T>
__global__ void __launch_bounds__(front_threads)
    make_front_kernel(const std::int32_t* condition, Rotations<Cuda, T> task) {
  if (skipped(condition)) return;
  __shared__ T warps[front_threads / 32];
  const Index heights = task.heights, ld = task.strip.ld;
  const Index length = (heights + front_threads) / front_threads;  // of columns 0 .. heights
  const Index first = length * threadIdx.x, end = min(first + length, heights + 1);
  T* const x = task.strip.data;
  T most = 0;
  for (Index i = first; i < end; ++i) most = max(most, abs(x[i * ld]));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
  __syncthreads();
  for (int w = 0; w < front_threads / 32; ++w) most = max(most, warps[w]);
  __syncthreads();
  const T scale = most > T(0) ? most : T(1);
  T own = 0, all;
  for (Index i = first; i < end; ++i) own += (x[i * ld] / scale) * (x[i * ld] / scale);
  T squares = tail_sum(own, warps, all);
  const T last = x[heights * ld] / scale;
  __syncthreads();                       // before columns are overwritten
  for (Index i = end; i > first; --i) {  // the rotation of columns i - 1 and i
    const T f = x[(i - 1) * ld] / scale;
    x[(i - 1) * ld] = 0;
    if (i <= heights) {
      T c, s;
      givens(f, i == heights ? last : sqrt(squares), c, s);  // normalized where squares vanish, too
      if (s == T(0) && f < T(0)) c = T(-1);  // the next one takes the sum's positive root for this column
      T* cs = task.cs + 2 * (heights - i);
      cs[0] = c, cs[1] = s;
    }
    squares += f * f;
  }
  __syncthreads();
  if (threadIdx.x == 0) x[0] = scale * sqrt(all);
}

template <class T, int W>
__global__ void __launch_bounds__(rotate_threads) rotate_kernel(const std::int32_t* condition, Rotate<Cuda, T> task) {
  if (skipped(condition)) return;
  __shared__ T turns[rotate_chunk * 2 * W];
  const Index first_row = static_cast<Index>(blockIdx.x) * rotate_threads, row = first_row + threadIdx.x;
  const Index cols = task.x.cols, ld = task.x.ld, heights = task.heights;
  const Index start = task.lower ? min(heights, first_row + rotate_threads) : heights;
  const bool live = row < task.x.rows;
  T* const x = task.x.data + (live ? row : 0);
  const auto fetch = [&](Index column) { return live && column >= 0 && column < cols ? x[column * ld] : T(0); };
  T v[W + 1];  // columns i - 1 .. i - 1 + W at step i
#pragma unroll
  for (int q = 0; q <= W; ++q) v[q] = fetch(start - 1 + q);
  if (task.drop && live)
    for (Index column = start + W; column < cols; ++column) x[(column - W) * ld] = x[column * ld];
  for (Index base = start; base >= 1; base -= rotate_chunk) {
    const int steps = static_cast<int>(min(base, static_cast<Index>(rotate_chunk)));
    const T* cs = task.cs + 2 * W * (heights - base);
    __syncthreads();
    for (int e = threadIdx.x; e < steps * 2 * W; e += rotate_threads) turns[e] = cs[e];
    __syncthreads();
    for (int step = 0; step < steps; step += ahead) {
      T next[ahead];
#pragma unroll
      for (int u = 0; u < ahead; ++u) next[u] = fetch(base - step - u - 2);
#pragma unroll
      for (int u = 0; u < ahead; ++u) {
        if (step + u < steps) {
          const T* turn = turns + (step + u) * 2 * W;
#pragma unroll
          for (int j = 0; j < W; ++j) {
            const T c = turn[2 * j], s = turn[2 * j + 1], a = v[j], b = v[j + 1];
            v[j] = c * a + s * b;
            v[j + 1] = c * b - s * a;
          }
          const Index i = base - step - u, done = i + W - 1;
          if (live && done < cols) x[(task.drop ? i - 1 : done) * ld] = v[W];
#pragma unroll
          for (int q = W; q > 0; --q) v[q] = v[q - 1];
          v[0] = next[u];
        }
      }
    }
  }
  if (task.drop || !live || start < 1) return;
#pragma unroll
  for (int q = 1; q <= W; ++q)
    if (q - 1 < cols) x[(q - 1) * ld] = v[q];
}

/// body(std::integral_constant<int, W>) for the number of waves.
template <class Body>
void for_waves(Index waves, Body&& body) {
  switch (waves) {
    case 1: return body(std::integral_constant<int, 1>{});
    case 2: return body(std::integral_constant<int, 2>{});
    case 4: return body(std::integral_constant<int, 4>{});
    case 8: return body(std::integral_constant<int, 8>{});
    case 16: return body(std::integral_constant<int, 16>{});
    default: throw Error(ErrorCode::invalid_argument, detail::concat("rotations in ", waves, " waves"));
  }
}

}  // namespace

template <class T>
void make_rotations(const Queue& queue, const Rotations<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.heights < 1) return;
  for_waves(task.strip.rows, [&](auto waves) {
    constexpr int w = decltype(waves)::value;
    if constexpr (w == 1)
      make_front_kernel<T><<<1, front_threads, 0, launch.stream>>>(launch.condition, task);
    else
      make_rotations_kernel<T, w><<<1, (w * w < 32 ? 32 : w * w), 0, launch.stream>>>(launch.condition, task);
  });
  check_launch("make_rotations kernel");
}

template <class T>
void rotate(const Queue& queue, const Rotate<Cuda, T>& task) {
  const Launch launch(queue);
  if (task.heights < 1 || task.x.rows == 0) return;
  const unsigned blocks = static_cast<unsigned>((task.x.rows + rotate_threads - 1) / rotate_threads);
  for_waves(task.waves, [&](auto waves) {
    rotate_kernel<T, decltype(waves)::value><<<blocks, rotate_threads, 0, launch.stream>>>(launch.condition, task);
  });
  check_launch("rotate kernel");
}

template void make_rotations(const Queue&, const Rotations<Cuda, float>&);
template void make_rotations(const Queue&, const Rotations<Cuda, double>&);
template void rotate(const Queue&, const Rotate<Cuda, float>&);
template void rotate(const Queue&, const Rotate<Cuda, double>&);

}  // namespace qrane::backend::cuda
