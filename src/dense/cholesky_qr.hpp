// SPDX-License-Identifier: Apache-2.0
// Guarded Cholesky QR: R from the Gram matrix, in double, with a proof or a way back.
//
//     G = AᵀA,  G = RᵀR,  Q = A R^-1
//
// float data: products and sums in double make one pass backward stable for R to kappa near 1e7
// (Yamazaki, Tomov, Dongarra, SISC 2015), and Q from one double product, rounded once, orthogonal to 2e5.
// double data: a second pass on Q (CholeskyQR2; Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa,
// SISC 2020) repairs what kappa * eps lost, R := R2 R1.
// The guard bounds the condition number of the column-scaled factor from above (‖R̂‖_F ‖R̂^-1‖_F, with the
// Gram's own rounding added) on the device. When it fails, a flag there lets the CAQR kernels, which were
// queued behind it and else do nothing, overwrite R and Q: the host never waits.
// Cost: float m n (n + 1) flops and one read of A for R; each pass of double 2 m n^2 flops more.
#pragma once

#include "dense/caqr.hpp"

namespace qrane::dense {

template <class B, class T>
struct CholeskyWorkspace {
  backend::DeviceMatrix<B, double> gram, r, inverse, r2;  // n x n
  typename B::template Pointer<std::int32_t> failed{};
  typename B::template Pointer<double> condition{};
  backend::DeviceMatrix<B, T> v;        // m x n: Q of the first pass, and the fall-back's reflectors
  typename B::template Pointer<T> t{};  // the fall-back's T factors
  backend::Scratch<B> scratch;

  CholeskyWorkspace() = default;
  CholeskyWorkspace(Carver<B>& carver, Index rows, Index cols, Index t_elements) {
    gram = carver.template matrix<double>(cols, cols);
    r = carver.template matrix<double>(cols, cols);
    inverse = carver.template matrix<double>(cols, cols);
    r2 = carver.template matrix<double>(cols, cols);
    failed = carver.template take<std::int32_t>(8);
    condition = carver.template take<double>(2);
    v = carver.template matrix<T>(rows, cols);
    t = carver.template take<T>(t_elements);
    // double copies of row chunks of A and of the product; large enough for the products to run at full rate
    constexpr Index chunk_bytes = Index{256} << 20;
    scratch.bytes = std::max<Index>(std::min<Index>(chunk_bytes, 16 * rows * cols), 32 * cols * 8) + 65536;
    scratch.data = carver.template take<std::byte>(scratch.bytes);
  }

  /// The same memory for a smaller matrix.
  CholeskyWorkspace leading(Index rows, Index cols) const {
    CholeskyWorkspace w = *this;
    for (auto* a : {&w.gram, &w.r, &w.inverse, &w.r2}) *a = a->block(0, 0, cols, cols);
    w.v = w.v.block(0, 0, rows, cols);
    return w;
  }
};

/// Gram matrix and guarded factor of `a` into work.r and work.inverse.
template <class B, class T>
void guarded_pass(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a, double limit,
                  const backend::DeviceMatrix<B, double>& r, const CholeskyWorkspace<B, T>& work) {
  queue.gram(a, work.gram, work.scratch);
  backend::GuardedCholesky<B, T> c;
  c.gram = work.gram;
  c.r = r;
  c.inverse = work.inverse;
  c.failed = work.failed;
  c.condition = work.condition;
  c.limit = limit;
  c.rounding = 0x1p-53;
  queue.guarded_cholesky(c);
}

/// R (n x n) and, when q.cols > 0, the thin Q of a; a is only read.
template <class B, class T>
void cholesky_qr(typename B::Queue& queue, const DeviceSchedule<B>& tree, const backend::DeviceMatrix<B, T>& a,
                 const backend::DeviceMatrix<B, T>& r, const backend::DeviceMatrix<B, T>& q, int passes, double limit,
                 const CholeskyWorkspace<B, T>& work) {
  using backend::DeviceMatrix;
  using backend::Part;
  const bool thin = q.cols > 0;
  queue.fill(DeviceMatrix<B, T>{cast_pointer<T>(work.failed), 1, 1, 1, 0, 1}, T(0), T(0));
  guarded_pass(queue, a, limit, work.r, work);
  if (passes == 1) {
    queue.narrow(work.r, r, Part::upper);
    if (thin) queue.multiply_wide(a, work.inverse, q, work.scratch);
  } else {
    // Q1 = A R1^-1 is orthonormal to kappa * eps; its own factor R2 is near the identity
    queue.multiply_wide(a, work.inverse, work.v, work.scratch);
    const double near_orthonormal = 4.0 * static_cast<double>(a.cols) + 16;  // ‖I‖_F² is n already
    guarded_pass(queue, work.v, near_orthonormal, work.r2, work);
    if constexpr (sizeof(T) == sizeof(double)) {
      queue.gemm(backend::Op::none, backend::Op::none, 1.0, work.r2, work.r, 0.0, r);
    }
    if (thin) queue.multiply_wide(work.v, work.inverse, q, work.scratch);
  }
  // the way back
  auto fallback = queue.when(work.failed);
  fallback.copy(a, work.v, Part::all);
  const ImplicitQ<B, T> implicit{&tree, work.v, work.t};
  caqr(fallback, implicit);
  fallback.copy(work.v.block(0, 0, r.rows, r.cols), r, Part::upper);
  if (thin) form_q(fallback, implicit, q);
}

}  // namespace qrane::dense
