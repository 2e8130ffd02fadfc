// SPDX-License-Identifier: Apache-2.0
// R = U diag(sigma) Vᵀ of a small triangle in one block, without U: one-sided Jacobi (Hestenes; Demmel,
// Veselić, "Jacobi's method is more accurate than QR", 1992) in double.
//
// X = R V0 (V0 = I without a guess) and V = V0 lie in shared memory, column-major. A sweep makes every pair
// of columns of X orthogonal once, in the rounds of a round-robin tournament: the pairs of a round are
// disjoint, one warp each. Sweeps end when no pair needed a rotation; then sigma_j = ‖x_j‖, sorted.
// With V0 from a nearby matrix two or three sweeps do. Each takes n - 1 rounds of about 1000 cycles.
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

/// Makes columns i and j of X orthogonal; true when they were not. NaN counts as orthogonal, so it ends.
__device__ bool orthogonalize(double* x, double* v, int n, int i, int j, double negligible) {
  Column a, b;
  a.load(x + i * n, n);
  b.load(x + j * n, n);
  const double aa = dot(a, a), bb = dot(b, b), ab = dot(a, b);
  constexpr double tolerance = 0x1p-50;
  if (!(fabs(ab) > tolerance * sqrt(aa) * sqrt(bb) && fabs(ab) > negligible)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = copysign(1.0, zeta) / (fabs(zeta) + sqrt(fma(zeta, zeta, 1.0)));
  const double c = rsqrt(fma(t, t, 1.0)), s = c * t;
  rotate(a, b, c, s);
  a.store(x + i * n, n);
  b.store(x + j * n, n);
  a.load(v + i * n, n);
  b.load(v + j * n, n);
  rotate(a, b, c, s);
  a.store(v + i * n, n);
  b.store(v + j * n, n);
  return true;
}

/// One sweep; true in all threads when any pair was rotated. Player 0 stays, the others move round a circle
/// of `players` - 1; an odd n has one bye each round.
__device__ bool sweep(double* x, double* v, int n, double negligible) {
  const int warp = threadIdx.x / 32, players = n + n % 2, circle = players - 1;
  bool rotated = false;
  for (int round = 0; round < circle; ++round) {
    for (int p = warp; p < players / 2; p += warps) {
      const int i = p == 0 ? circle : (round + p) % circle, j = (round + circle - p) % circle;
      if (i < n && j < n) rotated = orthogonalize(x, v, n, min(i, j), max(i, j), negligible) || rotated;
    }
    __syncthreads();
  }
  return __syncthreads_or(rotated) != 0;
}

/// V := V0 or I, X := R V / scale.
__device__ void load(const SmallSvd& task, double* x, double* v, double scale) {
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int j = warp; j < n; j += warps)
    for (int i = lane; i < n; i += 32)
      v[i + j * n] = task.guess.data != nullptr ? task.guess.data[i + j * task.guess.ld] : (i == j ? 1.0 : 0.0);
  __syncthreads();
  for (int j = warp; j < n; j += warps)
    for (int i = lane; i < n; i += 32) {
      double sum = 0;
      if (task.guess.data == nullptr) {
        sum = i <= j ? task.r.data[i + j * task.r.ld] / scale : 0.0;
      } else {
        for (int k = i; k < n; ++k) sum = fma(task.r.data[i + k * task.r.ld] / scale, v[k + j * n], sum);
      }
      x[i + j * n] = sum;
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

/// Thread map: a warp per pair of columns. Shared memory: 2 n^2 + n doubles.
__global__ void __launch_bounds__(threads) small_svd_kernel(const std::int32_t* condition, SmallSvd task) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double* const x = shared;
  double* const v = shared + n * n;
  double* const norms = v + n * n;
  const double scale = power_of_two_scale(task.r);
  load(task, x, v, scale);
  constexpr double negligible = 0x1p-106;  // the squared rounding of the largest element, which is 1 to 2
  for (int k = 0; k < most_sweeps; ++k)
    if (!sweep(x, v, n, negligible)) break;
  for (int j = warp; j < n; j += warps) {
    Column a;
    a.load(x + j * n, n);
    const double norm = sqrt(dot(a, a));
    if (lane == 0) norms[j] = norm;
  }
  __syncthreads();
  for (int j = warp; j < n; j += warps) {
    int place = 0;
    const double norm = norms[j];
    for (int i = lane; i < n; i += 32) place += norms[i] > norm || (!(norms[i] < norm) && i < j) ? 1 : 0;
    place = __reduce_add_sync(0xffffffffu, place);
    place = min(place, n - 1);  // NaN compares with nothing
    if (lane == 0) task.sigma[place] = norm * scale;
    for (int i = lane; i < n; i += 32) task.v.data[i + place * task.v.ld] = v[i + j * n];
  }
}

Index shared_bytes(Index n) { return (2 * n * n + n) * 8; }

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
