// SPDX-License-Identifier: Apache-2.0
// R = U diag(sigma) Vᵀ of a small triangle in one block, without U: one-sided Jacobi (Hestenes; Demmel,
// Veselić, "Jacobi's method is more accurate than QR", 1992) in double.
//
// X = R V0 (V0 = I without a guess) and V = V0 lie in shared memory, column-major. A sweep makes every pair
// of columns of X orthogonal once, in the rounds of a round-robin tournament: the pairs of a round are
// disjoint, one warp each. Sweeps end when no pair needed a rotation; then sigma_j = ‖x_j‖, sorted.
// With V0 from a nearby matrix two or three sweeps do. Each takes n - 1 rounds, bound by their latency.
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/reduce.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 1024;
constexpr int warps = threads / 32;
constexpr int held = 4;  // elements of a column per lane: n <= 128
constexpr int most_sweeps = 40;

/// Column elements lane, lane + 32, ... in registers.
struct Column {
  double x[held];

  __device__ void load(const double* column, int n) {
#pragma unroll
    for (int h = 0; h < held; ++h) {
      const int i = threadIdx.x % 32 + 32 * h;
      x[h] = i < n ? column[i] : 0.0;
    }
  }
  __device__ void store(double* column, int n) const {
#pragma unroll
    for (int h = 0; h < held; ++h) {
      const int i = threadIdx.x % 32 + 32 * h;
      if (i < n) column[i] = x[h];
    }
  }
};

__device__ double dot(const Column& a, const Column& b) {
  double sum = 0;
#pragma unroll
  for (int h = 0; h < held; ++h) sum = fma(a.x[h], b.x[h], sum);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  return sum;
}

/// (a, b) := (c a - s b, s a + c b).
__device__ void rotate(Column& a, Column& b, double c, double s) {
#pragma unroll
  for (int h = 0; h < held; ++h) {
    const double old = a.x[h];
    a.x[h] = fma(c, old, -s * b.x[h]);
    b.x[h] = fma(s, old, c * b.x[h]);
  }
}

/// What a rotation needs to know beside the columns.
struct Work {
  double* x;        // n x n
  double* v;        // n x n
  double* squares;  // squared norms of X's columns: exact once a sweep, updated by the rotations
  int n;
  double tolerance;  // squared: cosines below its root are rounding
};

/// Makes columns i and j of X orthogonal; true when they were not. NaN counts as orthogonal, so it ends.
__device__ bool orthogonalize(const Work& w, int i, int j) {
  constexpr double negligible = 0x1p-106;  // the squared rounding of R's largest element, which is 1 to 2 here
  Column a, b;
  a.load(w.x + i * w.n, w.n);
  b.load(w.x + j * w.n, w.n);
  const double aa = w.squares[i], bb = w.squares[j], ab = dot(a, b);
  if (!(ab * ab > w.tolerance * aa * bb && fabs(ab) > negligible)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = copysign(1.0, zeta) / (fabs(zeta) + sqrt(fma(zeta, zeta, 1.0)));
  const double c = rsqrt(fma(t, t, 1.0)), s = c * t;
  rotate(a, b, c, s);
  a.store(w.x + i * w.n, w.n);
  b.store(w.x + j * w.n, w.n);
  a.load(w.v + i * w.n, w.n);
  b.load(w.v + j * w.n, w.n);
  rotate(a, b, c, s);
  a.store(w.v + i * w.n, w.n);
  b.store(w.v + j * w.n, w.n);
  __syncwarp();  // all lanes have read the norms
  if (threadIdx.x % 32 == 0) {
    w.squares[i] = fmax(fma(-t, ab, aa), 0.0);
    w.squares[j] = fma(t, ab, bb);
  }
  return true;
}

__device__ void measure(const Work& w) {
  for (int j = threadIdx.x / 32; j < w.n; j += warps) {
    Column a;
    a.load(w.x + j * w.n, w.n);
    const double square = dot(a, a);
    if (threadIdx.x % 32 == 0) w.squares[j] = square;
  }
  __syncthreads();
}

/// One sweep; true in all threads when any pair was rotated. Player 0 stays, the others move round a circle
/// of `players` - 1; an odd n has one bye each round.
__device__ bool sweep(const Work& w) {
  const int n = w.n, warp = threadIdx.x / 32, players = n + n % 2, circle = players - 1;
  bool rotated = false;
  measure(w);
  for (int round = 0; round < circle; ++round) {
    for (int p = warp; p < players / 2; p += warps) {
      const int up = round + p, down = round - p;
      const int i = p == 0 ? circle : (up < circle ? up : up - circle), j = down < 0 ? down + circle : down;
      if (i < n && j < n) rotated = orthogonalize(w, min(i, j), max(i, j)) || rotated;
    }
    __syncthreads();
  }
  return __syncthreads_or(rotated) != 0;
}

/// V := V0 or I, X := R V times `factor`, a power of two.
__device__ void load(const SmallSvd& task, const Work& w, double factor) {
  const int n = w.n, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const double* const r = task.r.data;
  const bool guessed = task.guess.data != nullptr;
  for (int j = warp; j < n; j += warps)
    for (int i = lane; i < n; i += 32)
      w.v[i + j * n] = guessed ? task.guess.data[i + j * task.guess.ld] : (i == j ? 1.0 : 0.0);
  __syncthreads();
  for (int j = warp; j < n; j += warps)
    for (int i = lane; i < n; i += 32) {
      double sum = !guessed && i <= j ? r[i + j * task.r.ld] * factor : 0.0;
      if (guessed) {
#pragma unroll 4
        for (int k = 0; k < n; ++k)
          if (k >= i) sum = fma(r[i + k * task.r.ld] * factor, w.v[k + j * n], sum);
      }
      w.x[i + j * n] = sum;
    }
  __syncthreads();
}

/// Largest element of R's triangle as a power of two, in all threads; 1 for a zero matrix.
__device__ double power_of_two_scale(const DeviceMatrix<Cuda, double>& r) {
  __shared__ double s;
  double most = 0;
  for (int k = threadIdx.x; k < r.rows * r.rows; k += threads) {
    const Index i = k % r.rows, j = k / r.rows;
    if (i <= j) most = fmax(most, fabs(r.data[i + j * r.ld]));
  }
  most = block_reduce(most, 0.0, [](double a, double b) { return a > b ? a : b; });
  if (threadIdx.x == 0) s = most > 0 && isfinite(most) ? ldexp(1.0, ilogb(most)) : 1.0;
  __syncthreads();
  return s;
}

/// P := V diag(max(0, 1 - threshold / sigma)) Vᵀ; the norms become the weights.
__device__ void project(const SmallSvd& task, const Work& w, double scale) {
  const int n = w.n, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();  // all have read the norms
  for (int j = threadIdx.x; j < n; j += threads) {
    const double sigma = sqrt(w.squares[j]) * scale;
    w.squares[j] = sigma <= task.threshold ? 0.0 : 1 - task.threshold / sigma;  // NaN stays
  }
  __syncthreads();
  for (int k = warp; k < n; k += warps) {
    for (int i = lane; i < n; i += 32) {
      double sum = 0;
#pragma unroll 4
      for (int j = 0; j < n; ++j) sum = fma(w.v[i + j * n], w.squares[j] * w.v[k + j * n], sum);
      task.projector.data[i + k * task.projector.ld] = sum;
    }
  }
}

/// Thread map: a warp per pair of columns. Shared memory: 2 n^2 + n doubles, and one that nobody uses: the compiler
/// reads the norms in pairs.
__global__ void __launch_bounds__(threads) small_svd_kernel(const std::int32_t* condition, SmallSvd task) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double* const norms = shared + 2 * n * n;
  // a product of columns rounds to n^(1/2) times the accuracy
  const Work w{shared, shared + n * n, norms, n, n * task.accuracy * task.accuracy};
  const double scale = power_of_two_scale(task.r);
  load(task, w, 1 / scale);
  for (int k = 0; k < most_sweeps; ++k)
    if (!sweep(w)) break;
  measure(w);
  for (int j = warp; j < n; j += warps) {
    int place = 0;
    const double norm = norms[j];  // squared
    for (int i = lane; i < n; i += 32) place += norms[i] > norm || (!(norms[i] < norm) && i < j) ? 1 : 0;
    place = __reduce_add_sync(0xffffffffu, place);
    place = min(place, n - 1);  // NaN compares with nothing
    if (lane == 0) task.sigma[place] = sqrt(norm) * scale;
    for (int i = lane; i < n; i += 32) task.v.data[i + place * task.v.ld] = w.v[i + j * n];
  }
  if (task.projector.data) project(task, w, scale);
}

Index shared_bytes(Index n) { return (2 * n * n + n + 1) * 8; }

}  // namespace

std::int32_t max_small_svd() {
  const Index limit = shared_memory_limit() - 1024;  // block_reduce's own, rounded up
  Index n = 1;
  while (n < 32 * held && shared_bytes(n + 1) <= limit) ++n;
  return static_cast<std::int32_t>(n);
}

void launch_small_svd(const Launch& launch, const SmallSvd& task) {
  const Index n = task.r.rows;
  if (n == 0) return;
  detail::check(n <= max_small_svd(), ErrorCode::invalid_argument, "small_svd of ", n,
                " columns: this device takes up to ", max_small_svd());
  const auto bytes = static_cast<int>(shared_bytes(n));
  check_cuda(cudaFuncSetAttribute(small_svd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute(small_svd)");
  small_svd_kernel<<<1, threads, bytes, launch.stream>>>(launch.condition, task);
  check_launch("small_svd kernel");
}

}  // namespace qrane::backend::cuda
