/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of qrane: contexts, QR factorization, applying Q, least squares, updates; and, in headers that this
 * one includes, batches, column pivoting and sparse QR. C99.
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

#include <stddef.h>
#include <stdint.h>

#include <qrane/export.h>
#include <qrane/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. The same values as qrane::ErrorCode. */
typedef enum qrane_status {
  QRANE_OK = 0,
  QRANE_INVALID_ARGUMENT = 1, /* a null pointer, size, leading dimension or option that makes no sense */
  QRANE_NOT_FINITE = 2,       /* NaN or Inf in an input whose options ask for the check */
  QRANE_FILE = 3,             /* not used by the functions here */
  QRANE_UNAVAILABLE = 4,      /* backend or device not built in or not found; or Q was not kept */
  QRANE_OUT_OF_MEMORY = 5,    /* the sentence says how many bytes were needed and free */
  QRANE_RANK_DEFICIENT = 6,   /* full rank was required (refuse_deficient) and is not there */
  QRANE_DEVICE = 7,           /* the device reported a failure */
  QRANE_INTERRUPTED = 8,      /* not used by the functions here */
  QRANE_NOT_CONVERGED = 9,    /* not used by the functions here */
  QRANE_INTERNAL = 99         /* anything else: please report it */
} qrane_status;

typedef enum qrane_backend {
  QRANE_BACKEND_AUTOMATIC = 0, /* CUDA, else OpenCL on a GPU, else the CPU */
  QRANE_BACKEND_CPU = 1,
  QRANE_BACKEND_OPENCL = 2,
  QRANE_BACKEND_CUDA = 3
} qrane_backend;

typedef enum qrane_memory {
  QRANE_MEMORY_HOST = 0,
  QRANE_MEMORY_DEVICE = 1 /* memory of the context's device: a CUDA pointer, or an OpenCL buffer and offset */
} qrane_memory;

typedef enum qrane_layout {
  QRANE_COLUMN_MAJOR = 0, /* element (i, j) at data[i + j * ld], ld >= rows */
  QRANE_ROW_MAJOR = 1     /* element (i, j) at data[i * ld + j], ld >= cols; costs at most one transpose */
} qrane_layout;

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

/* ---------------------------------------------------------------------------------------------- matrices */

/*
 * A matrix that the caller owns. Fill it with qrane_host_d, qrane_device_d or qrane_buffer_d, or by hand with all
 * other fields zero. The device memory of a CPU context is the host's. An OpenCL matrix has a cl_mem in `buffer`,
 * its first element `offset` elements (not bytes) into it, and a null `data`.
 */
typedef struct qrane_matrix_s {
  float* data;
  int64_t rows, cols, ld;
  int32_t layout; /* qrane_layout */
  int32_t memory; /* qrane_memory */
  void* buffer;
  int64_t offset;
} qrane_matrix_s;

typedef struct qrane_matrix_d {
  double* data;
  int64_t rows, cols, ld;
  int32_t layout;
  int32_t memory;
  void* buffer;
  int64_t offset;
} qrane_matrix_d;

/* Column-major host matrix. Data only read may be const. */
static inline qrane_matrix_s qrane_host_s(const float* data, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_s a = {(float*)data, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_HOST, NULL, 0};
  return a;
}
static inline qrane_matrix_d qrane_host_d(const double* data, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_d a = {(double*)data, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_HOST, NULL, 0};
  return a;
}
/* Column-major matrix behind a CUDA device pointer. */
static inline qrane_matrix_s qrane_device_s(const float* data, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_s a = {(float*)data, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_DEVICE, NULL, 0};
  return a;
}
static inline qrane_matrix_d qrane_device_d(const double* data, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_d a = {(double*)data, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_DEVICE, NULL, 0};
  return a;
}
/* Column-major matrix in an OpenCL buffer (a cl_mem), `offset` elements from its start. */
static inline qrane_matrix_s qrane_buffer_s(void* buffer, int64_t offset, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_s a = {NULL, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_DEVICE, buffer, offset};
  return a;
}
static inline qrane_matrix_d qrane_buffer_d(void* buffer, int64_t offset, int64_t rows, int64_t cols, int64_t ld) {
  qrane_matrix_d a = {NULL, rows, cols, ld, QRANE_COLUMN_MAJOR, QRANE_MEMORY_DEVICE, buffer, offset};
  return a;
}

/* ------------------------------------------------------------------------------------ version and errors */

/* "major.minor.patch" of the library that is running; QRANE_VERSION_STRING is that of this header. */
QRANE_API const char* qrane_version(void);

/*
 * One sentence on the last failure in the calling thread: the function, the argument and its value. Empty before the
 * first one. Valid until the next failure in this thread; calls that succeed leave it as it is.
 */
QRANE_API const char* qrane_last_error(void);

/* "out_of_memory" for QRANE_OUT_OF_MEMORY, and so on; "unknown" for a value that is no qrane_status. */
QRANE_API const char* qrane_status_name(int status);

/* -------------------------------------------------------------------------------------------- contexts */

/* A device, the queue that work is put on, and what is known of the device. */
typedef struct qrane_context qrane_context;

typedef struct qrane_context_options {
  size_t size;                /* sizeof(qrane_context_options) */
  int32_t backend;            /* qrane_backend */
  int32_t device;             /* index among the backend's devices */
  int32_t threads;            /* CPU backend; 0: all cores */
  int32_t reserved;           /* zero */
  void* stream;               /* CUDA: your cudaStream_t; OpenCL: your cl_command_queue; null: qrane makes its own.
                               * Only with the backend named, not automatic */
  int64_t memory_limit_bytes; /* 0: the device's own limit; smaller makes allocations fail earlier */
} qrane_context_options;

#define QRANE_CONTEXT_OPTIONS_INIT \
  { sizeof(qrane_context_options), QRANE_BACKEND_AUTOMATIC, 0, 0, 0, NULL, 0 }

typedef struct qrane_device_info {
  size_t size;     /* in: sizeof(qrane_device_info); the fields below are out */
  int32_t backend; /* qrane_backend; never QRANE_BACKEND_AUTOMATIC */
  int32_t device;
  char name[128];       /* as its driver calls it */
  int64_t memory_bytes; /* all of the device's memory */
  int64_t free_bytes;   /* free now */
  int32_t compute_units;
  int32_t is_gpu;
  int32_t has_double; /* whether the _d functions work on this device */
  int32_t reserved;
} qrane_device_info;

#define QRANE_DEVICE_INFO_INIT \
  { sizeof(qrane_device_info), 0, 0, {0}, 0, 0, 0, 0, 0, 0 }

/*
 * Opens a device. options: in, null for the best device there is. context: out, null when the call fails.
 * QRANE_UNAVAILABLE when the backend was not built in or the device is not there.
 */
QRANE_API int qrane_context_create(const qrane_context_options* options, qrane_context** context);

/* Gives the context back; null is fine. Factorizations made with it stay usable. */
QRANE_API void qrane_context_destroy(qrane_context* context);

/* Describes the context's device. */
QRANE_API int qrane_context_info(const qrane_context* context, qrane_device_info* info);

/* Waits for all work given to the context; faults of earlier asynchronous work surface here as QRANE_DEVICE. */
QRANE_API int qrane_context_synchronize(const qrane_context* context);

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
  size_t size;              /* sizeof(qrane_solve_options) */
  double tolerance;         /* relative to the largest diagonal of the pivoted R; < 0: (min(m, n) + 10) eps */
  int32_t least_norm;       /* rank-deficient A: nonzero for the solution of least norm, 0 for a basic one */
  int32_t refuse_deficient; /* rank-deficient A: nonzero to fail with QRANE_RANK_DEFICIENT instead */
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

/* ------------------------------------------------------------------------------------------------- updates */

/* How a factorization is brought up to date; see qrane::UpdateMethod in update.hpp. */
typedef enum qrane_update_method {
  QRANE_UPDATE_AUTOMATIC = 0,  /* what the cost model says is fastest */
  QRANE_UPDATE_ORTHOGONAL = 1, /* a chain of small orthogonal blocks, and one sweep over Q */
  QRANE_UPDATE_CHOLESKY = 2,   /* rows out of a thin Q; guarded */
  QRANE_UPDATE_TRAILING = 3,   /* columns: those right of the change are factored anew */
  QRANE_UPDATE_REFACTOR = 4    /* from scratch */
} qrane_update_method;

typedef struct qrane_update_options {
  size_t size;          /* sizeof(qrane_update_options) */
  int32_t method;       /* qrane_update_method */
  int32_t check_finite; /* nonzero: refuse NaN and Inf in what comes in, naming the first one's position (waits) */
  int32_t block_cols;   /* columns of one block of the chain; 0: tuned */
  int32_t queued;       /* nonzero: do not wait to learn of a refusal; qrane_refused_updates tells later */
  int32_t no_refresh;   /* nonzero: never factor `updated` anew because of drift */
  int32_t drift_every;  /* with `updated`: measure the drift every so many updates; 0: 64 */
  double drift_limit;   /* factor anew beyond this drift, in units of (min(m, n) + 10) u; 0: 15 */
  /* Lent for the call, of the function's own precision (qrane_matrix_s or _d), or null: the matrix as it is after the
   * update; and the rows that go with their right-hand sides, for qrane_delete_rows where only R is kept. */
  const void* updated;
  const void* removed;
  const void* removed_b;
} qrane_update_options;

#define QRANE_UPDATE_OPTIONS_INIT \
  { sizeof(qrane_update_options), QRANE_UPDATE_AUTOMATIC, 0, 0, 0, 0, 0, 0.0, NULL, NULL, NULL }

typedef struct qrane_update_report {
  size_t size;        /* in: sizeof(qrane_update_report); the fields below are out */
  int64_t rows, cols; /* before the update */
  int64_t k, p;
  int32_t method;    /* qrane_update_method that ran; never automatic */
  int32_t queued;    /* 1: what follows has not been read from the device yet */
  int32_t refused;   /* 1: R only, and the removed rows carry the rank; the factorization is as it was before */
  int32_t fell_back; /* 1: a guard sent the data from cholesky to orthogonal */
  int32_t refreshed; /* 1: the drift exceeded its limit, and `updated` was factored anew */
  int32_t reserved;
  double drift;        /* -1: not measured */
  double predicted_ms; /* of the method that ran */
} qrane_update_report;

#define QRANE_UPDATE_REPORT_INIT \
  { sizeof(qrane_update_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0 }

/*
 * Changes A and brings the factorization up to date; it keeps its form. Positions count from 0. Blocks may lie in host
 * or device memory, in any layout. After an error the factorization is as it was. qr       in/out k        in   rows or
 * columns come in before position k, or go from k on u        in   p x n rows, or m x p columns e        in right-hand
 * sides of the new rows, p x nrhs, where some are attached; else null p        in   rows or columns that go options  in
 * null for the defaults report   out  may be null With QRANE_Q_NONE deleting rows takes options->removed (else
 * QRANE_INVALID_ARGUMENT), inserting columns and the rank-k update take options->updated (else QRANE_UNAVAILABLE).
 */
QRANE_API int qrane_insert_rows_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u, const qrane_matrix_s* e,
                                  const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_insert_rows_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u, const qrane_matrix_d* e,
                                  const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_delete_rows_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_update_options* options,
                                  qrane_update_report* report);
QRANE_API int qrane_delete_rows_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_update_options* options,
                                  qrane_update_report* report);
QRANE_API int qrane_insert_columns_s(qrane_qr* qr, int64_t k, const qrane_matrix_s* u,
                                     const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_insert_columns_d(qrane_qr* qr, int64_t k, const qrane_matrix_d* u,
                                     const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_delete_columns_s(qrane_qr* qr, int64_t k, int64_t p, const qrane_update_options* options,
                                     qrane_update_report* report);
QRANE_API int qrane_delete_columns_d(qrane_qr* qr, int64_t k, int64_t p, const qrane_update_options* options,
                                     qrane_update_report* report);
/* A + U V^T, u: m x p, v: n x p. */
QRANE_API int qrane_rank_k_update_s(qrane_qr* qr, const qrane_matrix_s* u, const qrane_matrix_s* v,
                                    const qrane_update_options* options, qrane_update_report* report);
QRANE_API int qrane_rank_k_update_d(qrane_qr* qr, const qrane_matrix_d* u, const qrane_matrix_d* v,
                                    const qrane_update_options* options, qrane_update_report* report);

/*
 * From now on Q^T b and the residual norms of b's columns (m x nrhs) are kept up to date. a: the matrix as it is, lent
 * for this call; needed with QRANE_Q_NONE, else null. A b of no columns ends it.
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
 * How far the factorization has drifted, in units of (min(m, n) + 10) u; a fresh one is well below 30 (see QR::drift).
 * a: the matrix as it is, or null; needed unless Q is explicit.
 */
QRANE_API int qrane_drift_s(const qrane_qr* qr, const qrane_matrix_s* a, double* drift);
QRANE_API int qrane_drift_d(const qrane_qr* qr, const qrane_matrix_d* a, double* drift);

/* Queued updates that were refused since the last call (waits). */
QRANE_API int qrane_refused_updates(qrane_qr* qr, int64_t* count);

#ifdef __cplusplus
}
#endif

#include <qrane/qrane_batch.h>
#include <qrane/qrane_pivoted.h>
#include <qrane/qrane_sparse.h>

#endif
