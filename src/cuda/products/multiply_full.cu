// SPDX-License-Identifier: Apache-2.0
// Q := A W for any n x n W in double, n <= 192, products and sums in double, rounded once (thin_product.cuh). Reads A
// once, past 128 columns twice, writes Q once; Q must not be A.

#include "cuda/products/thin_product.cuh"
#include "cuda/queue/launch.hpp"
#include "cuda/reach.hpp"
#include "vocabulary/products.hpp"

namespace qrane::backend::cuda {
namespace {

template <class T>
struct StoreProduct {
  struct Held {};
  DeviceMatrix<Cuda, T> q;
  bool aligned;

  __device__ Held fetch(Index, Index) const { return {}; }
  __device__ void store(Index i, Index j, const double (&x)[4], const Held&) const {
    const thin::Four<T> out{{static_cast<T>(x[0]), static_cast<T>(x[1]), static_cast<T>(x[2]), static_cast<T>(x[3])}};
    thin::store_four(q.data + j * q.ld, i, q.rows, aligned, out);
  }
  __device__ void finish() const {}
};

}  // namespace

template <class T>
void multiply_full(const Queue& queue, const DeviceMatrix<Cuda, T>& a, const DeviceMatrix<Cuda, double>& w,
                   const DeviceMatrix<Cuda, T>& q) {
  const Launch launch(queue);
  if (a.rows == 0 || a.cols == 0) return;
  detail::check(a.cols <= max_multiply_full, ErrorCode::invalid_argument, "multiply_full of ", a.cols,
                " columns: at most ", max_multiply_full);
  const StoreProduct<T> store{q, is_aligned<16 / sizeof(T)>(q)};
  constexpr Index no_limit = Index(1) << 30;
  if (a.cols > 64 && a.cols <= 104)
    thin::launch<T, 13, 7, 2>(launch, a, w, store, no_limit);
  else if (a.cols <= max_thin_product)
    launch_thin_product(launch, a, w, store, no_limit);
  else if (a.cols <= 160)
    thin::launch<T, 20, 10>(launch, a, w, store, no_limit);
  else
    thin::launch<T, 24, 12>(launch, a, w, store, no_limit);
}

template void multiply_full(const Queue&, const DeviceMatrix<Cuda, float>&, const DeviceMatrix<Cuda, double>&,
                            const DeviceMatrix<Cuda, float>&);
template void multiply_full(const Queue&, const DeviceMatrix<Cuda, double>&, const DeviceMatrix<Cuda, double>&,
                            const DeviceMatrix<Cuda, double>&);

}  // namespace qrane::backend::cuda
