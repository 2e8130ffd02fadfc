/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of updates: rows and columns inserted into and deleted from a factorization. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_UPDATE_H
#define QRANE_QRANE_UPDATE_H

#include <qrane/qrane_qr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------- updates */

/* How a factorization is brought up to date; see qrane::UpdateMethod in update.hpp. */
typedef enum qrane_update_method {
  QRANE_UPDATE_AUTOMATIC = 0,  /* what the cost model says is fastest */
  QRANE_UPDATE_ORTHOGONAL = 1, /* a chain of small orthogonal blocks, and one sweep over Q */
  QRANE_UPDATE_CHOLESKY = 2,   /* rows out of a thin Q; guarded */
  QRANE_UPDATE_TRAILING = 3,   /* columns: those right of the change are refactored */
  QRANE_UPDATE_REFACTOR = 4    /* from scratch */
} qrane_update_method;

typedef struct qrane_update_options {
  size_t size;          /* sizeof(qrane_update_options) */
  int32_t method;       /* qrane_update_method */
  int32_t check_finite; /* nonzero: refuse NaN and Inf in what is inserted, naming the first one's position (waits) */
  int32_t block_cols;   /* columns of one block of the chain; 0: tuned */
  int32_t queued;       /* nonzero: do not wait to learn of a refusal; qrane_refused_updates tells later */
  int32_t no_refresh;   /* nonzero: never refactor `updated` because of drift */
  int32_t drift_every;  /* with `updated`: measure the drift every so many updates; 0: 64 */
  double drift_limit;   /* refactor beyond this drift, in units of (min(m, n) + 10) u; 0: 15 */
} qrane_update_options;

#define QRANE_UPDATE_OPTIONS_INIT \
  { sizeof(qrane_update_options), QRANE_UPDATE_AUTOMATIC, 0, 0, 0, 0, 0, 0.0 }

typedef struct qrane_update_report {
  size_t size;        /* in: sizeof(qrane_update_report); the fields below are out */
  int64_t rows, cols; /* before the update */
  int64_t k, p;
  int32_t method;    /* qrane_update_method that ran; never automatic */
  int32_t queued;    /* 1: what follows has not been read from the device yet */
  int32_t refused;   /* 1: R only, and the removed rows carry the rank; the factorization is as it was before */
  int32_t fell_back; /* 1: a guard sent the data from cholesky to orthogonal */
  int32_t refreshed; /* 1: the drift exceeded its limit, and `updated` was refactored */
  int32_t reserved;
  double drift;        /* -1: not measured */
  double predicted_ms; /* of the method that ran */
} qrane_update_report;

#define QRANE_UPDATE_REPORT_INIT \
  { sizeof(qrane_update_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0 }

/*
 * Change A and update the factorization, which keeps its form. Positions count from 0. Blocks may lie in host or
 * device memory, in any layout. After an error the factorization is as it was. The first update moves the factors to
 * memory that can grow.
 *   qr         in/out
 *   k          in   rows or columns are inserted before position k, or deleted from k on
 *   u          in   p x n rows, or m x p columns
 *   e          in   right-hand sides of the new rows, p x nrhs, where some are attached; else null
 *   p          in   number of deleted rows or columns
 *   removed    in   the deleted rows, p x n; with QRANE_Q_NONE alone (else it may be null)
 *   removed_b  in   their right-hand sides, p x nrhs, where some are attached; as `removed`
 *   updated    in   the matrix as it is after the update, read during the call; or null. Inserting columns and the
 *                   rank-k update need it with QRANE_Q_NONE (else QRANE_UNAVAILABLE)
 *   options    in   null for the defaults
 *   report     out  may be null
 */
QRANE_API int qrane_insert_rows_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u, const qrane_matrix_s* e,
                                  const qrane_matrix_s* updated, const qrane_update_options* options,
                                  qrane_update_report* report);
QRANE_API int qrane_insert_rows_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u, const qrane_matrix_d* e,
                                  const qrane_matrix_d* updated, const qrane_update_options* options,
                                  qrane_update_report* report);
QRANE_API int qrane_delete_rows_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_s* removed,
                                  const qrane_matrix_s* removed_b, const qrane_matrix_s* updated,
                                  const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_delete_rows_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_d* removed,
                                  const qrane_matrix_d* removed_b, const qrane_matrix_d* updated,
                                  const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_insert_columns_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u, const qrane_matrix_s* updated,
                                     const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_insert_columns_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u, const qrane_matrix_d* updated,
                                     const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_delete_columns_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_s* updated,
                                     const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_delete_columns_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_matrix_d* updated,
                                     const qrane_update_options* options, qrane_update_report* report);
/* A + U V^T, u: m x p, v: n x p. */
QRANE_API int qrane_rank_k_update_s(qrane_qr* qr, const qrane_matrix_s* u, const qrane_matrix_s* v,
                                    const qrane_matrix_s* updated, const qrane_update_options* options,
                                    qrane_update_report* report);
QRANE_API int qrane_rank_k_update_d(qrane_qr* qr, const qrane_matrix_d* u, const qrane_matrix_d* v,
                                    const qrane_matrix_d* updated, const qrane_update_options* options,
                                    qrane_update_report* report);

/*
 * From now on Q^T b and the residual norms of b's columns (m x nrhs) are updated too. a: the matrix as it is, read
 * during the call; needed with QRANE_Q_NONE, else null. A b of no columns ends it.
 */
QRANE_API int qrane_attach_s(qrane_qr* qr, const qrane_matrix_s* b, const qrane_matrix_s* a);
QRANE_API int qrane_attach_d(qrane_qr* qr, const qrane_matrix_d* b, const qrane_matrix_d* a);

/* Least-squares solution for the attached right-hand sides, of the updated matrix; x: n x nrhs. As qrane_solve_s and
 * _d. */
QRANE_API int qrane_solve_attached_s(const qrane_qr* qr, const qrane_solve_options* options, const qrane_matrix_s* x,
                                     qrane_solution* info);
QRANE_API int qrane_solve_attached_d(const qrane_qr* qr, const qrane_solve_options* options, const qrane_matrix_d* x,
                                     qrane_solution* info);

/* Norms of A x - b of the attached right-hand sides. norms: out, host, count = nrhs numbers. */
QRANE_API int qrane_residual_norms(const qrane_qr* qr, double* norms, int64_t count);

/*
 * How far the factorization has drifted, in units of (min(m, n) + 10) u; a fresh one is well below 30 (see
 * UpdatableQR::drift). a: the matrix as it is, or null; needed unless Q is explicit.
 */
QRANE_API int qrane_drift_s(qrane_qr* qr, const qrane_matrix_s* a, double* drift);
QRANE_API int qrane_drift_d(qrane_qr* qr, const qrane_matrix_d* a, double* drift);

/* Queued updates that were refused since the last call (waits). */
QRANE_API int qrane_refused_updates(qrane_qr* qr, int64_t* count);

#ifdef __cplusplus
}
#endif

#endif
