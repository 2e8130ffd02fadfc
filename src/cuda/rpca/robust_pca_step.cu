// SPDX-License-Identifier: Apache-2.0
// The whole of a robust PCA iteration after its SVD, in one pass over the data (vocabulary/rpca.hpp gives the
// mathematics): L = X P by a streamed product in double (thin_product.cuh), and S, Y, the next X and the residual from
// each element of L while it is in registers. Neither L nor S goes to memory unless asked for, so an iteration reads M,
// X and Y and writes the next X and Y: 5 m n scalars; 2 m n^2 flops.
#include "cuda/reach.hpp"
#include "cuda/queue/launch.hpp"
#include "vocabulary/rpca.hpp"
#include "cuda/products/thin_product.cuh"
#include "cuda/rpca/robust_pca.cuh"

namespace qrane::backend::cuda {
namespace {

template <class T>
struct StepElements {
  struct Held {
    thin::Four<T> m, y;
  };
  RobustPcaStep<Cuda, T> step;
  RobustPcaConstants<T> constants;
  bool aligned;
  double* partial;
  double sum = 0;

  __device__ Held fetch(Index i, Index j) const {
    return {thin::load_four(step.m.data + j * step.m.ld, i, step.m.rows, aligned),
            thin::load_four(step.y.data + j * step.y.ld, i, step.m.rows, aligned)};
  }
  __device__ void store(Index i, Index j, const double (&product)[4], const Held& held) {
    thin::Four<T> l, s, y = held.y, x;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      l.v[v] = static_cast<T>(product[v]);
      const double z = pass_element(constants, held.m.v[v], l.v[v], y.v[v], s.v[v], x.v[v]);
      if (i + v < step.m.rows) sum = fma(z, z, sum);
    }
    put(step.x_next, i, j, x);
    put(step.y_next, i, j, y);
    put(step.l, i, j, l);
    put(step.s, i, j, s);
  }
  __device__ void finish() const {
    const double all = block_reduce(sum, 0.0, Add{});
    if (threadIdx.x == 0) partial[blockIdx.x] = all;
  }

 private:
  __device__ void put(const DeviceMatrix<Cuda, T>& to, Index i, Index j, const thin::Four<T>& x) const {
    if (to.data != nullptr) thin::store_four(to.data + j * to.ld, i, step.m.rows, aligned, x);
  }
};

}  // namespace

template <class T>
void robust_pca_step(const Queue& queue, const RobustPcaStep<Cuda, T>& step, const Scratch<Cuda>& scratch) {
  const Launch launch(queue);
  detail::check(step.m.cols <= max_thin_product, ErrorCode::invalid_argument, "robust_pca_step of ", step.m.cols,
                " columns: at most ", max_thin_product);
  detail::check(scratch.bytes >= 8, ErrorCode::invalid_argument,
                "robust_pca_step needs 8 bytes of scratch or more, got ", scratch.bytes);
  bool aligned = true;
  for (const auto* a : {&step.m, &step.y, &step.x_next, &step.y_next, &step.l, &step.s})
    aligned = aligned && (a->data == nullptr || is_aligned<16 / sizeof(T)>(*a));
  auto* const partial = reinterpret_cast<double*>(scratch.data);
  const StepElements<T> elements{step, {step.mu, step.mu_next, step.threshold}, aligned, partial};
  const int blocks = launch_thin_product(launch, step.x, step.projector, elements, scratch.bytes / 8);
  launch_robust_pca_sum(launch, partial, blocks, step.residual_squared);
}

template void robust_pca_step(const Queue&, const RobustPcaStep<Cuda, float>&, const Scratch<Cuda>&);
template void robust_pca_step(const Queue&, const RobustPcaStep<Cuda, double>&, const Scratch<Cuda>&);

}  // namespace qrane::backend::cuda
