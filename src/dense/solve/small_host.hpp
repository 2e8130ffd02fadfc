// SPDX-License-Identifier: Apache-2.0
// What is decided on the host from a small factor, in double: condition, rank, rank-deficient solves, SVD.
// Column-major throughout. Inputs may hold NaN (results do then) and any finite magnitude.
#pragma once

#include <vector>

#include <qrane/matrix.hpp>

#include "vocabulary/memory.hpp"

namespace qrane::dense {

struct HostMatrix {
  Index rows = 0, cols = 0;
  std::vector<double> data;

  HostMatrix() = default;
  HostMatrix(Index m, Index n) : rows(m), cols(n), data(static_cast<std::size_t>(backend::elements_of<double>(m, n)), 0.0) {}
  double& operator()(Index i, Index j) { return data[static_cast<std::size_t>(i + j * rows)]; }
  double operator()(Index i, Index j) const { return data[static_cast<std::size_t>(i + j * rows)]; }
  double* column(Index j) { return data.data() + j * rows; }
};

bool has_nan_or_inf(const HostMatrix& a);

/// Estimate of the 1-norm condition number of the leading square of an upper triangle (LAPACK's trcon);
/// infinity when a diagonal element is zero, NaN when the triangle is not finite.
double triangle_condition(const HostMatrix& r);

/// A P = Q R with |r_00| >= |r_11| >= ... (Businger, Golub 1965). Packed as LAPACK's geqp3.
struct PivotedQR {
  HostMatrix packed;
  std::vector<double> tau;
  std::vector<Index> columns;  // column j of A P is column columns[j] of A
  double scale = 1;            // packed holds A times this power of two
};
PivotedQR pivoted_qr(HostMatrix a);

/// Diagonal elements of the pivoted R above relative_tolerance times the first; also the absolute tolerance.
Index numerical_rank(const PivotedQR& f, double relative_tolerance, double* absolute_tolerance = nullptr);

/// First `count` columns of Q of a pivoted factorization.
HostMatrix leading_q(const PivotedQR& f, Index count);

/// min ‖A x - b‖ for A of the given rank: basic (n - rank zeros), or of least norm.
HostMatrix solve_deficient(const PivotedQR& f, Index rank, const HostMatrix& b, bool least_norm);

struct HostSvd {
  HostMatrix u, vt;  // m x k, k x n
  std::vector<double> s;
};
/// Thin SVD (LAPACK's gesdd, gesvd when that does not converge). NaN in: NaN out.
HostSvd host_svd(HostMatrix a, bool vectors);

}  // namespace qrane::dense
