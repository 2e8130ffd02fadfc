// SPDX-License-Identifier: Apache-2.0
// Small dense problems that must stay on the device: the SVD of a triangle, least squares from a Gram matrix's factor.
// Limits::max_small_svd, max_solve_gram and max_residual_columns say how far a backend reaches; 0 sends callers to the
// host or to other methods.
#pragma once

#include "vocabulary/memory.hpp"

namespace qrane::backend {

/// The SVD R = U diag(sigma) Vᵀ of a small triangle, or V and sigma from G = RᵀR, and a product of them.
///
/// Singular values are accurate to the rounding of the largest (from G: of its square). From G, V is orthonormal
/// whatever the rank. From R, U and V are orthonormal while sigma_1 < `orthonormal_to` sigma_n; a caller tests that by
/// `most_condition`. NaN or Inf in R makes all results NaN.
template <class B>
struct SmallSvd {
  enum class Product {
    none,
    threshold,  // V diag(max(0, 1 - threshold / sigma)) Vᵀ
    whiten      // V diag(1 / sigma), so that A V diag(1 / sigma) = U for AᵀA = G
  };
  static constexpr double orthonormal_to = 0x1p40;
  DeviceMatrix<B, double> r;                     // in: n x n, upper triangle read: R, or G
  bool gram = false;                             // r holds G
  DeviceMatrix<B, double> guess;                 // in, with G: an orthonormal matrix near V, or null
  DeviceMatrix<B, double> u;                     // out, with R: U; or null
  DeviceMatrix<B, double> v;                     // out: V; may be the guess
  typename B::template Pointer<double> sigma{};  // out: n singular values, nonincreasing
  typename B::template Pointer<double> work{};   // scratch: small_svd_work(n) doubles
  double accuracy = 0x1p-52;  // cosines between singular vectors below n^(1/2) times this are rounding
  Product product = Product::none;
  double threshold = 0;
  DeviceMatrix<B, double> result;                       // out: the product, n x n
  double most_condition = 0;                            // with `failed`: *failed := 1 unless sigma_1 < this * sigma_n
  typename B::template Pointer<std::int32_t> failed{};  // or null
};
/// Doubles of SmallSvd::work.
template <class Queue>
Index small_svd_work(const Queue&, Index) {
  return 0;
}
template <class Queue, class B>
Default small_svd(const Queue&, const SmallSvd<B>&) {
  return not_whole("small_svd");
}

/// min ‖A x - b‖ from the factor R of A's Gram matrix: x = W Wᵀ (Aᵀ b) with W = R^-1, products and sums in double.
template <class B, class T>
struct GramSolve {
  DeviceMatrix<B, T> a, b;                       // in: m x n, m x nrhs
  DeviceMatrix<B, double> r, inverse;            // in: n x n upper triangles, zeros below
  DeviceMatrix<B, T> x;                          // out: n x nrhs, rounded once
  DeviceMatrix<B, double> y;                     // out: Wᵀ Aᵀ b = Qᵀ b, n x nrhs
  typename B::template Pointer<double> facts{};  // out: R's 1-norm condition number; longest column times ‖W‖_F, which
                                                 // no ratio |r_00| / |r_kk| of a pivoted R exceeds
};
/// Bytes of scratch that solve_gram of that many columns takes, and residual_squares of 8.
template <class Queue>
Index least_squares_scratch_bytes(const Queue&, Index) {
  return 0;
}
template <class Queue, class B, class T>
Default solve_gram(const Queue&, const GramSolve<B, T>&, const Scratch<B>&) {
  return not_whole("solve_gram");
}

/// squares[c] := ‖b - A x‖² of column c in double: queue, a, x, b, squares (device memory), scratch.
template <class Queue, class B, class T>
Default residual_squares(const Queue&, const DeviceMatrix<B, T>&, const DeviceMatrix<B, T>&, const DeviceMatrix<B, T>&,
                         typename B::template Pointer<double>, const Scratch<B>&) {
  return not_whole("residual_squares");
}

}  // namespace qrane::backend
