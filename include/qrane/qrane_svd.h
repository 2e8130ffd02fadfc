/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of the singular value decomposition. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_SVD_H
#define QRANE_QRANE_SVD_H

#include <qrane/qrane_qr.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qrane_svd_options {
  size_t size;               /* sizeof(qrane_svd_options) */
  int32_t algorithm;         /* qrane_algorithm of the QR */
  int32_t check_finite;      /* nonzero: refuse NaN and Inf, naming the first one's position (waits for the device) */
  double relative_tolerance; /* where the rank in qrane_svd_info ends; < 0: (min(m, n) + 10) eps */
} qrane_svd_options;

#define QRANE_SVD_OPTIONS_INIT \
  { sizeof(qrane_svd_options), QRANE_ALGORITHM_AUTOMATIC, 0, -1.0 }

typedef struct qrane_svd_info {
  size_t size;               /* in: sizeof(qrane_svd_info); the fields below are out */
  int64_t rank;              /* singular values above absolute_tolerance */
  int64_t full;              /* min(m, n) */
  double absolute_tolerance; /* relative_tolerance times the largest singular value */
  double condition;          /* largest over smallest singular value; infinity when singular */
} qrane_svd_info;

#define QRANE_SVD_INFO_INIT \
  { sizeof(qrane_svd_info), 0, 0, 0.0, 0.0 }

/*
 * Thin singular value decomposition A = U diag(s) V^T, k = min(m, n) (LAPACK name: gesdd).
 *   a        in   m x n, host or device
 *   options  in   null for the defaults
 *   u        out  m x k; null: not computed
 *   s        out  k x 1, nonincreasing
 *   vt       out  k x n; null: not computed
 *   info     out  may be null
 */
QRANE_API int qrane_svd_s(qrane_context* context, const qrane_matrix_s* a, const qrane_svd_options* options,
                          const qrane_matrix_s* u, const qrane_matrix_s* s, const qrane_matrix_s* vt,
                          qrane_svd_info* info);
QRANE_API int qrane_svd_d(qrane_context* context, const qrane_matrix_d* a, const qrane_svd_options* options,
                          const qrane_matrix_d* u, const qrane_matrix_d* s, const qrane_matrix_d* vt,
                          qrane_svd_info* info);

#ifdef __cplusplus
}
#endif

#endif
