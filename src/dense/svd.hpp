// SPDX-License-Identifier: Apache-2.0
// A = Q R, R = U_R S Vᵀ on the host, U = Q U_R on the device. A wide matrix is taken as its transpose.
#pragma once

#include <qrane/svd.hpp>

#include "dense/consume.hpp"

namespace qrane::dense {

inline HostMatrix transposed(const HostMatrix& a) {
  HostMatrix out(a.cols, a.rows);
  for (Index j = 0; j < a.cols; ++j)
    for (Index i = 0; i < a.rows; ++i) out(j, i) = a(i, j);
  return out;
}

/// A small host matrix where the user's data lives.
template <class B, class T>
Matrix<T> place(typename B::Queue& queue, const HostMatrix& a, Memory where) {
  Matrix<T> host = from_host_matrix<T>(a);
  if (where == Memory::host) return host;
  Matrix<T> out = device_matrix<B, T>(queue, a.rows, a.cols);
  load<B, T>(queue, std::as_const(host).view(), as_device<B>(out.view()));
  queue.synchronize();
  return out;
}

template <class B, class T>
Svd<T> svd(typename B::Queue& queue, const plan::DeviceProfile& profile, MatrixView<const T> a,
           const SvdOptions& options) {
  check_view("A", a);
  const Memory where = a.memory;
  const bool wide = a.rows < a.cols;
  if (wide) {  // the storage of A read the other way round
    std::swap(a.rows, a.cols);
    a.layout = a.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
  }
  const Index m = a.rows, n = a.cols;
  Options wish;
  wish.algorithm = options.algorithm;
  wish.q = options.vectors ? QForm::implicit : QForm::none;
  if (options.algorithm == Algorithm::cholesky_qr && options.vectors) wish.q = QForm::thin;
  Factorization<B, T> f(queue, plan::make_plan(profile, m, n, 1, sizeof(T), wish));
  {
    Temporary<B, T> matrix(queue, m, n);
    load<B, T>(queue, a, matrix.matrix);
    if (options.check_finite) check_finite<B, T>(queue, "A", matrix.matrix, wide);
    f.run(matrix.matrix);
    queue.synchronize();
  }
  HostMatrix r = to_host_matrix<B, T>(queue, f.r_source());
  for (Index j = 0; j < r.cols; ++j)
    for (Index i = j + 1; i < r.rows; ++i) r(i, j) = 0;
  const HostSvd small = host_svd(std::move(r), options.vectors);
  Svd<T> out;
  HostMatrix s(static_cast<Index>(small.s.size()), 1);
  std::copy(small.s.begin(), small.s.end(), s.data.begin());
  out.s = place<B, T>(queue, s, where);
  if (!options.vectors) return out;
  Temporary<B, T> u(queue, m, n);
  multiply_q(f, from_host_matrix<T>(small.u), u.matrix);
  if (!wide) {
    out.u = export_matrix<B, T>(queue, u.matrix, where);
    out.vt = place<B, T>(queue, small.vt, where);
  } else {  // Aᵀ = U S Vᵀ, so A = V S Uᵀ
    Temporary<B, T> ut(queue, n, m);
    queue.transpose(u.matrix, ut.matrix);
    out.vt = export_matrix<B, T>(queue, ut.matrix, where);
    out.u = place<B, T>(queue, transposed(small.vt), where);
  }
  queue.synchronize();
  return out;
}

}  // namespace qrane::dense
