// SPDX-License-Identifier: Apache-2.0
// The fused pass of robust PCA (vocabulary/rpca.hpp gives the mathematics) and the sum of z^2, in double,
// in a fixed order: per block, then over the blocks. Bound by memory: M, L, Y read and Y, S, X written
// once, 6 m n scalars; 16-byte accesses where pointers and leading dimensions allow.
#include "cuda/queue/launch.hpp"
#include "vocabulary/rpca.hpp"
#include "cuda/rpca/robust_pca.cuh"

namespace qrane::backend::cuda {
namespace {

constexpr int threads = 256;
constexpr Index blocks_per_multiprocessor = 8;

/// Thread map: x along chunks of V rows, y over columns.
template <class T, int V>
__global__ void __launch_bounds__(threads, 2) robust_pca_kernel(const std::int32_t* condition, RobustPcaPass<Cuda, T> p,
                                                                RobustPcaConstants<T> k, double* partial) {
  if (skipped(condition)) return;
  using Chunk = Vector<T, V>;
  const Index rows = p.m.rows, chunks = (rows + V - 1) / V;
  double sum = 0;
  for (Index j = blockIdx.y * Index(blockDim.y) + threadIdx.y; j < p.m.cols; j += Index(gridDim.y) * blockDim.y)
    for (Index c = blockIdx.x * Index(blockDim.x) + threadIdx.x; c < chunks; c += Index(gridDim.x) * blockDim.x) {
      const Index i = c * V;
      const T* const pm = p.m.data + i + j * p.m.ld;
      const T* const pl = p.l.data + i + j * p.l.ld;
      T* const py = p.y.data + i + j * p.y.ld;
      T* const ps = p.s.data + i + j * p.s.ld;
      T* const px = p.x.data + i + j * p.x.ld;
      if (V > 1 && i + V <= rows) {
        const Chunk m = *reinterpret_cast<const Chunk*>(pm), l = *reinterpret_cast<const Chunk*>(pl);
        Chunk y = *reinterpret_cast<const Chunk*>(py), s, x;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const double z = pass_element(k, m.v[v], l.v[v], y.v[v], s.v[v], x.v[v]);
          sum = fma(z, z, sum);
        }
        *reinterpret_cast<Chunk*>(py) = y;
        *reinterpret_cast<Chunk*>(ps) = s;
        *reinterpret_cast<Chunk*>(px) = x;
      } else {
        for (int v = 0; v < V && i + v < rows; ++v) {
          const double z = pass_element(k, pm[v], pl[v], py[v], ps[v], px[v]);
          sum = fma(z, z, sum);
        }
      }
    }
  sum = block_reduce(sum, 0.0, Add{});
  if (threadIdx.x == 0 && threadIdx.y == 0) partial[blockIdx.x + std::size_t(blockIdx.y) * gridDim.x] = sum;
}

__global__ void __launch_bounds__(1024)
    robust_pca_finish_kernel(const std::int32_t* condition, const double* partial, int count, double* result) {
  if (skipped(condition)) return;
  double sum = 0;
  for (int k = threadIdx.x; k < count; k += blockDim.x) sum += partial[k];
  sum = block_reduce(sum, 0.0, Add{});
  if (threadIdx.x == 0) *result = sum;
}

/// One warp.
__global__ void robust_pca_verdict_kernel(const std::int32_t* condition, RobustPcaVerdict<Cuda> v) {
  if (skipped(condition)) return;
  double change = 0;
  int rank = 0;
  for (Index i = threadIdx.x; i < v.n; i += 32) {
    const double left = fmax(v.sigma[i] - v.threshold, 0.0), moved = left - v.before[i];
    rank += left > 0 ? 1 : 0;
    change = fma(moved, moved, change);
    v.before[i] = left;
  }
  rank = __reduce_add_sync(0xffffffffu, rank);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) change += __shfl_xor_sync(0xffffffffu, change, d);
  if (threadIdx.x != 0) return;
  const double residual = sqrt(*v.residual_squared) / (v.norm > 0 ? v.norm : 1.0);
  v.record[0] = residual;
  v.record[1] = rank;
  const bool settled = !v.settle || sqrt(change) <= v.tolerance * v.norm;
  if (isnan(residual) || (residual <= v.tolerance && settled)) *v.running = 0;
}

}  // namespace

void robust_pca_verdict(const Queue& queue, const RobustPcaVerdict<Cuda>& verdict) {
  const Launch launch(queue);
  robust_pca_verdict_kernel<<<1, 32, 0, launch.stream>>>(launch.condition, verdict);
  check_launch("robust_pca_verdict kernel");
}

void launch_robust_pca_sum(const Launch& launch, const double* partial, int count, double* result) {
  robust_pca_finish_kernel<<<1, 1024, 0, launch.stream>>>(launch.condition, partial, count, result);
  check_launch("robust PCA's sum kernel");
}

template <class T>
void robust_pca_pass(const Queue& queue, const RobustPcaPass<Cuda, T>& pass, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  detail::check(scratch.bytes >= 8, ErrorCode::invalid_argument,
                "robust_pca_pass needs 8 bytes of scratch or more, got ", scratch.bytes);
  RobustPcaPass<Cuda, T> p = pass;
  if (is_contiguous(p.m) && is_contiguous(p.l) && is_contiguous(p.y) && is_contiguous(p.s) && is_contiguous(p.x))
    for (auto* a : {&p.m, &p.l, &p.y, &p.s, &p.x}) *a = as_column(*a);
  constexpr int width = 16 / sizeof(T);
  const bool wide = is_aligned<width>(p.m) && is_aligned<width>(p.l) && is_aligned<width>(p.y) &&
                    is_aligned<width>(p.s) && is_aligned<width>(p.x);
  const Index blocks = std::min<Index>(scratch.bytes / 8, blocks_per_multiprocessor * multiprocessors());
  const Walk walk = plan_walk(wide ? (p.m.rows + width - 1) / width : p.m.rows, p.m.cols, 1, blocks);
  const RobustPcaConstants<T> constants(p.mu, p.mu_next, p.threshold);
  auto* partial = reinterpret_cast<double*>(scratch.data);
  auto* kernel = wide ? robust_pca_kernel<T, width> : robust_pca_kernel<T, 1>;
  kernel<<<walk.grid, walk.block, 0, launch.stream>>>(launch.condition, p, constants, partial);
  check_launch("robust_pca_pass kernel");
  launch_robust_pca_sum(launch, partial, static_cast<int>(walk.grid.x * walk.grid.y), p.residual_squared);
}

template void robust_pca_pass(const Queue&, const RobustPcaPass<Cuda, float>&, const Scratch<Cuda>&);
template void robust_pca_pass(const Queue&, const RobustPcaPass<Cuda, double>&, const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
