/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface of sparse QR, A P = Q R; part of qrane.h, whose conventions hold here. What the numbers mean is said
 * in sparse_qr.hpp.
 *
 *   qrane_sparse_analysis *analysis = NULL;
 *   qrane_sparse_factor *f = NULL;
 *   qrane_sparse_pattern a = qrane_by_columns(m, n, pointers, row_indices);
 *   if (qrane_sparse_analyze(context, &a, NULL, NULL, &analysis) ||
 *       qrane_sparse_factor_d(analysis, values, a.entries, NULL, NULL, &f) || qrane_sparse_solve_d(f, &b, &x, NULL,
 * NULL)) fprintf(stderr, "%s\n", qrane_last_error()); qrane_sparse_factor_destroy(f);
 *   qrane_sparse_analysis_destroy(analysis);
 */
#ifndef QRANE_QRANE_SPARSE_H
#define QRANE_QRANE_SPARSE_H

#include <qrane/qrane_qr.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qrane_sparse_storage {
  QRANE_BY_COLUMNS = 0, /* compressed columns */
  QRANE_BY_ROWS = 1,    /* compressed rows */
  QRANE_BY_TRIPLETS = 2 /* a row and a column for each entry */
} qrane_sparse_storage;

/*
 * Where the entries of a rows x cols matrix are: 0-based, in host memory that the caller owns. Entries may come in any
 * order and more than once (values are then summed). pointers: cols + 1 or rows + 1 numbers, null with triplets;
 * row_indices: null by rows; col_indices: null by columns. All are int64_t, or int32_t where index_bytes is 4.
 */
typedef struct qrane_sparse_pattern {
  int64_t rows, cols, entries;
  int32_t storage;     /* qrane_sparse_storage */
  int32_t index_bytes; /* 0 or 8: int64_t; 4: int32_t */
  const void *pointers, *row_indices, *col_indices;
} qrane_sparse_pattern;

static inline qrane_sparse_pattern qrane_by_columns(int64_t rows, int64_t cols, const int64_t* pointers,
                                                    const int64_t* row_indices) {
  qrane_sparse_pattern a = {rows,        cols, cols > 0 ? pointers[cols] : 0, QRANE_BY_COLUMNS, 0, pointers,
                            row_indices, NULL};
  return a;
}
static inline qrane_sparse_pattern qrane_by_rows(int64_t rows, int64_t cols, const int64_t* pointers,
                                                 const int64_t* col_indices) {
  qrane_sparse_pattern a = {rows, cols, rows > 0 ? pointers[rows] : 0, QRANE_BY_ROWS, 0, pointers, NULL, col_indices};
  return a;
}
static inline qrane_sparse_pattern qrane_by_triplets(int64_t rows, int64_t cols, int64_t entries,
                                                     const int64_t* row_indices, const int64_t* col_indices) {
  qrane_sparse_pattern a = {rows, cols, entries, QRANE_BY_TRIPLETS, 0, NULL, row_indices, col_indices};
  return a;
}

/* The same for indices of 32 bits. */
static inline qrane_sparse_pattern qrane_by_columns_32(int64_t rows, int64_t cols, const int32_t* pointers,
                                                       const int32_t* row_indices) {
  qrane_sparse_pattern a = {rows,        cols, cols > 0 ? pointers[cols] : 0, QRANE_BY_COLUMNS, 4, pointers,
                            row_indices, NULL};
  return a;
}
static inline qrane_sparse_pattern qrane_by_rows_32(int64_t rows, int64_t cols, const int32_t* pointers,
                                                    const int32_t* col_indices) {
  qrane_sparse_pattern a = {rows, cols, rows > 0 ? pointers[rows] : 0, QRANE_BY_ROWS, 4, pointers, NULL, col_indices};
  return a;
}
static inline qrane_sparse_pattern qrane_by_triplets_32(int64_t rows, int64_t cols, int64_t entries,
                                                        const int32_t* row_indices, const int32_t* col_indices) {
  qrane_sparse_pattern a = {rows, cols, entries, QRANE_BY_TRIPLETS, 4, NULL, row_indices, col_indices};
  return a;
}

/* Which columns are eliminated first. */
typedef enum qrane_ordering {
  QRANE_ORDERING_AUTOMATIC = 0,
  QRANE_ORDERING_COLAMD = 1,
  QRANE_ORDERING_AMD = 2,
  QRANE_ORDERING_METIS = 3, /* QRANE_UNAVAILABLE where the library was built without it */
  QRANE_ORDERING_NATURAL = 4,
  QRANE_ORDERING_GIVEN = 5 /* the permutation that qrane_sparse_analyze is given */
} qrane_ordering;

/* ---------------------------------------------------------------------------------------------- analysis */

/* Ordering and tree for all matrices of one pattern. */
typedef struct qrane_sparse_analysis qrane_sparse_analysis;

typedef struct qrane_analyze_options {
  size_t size;           /* sizeof(qrane_analyze_options) */
  int32_t ordering;      /* qrane_ordering */
  int32_t no_singletons; /* nonzero: do not take columns with a single entry out first */
} qrane_analyze_options;

#define QRANE_ANALYZE_OPTIONS_INIT \
  { sizeof(qrane_analyze_options), QRANE_ORDERING_AUTOMATIC, 0 }

typedef struct qrane_analysis_facts {
  size_t size; /* in: sizeof(qrane_analysis_facts); the fields below are out */
  int64_t rows, cols;
  int64_t entries;    /* distinct positions */
  int64_t duplicates; /* entries given beyond those */
  int32_t ordering;   /* qrane_ordering that was taken; never automatic */
  int32_t reserved;
  int64_t singletons; /* columns, and rows, taken out first */
  int64_t fronts;
  int64_t largest_rows, largest_cols; /* of the front with the most entries */
  int64_t r_entries;                  /* R as the fronts hold it */
  int64_t rank_bound;                 /* rows that R can have */
  double flops;
  double factor_bytes; /* R and the Householder vectors, in double */
  double intensity;    /* flops for each of those bytes */
} qrane_analysis_facts;

#define QRANE_ANALYSIS_FACTS_INIT \
  { sizeof(qrane_analysis_facts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0 }

/*
 * Analyzes a pattern.
 *   pattern      in   copied
 *   permutation  in   null, or the order to take: cols numbers, column k of A P is column permutation[k] of A
 *   options      in   null for the defaults
 *   analysis     out  null when the call fails; give it back with qrane_sparse_analysis_destroy
 */
QRANE_API int qrane_sparse_analyze(qrane_context* context, const qrane_sparse_pattern* pattern,
                                   const int64_t* permutation, const qrane_analyze_options* options,
                                   qrane_sparse_analysis** analysis);

/* Null is fine. Factorizations made with it stay usable. */
QRANE_API void qrane_sparse_analysis_destroy(qrane_sparse_analysis* analysis);

QRANE_API int qrane_sparse_analysis_facts(const qrane_sparse_analysis* analysis, qrane_analysis_facts* facts);

/* columns: out, host, count = cols numbers: column k of A P is column columns[k] of A. */
QRANE_API int qrane_sparse_ordering(const qrane_sparse_analysis* analysis, int64_t* columns, int64_t count);

/* ---------------------------------------------------------------------------------------- factorizations */

/* A factorization of the values of an analyzed pattern. */
typedef struct qrane_sparse_factor qrane_sparse_factor;

/* Where the numbers of a factorization are computed. */
typedef enum qrane_processor {
  QRANE_PROCESSOR_AUTOMATIC = 0, /* the faster of the two below by the analysis's counts */
  QRANE_PROCESSOR_CPU = 1,
  QRANE_PROCESSOR_DEVICE = 2 /* the context's device by its kernels, whatever the size */
} qrane_processor;

/* Called from the thread that factors, at the beginning, now and then, and at the end: flops that are done, and all of
   them. */
typedef void (*qrane_progress)(double done_flops, double flops, void* user);

typedef struct qrane_sparse_options {
  size_t size;                /* sizeof(qrane_sparse_options) */
  int32_t discard_q;          /* nonzero: Q is used on rhs while it passes, and gone */
  int32_t no_rank_detection;  /* nonzero: no column is dropped */
  int32_t refuse_deficient;   /* nonzero: fail with QRANE_RANK_DEFICIENT where the rank is below min(m, n) */
  int32_t check_finite;       /* nonzero: refuse NaN and Inf, naming the first */
  int32_t threads;            /* on the CPU; 0: as many as the context has */
  int32_t processor;          /* qrane_processor */
  double absolute_tolerance;  /* columns are dropped at or below; < 0: the default of sparse_qr.hpp */
  int64_t memory_limit_bytes; /* of all memory on the device, or of fronts and factors on the CPU; 0: what is free */
  qrane_progress progress;    /* null for none */
  void* user;                 /* handed to progress; both must last as long as the factorization */
} qrane_sparse_options;

#define QRANE_SPARSE_OPTIONS_INIT \
  { sizeof(qrane_sparse_options), 0, 0, 0, 0, 0, 0, -1.0, 0, NULL, NULL }

typedef struct qrane_sparse_facts {
  size_t size; /* in: sizeof(qrane_sparse_facts); the fields below are out */
  int64_t rows, cols;
  int64_t rank;
  int32_t backend; /* qrane_backend on which it ran, whatever the context's */
  int32_t threads;
  int32_t scalar_bytes;   /* 4 or 8 */
  int32_t analyzed_again; /* 1: a singleton's pivot was too small: without such singletons */
  double seconds;         /* the last factorization, values to R */
  double flops;
  double absolute_tolerance; /* columns were dropped at or below; 0: column_tolerance; < 0: none was */
  double dropped_norm;       /* Euclidean norm of all that was dropped */
  int64_t bytes;             /* held now: R, Q and memory for refactorization */
  int64_t peak_bytes;        /* where it ran: on a device all that it takes there, on the CPU fronts and factors */
  int64_t moved_bytes;       /* between host and device by the last factorization */
  int32_t on_device;         /* 1: by the device's kernels, 0: by the CPU's own way */
  int32_t stages; /* more than 1: contribution blocks went by way of host memory for want of room on the device */
  double column_tolerance; /* float's default: at or below this times their own norms, rounded to a power of 2 */
} qrane_sparse_facts;

#define QRANE_SPARSE_FACTS_INIT \
  { sizeof(qrane_sparse_facts), 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0.0 }

/*
 * Factors the matrix with these values.
 *   values   in   count numbers in host memory, in the order of the pattern's entries
 *   rhs      in   null, or right-hand sides, m x nrhs, that are factored with it: qrane_sparse_solve with a null b then
 *                 needs no Q; only read, during the call
 *   options  in   null for the defaults
 *   factor   out  null when the call fails; give it back with qrane_sparse_factor_destroy
 */
QRANE_API int qrane_sparse_factor_s(const qrane_sparse_analysis* analysis, const float* values, int64_t count,
                                    const qrane_matrix_s* rhs, const qrane_sparse_options* options,
                                    qrane_sparse_factor** factor);
QRANE_API int qrane_sparse_factor_d(const qrane_sparse_analysis* analysis, const double* values, int64_t count,
                                    const qrane_matrix_d* rhs, const qrane_sparse_options* options,
                                    qrane_sparse_factor** factor);

/*
 * Factors other values of the same pattern with the same options, in the memory that is there; rhs: new right-hand
 * sides, or null for none. After an error the old factorization is gone, and this is the only function that may be
 * called.
 */
QRANE_API int qrane_sparse_refactor_s(qrane_sparse_factor* factor, const float* values, int64_t count,
                                      const qrane_matrix_s* rhs);
QRANE_API int qrane_sparse_refactor_d(qrane_sparse_factor* factor, const double* values, int64_t count,
                                      const qrane_matrix_d* rhs);

/* Null is fine. */
QRANE_API void qrane_sparse_factor_destroy(qrane_sparse_factor* factor);

QRANE_API int qrane_sparse_factor_facts(const qrane_sparse_factor* factor, qrane_sparse_facts* facts);

/* columns: out, host, count = cols numbers: column k of A P is column columns[k] of A; dropped columns come last. */
QRANE_API int qrane_sparse_permutation(const qrane_sparse_factor* factor, int64_t* columns, int64_t count);

/*
 * R, rank x cols in compressed columns, rows ascending, in host memory.
 *   pointers             out  cols + 1 numbers
 *   row_indices, values  out  both null: pointers alone are written, and pointers[cols] says how long these must be;
 *                             else `capacity` numbers each
 */
QRANE_API int qrane_sparse_r_s(const qrane_sparse_factor* factor, int64_t* pointers, int64_t* row_indices,
                               float* values, int64_t capacity);
QRANE_API int qrane_sparse_r_d(const qrane_sparse_factor* factor, int64_t* pointers, int64_t* row_indices,
                               double* values, int64_t capacity);

typedef struct qrane_sparse_solution {
  size_t size;  /* in: sizeof(qrane_sparse_solution); the fields below are out */
  int64_t rank; /* < full: A is rank-deficient to the tolerance, and x is zero in the dropped columns */
  int64_t full; /* min(m, n) */
} qrane_sparse_solution;

#define QRANE_SPARSE_SOLUTION_INIT \
  { sizeof(qrane_sparse_solution), 0, 0 }

/*
 * Least-squares solution of A x = b.
 *   b      in   m x nrhs; null: the right-hand sides of the last factorization
 *   x      out  n x nrhs
 *   info   out  may be null
 *   norms  out  ||b - A x|| of every column, nrhs numbers in host memory; may be null
 */
QRANE_API int qrane_sparse_solve_s(const qrane_sparse_factor* factor, const qrane_matrix_s* b, const qrane_matrix_s* x,
                                   qrane_sparse_solution* info, double* norms);
QRANE_API int qrane_sparse_solve_d(const qrane_sparse_factor* factor, const qrane_matrix_d* b, const qrane_matrix_d* x,
                                   qrane_sparse_solution* info, double* norms);

/* The solution of A^T x = b of least norm; b: n x nrhs, x: m x nrhs. QRANE_UNAVAILABLE with discard_q. */
QRANE_API int qrane_sparse_solve_transposed_s(const qrane_sparse_factor* factor, const qrane_matrix_s* b,
                                              const qrane_matrix_s* x, qrane_sparse_solution* info, double* norms);
QRANE_API int qrane_sparse_solve_transposed_d(const qrane_sparse_factor* factor, const qrane_matrix_d* b,
                                              const qrane_matrix_d* x, qrane_sparse_solution* info, double* norms);

typedef struct qrane_sparse_refinement {
  size_t size;  /* in: sizeof(qrane_sparse_refinement); the fields below are out */
  int64_t rank; /* as in qrane_sparse_solution */
  int64_t full;
  int32_t iterations; /* of the column that took most */
  int32_t converged;  /* 1: double's accuracy was reached for every right-hand side; 0, too, where the factorization
                       * dropped a column that is independent in double */
} qrane_sparse_refinement;

#define QRANE_SPARSE_REFINEMENT_INIT \
  { sizeof(qrane_sparse_refinement), 0, 0, 0, 0 }

/*
 * Least squares to the accuracy of double from a factorization in float (or double), on the host; see
 * qrane::sparse::refine.
 *   pattern, values  in   the matrix that was factored, unrounded: pattern->entries numbers in host memory
 *   max_iterations   in   < 0: the library's default
 *   b                in   m x nrhs
 *   x                out  n x nrhs
 *   info             out  may be null
 *   norms            out  ||b - A x|| of every column, nrhs numbers in host memory; may be null
 */
QRANE_API int qrane_sparse_refine(const qrane_sparse_factor* factor, const qrane_sparse_pattern* pattern,
                                  const double* values, int32_t max_iterations, const qrane_matrix_d* b,
                                  const qrane_matrix_d* x, qrane_sparse_refinement* info, double* norms);

/* C := Q C, or Q^T C where transpose is nonzero, in place; c: m x any. QRANE_UNAVAILABLE with discard_q. */
QRANE_API int qrane_sparse_apply_s(const qrane_sparse_factor* factor, int transpose, const qrane_matrix_s* c);
QRANE_API int qrane_sparse_apply_d(const qrane_sparse_factor* factor, int transpose, const qrane_matrix_d* c);

#ifdef __cplusplus
}
#endif

#endif
