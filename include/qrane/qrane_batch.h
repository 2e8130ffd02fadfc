/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of batches: many matrices of one shape. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_BATCH_H
#define QRANE_QRANE_BATCH_H

#include <qrane/qrane_update.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * `count` matrices of one shape. Either `stride` elements apart, in `first`'s memory: one after the other, or side by
 * side within one leading dimension, never overlapping. Or, where `pointers` is not null, wherever that table says: it
 * has the address of every matrix and lies in the memory that first.memory names (CUDA: a device array of device
 * addresses, column-major; not OpenCL device memory); `first` then gives rows, cols, ld and layout, and its data is not
 * looked at. A strided column-major batch in device memory is used where it lies; the others go through a copy.
 */
typedef struct qrane_batch_s {
  qrane_matrix_s first;
  int64_t stride, count;
  float* const* pointers;
} qrane_batch_s;

typedef struct qrane_batch_d {
  qrane_matrix_d first;
  int64_t stride, count;
  double* const* pointers;
} qrane_batch_d;

/* Factorizations A_b = Q_b R_b of a batch; each depends on its own matrix alone. */
typedef struct qrane_batch_qr qrane_batch_qr;

/*
 * Factors copies of all matrices of `a` (LAPACK name: geqrf, batched); otherwise as qrane_factor_s and _d. With a CUDA
 * stream in the context's options and device memory, the work is queued there, and after this first call refactoring,
 * qrane_batch_r, _q, _apply_q, _apply_qt and _reflectors on strided column-major device memory neither allocate nor
 * wait.
 */
QRANE_API int qrane_batch_factor_s(qrane_context* context, const qrane_batch_s* a, const qrane_options* options,
                                   qrane_batch_qr** qr);
QRANE_API int qrane_batch_factor_d(qrane_context* context, const qrane_batch_d* a, const qrane_options* options,
                                   qrane_batch_qr** qr);

/*
 * Factors the matrices of a strided column-major batch in the context's device memory where they stand. They must stay
 * alive and untouched while `qr` is used. options->q: QRANE_Q_IMPLICIT or QRANE_Q_LAPACK.
 */
QRANE_API int qrane_batch_factor_in_place_s(qrane_context* context, const qrane_batch_s* a,
                                            const qrane_options* options, qrane_batch_qr** qr);
QRANE_API int qrane_batch_factor_in_place_d(qrane_context* context, const qrane_batch_d* a,
                                            const qrane_options* options, qrane_batch_qr** qr);

/* Factors another batch of the same shape and count in the memory of `qr`. */
QRANE_API int qrane_batch_refactor_s(qrane_batch_qr* qr, const qrane_batch_s* a);
QRANE_API int qrane_batch_refactor_d(qrane_batch_qr* qr, const qrane_batch_d* a);

/* Frees the factorizations; null is fine. */
QRANE_API void qrane_batch_qr_destroy(qrane_batch_qr* qr);

/* Shape of each matrix and the algorithm; fell_back is 0. */
QRANE_API int qrane_batch_qr_info(const qrane_batch_qr* qr, qrane_factor_info* info);

/* R of every matrix, with zeros below the diagonal. r: out, min(m, n) x n each. */
QRANE_API int qrane_batch_r_s(const qrane_batch_qr* qr, const qrane_batch_s* r);
QRANE_API int qrane_batch_r_d(const qrane_batch_qr* qr, const qrane_batch_d* r);

/* Thin Q of every matrix. q: out, m x min(m, n) each. */
QRANE_API int qrane_batch_q_s(const qrane_batch_qr* qr, const qrane_batch_s* q);
QRANE_API int qrane_batch_q_d(const qrane_batch_qr* qr, const qrane_batch_d* q);

/* C_b := Q_b C_b, in place. c: in and out, m rows each. QRANE_UNAVAILABLE unless the reflectors were kept. */
QRANE_API int qrane_batch_apply_q_s(const qrane_batch_qr* qr, const qrane_batch_s* c);
QRANE_API int qrane_batch_apply_q_d(const qrane_batch_qr* qr, const qrane_batch_d* c);

/* C_b := Q_b^T C_b, in place; otherwise as qrane_batch_apply_q_s and _d. */
QRANE_API int qrane_batch_apply_qt_s(const qrane_batch_qr* qr, const qrane_batch_s* c);
QRANE_API int qrane_batch_apply_qt_d(const qrane_batch_qr* qr, const qrane_batch_d* c);

/*
 * LAPACK's geqrf results; options->q must have been QRANE_Q_LAPACK. packed: out, m x n each, V below the diagonal and R
 * on and above it; null to leave it out (after factoring in place it is the caller's memory already). tau: out,
 * min(m, n) x 1 each.
 */
QRANE_API int qrane_batch_reflectors_s(const qrane_batch_qr* qr, const qrane_batch_s* packed, const qrane_batch_s* tau);
QRANE_API int qrane_batch_reflectors_d(const qrane_batch_qr* qr, const qrane_batch_d* packed, const qrane_batch_d* tau);

/*
 * Least-squares solutions of A_b x_b = b_b, every matrix judged on its own as by qrane_solve_s and _d; its R goes to
 * the host for that. With options->relative_tolerance = 0 and m >= n nothing goes to the host, every R is taken at its
 * word, and `ranks` is not written. b      in   m x nrhs each x      out  n x nrhs each; must not overlap b ranks  out
 * host array of the batch's count; may be null
 */
QRANE_API int qrane_batch_solve_s(const qrane_batch_qr* qr, const qrane_batch_s* b, const qrane_solve_options* options,
                                  const qrane_batch_s* x, int64_t* ranks);
QRANE_API int qrane_batch_solve_d(const qrane_batch_qr* qr, const qrane_batch_d* b, const qrane_solve_options* options,
                                  const qrane_batch_d* x, int64_t* ranks);

/*
 * Updates of every matrix of the batch at the same place (QRANE_Q_THIN or QRANE_Q_NONE); of the options only
 * check_finite counts. After an error all factorizations are as they were.
 *   k, p     in   as in qrane_update.h
 *   u        in   the new rows, p x n each
 *   removed  in   the deleted rows, p x n each; with QRANE_Q_NONE, else it may be null
 *   report   out  may be null; `refused` is 1 where any matrix was
 *   refused  out  host array of the batch's count: 1 where the deleted rows of a matrix carry its rank (QRANE_Q_NONE);
 *                 its R is as it was. May be null
 */
QRANE_API int qrane_batch_insert_rows_s(qrane_batch_qr* qr, int64_t k, const qrane_batch_s* u,
                                        const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_batch_insert_rows_d(qrane_batch_qr* qr, int64_t k, const qrane_batch_d* u,
                                        const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_batch_delete_rows_s(qrane_batch_qr* qr, int64_t k, int64_t p, const qrane_batch_s* removed,
                                        const qrane_update_options* options, qrane_update_report* report,
                                        int32_t* refused);
QRANE_API int qrane_batch_delete_rows_d(qrane_batch_qr* qr, int64_t k, int64_t p, const qrane_batch_d* removed,
                                        const qrane_update_options* options, qrane_update_report* report,
                                        int32_t* refused);
QRANE_API int qrane_batch_delete_columns_s(qrane_batch_qr* qr, int64_t k, int64_t p,
                                           const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_batch_delete_columns_d(qrane_batch_qr* qr, int64_t k, int64_t p,
                                           const qrane_update_options* options, qrane_update_report* report);

#ifdef __cplusplus
}
#endif

#endif
