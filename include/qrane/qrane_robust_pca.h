/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of robust principal component analysis. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_ROBUST_PCA_H
#define QRANE_QRANE_ROBUST_PCA_H

#include <qrane/qrane_qr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* See qrane::RobustPcaMethod. */
typedef enum qrane_robust_pca_method {
  QRANE_ROBUST_PCA_INEXACT_ALM = 0, /* mu grows by rho each iteration */
  QRANE_ROBUST_PCA_ALTERNATING = 1  /* fixed mu */
} qrane_robust_pca_method;

typedef struct qrane_robust_pca_progress {
  int32_t iteration; /* from 1 */
  int32_t reserved;
  int64_t rank;    /* of L in this iteration */
  double residual; /* |M - L - S|_F / |M|_F */
  double mu;
  double seconds; /* since the start */
} qrane_robust_pca_progress;

typedef struct qrane_robust_pca_options {
  size_t size;               /* sizeof(qrane_robust_pca_options) */
  int32_t method;            /* qrane_robust_pca_method */
  int32_t algorithm;         /* qrane_algorithm that reduces the tall matrix of an iteration */
  int32_t max_iterations;    /* 0: 1000 */
  int32_t check_finite;      /* nonzero: refuse NaN and Inf, naming the first one's position (waits for the device) */
  double relative_tolerance; /* on the residual */
  double lambda_multiplier;  /* lambda = multiplier / sqrt(max(m, n)) */
  double mu;                 /* 0: chosen from M */
  double rho;                /* growth of mu */
  /* Called after every iteration where it is not null; a nonzero result stops with what there is. */
  int (*on_iteration)(const qrane_robust_pca_progress* progress, void* user);
  void* user; /* passed to on_iteration */
} qrane_robust_pca_options;

#define QRANE_ROBUST_PCA_OPTIONS_INIT                                                                                \
  {                                                                                                                  \
    sizeof(qrane_robust_pca_options), QRANE_ROBUST_PCA_INEXACT_ALM, QRANE_ALGORITHM_AUTOMATIC, 0, 0, 1e-4, 1.0, 0.0, \
        1.5, NULL, NULL                                                                                              \
  }

typedef struct qrane_robust_pca_info {
  size_t size; /* in: sizeof(qrane_robust_pca_info); the fields below are out */
  int32_t iterations;
  int32_t converged; /* 0: max_iterations were reached, or on_iteration stopped it */
  int64_t rank;      /* of the last L */
  double residual;
  double seconds; /* of the iterations, without transfers */
} qrane_robust_pca_info;

#define QRANE_ROBUST_PCA_INFO_INIT \
  { sizeof(qrane_robust_pca_info), 0, 0, 0, 0.0, 0.0 }

/*
 * Separates M = L + S, L of low rank, S sparse. Reaching max_iterations is no error: see info->converged.
 *   m         in   m x n, host or device; m >= n is the fast shape
 *   options   in   null for the defaults
 *   low_rank  out  L, m x n; null: not copied
 *   sparse    out  S, m x n; null: not copied
 *   info      out  may be null
 */
QRANE_API int qrane_robust_pca_s(qrane_context* context, const qrane_matrix_s* m,
                                 const qrane_robust_pca_options* options, const qrane_matrix_s* low_rank,
                                 const qrane_matrix_s* sparse, qrane_robust_pca_info* info);
QRANE_API int qrane_robust_pca_d(qrane_context* context, const qrane_matrix_d* m,
                                 const qrane_robust_pca_options* options, const qrane_matrix_d* low_rank,
                                 const qrane_matrix_d* sparse, qrane_robust_pca_info* info);

#ifdef __cplusplus
}
#endif

#endif
