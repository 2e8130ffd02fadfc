// SPDX-License-Identifier: Apache-2.0
// R = U diag(sigma) Vᵀ of a small triangle, or V and sigma of G = RᵀR, by one-sided Jacobi in a cluster of blocks
// (jacobi.cuh), in double.
//
//   from R    L = Rᵀ: its columns are rotated to L J = V diag(sigma), so V comes from the columns themselves and only
//             J = U, when it is asked for, is carried along. R's diagonal is kept away from zero by 2^-60 of its row's
//             largest element, which makes L nonsingular; V is orthonormal up to a condition near 2^40.
//   from G    (Veselić, Hari, "A note on a one-sided Jacobi algorithm", 1989) G + d I = L Lᵀ, the same on L, and
//             sigma^2 = ‖l_j‖^2 - d. The shift d is the rounding of the largest, so the factorization cannot break down.
//   with a guess V0: B = V0ᵀ G V0 in place of G, nearly diagonal: two or three sweeps in place of six to eight;
//             B = W diag(sigma^2) Wᵀ, V = V0 W, made orthonormal again by a step of Newton and Schulz.
//
// Each product of n x n matrices goes over all warps of the cluster, tile by tile, in fp64 tensor-core products; the
// Cholesky factorization runs in block 0, on the packed lower triangle in shared memory, 8 columns at a time.
#include <algorithm>

#include "backend/cuda/jacobi.cuh"
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/mma.cuh"
#include "backend/cuda/reduce.cuh"

namespace qrane::backend::cuda {
namespace {

using Product = SmallSvd::Product;
using jacobi::Table;

constexpr int most_columns = 256;
constexpr int most_blocks = 8;
constexpr int warps = 8;
constexpr int panel = 8;  // columns of a step of the Cholesky factorization

/// This block's share of what the cluster does.
struct Crew {
  int n, blocks;
  __device__ int rank() const { return static_cast<int>(threadIdx.x) / 32 * blocks + cluster_rank(); }
  __device__ int size() const { return warps * blocks; }
  __device__ void sync() const { cluster_sync(blocks); }
};

/// out(i, j, sum_k a(i, k) b(k, j)) for n x n operands, tile by tile; `lower`: only tiles that reach i >= j.
template <class A, class B, class Out>
__device__ void multiply(const Crew& crew, bool lower, A a, B b, Out out) {
  const int n = crew.n, tiles = (n + 7) / 8, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const auto left = [&](int i, int k) { return i < n && k < n ? a(i, k) : 0.0; };
  const auto right = [&](int k, int j) { return k < n && j < n ? b(k, j) : 0.0; };
  for (int tile = crew.rank(); tile < tiles * tiles; tile += crew.size()) {
    const int i = tile % tiles * 8, j = tile / tiles * 8;
    if (lower && i < j) continue;
    double c[2][2] = {};
#pragma unroll 4
    for (int k = 0; k < n; k += 8) {
      mma_8x8x4(c[0], left(i + g, k + t), right(k + t, j + g));
      mma_8x8x4(c[1], left(i + g, k + 4 + t), right(k + 4 + t, j + g));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (i + g < n && j + 2 * t + h < n) out(i + g, j + 2 * t + h, c[0][h] + c[1][h]);
  }
}

/// A lower triangle, column by column without gaps.
struct Packed {
  double* data;
  int n;
  static __host__ __device__ int size(int n) { return n * (n + 1) / 2; }
  __device__ double* column(int j) const { return data + j * n - j * (j + 1) / 2; }  // element i at [i], i >= j
};

/// Factors the diagonal block at p, one row per lane, all by one warp; inverses of L's diagonal to s_inverse.
__device__ void factor_diagonal(const Packed& a, int p, double floor, double* s_inverse) {
  const int lane = threadIdx.x % 32, w = min(panel, a.n - p);
  double x[panel];
#pragma unroll
  for (int k = 0; k < panel; ++k) x[k] = lane < w && k <= lane ? a.column(p + k)[p + lane] : (k == lane ? 1.0 : 0.0);
#pragma unroll
  for (int k = 0; k < panel; ++k) {
    double d = __shfl_sync(0xffffffffu, x[k], k);
    d = d < floor ? floor : d;  // NaN stays NaN
    const double inverse = rsqrt(d);
    x[k] = lane == k ? d * inverse : x[k] * inverse;
    if (lane == 0) s_inverse[k] = inverse;
#pragma unroll
    for (int c = k + 1; c < panel; ++c) x[c] = fma(-x[k], __shfl_sync(0xffffffffu, x[k], c), x[c]);
  }
#pragma unroll
  for (int k = 0; k < panel; ++k)
    if (lane < w && k <= lane) a.column(p + k)[p + lane] = x[k];
}

/// Subtracts the panel's part from the columns to its right: a warp takes four columns, a lane a row.
__device__ void update_trailing(const Packed& a, int p) {
  const int lane = threadIdx.x % 32;
  for (int j0 = p + panel + static_cast<int>(threadIdx.x) / 32 * 4; j0 < a.n; j0 += 4 * warps) {
    double y[4][panel];
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
      for (int k = 0; k < panel; ++k) y[c][k] = j0 + c < a.n ? a.column(p + k)[j0 + c] : 0.0;
    for (int i = j0 + lane; i < a.n; i += 32) {
      double x[panel];
#pragma unroll
      for (int k = 0; k < panel; ++k) x[k] = a.column(p + k)[i];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (j0 + c > i) break;
        double sum = a.column(j0 + c)[i];
#pragma unroll
        for (int k = 0; k < panel; ++k) sum = fma(-x[k], y[c][k], sum);
        a.column(j0 + c)[i] = sum;
      }
    }
  }
}

/// A = L Lᵀ in place, by one block; pivots below `floor` count as floor.
__device__ void cholesky(const Packed& a, double floor) {
  __shared__ double s_inverse[panel];
  for (int p = 0; p < a.n; p += panel) {
    __syncthreads();
    if (threadIdx.x < 32) factor_diagonal(a, p, floor, s_inverse);
    __syncthreads();
    for (int i = p + panel + static_cast<int>(threadIdx.x); i < a.n; i += 32 * warps) {
      double x[panel];
#pragma unroll
      for (int k = 0; k < panel; ++k) {
        double sum = a.column(p + k)[i];
#pragma unroll
        for (int l = 0; l < k; ++l) sum = fma(-x[l], a.column(p + l)[p + k], sum);
        x[k] = sum * s_inverse[k];
        a.column(p + k)[i] = x[k];
      }
    }
    __syncthreads();
    update_trailing(a, p);
  }
  __syncthreads();
}

/// The power of two by which the input is divided, 0 for a zero matrix, and the shift of G: in all threads.
struct Scale {
  double divisor, shift;
  __device__ double factor() const { return divisor > 0 ? 1 / divisor : 1.0; }
};

/// Of R's triangle the largest element, of G the root of the largest on its diagonal.
__device__ Scale find_scale(const SmallSvd& task) {
  __shared__ double s_divisor;
  const int n = static_cast<int>(task.r.rows);
  double most = 0;
  for (int k = threadIdx.x; k < (task.gram ? n : n * n); k += 32 * warps) {
    const int i = task.gram ? k : k % n, j = task.gram ? k : k / n;
    if (i <= j) most = fmax(most, fabs(task.r.data[i + j * task.r.ld]));
  }
  most = block_reduce(most, 0.0, [](double a, double b) { return a > b ? a : b; });
  if (threadIdx.x == 0) {
    if (task.gram) most = sqrt(most);
    constexpr int least = -1000;  // of a smaller one the reciprocal would overflow
    s_divisor = most > 0 ? (isfinite(most) ? ldexp(1.0, max(ilogb(most), least)) : 1.0) : 0.0;
  }
  __syncthreads();
  return {s_divisor, 0};
}

/// Rᵀ, scaled, its diagonal kept away from zero: by a rounding of a rounding of its row in R, or, where that is zero
/// too, by something tiny.
template <int E, bool both>
__device__ void load_transposed(const SmallSvd& task, double factor, const jacobi::Seat<E, both>& seat,
                                jacobi::Columns<E, both>& pair) {
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32;
#pragma unroll
  for (int side = 0; side < 4; ++side) {
    const int j = seat.column(side);
    double most = 0;
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane + 32 * h;
      pair.x[side][h] = i < n && j <= i ? task.r.data[j + i * task.r.ld] * factor : 0.0;
      most = fmax(most, fabs(pair.x[side][h]));
      if constexpr (both) pair.y[side][h] = i == j && j < n ? 1.0 : 0.0;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) most = fmax(most, __shfl_xor_sync(0xffffffffu, most, d));
    const double least = fmax(most * 0x1p-60, 0x1p-200);
#pragma unroll
    for (int h = 0; h < E; ++h) {
      double& x = pair.x[side][h];
      if (lane + 32 * h == j && j < n && fabs(x) < least) x = copysign(least, x);
    }
  }
}

/// L of G, or of V0ᵀ G V0; shared: the packed triangle in block 0.
template <int E, bool both>
__device__ Scale load_from_gram(const SmallSvd& task, const Crew& crew, Scale scale, double* shared,
                                const jacobi::Seat<E, both>& seat, jacobi::Columns<E, both>& pair) {
  __shared__ double s_shift;
  const int n = crew.n, lane = threadIdx.x % 32;
  const double factor = scale.factor() * scale.factor();
  const auto g = [&](int i, int j) { return task.r.data[min(i, j) + max(i, j) * task.r.ld] * factor; };
  const Packed mine{shared, n}, first{in_block(shared, 0), n};
  if (task.guess.data != nullptr) {
    const auto v0 = [&](int i, int j) { return task.guess.data[i + j * task.guess.ld]; };
    double* const product = task.work;
    multiply(crew, false, g, v0, [&](int i, int j, double x) { product[i + j * n] = x; });
    crew.sync();
    multiply(
        crew, true, [&](int i, int k) { return v0(k, i); }, [&](int k, int j) { return product[k + j * n]; },
        [&](int i, int j, double x) {
          if (i >= j) first.column(j)[i] = x;
        });
  } else if (cluster_rank() == 0) {
    for (int j = threadIdx.x / 32; j < n; j += warps)
      for (int i = j + lane; i < n; i += 32) mine.column(j)[i] = g(i, j);
  }
  crew.sync();
  if (cluster_rank() == 0) {
    double trace = 0;
    for (int j = threadIdx.x; j < n; j += 32 * warps) trace += mine.column(j)[j];
    trace = block_reduce(trace, 0.0, Add{});
    if (threadIdx.x == 0) {
      s_shift = fmax(n * 0x1p-52 * trace, 0x1p-200);
      for (int k = 1; k < crew.blocks; ++k) *in_block(&s_shift, k) = s_shift;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += 32 * warps) mine.column(j)[j] += s_shift;
    cholesky(mine, s_shift / 16);
  }
  crew.sync();
#pragma unroll
  for (int side = 0; side < 4; ++side) {
    const int j = seat.column(side);
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = lane + 32 * h;
      pair.x[side][h] = seat.taken() && i < n && j <= i ? first.column(j)[i] : 0.0;
    }
  }
  crew.sync();  // the sweeps use the same memory
  scale.shift = s_shift;
  return scale;
}

/// Columns' squared norms to sigma and places, the same in every block.
struct Spectrum {
  double* s_square;    // n + 1: by column
  double* s_sigma;     // n: sorted
  int* s_place;        // n: of column j
  double poison;       // 0, or NaN when anything is
};

template <int E, bool both>
__device__ void sort(const Crew& crew, const Scale& scale, const jacobi::Seat<E, both>& seat,
                     const jacobi::Columns<E, both>& pair, Spectrum& out) {
  const int n = crew.n, lane = threadIdx.x % 32;
  if (seat.taken() && lane < crew.blocks)
    for (int side = 0; side < 4; ++side)
      if (seat.column(side) < n) in_block(out.s_square, lane)[seat.column(side)] = pair.square[side];
  crew.sync();
  bool bad = false;
  for (int j = threadIdx.x; j < n; j += 32 * warps) bad = !isfinite(out.s_square[j]) || bad;
  bad = __syncthreads_or(bad) != 0;
  out.poison = bad ? nan("") : 0.0;
  for (int j = threadIdx.x / 32; j < n; j += warps) {
    int place = 0;
    const double square = out.s_square[j];
    for (int i = lane; i < n; i += 32)
      place += out.s_square[i] > square || (out.s_square[i] == square && i < j) ? 1 : 0;
    place = bad ? j : __reduce_add_sync(0xffffffffu, place);
    if (lane == 0) {
      out.s_place[j] = place;
      out.s_sigma[place] = sqrt(fmax(square - scale.shift, 0.0)) * scale.divisor + out.poison;
    }
  }
  __syncthreads();
}

/// Normalized columns to their places.
template <int E, bool both>
__device__ void store_vectors(const Crew& crew, const Spectrum& spectrum, const jacobi::Seat<E, both>& seat,
                              const jacobi::Columns<E, both>& pair, double* v, Index ld, const SmallSvd& task) {
  if (!seat.taken()) return;
#pragma unroll
  for (int side = 0; side < 4; ++side) {
    const int j = seat.column(side);
    if (j >= crew.n) continue;
    const int place = spectrum.s_place[j];
    const double inverse = rsqrt(pair.square[side]) + spectrum.poison;
#pragma unroll
    for (int h = 0; h < E; ++h) {
      const int i = threadIdx.x % 32 + 32 * h;
      if (i >= crew.n) continue;
      v[i + place * ld] = pair.x[side][h] * inverse;
      if constexpr (both) task.u.data[i + place * task.u.ld] = pair.y[side][h] + spectrum.poison;
    }
  }
}

/// V := V0 W, W in task.work, then V := V (3 I - Vᵀ V) / 2.
__device__ void turn_back(const SmallSvd& task, const Crew& crew) {
  const int n = crew.n;
  double* const w = task.work;
  double* const v1 = w + n * n;
  const auto v0 = [&](int i, int j) { return task.guess.data[i + j * task.guess.ld]; };
  crew.sync();
  multiply(
      crew, false, v0, [&](int k, int j) { return w[k + j * n]; }, [&](int i, int j, double x) { v1[i + j * n] = x; });
  crew.sync();
  multiply(
      crew, false, [&](int i, int k) { return v1[k + i * n]; }, [&](int k, int j) { return v1[k + j * n]; },
      [&](int i, int j, double x) { w[i + j * n] = (i == j ? 1.5 : 0.0) - 0.5 * x; });
  crew.sync();
  multiply(
      crew, false, [&](int i, int k) { return v1[i + k * n]; }, [&](int k, int j) { return w[k + j * n]; },
      [&](int i, int j, double x) { task.v.data[i + j * task.v.ld] = x; });
}

__device__ void form_product(const SmallSvd& task, const Crew& crew, const double* s_sigma) {
  const auto v = [&](int i, int j) { return task.v.data[i + j * task.v.ld]; };
  const auto out = [&](int i, int j, double x) { task.result.data[i + j * task.result.ld] = x; };
  if (task.product == Product::threshold) {
    const auto weight = [&](int k) {  // NaN stays
      return s_sigma[k] <= task.threshold ? 0.0 : 1 - task.threshold / s_sigma[k];
    };
    multiply(crew, false, [&](int i, int k) { return v(i, k) * weight(k); }, [&](int k, int j) { return v(j, k); }, out);
  } else {
    for (int j = crew.rank(); j < crew.n; j += crew.size())
      for (int i = threadIdx.x % 32; i < crew.n; i += 32) out(i, j, v(i, j) / s_sigma[j]);
  }
}

/// Thread map: a warp per four columns; all eight warps share the rest. Shared memory: the columns on their way or the packed
/// triangle, then squares and sigma (n + 1 each), then places.
template <int E, bool both>
__global__ void __launch_bounds__(32 * warps, 1)
    small_svd_kernel(const std::int32_t* condition, SmallSvd task, Table table, int buffer) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  const int n = table.n;
  const Crew crew{n, table.blocks};
  Spectrum spectrum{shared + buffer, shared + buffer + n + 1, reinterpret_cast<int*>(shared + buffer + 2 * (n + 1)), 0};
  jacobi::Seat<E, both> seat(table, shared);
  jacobi::Columns<E, both> pair;
  Scale scale = find_scale(task);
  crew.sync();  // all blocks are there
  if constexpr (both) {
    load_transposed(task, scale.factor(), seat, pair);
  } else {
    if (task.gram)
      scale = load_from_gram(task, crew, scale, shared, seat, pair);
    else
      load_transposed(task, scale.factor(), seat, pair);
  }
  jacobi::run(table, seat, pair, n * task.accuracy * task.accuracy);
  sort(crew, scale, seat, pair, spectrum);
  const bool guessed = task.gram && task.guess.data != nullptr;
  store_vectors(crew, spectrum, seat, pair, guessed ? task.work : task.v.data, guessed ? n : task.v.ld, task);
  if (guessed) turn_back(task, crew);
  if (cluster_rank() == 0) {
    for (int j = threadIdx.x; j < n; j += 32 * warps) task.sigma[j] = spectrum.s_sigma[j];
    if (threadIdx.x == 0 && task.failed != nullptr &&
        !(spectrum.s_sigma[0] < task.most_condition * spectrum.s_sigma[n - 1]))
      *task.failed = 1;
  }
  crew.sync();
  if (task.product != Product::none) form_product(task, crew, spectrum.s_sigma);
}

struct Geometry {
  Table table;
  int buffer, bytes;  // the buffer in doubles
};

int compute_capability_major() { return device_attribute(cudaDevAttrComputeCapabilityMajor); }

/// How many blocks share n columns: as many as have work, where there are clusters.
Geometry geometry(int n, bool both, bool gram, int major) {
  Geometry g;
  const int seats = std::max((n + 3) / 4, 1);
  int blocks = 1;
  while (major >= 9 && blocks < most_blocks && seats > 4 * blocks) blocks *= 2;
  g.table = {n, seats, (seats + blocks - 1) / blocks, blocks};
  g.buffer = std::max(g.table.doubles(both), gram ? Packed::size(n) : 0);
  g.bytes = (g.buffer + 2 * (n + 1)) * 8 + (n + 1) * 4;
  return g;
}

template <int E>
auto choose(bool both) {
  return both ? small_svd_kernel<E, true> : small_svd_kernel<E, false>;
}

}  // namespace

std::int32_t max_small_svd() {
  const int major = compute_capability_major(), limit = shared_memory_limit() - 2048;  // what is static, rounded up
  int n = 1;
  while (n < most_columns) {
    const Geometry next = geometry(n + 1, true, false, major), packed = geometry(n + 1, false, true, major);
    if (std::max(next.bytes, packed.bytes) > limit || next.table.per_block > warps) break;
    ++n;
  }
  return n;
}

std::int64_t small_svd_work(Index n) { return 2 * n * n; }

void launch_small_svd(const Launch& launch, const SmallSvd& task) {
  const int n = static_cast<int>(task.r.rows);
  if (n == 0) return;
  detail::check(n <= max_small_svd(), ErrorCode::invalid_argument, "small_svd of ", n,
                " columns: this device takes up to ", max_small_svd());
  const bool both = task.u.data != nullptr;
  const Geometry g = geometry(n, both, task.gram, compute_capability_major());
  auto* const kernel = n <= 32 ? choose<1>(both) : n <= 64 ? choose<2>(both) : n <= 128 ? choose<4>(both) : choose<8>(both);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, g.bytes),
             "cudaFuncSetAttribute(small_svd)");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(g.table.blocks));
  config.blockDim = dim3(32 * warps);
  config.dynamicSmemBytes = static_cast<std::size_t>(g.bytes);
  config.stream = launch.stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(g.table.blocks), 1, 1};
  config.attrs = &cluster;
  config.numAttrs = g.table.blocks > 1 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, launch.condition, task, g.table, g.buffer), "small_svd kernel");
  check_launch("small_svd kernel");
}

}  // namespace qrane::backend::cuda
