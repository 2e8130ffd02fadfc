/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of qrane, C99: all of its headers.
 *
 *   qrane_context *context = NULL;
 *   qrane_qr *qr = NULL;
 *   qrane_matrix_d a = qrane_host_d(values, m, n, m), b = qrane_host_d(rhs, m, 1, m), x = qrane_host_d(out, n, 1, n);
 *   if (qrane_context_create(NULL, &context) || qrane_factor_d(context, &a, NULL, &qr) ||
 *       qrane_solve_d(qr, &b, NULL, &x, NULL))
 *     fprintf(stderr, "%s\n", qrane_last_error());
 *   qrane_qr_destroy(qr);
 *   qrane_context_destroy(context);
 *
 * Conventions of every function here:
 *   - It returns QRANE_OK (0) or the qrane_status that says what went wrong; qrane_last_error() has the sentence.
 *     Nothing prints or exits, and no C++ exception leaves the library.
 *   - Functions ending in _s take `float`, those in _d `double`. A factorization made by one is used by its like.
 *   - Matrices are passed as qrane_matrix_s or qrane_matrix_d (see there) and copied from or to wherever they live.
 *     Where a matrix is only read its parameter says "in"; the library never writes to what it shows.
 *   - Structs that may grow begin with their own `size`, set by the *_INIT macros. A null pointer to an options
 *     struct means the defaults.
 *   - A context or a factorization is used by one thread at a time; different ones are independent. A
 *     factorization keeps what it needs of its context, so the two may be destroyed in any order.
 */
#ifndef QRANE_QRANE_H
#define QRANE_QRANE_H

#include <qrane/qrane_batch.h>
#include <qrane/qrane_core.h>
#include <qrane/qrane_pivoted.h>
#include <qrane/qrane_qr.h>
#include <qrane/qrane_robust_pca.h>
#include <qrane/qrane_sparse.h>
#include <qrane/qrane_svd.h>
#include <qrane/qrane_update.h>

#endif
