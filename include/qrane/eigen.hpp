// SPDX-License-Identifier: Apache-2.0
// Eigen's matrices as arguments, and results as Eigen's matrices. Include it beside <qrane/qrane.hpp>; nothing else in
// qrane needs Eigen (version 3.4 or later).
//
//   Eigen::MatrixXd a; Eigen::VectorXd b;
//   auto solution = qrane::least_squares(context, a, b);
//   Eigen::MatrixXd x = qrane::to_eigen(solution.x);
#pragma once

#include <Eigen/Core>
#include <Eigen/SparseCore>
#include <algorithm>
#include <type_traits>

#include <qrane/error.hpp>
#include <qrane/matrix.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane {

namespace detail {
/// Matrix, Array, Map, Ref and Block, in either storage order: whatever has its elements in memory.
template <class X>
concept EigenDense = std::is_same_v<typename X::StorageKind, Eigen::Dense> && requires(const X& x) {
  x.data();
  x.innerStride();
  x.outerStride();
};
template <class X>
concept EigenSparse = std::is_same_v<typename X::StorageKind, Eigen::Sparse> && requires(const X& x) {
  x.valuePtr();
  x.innerIndexPtr();
  x.outerIndexPtr();
};
}  // namespace detail

/// Eigen's elements, not copied. Throws Error{invalid_argument} where neighbours are not adjacent (an inner stride).
template <detail::EigenDense X>
struct ViewOf<X> {
  static auto view(X& x) { return of(x.data(), x); }
  static auto view(const X& x) { return of(x.data(), x); }

 private:
  template <class T>
  static MatrixView<T> of(T* data, const X& x) {
    detail::check(x.innerStride() == 1 || x.innerSize() <= 1, ErrorCode::invalid_argument,
                  "an Eigen matrix with inner stride ", x.innerStride(), " is not contiguous: pass a copy (.eval())");
    const Index ld = std::max<Index>(x.outerStride(), x.innerSize());
    return MatrixView<T>(data, x.rows(), x.cols(), ld, Memory::host,
                         X::IsRowMajor ? Layout::row_major : Layout::column_major);
  }
};

/// A host matrix as Eigen's, not copied; it must outlive the result. Throws Error{invalid_argument} for device memory:
/// Context::to_host comes first.
template <class T>
auto to_eigen(const Matrix<T>& a) {
  detail::check(a.memory() == Memory::host, ErrorCode::invalid_argument, "to_eigen: the ", a.rows(), " x ", a.cols(),
                " matrix is in device memory; copy it with Context::to_host");
  using Dynamic = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  return Eigen::Map<const Dynamic, 0, Eigen::OuterStride<>>(a.data(), a.rows(), a.cols(), Eigen::OuterStride<>(a.ld()));
}
/// The same of a temporary, copied.
template <class T>
auto to_eigen(Matrix<T>&& a) {
  return Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>(to_eigen(std::as_const(a)));
}

namespace sparse {

/// A compressed Eigen::SparseMatrix in either storage order, not copied. Throws Error{invalid_argument} where it is not
/// compressed.
template <qrane::detail::EigenSparse A>
SparseView<typename A::Scalar> view(const A& a) {
  qrane::detail::check(a.isCompressed(), ErrorCode::invalid_argument, "the ", a.rows(), " x ", a.cols(),
                       " Eigen::SparseMatrix is not compressed: call its makeCompressed()");
  using T = typename A::Scalar;
  return A::IsRowMajor ? by_rows<T>(a.rows(), a.cols(), a.outerIndexPtr(), a.innerIndexPtr(), a.valuePtr())
                       : by_columns<T>(a.rows(), a.cols(), a.outerIndexPtr(), a.innerIndexPtr(), a.valuePtr());
}
template <qrane::detail::EigenSparse A>
struct SparseViewOf<A> {
  static auto view(const A& a) { return sparse::view(a); }
};

}  // namespace sparse
}  // namespace qrane
