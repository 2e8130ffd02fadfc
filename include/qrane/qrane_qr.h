/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of QR: factorization, R, Q, products with Q, least squares. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_QR_H
#define QRANE_QRANE_QR_H

#include <qrane/qrane_core.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qrane_algorithm {
  QRANE_ALGORITHM_AUTOMATIC = 0,
  QRANE_ALGORITHM_TSQR = 1,
  QRANE_ALGORITHM_CAQR = 2,
  QRANE_ALGORITHM_BLOCKED = 3,
  QRANE_ALGORITHM_CHOLESKY_QR = 4,
  QRANE_ALGORITHM_HOUSEHOLDER = 5 /* no tree: batches, and matrices of few rows */
} qrane_algorithm;

/* What a factorization keeps of Q. */
typedef enum qrane_q_form {
  QRANE_Q_IMPLICIT = 0, /* reflectors: Q can be applied, and formed when asked for */
  QRANE_Q_THIN = 1,     /* Q explicit, m x min(m, n) */
  QRANE_Q_LAPACK = 2,   /* reflectors, shaped as LAPACK's geqrf leaves them */
  QRANE_Q_NONE = 3,     /* R only */
  QRANE_Q_FULL = 4      /* Q explicit, m x m: for factorizations that are updated */
} qrane_q_form;

typedef enum qrane_side { QRANE_LEFT = 0, QRANE_RIGHT = 1 } qrane_side;

/* ---------------------------------------------------------------------------------------- factorizations */

/* A factorization A = Q R. */
typedef struct qrane_qr qrane_qr;

typedef struct qrane_options {
  size_t size;          /* sizeof(qrane_options) */
  int32_t algorithm;    /* qrane_algorithm */
  int32_t q;            /* qrane_q_form: what to keep of Q */
  int32_t check_finite; /* nonzero: refuse NaN and Inf, naming the first one's position (waits for the device) */
  int32_t arity;        /* triangles combined by one node of the tree; 0: tuned */
  int64_t block_rows;   /* rows of a leaf of the tree; 0: tuned */
  int64_t panel_cols;   /* columns of a panel; 0: tuned */
} qrane_options;

#define QRANE_OPTIONS_INIT \
  { sizeof(qrane_options), QRANE_ALGORITHM_AUTOMATIC, QRANE_Q_IMPLICIT, 0, 0, 0, 0 }

typedef struct qrane_factor_info {
  size_t size;             /* in: sizeof(qrane_factor_info); the fields below are out */
  int64_t rows, cols;      /* of A */
  int32_t scalar_bytes;    /* 4 or 8 */
  int32_t algorithm;       /* qrane_algorithm that ran; never automatic */
  int32_t q;               /* qrane_q_form */
  int32_t fell_back;       /* 1: a Cholesky-based plan handed over to the Householder tree on this data */
  int64_t workspace_bytes; /* device memory it takes: results, reflectors, scratch */
} qrane_factor_info;

#define QRANE_FACTOR_INFO_INIT \
  { sizeof(qrane_factor_info), 0, 0, 0, 0, 0, 0, 0 }

/*
 * Factors a copy of A (m x n, any shape, empty included; LAPACK name: geqrf).
 *   a        in   host or device; a device matrix never passes through the host
 *   options  in   null for the defaults
 *   qr       out  null when the call fails; give it back with qrane_qr_destroy
 */
QRANE_API int qrane_factor_s(qrane_context* context, const qrane_matrix_s* a, const qrane_options* options,
                             qrane_qr** qr);
QRANE_API int qrane_factor_d(qrane_context* context, const qrane_matrix_d* a, const qrane_options* options,
                             qrane_qr** qr);

/* Factors another matrix of the same shape in the memory of `qr`: allocates nothing after its first call. */
QRANE_API int qrane_refactor_s(qrane_qr* qr, const qrane_matrix_s* a);
QRANE_API int qrane_refactor_d(qrane_qr* qr, const qrane_matrix_d* a);

/* Frees the factorization; null is fine. */
QRANE_API void qrane_qr_destroy(qrane_qr* qr);

/* Shape, algorithm and fall-back; waits for the device. */
QRANE_API int qrane_qr_info(const qrane_qr* qr, qrane_factor_info* info);

/* R, upper trapezoidal with zeros below. r: out, min(m, n) x n, or m x n. */
QRANE_API int qrane_r_s(const qrane_qr* qr, const qrane_matrix_s* r);
QRANE_API int qrane_r_d(const qrane_qr* qr, const qrane_matrix_d* r);

/*
 * Q (LAPACK name: orgqr). q: out, m x min(m, n) for the thin Q, m x m for the full one.
 * QRANE_UNAVAILABLE when the form asked for in qrane_options does not give it.
 */
QRANE_API int qrane_q_s(const qrane_qr* qr, const qrane_matrix_s* q);
QRANE_API int qrane_q_d(const qrane_qr* qr, const qrane_matrix_d* q);

/*
 * C := Q C (left, C has m rows) or C Q (right, C has m columns), with the full m x m Q, in place; Q is not formed
 * (LAPACK name: ormqr). side: QRANE_LEFT or QRANE_RIGHT. c: in and out. QRANE_UNAVAILABLE unless the reflectors were
 * kept (QRANE_Q_IMPLICIT, QRANE_Q_LAPACK or QRANE_Q_FULL).
 */
QRANE_API int qrane_apply_q_s(const qrane_qr* qr, int side, const qrane_matrix_s* c);
QRANE_API int qrane_apply_q_d(const qrane_qr* qr, int side, const qrane_matrix_d* c);

/* C := Q^T C or C Q^T, in place; otherwise as qrane_apply_q_s and _d. */
QRANE_API int qrane_apply_qt_s(const qrane_qr* qr, int side, const qrane_matrix_s* c);
QRANE_API int qrane_apply_qt_d(const qrane_qr* qr, int side, const qrane_matrix_d* c);

/* ----------------------------------------------------------------------------------------- least squares */

typedef struct qrane_solve_options {
  size_t size;               /* sizeof(qrane_solve_options) */
  double relative_tolerance; /* relative to the largest diagonal of the pivoted R; < 0: (min(m, n) + 10) eps */
  int32_t least_norm;        /* rank-deficient A: nonzero for the solution of least norm, 0 for a basic one */
  int32_t refuse_deficient;  /* rank-deficient A: nonzero to fail with QRANE_RANK_DEFICIENT instead */
} qrane_solve_options;

#define QRANE_SOLVE_OPTIONS_INIT \
  { sizeof(qrane_solve_options), -1.0, 1, 0 }

typedef struct qrane_solution {
  size_t size;      /* in: sizeof(qrane_solution); the fields below are out */
  int64_t rank;     /* < full: A is rank-deficient to the tolerance, and x is the least-norm or a basic solution */
  int64_t full;     /* min(m, n) */
  double condition; /* estimate of R's condition number in the 1-norm */
} qrane_solution;

#define QRANE_SOLUTION_INIT \
  { sizeof(qrane_solution), 0, 0, 0.0 }

/*
 * Least-squares solution of A x = b for all columns of b; of least norm when A has fewer rows than columns (LAPACK
 * name: gels). A rank-deficient A is solved as the options say, and shows in info->rank: look there.
 *   b        in   m x nrhs
 *   options  in   null for the defaults
 *   x        out  n x nrhs; must not overlap b
 *   info     out  may be null
 */
QRANE_API int qrane_solve_s(const qrane_qr* qr, const qrane_matrix_s* b, const qrane_solve_options* options,
                            const qrane_matrix_s* x, qrane_solution* info);
QRANE_API int qrane_solve_d(const qrane_qr* qr, const qrane_matrix_d* b, const qrane_solve_options* options,
                            const qrane_matrix_d* x, qrane_solution* info);

#ifdef __cplusplus
}
#endif

#endif
