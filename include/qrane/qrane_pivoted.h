/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of column-pivoted QR, A P = Q R. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_PIVOTED_H
#define QRANE_QRANE_PIVOTED_H

#include <qrane/qrane_qr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A factorization A P = Q R with |r_00| >= |r_11| >= ... (LAPACK name: geqp3). */
typedef struct qrane_pivoted_qr qrane_pivoted_qr;

/* How pivots are chosen; see qrane::Pivoting. */
enum qrane_pivoting { QRANE_PIVOTING_AUTOMATIC, QRANE_PIVOTING_EXACT, QRANE_PIVOTING_RANDOMIZED };

typedef struct qrane_pivot_options {
  size_t size;               /* sizeof(qrane_pivot_options) */
  int32_t q;                 /* QRANE_Q_IMPLICIT, QRANE_Q_THIN or QRANE_Q_NONE */
  int32_t pivoting;          /* qrane_pivoting */
  double relative_tolerance; /* relative to |r_00|: where the rank ends; < 0: (min(m, n) + 10) eps */
  int64_t max_rank;          /* columns to factor at most; < 0: min(m, n) */
  int32_t truncate;          /* nonzero: end at the rank */
  int32_t check_finite;      /* nonzero: refuse NaN and Inf, naming the first one's position (waits for the device) */
} qrane_pivot_options;

#define QRANE_PIVOT_OPTIONS_INIT \
  { sizeof(qrane_pivot_options), QRANE_Q_IMPLICIT, QRANE_PIVOTING_AUTOMATIC, -1.0, -1, 0, 0 }

typedef struct qrane_pivot_info {
  size_t size;               /* in: sizeof(qrane_pivot_info); the fields below are out */
  int64_t rows, cols;        /* of A */
  int64_t rank;              /* leading diagonal elements of R above the tolerance */
  int64_t kept;              /* columns factored: R is kept x n, Q is m x kept */
  double absolute_tolerance; /* relative_tolerance times |r_00| */
  int32_t pivoting;          /* qrane_pivoting that chose; never automatic */
} qrane_pivot_info;

#define QRANE_PIVOT_INFO_INIT \
  { sizeof(qrane_pivot_info), 0, 0, 0, 0, 0.0, 0 }

/*
 * Factors a copy of A (m x n, any shape).
 *   a        in   host or device
 *   options  in   null for the defaults
 *   qr       out  null when the call fails; give it back with qrane_pivoted_qr_destroy
 */
QRANE_API int qrane_pivoted_factor_s(qrane_context* context, const qrane_matrix_s* a,
                                     const qrane_pivot_options* options, qrane_pivoted_qr** qr);
QRANE_API int qrane_pivoted_factor_d(qrane_context* context, const qrane_matrix_d* a,
                                     const qrane_pivot_options* options, qrane_pivoted_qr** qr);

/* Frees the factorization; null is fine. */
QRANE_API void qrane_pivoted_qr_destroy(qrane_pivoted_qr* qr);

/* Shape and rank; waits for the device. */
QRANE_API int qrane_pivoted_qr_info(const qrane_pivoted_qr* qr, qrane_pivot_info* info);

/* columns: out, host, count = n numbers: column j of A P is column columns[j] of A (0-based). */
QRANE_API int qrane_pivoted_permutation(const qrane_pivoted_qr* qr, int64_t* columns, int64_t count);

/* r: out, kept x n, upper trapezoidal with zeros below. */
QRANE_API int qrane_pivoted_r_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* r);
QRANE_API int qrane_pivoted_r_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* r);

/* q: out, m x kept. QRANE_UNAVAILABLE with QRANE_Q_NONE. */
QRANE_API int qrane_pivoted_q_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* q);
QRANE_API int qrane_pivoted_q_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* q);

/* C := Q C or C Q, or with Q^T where transpose is nonzero, in place; needs QRANE_Q_IMPLICIT. As qrane_apply_q_s. */
QRANE_API int qrane_pivoted_apply_s(const qrane_pivoted_qr* qr, int side, int transpose, const qrane_matrix_s* c);
QRANE_API int qrane_pivoted_apply_d(const qrane_pivoted_qr* qr, int side, int transpose, const qrane_matrix_d* c);

/* Least-squares solution from the leading `rank` columns; as qrane_solve_s, with the factorization's own tolerance
 * where options->tolerance is negative. */
QRANE_API int qrane_pivoted_solve_s(const qrane_pivoted_qr* qr, const qrane_matrix_s* b,
                                    const qrane_solve_options* options, const qrane_matrix_s* x, qrane_solution* info);
QRANE_API int qrane_pivoted_solve_d(const qrane_pivoted_qr* qr, const qrane_matrix_d* b,
                                    const qrane_solve_options* options, const qrane_matrix_d* x, qrane_solution* info);

#ifdef __cplusplus
}
#endif

#endif
