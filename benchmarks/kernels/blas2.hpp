// SPDX-License-Identifier: Apache-2.0
// The CAQR paper's first rival: Householder QR by matrix-vector products and rank-1 updates, bound by the memory's rate
// and tuned for tall and skinny matrices (Anderson et al., 2011, section VI.D, "BLAS2 QR"). For benchmarks: columns are
// not scaled, so elements must stay between the square roots of the range's ends.
#pragma once

#include <cstdint>

#include "kernels/device.hpp"

namespace qrane::bench {

/// Factors m x n matrices, m >= n, n <= 1024, contiguous column-major in device memory, on one stream, by 2 n launches.
template <class T>
class Blas2Qr {
 public:
  Blas2Qr(std::int64_t rows, int cols, cudaStream_t stream);

  /// A := V below the diagonal, R on and above it, as LAPACK's geqrf. n passes over what is left of A, each of which
  /// reads and writes it once: m n^2 (1 - n / (3 m)) elements moved.
  void factor(T* a);
  /// Q := thin Q of a factored A, m x n.
  void form_q(const T* a, T* q);
  /// C := Q C, m x n.
  void apply_q(const T* a, T* c);

 private:
  void multiply_by_q(const T* a, T* c, bool triangular);

  std::int64_t rows_;
  int cols_;
  cudaStream_t stream_;
  int ctas_;
  DeviceArray<T> partial_, weights_, tau_, head_;
};

}  // namespace qrane::bench
