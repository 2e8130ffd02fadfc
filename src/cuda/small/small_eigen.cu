// SPDX-License-Identifier: Apache-2.0
// G = V diag(sigma^2) Vᵀ of a small Gram matrix through a tridiagonal one, in double: some three times as fast as
// Jacobi's sweeps (jacobi.cuh), where eigenvalues are apart.
//
//   tridiagonal_kernel   T = Hᵀ G H by reflections, in one block (n <= 104) or a cluster (tridiagonal.cuh)
//   vectors_kernel       a warp for each eigenvalue: value and vector of T (tridiagonal_vectors.cuh), then H times that
//   check_kernel         S = VᵀV; `again` is raised where S - I exceeds the root of the asked-for accuracy
//   polish_kernel        V := V (3 I - S) / 2, which squares that (Newton, Schulz), and the product V diag(1 / sigma)
//
// Vectors of close eigenvalues are not orthogonal enough for the polish; so are those of matrices with zeros or NaN:
// then `again` sends the task to Jacobi, which is queued behind under that flag (small_svd.cu). Vectors of eigenvalues
// that are close but pass may have turned among each other, by what G does not tell: V diag(sigma^2) Vᵀ is G to the
// rounding of its largest.
//
// The same for R Rᵀ gives a triangle's Jacobi something near U to start from (launch_near_vectors): a sweep or two are
// left.
#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/small.hpp"
#include "cuda/small/small_eigen.hpp"

#include "cuda/collectives/kernel.cuh"
#include "cuda/small/small_product.cuh"
#include "cuda/small/tridiagonal.cuh"
#include "cuda/small/tridiagonal_vectors.cuh"

namespace qrane::backend::cuda {
namespace {

using Product = SmallSvd::Product;

constexpr int fewest = 24, most = 224;
constexpr int vectors_per_block = 4, product_warps = 4;

/// SmallSvd::work, cut up.
struct Pieces {
  eigen::Tridiagonal t;
  double *vectors, *square;  // n x n: H times T's eigenvectors; S
  double* half_exponent;     // G is 4^that times what was made tridiagonal
  std::int32_t* again;

  Pieces(double* work, int n) {
    t.reflectors = work;
    vectors = work + n * n;
    square = vectors + n * n;
    t.diagonal = square + n * n;
    t.beside = t.diagonal + n;
    t.beta = t.beside + n;
    half_exponent = t.beta + n;
    again = reinterpret_cast<std::int32_t*>(half_exponent + 1);
  }
  static std::int64_t doubles(Index n) { return 3 * n * n + 3 * n + 2; }
};

/// Thread map: Reduction's.
template <int R, int C, int blocks>
__global__ void __launch_bounds__(eigen::Reduction<R, C, blocks>::threads, 1)
    tridiagonal_kernel(const std::int32_t* condition, SmallSvd task, Pieces pieces) {
  __shared__ typename eigen::Reduction<R, C, blocks>::Shared shared;
  const bool skip = skipped(condition), speaks = blockIdx.x == 0 && threadIdx.x == 0;
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32;
  double largest = 0;
  for (int k = lane; k < n && !skip; k += 32) largest = fmax(largest, task.r.data[k + k * task.r.ld]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) largest = fmax(largest, __shfl_xor_sync(full_warp, largest, d));
  const bool hopeless = !(largest > 0x1p-900 && largest < 0x1p900);
  if (speaks) *pieces.again = !skip && hopeless ? 1 : 0;
  if (skip || hopeless) return;
  const int half = ilogb(largest) >> 1;
  if (speaks) *pieces.half_exponent = half;
  const double factor = ldexp(1.0, -2 * half);
  eigen::Reduction<R, C, blocks> reduction(n, shared, pieces.t);
  reduction.run([&](int i, int j) { return task.r.data[i + j * task.r.ld] * factor; });
}

/// z := H_0 H_1 ... z by a warp, element lane + 32 r in z[r]: four reflections at a time, from their inner products
/// with z and with each other, the next four's vectors on their way meanwhile.
template <int R>
__device__ void turn_back(const eigen::Tridiagonal& t, int n, double (&z)[R]) {
  constexpr int group = 4;
  const int lane = threadIdx.x % 32;
  double next[group][R], next_beta[group];
  const auto fetch = [&](int last) {
#pragma unroll
    for (int h = 0; h < group; ++h) {
      const int k = last - h;
      next_beta[h] = k >= 0 ? t.beta[k] : 0.0;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int i = lane + 32 * r;
        next[h][r] = k >= 0 && i < n ? t.reflectors[i + k * n] : 0.0;
      }
    }
  };
  const auto slot = [](int a, int b) { return a * (a - 1) / 2 + b; };  // of v_aᵀ v_b, b < a
  fetch(n - 2);
  for (int last = n - 2; last >= 0; last -= group) {
    double v[group][R], beta[group], with_z[group] = {}, between[8] = {};
#pragma unroll
    for (int h = 0; h < group; ++h) {
      beta[h] = next_beta[h];
#pragma unroll
      for (int r = 0; r < R; ++r) v[h][r] = next[h][r];
    }
    fetch(last - group);
#pragma unroll
    for (int h = 0; h < group; ++h)
#pragma unroll
      for (int r = 0; r < R; ++r) {
        with_z[h] = fma(v[h][r], z[r], with_z[h]);
#pragma unroll
        for (int g = 0; g < h; ++g) between[slot(h, g)] = fma(v[h][r], v[g][r], between[slot(h, g)]);
      }
    const double z_sum = sum_slot_of_lane(with_z), sum = sum_slot_of_lane(between);
    double turn[group];
#pragma unroll
    for (int h = 0; h < group; ++h) {
      turn[h] = __shfl_sync(full_warp, z_sum, h);
#pragma unroll
      for (int g = 0; g < h; ++g) turn[h] = fma(-turn[g], __shfl_sync(full_warp, sum, slot(h, g)), turn[h]);
      turn[h] *= beta[h];
    }
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int h = 0; h < group; ++h) z[r] = fma(-turn[h], v[h][r], z[r]);
  }
}

/// Thread map: a warp per eigenvalue, from the largest on.
template <int R>
__global__ void __launch_bounds__(32 * vectors_per_block)
    vectors_kernel(const std::int32_t* condition, SmallSvd task, Pieces pieces) {
  if (skipped(condition) || *pieces.again != 0) return;
  using T = eigen::SharedTridiagonal;
  __shared__ double2 s_rows[32 * R + T::group];
  __shared__ double s_beside[32 * R], s_ends[vectors_per_block][2][32 * R];
  const int n = static_cast<int>(task.r.rows), lane = threadIdx.x % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = threadIdx.x; i < n + T::group; i += blockDim.x) {
    const double above = i > 0 && i < n ? pieces.t.beside[i - 1] : 0.0;
    s_rows[i] = {i < n ? pieces.t.diagonal[i] : T::beyond, fmax(above * above, T::least_square)};
    if (i < n) s_beside[i] = i + 1 < n ? pieces.t.beside[i] : 0.0;
  }
  __syncthreads();
  const int place = static_cast<int>(blockIdx.x) * vectors_per_block + warp;
  if (place >= n) return;
  const T t{n, s_rows, s_beside};
  const double lambda = eigen::find_eigenvalue(t, n - 1 - place);
  double z[R];
  eigen::find_eigenvector<R>(t, lambda, {s_ends[warp][0], s_ends[warp][1]}, z);

  turn_back(pieces.t, n, z);
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (lane + 32 * r < n) pieces.vectors[lane + 32 * r + place * n] = z[r];
  if (lane == 0) task.sigma[place] = ldexp(sqrt(fmax(lambda, 0.0)), static_cast<int>(*pieces.half_exponent));
}

__device__ int product_warp() {
  return static_cast<int>(blockIdx.x) * product_warps + static_cast<int>(threadIdx.x) / 32;
}
__device__ int product_step() { return static_cast<int>(gridDim.x) * product_warps; }

/// Thread map: a warp per 8 x 8 tile.
__global__ void __launch_bounds__(32 * product_warps)
    check_kernel(const std::int32_t* condition, SmallSvd task, Pieces pieces, double most_deviation) {
  if (skipped(condition)) return;
  const int n = static_cast<int>(task.r.rows);
  const double* const v = pieces.vectors;
  multiply_tiles(
      n, product_warp(), product_step(), true, [&](int i, int k) { return v[k + i * n]; },
      [&](int k, int j) { return v[k + j * n]; },
      [&](int i, int j, double x) {
        if (!(fabs(x - (i == j ? 1.0 : 0.0)) <= most_deviation)) *pieces.again = 1;
        if (i < j) return;
        pieces.square[i + j * n] = x;
        pieces.square[j + i * n] = x;
      });
}

/// Thread map: likewise.
__global__ void __launch_bounds__(32 * product_warps)
    polish_kernel(const std::int32_t* condition, SmallSvd task, Pieces pieces) {
  if (skipped(condition) || *pieces.again != 0) return;
  const int n = static_cast<int>(task.r.rows);
  const double* const v = pieces.vectors;
  const bool whiten = task.product == Product::whiten;
  multiply_tiles(
      n, product_warp(), product_step(), false, [&](int i, int k) { return v[i + k * n]; },
      [&](int k, int j) { return (k == j ? 1.5 : 0.0) - 0.5 * pieces.square[k + j * n]; },
      [&](int i, int j, double x) {
        task.v.data[i + j * task.v.ld] = x;
        if (whiten) task.result.data[i + j * task.result.ld] = x / task.sigma[j];
      });
  if (blockIdx.x == 0 && threadIdx.x == 0 && task.failed != nullptr &&
      !(task.sigma[0] < task.most_condition * task.sigma[n - 1]))
    *task.failed = 1;
}

/// out := R Rᵀ, upper triangle. Thread map: likewise.
__global__ void __launch_bounds__(32 * product_warps)
    square_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, double> r, double* out) {
  if (skipped(condition)) return;
  const int n = static_cast<int>(r.rows);
  const auto element = [&](int i, int k) { return i <= k ? r.data[i + k * r.ld] : 0.0; };
  multiply_tiles(
      n, product_warp(), product_step(), true, element, [&](int k, int j) { return element(j, k); },
      [&](int i, int j, double x) {
        if (i >= j) out[j + i * n] = x;
      });
}

/// x := Rᵀ u, unless `missing`. Thread map: likewise.
__global__ void __launch_bounds__(32 * product_warps)
    turn_kernel(const std::int32_t* condition, DeviceMatrix<Cuda, double> r, NearVectors near, double* x) {
  if (skipped(condition) || *near.missing != 0) return;
  const int n = static_cast<int>(r.rows);
  multiply_tiles(
      n, product_warp(), product_step(), false, [&](int i, int k) { return k <= i ? r.data[k + i * r.ld] : 0.0; },
      [&](int k, int j) { return near.u[k + j * n]; }, [&](int i, int j, double sum) { x[i + j * n] = sum; });
}

unsigned product_blocks(int n) {
  const int tiles = (n + 7) / 8;
  return static_cast<unsigned>((tiles * tiles + product_warps - 1) / product_warps);
}

bool takes(Index n) { return n >= fewest && n <= most; }

template <int R, int C, int blocks>
void launch_tridiagonal(const Launch& launch, const SmallSvd& task, const Pieces& pieces) {
  const ClusterShape shape{dim3(blocks), eigen::Reduction<R, C, blocks>::threads, blocks, 0};
  launch_cluster(tridiagonal_kernel<R, C, blocks>, "tridiagonal kernel", shape, launch.stream, launch.condition, task,
                 pieces);
}

template <int R>
void launch_vectors(const Launch& launch, const SmallSvd& task, const Pieces& pieces) {
  const auto blocks = static_cast<unsigned>((task.r.rows + vectors_per_block - 1) / vectors_per_block);
  vectors_kernel<R><<<blocks, 32 * vectors_per_block, 0, launch.stream>>>(launch.condition, task, pieces);
}

}  // namespace

bool takes_small_eigen(const SmallSvd& task) {
  return task.gram && task.guess.data == nullptr && task.product != Product::threshold && takes(task.r.rows);
}

std::int64_t small_eigen_work(Index n) { return Pieces::doubles(n) + 2 * n * n + n; }

const std::int32_t* launch_small_eigen(const Launch& launch, const SmallSvd& task) {
  const int n = static_cast<int>(task.r.rows);
  const Pieces pieces(task.work, n);
  if (n <= 64) {
    launch_tridiagonal<2, 5, 1>(launch, task, pieces);
    launch_vectors<2>(launch, task, pieces);
  } else if (n <= 104) {
    launch_tridiagonal<4, 8, 1>(launch, task, pieces);
    launch_vectors<4>(launch, task, pieces);
  } else if (n <= 128) {
    launch_tridiagonal<4, 5, 2>(launch, task, pieces);
    launch_vectors<4>(launch, task, pieces);
  } else if (n <= 192) {
    launch_tridiagonal<6, 4, 4>(launch, task, pieces);
    launch_vectors<6>(launch, task, pieces);
  } else {
    launch_tridiagonal<7, 5, 4>(launch, task, pieces);
    launch_vectors<7>(launch, task, pieces);
  }
  check_launch("eigenvector kernels");
  const unsigned blocks = product_blocks(n);
  check_kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task, pieces,
                                                                 std::sqrt(task.accuracy) / 8);
  polish_kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task, pieces);
  check_launch("small product kernels");
  return pieces.again;
}

NearVectors launch_near_vectors(const Launch& launch, const SmallSvd& task) {
  if (task.gram || task.u.data == nullptr || !takes(task.r.rows)) return {};
  const Index n = task.r.rows;
  double *const square = task.work, *const u = square + n * n, *const sigma = u + n * n;  // the square's place is X's
  const unsigned blocks = product_blocks(static_cast<int>(n));
  square_kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task.r, square);
  SmallSvd eigen;
  eigen.gram = true;
  eigen.r = {square, n, n, n, 0, 1};
  eigen.v = {u, n, n, n, 0, 1};
  eigen.sigma = sigma;
  eigen.work = sigma + n;
  eigen.accuracy = task.accuracy;
  const NearVectors near{u, square, launch_small_eigen(launch, eigen)};
  turn_kernel<<<blocks, 32 * product_warps, 0, launch.stream>>>(launch.condition, task.r, near, square);
  check_launch("near vectors");
  return near;
}

}  // namespace qrane::backend::cuda
