// SPDX-License-Identifier: Apache-2.0
// What robust PCA works with (robust_pca.hpp): the thresholded projector, a problem's memory.
#pragma once

#include <vector>

#include "dense/factorization.hpp"

namespace qrane::rpca {

using backend::small_svd_work;

/// P of singular value thresholding, and the singular values that are left.
struct Threshold {
  dense::HostMatrix projector;
  std::vector<double> values;
  Index rank() const { return static_cast<Index>(values.size()); }
};
inline Threshold singular_value_threshold(const dense::HostSvd& svd, double tau) {
  const Index n = svd.vt.cols;
  Threshold out{dense::HostMatrix(n, n), {}};
  dense::HostMatrix& p = out.projector;
  for (double s : svd.s)
    if (s > tau) out.values.push_back(s - tau);
  for (Index c = 0; c < out.rank(); ++c) {
    const double keep = 1 - tau / svd.s[c];
    for (Index j = 0; j < n; ++j) {
      const double weight = keep * svd.vt(c, j);
      for (Index i = 0; i < n; ++i) p(i, j) += svd.vt(c, i) * weight;
    }
  }
  return out;
}

/// Iterations queued before the host looks.
constexpr int batch = 8;

/// The matrices of one problem, all m x n with m >= n, contiguous.
template <class B, class T>
struct Work {
  dense::Buffer<B> memory;
  backend::DeviceMatrix<B, T> m, l, y, s, x, projector;  // fused: (x, y) and (l, s) are X and Y in turn
  backend::DeviceMatrix<B, double> r, v, wide_projector;
  typename B::template Pointer<double> residual{};  // its square
  typename B::template Pointer<double> sigma{}, before{}, records{}, svd_work{};
  typename B::template Pointer<std::int32_t> running{};
  backend::Scratch<B> scratch;

  Work(const typename B::Queue& queue, Index rows, Index cols, Index svd_doubles, Index scratch_bytes) {
    dense::Carver<B> sizes;
    carve(sizes, rows, cols, svd_doubles, scratch_bytes);
    memory = dense::Buffer<B>(queue, sizes.used());
    dense::Carver<B> carver(memory.template as<std::byte>());
    carve(carver, rows, cols, svd_doubles, scratch_bytes);
  }

 private:
  void carve(dense::Carver<B>& carver, Index rows, Index cols, Index svd_doubles, Index scratch_bytes) {
    for (auto* a : {&m, &l, &y, &s, &x}) *a = carver.template matrix<T>(rows, cols);
    projector = carver.template matrix<T>(cols, cols);
    for (auto* a : {&r, &v, &wide_projector}) *a = carver.template matrix<double>(cols, cols);
    residual = carver.template take<double>(1);
    sigma = carver.template take<double>(cols);
    before = carver.template take<double>(cols);
    records = carver.template take<double>(2 * batch);
    svd_work = carver.template take<double>(svd_doubles);
    running = carver.template take<std::int32_t>(8);
    scratch.bytes = scratch_bytes;
    scratch.data = carver.template take<std::byte>(scratch_bytes);
  }
};

}  // namespace qrane::rpca
