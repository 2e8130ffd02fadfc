// SPDX-License-Identifier: Apache-2.0
// R = U diag(sigma) Vᵀ of a small triangle, or V and sigma of G = RᵀR, by one-sided Jacobi in a cluster of blocks
// (jacobi.cuh), in double.
//
//   from R    L = Rᵀ: its columns are rotated to L J = V diag(sigma), so V comes from the columns themselves and only
//             J = U, when asked for, is carried along, from something near it on where that is known (small_eigen.cu):
//             L U is all but diagonal then, and fewer sweeps are left. R's diagonal is kept away from zero by 2^-60 of
//             its row's largest element, which makes L nonsingular; V is orthonormal up to a condition near 2^40.
//   from G    (Veselić, Hari, "A note on a one-sided Jacobi algorithm", 1989) G + d I = L Lᵀ, the same on L, and
//             sigma^2 = ‖l_j‖^2 - d. The shift d is the rounding of the largest, so the factorization cannot break
//             down.
//             Without a guess, and where eigenvalues are apart, G goes a faster way (small_eigen.cu), under whose flag
//             this one is queued.
//   with a guess V0: B = V0ᵀ G V0 in place of G, nearly diagonal: two or three sweeps in place of six to eight;
//             B = W diag(sigma^2) Wᵀ, V = V0 W, made orthonormal again by a step of Newton and Schulz.
//
// Each product of n x n matrices goes over all warps of the cluster, tile by tile, in fp64 tensor-core products; the
// Cholesky factorization runs in block 0 (small_cholesky.cuh).
#include <algorithm>
#include <array>
#include <atomic>

#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/small.hpp"
#include "cuda/collectives/kernel.cuh"
#include "cuda/collectives/reduce.cuh"
#include "cuda/small/jacobi.cuh"
#include "cuda/small/small_cholesky.cuh"
#include "cuda/small/small_eigen.hpp"
#include "cuda/small/small_product.cuh"

namespace qrane::backend::cuda {
namespace {

using Product = SmallSvd::Product;
using jacobi::Table;

using jacobi::most_blocks;

/// This block's share of what the cluster does.
struct Crew {
  int n, blocks;
  __device__ int rank() const { return static_cast<int>(threadIdx.x) / 32 * blocks + cluster_rank(); }
  __device__ int size() const { return warps() * blocks; }
  __device__ void sync() const { cluster_sync(blocks); }
};

/// out(i, j, sum_k a(i, k) b(k, j)) for n x n operands; `lower`: only tiles that reach i >= j.
template <class A, class B, class Out>
__device__ void multiply(const Crew& crew, bool lower, A a, B b, Out out) {
  multiply_tiles(crew.n, crew.rank(), crew.size(), lower, a, b, out);
}

/// The power of two by which the input is divided, 0 for a zero matrix, and the shift of G: in all threads.
struct Scale {
  double divisor, shift;
  __device__ double factor() const { return divisor > 0 ? 1 / divisor : 1.0; }
};

/// Of R's triangle the largest element, of G the root of the largest on its diagonal.
__device__ Scale find_scale(const SmallSvd& task, const Crew& crew) {
  __shared__ double s_most[most_blocks], s_divisor;
  const int n = crew.n;
  double most = 0;
  if (task.gram)
    for (int k = threadIdx.x; k < n; k += threads()) most = fmax(most, task.r.data[k + k * task.r.ld]);
  else
    for (int j = crew.rank(); j < n; j += crew.size())
      for (int i = threadIdx.x % 32; i <= j; i += 32) most = fmax(most, fabs(task.r.data[i + j * task.r.ld]));
  most = block_reduce(most, 0.0, [](double a, double b) { return a > b ? a : b; });
  crew.sync();  // all blocks are there
  if (threadIdx.x == 0)
    for (int k = 0; k < crew.blocks; ++k) in_block(s_most, k)[cluster_rank()] = most;
  crew.sync();
  if (threadIdx.x == 0) {
    for (int k = 0; k < crew.blocks; ++k) most = fmax(most, s_most[k]);
    if (task.gram) most = sqrt(most);
    constexpr int least = -1000;  // of a smaller one the reciprocal would overflow
    s_divisor = most > 0 ? (isfinite(most) ? ldexp(1.0, max(ilogb(most), least)) : 1.0) : 0.0;
  }
  __syncthreads();
  return {s_divisor, 0};
}

/// Rᵀ, scaled, its diagonal kept away from zero: by a rounding of a rounding of its row in R, or, where that is zero
/// too, by something tiny. With `both`, Y = I.
template <bool both>
__device__ void load_transposed(const SmallSvd& task, double factor, const jacobi::Table& table,
                                const jacobi::Seat<both>& seat) {
  if (!seat.taken()) return;
  const int lane = threadIdx.x % 32;
  for (int k = 0; k < seat.own; ++k) {
    const int j = seat.column(k);
    const auto element = [&](int i) { return j <= i ? task.r.data[j + i * task.r.ld] * factor : 0.0; };
    double most = 0;
    for (int i = lane; i < table.n; i += 32) most = fmax(most, fabs(element(i)));
#pragma unroll
    for (int d = 16; d > 0; d /= 2) most = fmax(most, __shfl_xor_sync(0xffffffffu, most, d));
    const double least = fmax(most * 0x1p-60, 0x1p-200);
    for (int i = lane; i < table.n; i += 32) {
      const double x = element(i);
      const bool pivot = i == j;
      seat.x(k)[i] = pivot && fabs(x) < least ? copysign(least, x) : x;
      if constexpr (both) seat.y(k)[i] = pivot ? 1.0 : 0.0;
    }
  }
  seat.clear_rest();
}

/// X and something near U in place of Rᵀ and I. A column of zeros becomes something tiny.
template <bool both>
__device__ void load_near(const NearVectors& near, double factor, const jacobi::Table& table,
                          const jacobi::Seat<both>& seat) {
  if (!seat.taken()) return;
  const int lane = threadIdx.x % 32, n = table.n;
  for (int k = 0; k < seat.own; ++k) {
    const int j = seat.column(k);
    const auto element = [&](int i) { return j < n ? near.x[i + j * n] * factor : 0.0; };
    bool some = false;
    for (int i = lane; i < n; i += 32) some = some || fabs(element(i)) >= 0x1p-200;
    some = __any_sync(0xffffffffu, some || j >= n);
    for (int i = lane; i < n; i += 32) {
      const double x = element(i);
      seat.x(k)[i] = !some && i == j && x == x ? 0x1p-200 : x;
      if constexpr (both) seat.y(k)[i] = j < n ? near.u[i + j * n] : 0.0;
    }
  }
  seat.clear_rest();
}

/// L of G, or of V0ᵀ G V0; shared: the packed triangle in block 0.
template <bool both>
__device__ Scale load_from_gram(const SmallSvd& task, const Crew& crew, Scale scale, double* shared,
                                const jacobi::Table& table, const jacobi::Seat<both>& seat) {
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
    for (int j = threadIdx.x / 32; j < n; j += warps())
      for (int i = j + lane; i < n; i += 32) mine.column(j)[i] = g(i, j);
  }
  crew.sync();
  if (cluster_rank() == 0) {
    double trace = 0;
    for (int j = threadIdx.x; j < n; j += threads()) trace += mine.column(j)[j];
    trace = block_reduce(trace, 0.0, Add{});
    if (threadIdx.x == 0) {
      s_shift = fmax(n * 0x1p-52 * trace, 0x1p-200);
      for (int k = 1; k < crew.blocks; ++k) *in_block(&s_shift, k) = s_shift;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += threads()) mine.column(j)[j] += s_shift;
    cholesky(mine, s_shift / 16);
  }
  crew.sync();
  constexpr int pieces = jacobi::most_rows / 32;
  double column[seat.own][pieces];
#pragma unroll
  for (int k = 0; k < seat.own; ++k)
#pragma unroll
    for (int h = 0; h < pieces; ++h) {
      const int i = lane + 32 * h, j = seat.column(k);
      column[k][h] = seat.taken() && i < n && j <= i ? first.column(j)[i] : 0.0;
    }
  crew.sync();  // the seats use the same memory
  if (seat.taken()) {
#pragma unroll
    for (int k = 0; k < seat.own; ++k)
#pragma unroll
      for (int h = 0; h < pieces; ++h)
        if (lane + 32 * h < n) seat.x(k)[lane + 32 * h] = column[k][h];
    seat.clear_rest();
  }
  scale.shift = s_shift;
  return scale;
}

/// Columns' squared norms to sigma and places, the same in every block.
struct Spectrum {
  double* s_square;  // n + 1: by column
  double* s_sigma;   // n: sorted
  int* s_place;      // n: of column j
  double poison;     // 0, or NaN when anything is
};

template <bool both>
__device__ void sort(const Crew& crew, const Scale& scale, const jacobi::Seat<both>& seat, Spectrum& out) {
  const int n = crew.n, lane = threadIdx.x % 32;
  if (seat.taken())
    for (int k = 0; k < seat.own; ++k) {
      const double square = seat.square(k);
      if (lane < crew.blocks && seat.column(k) < n) in_block(out.s_square, lane)[seat.column(k)] = square;
    }
  crew.sync();
  bool bad = false;
  for (int j = threadIdx.x; j < n; j += threads()) bad = !isfinite(out.s_square[j]) || bad;
  bad = __syncthreads_or(bad) != 0;
  out.poison = bad ? nan("") : 0.0;
  for (int j = threadIdx.x / 32; j < n; j += warps()) {
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
template <bool both>
__device__ void store_vectors(const Crew& crew, const Spectrum& spectrum, const jacobi::Seat<both>& seat, double* v,
                              Index ld, const SmallSvd& task) {
  if (!seat.taken()) return;
  for (int k = 0; k < seat.own; ++k) {
    const int j = seat.column(k);
    if (j >= crew.n) continue;
    const int place = spectrum.s_place[j];
    const double inverse = rsqrt(spectrum.s_square[j]) + spectrum.poison;
    for (int i = threadIdx.x % 32; i < crew.n; i += 32) {
      v[i + place * ld] = seat.x(k)[i] * inverse;
      if constexpr (both) task.u.data[i + place * task.u.ld] = seat.y(k)[i] + spectrum.poison;
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

/// s_weight: n, scratch.
__device__ void form_product(const SmallSvd& task, const Crew& crew, const double* s_sigma, double* s_weight) {
  const auto v = [&](int i, int j) { return task.v.data[i + j * task.v.ld]; };
  const auto out = [&](int i, int j, double x) { task.result.data[i + j * task.result.ld] = x; };
  for (int k = threadIdx.x; k < crew.n; k += threads()) {  // NaN stays
    const double s = s_sigma[k];
    s_weight[k] = task.product == Product::whiten ? 1 / s : s <= task.threshold ? 0.0 : 1 - task.threshold / s;
  }
  __syncthreads();
  if (task.product == Product::threshold) {
    multiply(
        crew, false, [&](int i, int k) { return v(i, k) * s_weight[k]; }, [&](int k, int j) { return v(j, k); }, out);
  } else {
    for (int j = crew.rank(); j < crew.n; j += crew.size())
      for (int i = threadIdx.x % 32; i < crew.n; i += 32) out(i, j, v(i, j) * s_weight[j]);
  }
}

/// Thread map: eight warps per seat; all share the rest. Shared memory: the seats (Table) or the packed triangle, then
/// squares and sigma (n + 1 each), then places.
template <int seats, bool both>
__global__ void __launch_bounds__(32 * jacobi::seat_warps * seats, 1)
    small_svd_kernel(const std::int32_t* condition, SmallSvd task, NearVectors near, Table table, int buffer) {
  if (skipped(condition)) return;
  extern __shared__ double shared[];
  __shared__ jacobi::Exchange s_exchange[seats];
  const int n = table.n;
  const Crew crew{n, table.blocks};
  Spectrum spectrum{shared + buffer, shared + buffer + n + 1, reinterpret_cast<int*>(shared + buffer + 2 * (n + 1)), 0};
  jacobi::Seat<both> seat(table, shared, s_exchange);
  Scale scale = find_scale(task, crew);
  if constexpr (both) {
    if (near.missing != nullptr && *near.missing == 0)
      load_near(near, scale.factor(), table, seat);
    else
      load_transposed(task, scale.factor(), table, seat);
  } else {
    if (task.gram)
      scale = load_from_gram(task, crew, scale, shared, table, seat);
    else
      load_transposed(task, scale.factor(), table, seat);
  }
  crew.sync();
  jacobi::run(table, seat, task.accuracy);
  sort(crew, scale, seat, spectrum);
  const bool guessed = task.gram && task.guess.data != nullptr;
  store_vectors(crew, spectrum, seat, guessed ? task.work : task.v.data, guessed ? n : task.v.ld, task);
  if (guessed) turn_back(task, crew);
  if (cluster_rank() == 0) {
    for (int j = threadIdx.x; j < n; j += threads()) task.sigma[j] = spectrum.s_sigma[j];
    if (threadIdx.x == 0 && task.failed != nullptr &&
        !(spectrum.s_sigma[0] < task.most_condition * spectrum.s_sigma[n - 1]))
      *task.failed = 1;
  }
  crew.sync();
  if (task.product != Product::none) form_product(task, crew, spectrum.s_sigma, spectrum.s_square);
}

struct Geometry {
  Table table;
  int buffer, bytes;  // the buffer in doubles
};


template <int seats>
auto choose(bool both) {
  return both ? small_svd_kernel<seats, true> : small_svd_kernel<seats, false>;
}

constexpr int static_bytes = 6144;  // of shared memory, rounded up

/// Blocks of the largest cluster that this device runs when each fills a multiprocessor.
int largest_cluster() {
  constexpr int most_devices = 64;
  static std::array<std::atomic<int>, most_devices> known{};  // 0: not yet
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  std::atomic<int>* const mine = device < most_devices ? &known[static_cast<std::size_t>(device)] : nullptr;
  if (mine != nullptr && *mine != 0) return *mine;
  int blocks = 1;
  if (has_clusters()) {
    const ClusterShape largest{dim3(most_blocks), 32 * jacobi::seat_warps, most_blocks,
                               shared_memory_limit() - static_bytes};
    blocks = runs_clusters(choose<1>(true), "small_svd kernel", largest) ? most_blocks : portable_cluster;
  }
  if (mine != nullptr) *mine = blocks;
  return blocks;
}

/// How many blocks, of at most `most`, share n columns: one for every seat, or for two.
Geometry geometry(int n, bool both, bool gram, int most) {
  Geometry g;
  const int seats = (n + jacobi::pair - 1) / jacobi::pair;
  int blocks = std::min(most, 2);  // stores into shared memory of a block want a cluster
  while (blocks < most && seats > blocks) blocks *= 2;
  g.table = {n, seats, (seats + blocks - 1) / blocks, blocks};
  g.buffer = std::max(g.table.doubles(both), gram ? Packed::size(n) : 0);
  g.bytes = (g.buffer + 2 * (n + 1)) * 8 + (n + 1) * 4;
  return g;
}

}  // namespace

std::int32_t max_small_svd() {
  const int limit = shared_memory_limit() - static_bytes, most = largest_cluster();
  int n = 1;
  while (n < jacobi::most_rows) {
    const Geometry next = geometry(n + 1, true, false, most), packed = geometry(n + 1, false, true, most);
    if (std::max(next.bytes, packed.bytes) > limit || next.table.per_block > 2) break;
    ++n;
  }
  return n;
}

Index small_svd_work(const Queue&, Index n) { return std::max(2 * n * n, small_eigen_work(n)); }

void small_svd(const Queue& queue, const SmallSvd& task) {
  const Launch launch(queue);
  const int n = static_cast<int>(task.r.rows);
  if (n == 0) return;
  detail::check(n <= max_small_svd(), ErrorCode::invalid_argument, "small_svd of ", n,
                " columns: this device takes up to ", max_small_svd());
  const std::int32_t* condition = launch.condition;
  if (takes_small_eigen(task)) condition = launch_small_eigen(launch, task);
  const NearVectors near = launch_near_vectors(launch, task);
  const bool both = task.u.data != nullptr;
  const Geometry g = geometry(n, both, task.gram, largest_cluster());
  auto* const kernel = g.table.per_block == 1 ? choose<1>(both) : choose<2>(both);
  const ClusterShape shape{dim3(static_cast<unsigned>(g.table.blocks)),
                           static_cast<unsigned>(32 * jacobi::seat_warps * g.table.per_block), g.table.blocks, g.bytes};
  launch_cluster(kernel, "small_svd kernel", shape, launch.stream, condition, task, near, g.table, g.buffer);
}

}  // namespace qrane::backend::cuda
