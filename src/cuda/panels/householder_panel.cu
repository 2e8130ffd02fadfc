// SPDX-License-Identifier: Apache-2.0
// householder_panel: a panel by Householder reflections column by column, in one launch. What a panel falls back to
// when its Gram matrix proves nothing, and how the last, nearly square panels are factored; good for every input.
//
// One cluster of blocks per matrix, each block with a share of its rows. A column costs one pass over the panel, which
// applies reflector j and at once sums x_{j+1}ᵀ A for the next one (x: the column from row j + 2 down), and one barrier
// of the cluster, after which everybody adds the blocks' sums in the same order. From p = xᵀ A come the norm, the
// products vᵀ A of the update and those with the reflectors before, from which T is made at the end:
//
//     beta = -sign(alpha) (alpha^2 + p_j)^(1/2),  tau = (beta - alpha) / beta,  v = [1; x / (alpha - beta)]
//
// All arithmetic in double. Columns are scaled by powers of two to a largest element near 1 first, and R's back at the
// end, so that no square over- or underflows; what lies 2^-480 below a column's size counts as zero.
// Cost: 4 m b^2 flops and b passes over the panel in the second-level cache; bound by the b barriers.
#include <cooperative_groups.h>

#include "cuda/collectives/cluster_launch.hpp"
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/panels.hpp"
#include "cuda/collectives/kernel.cuh"

namespace qrane::backend::cuda {
namespace {

namespace cg = cooperative_groups;

constexpr int most_blocks = 16;    // of a cluster
constexpr Index least_rows = 128;  // of a block, where more blocks would only wait for each other
constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int order = max_reflect;
constexpr int depth = 4, together = 4;  // elements of a column that a lane loads at a time, and of how many columns
constexpr double least_square = 0x1p-960;

/// Shared memory of a block besides x.
struct Block {
  double sums[2][2 * order];    // this block's p, and row j of the panel where it is here; by parity of the column
  double p[order], row[order];  // of the cluster
  double w[order];              // tau vᵀ A right of the column, vᵀ V left of it
  double products[order][order + 1];  // products[j][l] = v_lᵀ v_j, l < j; first block only
  double tau[order], scale[order];
};

int dynamic_bytes(Index chunk) { return static_cast<int>(2 * chunk * 8); }

template <class T>
struct Share {
  DeviceMatrix<Cuda, T> a, v, y;
  Index first, last;  // rows of this block
};

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

__device__ double warp_sum(double x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}

/// 2^-e with the column's largest element in [2^e, 2^(e+1)); 1 for columns that are zero or not finite.
template <class T>
__device__ void scale_columns(const cg::cluster_group& cluster, const Share<T>& s, Block& b) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = static_cast<int>(s.a.cols);
  for (int k = warp; k < n; k += warps) {
    double most = 0;
    for (Index i = s.first + lane; i < s.last; i += 32)
      most = fmax(most, fabs(static_cast<double>(s.a.data[i + k * s.a.ld])));
#pragma unroll
    for (int d = 16; d > 0; d /= 2) most = fmax(most, __shfl_xor_sync(0xffffffffu, most, d));
    if (lane == 0) b.sums[0][k] = most;
  }
  cluster.sync();
  for (int k = threadIdx.x; k < n; k += threads) {
    double most = 0;
    for (unsigned c = 0; c < cluster.num_blocks(); ++c) most = fmax(most, *cluster.map_shared_rank(&b.sums[0][k], c));
    const bool scalable = most > 0 && isfinite(most);
    b.scale[k] = scalable ? ldexp(1.0, max(min(-ilogb(most), 1000), -1000)) : 1.0;
  }
  cluster.sync();
  for (int k = warp; k < n; k += warps) {
    if (b.scale[k] == 1) continue;
    for (Index i = s.first + lane; i < s.last; i += 32)
      s.a.data[i + k * s.a.ld] = static_cast<T>(s.a.data[i + k * s.a.ld] * b.scale[k]);
  }
  __syncthreads();
}

/// Reflector j - 1, which is tau, w and v = x * factor (x by row of the share), onto the columns from j on, column j
/// first; its v into column j - 1; then this block's part of the sums for column j. `next`: where x of column j goes.
template <class T>
__device__ void pass(const Share<T>& s, Block& b, int j, double factor, double* x, double* next) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = static_cast<int>(s.a.cols);
  const int rows = static_cast<int>(s.last - s.first);
  const int diagonal = static_cast<int>(max(j - s.first, Index(-1)));  // of column j in this share; -1 is above it
  double* const sums = b.sums[j & 1];
  T* const share = s.a.data + s.first;
  for (int i = threadIdx.x; i < rows; i += threads) {
    double y = share[i + j * s.a.ld];
    if (j > 0) {  // x := v; row j - 1 of it is 1
      const bool before = s.first + i < j - 1, head = s.first + i == j - 1;
      const double v = head ? 1.0 : before ? 0.0 : x[i] * factor;
      x[i] = v;
      y = static_cast<double>(static_cast<T>(fma(-b.w[j], v, y)));
      share[i + j * s.a.ld] = static_cast<T>(y);
      if (!head && !before) share[i + (j - 1) * s.a.ld] = static_cast<T>(v);
    }
    next[i] = i > diagonal ? y : 0.0;
  }
  __syncthreads();
  for (int k0 = warp; k0 < n; k0 += warps * together) {
    double p[together] = {}, w[together];  // of columns k0 + u * warps; w = 0: a column that stays
#pragma unroll
    for (int u = 0; u < together; ++u) {
      const int k = k0 + u * warps;
      w[u] = j > 0 && k > j && k < n ? b.w[k] : 0.0;
    }
    for (int base = lane; base < rows; base += 32 * depth) {
      T old[together][depth];  // all on their way before the first is used
      double v[depth], y[depth];
#pragma unroll
      for (int d = 0; d < depth; ++d) {
        const int i = base + 32 * d;
#pragma unroll
        for (int u = 0; u < together; ++u)
          old[u][d] = i < rows && k0 + u * warps < n ? share[i + (k0 + u * warps) * s.a.ld] : T(0);
        v[d] = j > 0 && i < rows ? x[i] : 0.0;
        y[d] = i < rows ? next[i] : 0.0;
      }
#pragma unroll
      for (int u = 0; u < together; ++u)
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          if (w[u] != 0) old[u][d] = static_cast<T>(fma(-w[u], v[d], static_cast<double>(old[u][d])));
          p[u] = fma(y[d], static_cast<double>(old[u][d]), p[u]);
        }
#pragma unroll
      for (int u = 0; u < together; ++u)
#pragma unroll
        for (int d = 0; d < depth; ++d) {
          const int i = base + 32 * d, k = k0 + u * warps;
          if (w[u] != 0 && i < rows) share[i + k * s.a.ld] = old[u][d];
          if (i == diagonal && k < n) sums[order + k] = old[u][d];
        }
    }
#pragma unroll
    for (int u = 0; u < together; ++u) {
      p[u] = warp_sum(p[u]);
      if (lane == 0 && k0 + u * warps < n) sums[k0 + u * warps] = p[u];
    }
  }
}

/// T from tau and the products of the reflectors (LAPACK's larft): T(0:j, j) = -tau_j T(0:j, 0:j) V(:, 0:j)ᵀ v_j.
template <class T>
__device__ void form_t(Block& b, const DeviceMatrix<Cuda, T>& t) {
  const int n = static_cast<int>(t.cols), i = threadIdx.x;
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    if (i < j)
      for (int l = i; l < j; ++l)
        sum = fma(b.products[i][l], b.products[j][l], sum);  // T's row i over the products' row i
    __syncthreads();
    // row i of T takes the place of products[i][i ..], column i of it the diagonal; products[j][l], l < j, stay
    if (i < j) b.products[i][j] = -b.tau[j] * sum;
    if (i == j) b.products[j][j] = b.tau[j];
    __syncthreads();
  }
  for (int k = threadIdx.x; k < n * n; k += threads) {
    const int row = k % n, col = k / n;
    t.data[row + col * t.ld] = row <= col ? static_cast<T>(b.products[row][col]) : T(0);
  }
}

/// Y = V T for this block's rows; T from the first block, a thread per row.
template <class T>
__device__ void form_y(const cg::cluster_group& cluster, const Share<T>& s, Block& b) {
  const int n = static_cast<int>(s.a.cols);
  for (int k = threadIdx.x; cluster.block_rank() != 0 && k < n * n; k += threads)
    if (k % n <= k / n) b.products[k % n][k / n] = *cluster.map_shared_rank(&b.products[k % n][k / n], 0);
  __syncthreads();
  for (Index i = s.first + threadIdx.x; i < s.last; i += threads)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
#pragma unroll 8
      for (int l = 0; l <= j; ++l) sum = fma(static_cast<double>(s.v.data[i + l * s.v.ld]), b.products[l][j], sum);
      s.y.data[i + j * s.y.ld] = static_cast<T>(sum);
    }
}

#endif

/// Thread map: cluster blockIdx.y for matrix y; in `pass` a thread per row, then a warp per column.
template <class T>
__global__ void __launch_bounds__(threads)
    householder_panel_kernel(const std::int32_t* condition, HouseholderPanel<Cuda, T> task, Index chunk) {
#if __CUDA_ARCH__ >= 900
  if (skipped(condition)) return;
  extern __shared__ double x[];
  __shared__ Block b;
  const auto cluster = cg::this_cluster();
  const Index k = blockIdx.y, m = task.panel.rows;
  const int n = static_cast<int>(task.panel.cols);
  const unsigned rank = cluster.block_rank();
  Share<T> s{task.panel.matrix(k), task.v.matrix(k), task.y.matrix(k), min(rank * chunk, m),
             min((rank + 1) * chunk, m)};
  scale_columns(cluster, s, b);
  double factor = 0;
  for (int j = 0; j <= n; ++j) {
    double *now = x + (j & 1) * chunk, *before = x + ((j + 1) & 1) * chunk;
    if (j == n) {  // the last reflector's v
      for (Index i = s.first + threadIdx.x; i < s.last; i += threads)
        if (i > n - 1) s.a.data[i + (n - 1) * s.a.ld] = static_cast<T>(before[i - s.first] * factor);
      break;
    }
    pass(s, b, j, factor, before, now);
    cluster.sync();
    const int column = threadIdx.x;
    if (column < n) {
      double p = 0;
#pragma unroll 4
      for (unsigned c = 0; c < cluster.num_blocks(); ++c) p += *cluster.map_shared_rank(&b.sums[j & 1][column], c);
      b.p[column] = p;
      b.row[column] = *cluster.map_shared_rank(&b.sums[j & 1][order + column], static_cast<unsigned>(j / chunk));
    }
    __syncthreads();
    const double alpha = b.row[j], square = b.p[j];
    double tau = 0, beta = alpha;
    factor = 0;
    if (!(square <= least_square)) {
      beta = -copysign(sqrt(fma(alpha, alpha, square)), alpha);
      tau = (beta - alpha) / beta;
      factor = 1 / (alpha - beta);
    }
    if (column < n) {
      const double product = fma(factor, b.p[column], b.row[column]);
      b.w[column] = tau * product;
      if (rank == 0 && column < j) b.products[j][column] = product;
    }
    if (threadIdx.x == 0) {
      if (rank == 0) b.tau[j] = tau;
      // the row's owner alone; pass writes column j again only below row j
      if (j >= s.first && j < s.last) s.a.data[j + j * s.a.ld] = static_cast<T>(beta);
    }
    __syncthreads();
  }
  cluster.sync();  // nobody leaves while its sums may be read
  const int lane = threadIdx.x % 32;
  for (int col = threadIdx.x / 32; col < n; col += warps)
    for (Index i = s.first + lane; i < s.last; i += 32) {
      T* const element = s.a.data + i + col * s.a.ld;
      s.v.data[i + col * s.v.ld] = i > col ? *element : T(i == col);
      if (i <= col) *element = static_cast<T>(*element / b.scale[col]);
    }
  if (rank == 0) form_t(b, task.t.matrix(k));
  cluster.sync();
  form_y(cluster, s, b);
  cluster.sync();  // the first block's T may still be read
#endif
}

ClusterShape cluster_of(unsigned blocks, Index chunk, Index count) {
  return {dim3(blocks, static_cast<unsigned>(count)), threads, static_cast<int>(blocks), dynamic_bytes(chunk)};
}

constexpr Index most_rows = 65536;  // beyond that the tree's one pass over memory is the better way

}  // namespace

template <class T>
std::int64_t max_householder_rows() {
  if (!has_clusters()) return 0;
  const ClusterShape largest = cluster_of(most_blocks, most_rows / most_blocks, 1);
  return runs_clusters(householder_panel_kernel<T>, "householder_panel kernel", largest) ? most_rows : 0;
}

template <class T>
void householder_panel(const Queue& queue, const HouseholderPanel<Cuda, T>& task) {
  const Launch launch(queue);
  const Index m = task.panel.rows, n = task.panel.cols;
  detail::check(n <= order && m >= n && m <= most_rows, ErrorCode::invalid_argument, "householder_panel of ", m, " x ",
                n, ": takes at most ", most_rows, " rows and ", order,
                " columns, and at least as many rows as columns");
  if (n == 0 || task.panel.count == 0) return;
  detail::check(task.panel.count <= 65535, ErrorCode::invalid_argument,
                "householder_panel takes at most 65535 matrices, got ", task.panel.count);
  unsigned blocks = 1;
  while (blocks < most_blocks && m > least_rows * blocks) blocks *= 2;
  const Index chunk = (m + blocks - 1) / blocks;
  launch_cluster(householder_panel_kernel<T>, "householder_panel kernel", cluster_of(blocks, chunk, task.panel.count),
                 launch.stream, launch.condition, task, chunk);
}

template std::int64_t max_householder_rows<float>();
template std::int64_t max_householder_rows<double>();
template void householder_panel(const Queue&, const HouseholderPanel<Cuda, float>&);
template void householder_panel(const Queue&, const HouseholderPanel<Cuda, double>&);

}  // namespace qrane::backend::cuda
