// SPDX-License-Identifier: Apache-2.0
// Singular value decomposition through QR: A = Q R, R = U_R S V^T, U = Q U_R (Anderson et al. 2011, section VI).
#pragma once

#include <qrane/export.h>
#include <qrane/qr.hpp>

namespace qrane {

struct SvdOptions {
  bool vectors = true;                         ///< U and V^T, else singular values alone
  Algorithm algorithm = Algorithm::automatic;  ///< of that QR; automatic may take A's Gram matrix instead
  bool check_finite = false;                   ///< refuse NaN and Inf, naming the first (waits for the device)
};

/// A = U diag(s) V^T with k = min(m, n); where A lives (s too).
template <class T>
struct Svd {
  Matrix<T> u;   ///< m x k
  Matrix<T> s;   ///< k x 1, nonincreasing
  Matrix<T> vt;  ///< k x n
};

/// Thin SVD of A, m x n, which is only read (LAPACK name: gesdd). QR first, or for well-conditioned `float` data
/// the Gram matrix in double; a wide A goes through its transpose. On CUDA, to 224 columns, nothing passes through the
/// host. Throws as qr(), and Error{not_converged} when LAPACK's SVD of R does not end, where it is LAPACK's.
template <class T>
QRANE_API Svd<T> svd(const Context& context, MatrixView<const T> a, const SvdOptions& options = {});

}  // namespace qrane
