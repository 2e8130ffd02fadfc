/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface from C99: normal use in both precisions, host and device memory as far as the backend allows, and
 * every error path with the sentence it must give. Usage: c_interface_test [cpu|opencl|cuda]; exit status 77 (skip)
 * when the backend is absent.
 */
#include <float.h>
#include <stdlib.h>

#include "support/c_checks.h"

enum { M = 60, N = 7, LD = 64 };

/* Deterministic, well conditioned, in [-1, 1]. */
static double element(int i, int j) { return sin(1.0 + 3.0 * i + 17.0 * j + 0.25 * i * j); }

static void test_double(qrane_context* context, int algorithm, int q_form) {
  static double a[LD * N], q[M * N], full_q[M * M], r[N * N], full_r[M * N], product[M * N], c[M * 2], saved[M * 2];
  static double x[N], truth[N], b[M];
  qrane_matrix_d a_view = qrane_host_d(a, M, N, LD), r_view = qrane_host_d(r, N, N, N);
  qrane_matrix_d q_view = qrane_host_d(q, M, N, M), c_view = qrane_host_d(c, M, 2, M);
  qrane_matrix_d b_view = qrane_host_d(b, M, 1, M), x_view = qrane_host_d(x, N, 1, N);
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_factor_info info = QRANE_FACTOR_INFO_INIT;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_qr* qr = NULL;
  double orthogonality = 0;
  int i, j, k;

  for (j = 0; j < N; ++j) truth[j] = j + 1.0;
  for (i = 0; i < M; ++i) {
    b[i] = 0;
    for (j = 0; j < N; ++j) {
      a[i + j * LD] = element(i, j);
      b[i] += a[i + j * LD] * truth[j];
    }
  }
  options.algorithm = algorithm;
  options.q = q_form;
  options.check_finite = 1;
  OK(qrane_factor_d(context, &a_view, &options, &qr));
  if (qr == NULL) return;
  OK(qrane_qr_info(qr, &info));
  EXPECT(info.rows == M && info.cols == N && info.scalar_bytes == 8);
  EXPECT(info.algorithm != QRANE_ALGORITHM_AUTOMATIC && info.q == q_form);
  EXPECT(info.fell_back == 0);

  OK(qrane_r_d(qr, &r_view));
  OK(qrane_q_d(qr, &q_view));
  for (j = 0; j < N; ++j) {
    for (i = j + 1; i < N; ++i) EXPECT(r[i + j * N] == 0);
    for (i = 0; i < M; ++i) {
      product[i + j * M] = 0;
      for (k = 0; k <= j; ++k) product[i + j * M] += q[i + k * M] * r[k + j * N];
    }
    EXPECT(largest_difference(product + j * M, a + j * LD, M) < 1e-13);
    for (k = 0; k < N; ++k) {
      double dot = k == j ? -1 : 0;
      for (i = 0; i < M; ++i) dot += q[i + j * M] * q[i + k * M];
      orthogonality += dot * dot;
    }
  }
  EXPECT(sqrt(orthogonality) < 1e-13);

  OK(qrane_solve_d(qr, &b_view, NULL, &x_view, &solution));
  EXPECT(largest_difference(x, truth, N) < 1e-11);
  EXPECT(solution.rank == N && solution.full == N && solution.condition >= 1 && solution.condition < 1e4);
  OK(qrane_solve_d(qr, &b_view, NULL, &x_view, NULL));

  if (q_form != QRANE_Q_THIN) {
    qrane_matrix_d full_q_view = qrane_host_d(full_q, M, M, M), full_r_view = qrane_host_d(full_r, M, N, M);
    qrane_matrix_d row_view = qrane_host_d(c, 2, M, 2);
    for (i = 0; i < 2 * M; ++i) saved[i] = c[i] = element(i, 3);
    OK(qrane_apply_qt_d(qr, QRANE_LEFT, &c_view));
    EXPECT(largest_difference(c, saved, 2 * M) > 1e-3);
    OK(qrane_apply_q_d(qr, QRANE_LEFT, &c_view));
    EXPECT(largest_difference(c, saved, 2 * M) < 1e-13);
    OK(qrane_apply_q_d(qr, QRANE_RIGHT, &row_view));
    OK(qrane_apply_qt_d(qr, QRANE_RIGHT, &row_view));
    EXPECT(largest_difference(c, saved, 2 * M) < 1e-13);
    OK(qrane_q_d(qr, &full_q_view));
    OK(qrane_r_d(qr, &full_r_view));
    EXPECT(largest_difference(full_q, q, M * N) < 1e-13);
    for (j = 0; j < N; ++j) EXPECT(full_r[M - 1 + j * M] == 0);
  }

  /* the same shape again: twice A has twice R, up to rounding */
  for (i = 0; i < LD * N; ++i) a[i] *= 2;
  OK(qrane_refactor_d(qr, &a_view));
  OK(qrane_r_d(qr, &r_view));
  {
    double norm = 0, wanted = 0;
    for (k = 0; k < N; ++k) norm += r[k + 3 * N] * r[k + 3 * N];
    for (i = 0; i < M; ++i) wanted += a[i + 3 * LD] * a[i + 3 * LD];
    EXPECT(fabs(sqrt(norm) - sqrt(wanted)) < 1e-12);
  }
  qrane_qr_destroy(qr);
}

/* Row-major input in float, wide and tall, solved in both directions. */
static void test_float(qrane_context* context) {
  static float rows[M * N], b[M], x[N], wide_x[M], least[N];
  qrane_matrix_s a = qrane_host_s(rows, M, N, N), wide = qrane_host_s(rows, N, M, N);
  qrane_matrix_s b_view = qrane_host_s(b, M, 1, M), x_view = qrane_host_s(x, N, 1, N);
  qrane_matrix_s least_view = qrane_host_s(least, N, 1, N), wide_x_view = qrane_host_s(wide_x, M, 1, M);
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_qr* qr = NULL;
  int i, j;
  for (i = 0; i < M; ++i) {
    b[i] = 0;
    for (j = 0; j < N; ++j) {
      rows[i * N + j] = (float)element(i, j);
      b[i] += rows[i * N + j];
    }
  }
  a.layout = QRANE_ROW_MAJOR;
  OK(qrane_factor_s(context, &a, NULL, &qr));
  if (qr == NULL) return;
  OK(qrane_solve_s(qr, &b_view, NULL, &x_view, &solution));
  for (i = 0; i < N; ++i) EXPECT(fabs(x[i] - 1) < 1e-4);
  EXPECT(solution.rank == N);
  qrane_qr_destroy(qr);

  /* the transpose, column-major in the same memory: A^T y = A^T b has the least-norm y = the projection of b */
  OK(qrane_factor_s(context, &wide, NULL, &qr));
  if (qr == NULL) return;
  for (j = 0; j < N; ++j) {
    least[j] = 0;
    for (i = 0; i < M; ++i) least[j] += rows[i * N + j] * b[i];
  }
  OK(qrane_solve_s(qr, &least_view, NULL, &wide_x_view, &solution));
  for (i = 0; i < M; ++i) EXPECT(fabs(wide_x[i] - b[i]) < 1e-3);
  EXPECT(solution.rank == N && solution.full == N);
  qrane_qr_destroy(qr);
}

/* A repeated column is reported, solved as asked, or refused. */
static void test_rank(qrane_context* context) {
  static double a[M * 3], b[M], x[3];
  qrane_matrix_d a_view = qrane_host_d(a, M, 3, M), b_view = qrane_host_d(b, M, 1, M);
  qrane_matrix_d x_view = qrane_host_d(x, 3, 1, 3);
  qrane_solve_options options = QRANE_SOLVE_OPTIONS_INIT;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_qr* qr = NULL;
  int i;
  for (i = 0; i < M; ++i) {
    a[i] = a[i + 2 * M] = element(i, 0);
    a[i + M] = element(i, 1);
    b[i] = 2 * a[i] + a[i + M];
  }
  OK(qrane_factor_d(context, &a_view, NULL, &qr));
  if (qr == NULL) return;
  OK(qrane_solve_d(qr, &b_view, NULL, &x_view, &solution));
  EXPECT(solution.rank == 2 && solution.full == 3);
  EXPECT(fabs(x[0] - 1) < 1e-12 && fabs(x[1] - 1) < 1e-12 && fabs(x[2] - 1) < 1e-12);
  options.least_norm = 0;
  OK(qrane_solve_d(qr, &b_view, &options, &x_view, NULL));
  EXPECT(x[0] == 0 || x[2] == 0);
  EXPECT(fabs(x[0] + x[2] - 2) < 1e-12);
  options.refuse_deficient = 1;
  FAILS(QRANE_RANK_DEFICIENT, "qrane_solve_d", qrane_solve_d(qr, &b_view, &options, &x_view, NULL));
  options.relative_tolerance = NAN;
  FAILS(QRANE_INVALID_ARGUMENT, "options->relative_tolerance is NaN",
        qrane_solve_d(qr, &b_view, &options, &x_view, NULL));
  qrane_qr_destroy(qr);
}

/* A P = Q R of a matrix with a repeated column, and its solutions. */
static void test_pivoted(qrane_context* context) {
  enum { K = 5 };
  double a[M * K], r[K * K], q[M * K], product[M * K], permuted[M * K], b[M], x[K], c[M];
  int64_t columns[K];
  const qrane_matrix_d a_view = qrane_host_d(a, M, K, M);
  const qrane_matrix_d r_view = qrane_host_d(r, K, K, K);
  const qrane_matrix_d q_view = qrane_host_d(q, M, K, M), narrow_q_view = qrane_host_d(q, M, K - 1, M);
  const qrane_matrix_d b_view = qrane_host_d(b, M, 1, M);
  const qrane_matrix_d c_view = qrane_host_d(c, M, 1, M);
  const qrane_matrix_d x_view = qrane_host_d(x, K, 1, K);
  qrane_pivot_options options = QRANE_PIVOT_OPTIONS_INIT;
  qrane_pivot_info info = QRANE_PIVOT_INFO_INIT;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_pivoted_qr* qr = NULL;
  int i, j, l;
  for (j = 0; j < K; ++j)
    for (i = 0; i < M; ++i) a[i + j * M] = element(i, j == K - 1 ? 0 : j);
  for (i = 0; i < M; ++i) b[i] = c[i] = element(i, 11);
  OK(qrane_pivoted_factor_d(context, &a_view, NULL, &qr));
  OK(qrane_pivoted_qr_info(qr, &info));
  EXPECT(info.rows == M && info.cols == K && info.rank == K - 1 && info.kept == K && info.absolute_tolerance > 0);
  EXPECT(info.pivoting == QRANE_PIVOTING_EXACT);
  OK(qrane_pivoted_permutation(qr, columns, K));
  OK(qrane_pivoted_r_d(qr, &r_view));
  OK(qrane_pivoted_q_d(qr, &q_view));
  for (j = 0; j < K; ++j)
    for (i = 0; i < M; ++i) {
      permuted[i + j * M] = a[i + columns[j] * M];
      product[i + j * M] = 0;
      for (l = 0; l <= j; ++l) product[i + j * M] += q[i + l * M] * r[l + j * K];
    }
  EXPECT(largest_difference(product, permuted, M * K) < 1e-13);
  OK(qrane_pivoted_apply_d(qr, QRANE_LEFT, 1, &c_view));
  OK(qrane_pivoted_apply_d(qr, QRANE_LEFT, 0, &c_view));
  EXPECT(largest_difference(b, c, M) < 1e-13);
  OK(qrane_pivoted_solve_d(qr, &b_view, NULL, &x_view, &solution));
  EXPECT(solution.rank == K - 1 && solution.full == K);
  EXPECT(fabs(x[0] - x[K - 1]) < 1e-12); /* of least norm: equal columns share */
  FAILS(QRANE_INVALID_ARGUMENT, "count is 2", qrane_pivoted_permutation(qr, columns, 2));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_pivoted_r_s(qr, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "r is 60 x 1", qrane_pivoted_r_d(qr, &b_view));
  qrane_pivoted_qr_destroy(qr);
  options.truncate = 1;
  options.q = QRANE_Q_NONE;
  OK(qrane_pivoted_factor_d(context, &a_view, &options, &qr));
  OK(qrane_pivoted_qr_info(qr, &info));
  EXPECT(info.rank == K - 1 && info.kept == K - 1);
  FAILS(QRANE_UNAVAILABLE, "QForm::none", qrane_pivoted_q_d(qr, &narrow_q_view));
  qrane_pivoted_qr_destroy(qr);
  options.pivoting = 7;
  FAILS(QRANE_INVALID_ARGUMENT, "options->pivoting is 7", qrane_pivoted_factor_d(context, &a_view, &options, &qr));
  EXPECT(qr == NULL);
  qrane_pivoted_qr_destroy(NULL);
}

static void test_empty(qrane_context* context) {
  const int shapes[4][2] = {{0, 0}, {5, 0}, {0, 5}, {1, 1}};
  double one = -3, r = 0;
  int k;
  for (k = 0; k < 4; ++k) {
    const qrane_matrix_d a = qrane_host_d(k == 3 ? &one : NULL, shapes[k][0], shapes[k][1], shapes[k][0]);
    qrane_qr* qr = NULL;
    OK(qrane_factor_d(context, &a, NULL, &qr));
    if (k == 3 && qr != NULL) {
      const qrane_matrix_d r_view = qrane_host_d(&r, 1, 1, 1);
      OK(qrane_r_d(qr, &r_view));
      EXPECT(fabs(r) == 3);
    }
    qrane_qr_destroy(qr);
  }
}

static void test_context_errors(int backend) {
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  struct {
    qrane_context_options known;
    int64_t unknown;
  } newer = {QRANE_CONTEXT_OPTIONS_INIT, 0};
  qrane_device_info info = QRANE_DEVICE_INFO_INIT;
  qrane_context* context = NULL;
  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_context_create(NULL, NULL));
  options.size = 0;
  FAILS(QRANE_INVALID_ARGUMENT, "options->size is 0", qrane_context_create(&options, &context));
  options.size = sizeof options;
  options.backend = 4;
  FAILS(QRANE_INVALID_ARGUMENT, "options->backend is 4", qrane_context_create(&options, &context));
  options.backend = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "options->backend is -1", qrane_context_create(&options, &context));
  options.backend = backend;
  options.device = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "options->device is -1", qrane_context_create(&options, &context));
  options.device = 9999;
  FAILS(QRANE_UNAVAILABLE, "9999", qrane_context_create(&options, &context));
  EXPECT(context == NULL);
  options.device = 0;
  options.threads = -2;
  FAILS(QRANE_INVALID_ARGUMENT, "options->threads is -2", qrane_context_create(&options, &context));
  options.threads = 0;
  options.memory_limit_bytes = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "options->memory_limit_bytes is -1", qrane_context_create(&options, &context));
  options.memory_limit_bytes = 0;

  newer.known.size = sizeof newer;
  newer.known.backend = backend;
  OK(qrane_context_create(&newer.known, &context));
  qrane_context_destroy(context);
  newer.unknown = 1;
  FAILS(QRANE_INVALID_ARGUMENT, "a field beyond them is set", qrane_context_create(&newer.known, &context));

  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_context_info(NULL, &info));
  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_context_synchronize(NULL));
  OK(qrane_context_create(&options, &context));
  FAILS(QRANE_INVALID_ARGUMENT, "info is null", qrane_context_info(context, NULL));
  info.size = 1;
  FAILS(QRANE_INVALID_ARGUMENT, "info->size is 1", qrane_context_info(context, &info));
  qrane_context_destroy(context);
  qrane_context_destroy(NULL);
}

static void test_factor_errors(qrane_context* context) {
  double values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13};
  qrane_matrix_d a = qrane_host_d(values, 4, 3, 4), bad;
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_qr* qr = NULL;
  FAILS(QRANE_INVALID_ARGUMENT, "qrane_factor_d: qr is null", qrane_factor_d(context, &a, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_factor_d(NULL, &a, NULL, &qr));
  FAILS(QRANE_INVALID_ARGUMENT, "a is null", qrane_factor_d(context, NULL, NULL, &qr));
  FAILS(QRANE_INVALID_ARGUMENT, "qrane_factor_s: a is null", qrane_factor_s(context, NULL, NULL, &qr));
  bad = a, bad.data = NULL;
  FAILS(QRANE_INVALID_ARGUMENT, "a->data is null", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.rows = -4;
  FAILS(QRANE_INVALID_ARGUMENT, "a->rows is -4", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.cols = -3;
  FAILS(QRANE_INVALID_ARGUMENT, "a->cols is -3", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.ld = 3;
  FAILS(QRANE_INVALID_ARGUMENT, "a->ld is 3, less than its 4 rows", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.layout = QRANE_ROW_MAJOR, bad.ld = 2;
  FAILS(QRANE_INVALID_ARGUMENT, "a->ld is 2, less than its 3 columns", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.layout = 7;
  FAILS(QRANE_INVALID_ARGUMENT, "a->layout is 7", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.memory = -2;
  FAILS(QRANE_INVALID_ARGUMENT, "a->memory is -2", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.buffer = values;
  FAILS(QRANE_INVALID_ARGUMENT, "a->buffer is set", qrane_factor_d(context, &bad, NULL, &qr));
  bad = a, bad.ld = INT64_MAX / 2;
  FAILS(QRANE_INVALID_ARGUMENT, "more bytes than 64 bits count", qrane_factor_d(context, &bad, NULL, &qr));

  options.size = 3;
  FAILS(QRANE_INVALID_ARGUMENT, "options->size is 3", qrane_factor_d(context, &a, &options, &qr));
  options.size = sizeof options;
  options.algorithm = 6;
  FAILS(QRANE_INVALID_ARGUMENT, "options->algorithm is 6", qrane_factor_d(context, &a, &options, &qr));
  options.algorithm = 0, options.q = 5;
  FAILS(QRANE_INVALID_ARGUMENT, "options->q is 5", qrane_factor_d(context, &a, &options, &qr));
  options.q = 0, options.arity = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "options->arity is -1", qrane_factor_d(context, &a, &options, &qr));
  options.arity = 0, options.block_rows = -8;
  FAILS(QRANE_INVALID_ARGUMENT, "options->block_rows is -8", qrane_factor_d(context, &a, &options, &qr));
  options.block_rows = 0, options.panel_cols = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "options->panel_cols is -1", qrane_factor_d(context, &a, &options, &qr));
  options.panel_cols = 0;

  options.check_finite = 1;
  values[6] = NAN; /* element (2, 1) */
  FAILS(QRANE_NOT_FINITE, "2", qrane_factor_d(context, &a, &options, &qr));
  values[6] = INFINITY;
  FAILS(QRANE_NOT_FINITE, "1", qrane_factor_d(context, &a, &options, &qr));
  EXPECT(qr == NULL);
}

static void test_use_errors(qrane_context* context) {
  double values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13}, out[16], rhs[4] = {1, 1, 1, 1};
  float single[12];
  qrane_matrix_d a = qrane_host_d(values, 4, 3, 4), b = qrane_host_d(rhs, 4, 1, 4), x = qrane_host_d(out, 3, 1, 3), bad;
  const qrane_matrix_s a_s = qrane_host_s(single, 4, 3, 4);
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_solve_options solve_options = QRANE_SOLVE_OPTIONS_INIT;
  qrane_factor_info info = QRANE_FACTOR_INFO_INIT;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_qr* qr = NULL;
  OK(qrane_factor_d(context, &a, NULL, &qr));
  if (qr == NULL) return;
  FAILS(QRANE_INVALID_ARGUMENT, "qr is null", qrane_r_d(NULL, &a));
  FAILS(QRANE_INVALID_ARGUMENT, "qr is null", qrane_qr_info(NULL, &info));
  FAILS(QRANE_INVALID_ARGUMENT, "info is null", qrane_qr_info(qr, NULL));
  info.size = 0;
  FAILS(QRANE_INVALID_ARGUMENT, "info->size is 0", qrane_qr_info(qr, &info));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double: use the function ending in _d", qrane_r_s(qr, &a_s));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_q_s(qr, &a_s));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_refactor_s(qr, &a_s));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_apply_q_s(qr, QRANE_LEFT, &a_s));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_apply_qt_s(qr, QRANE_LEFT, &a_s));
  FAILS(QRANE_INVALID_ARGUMENT, "qr was factored in double", qrane_solve_s(qr, &a_s, NULL, &a_s, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "r is null", qrane_r_d(qr, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "q is null", qrane_q_d(qr, NULL));
  bad = qrane_host_d(out, 2, 3, 2);
  FAILS(QRANE_INVALID_ARGUMENT, "r is 2 x 3 where 3 x 3 is needed", qrane_r_d(qr, &bad));
  bad = qrane_host_d(out, 4, 2, 4);
  FAILS(QRANE_INVALID_ARGUMENT, "q is 4 x 2 where 4 x 3 is needed", qrane_q_d(qr, &bad));
  bad = qrane_host_d(values, 3, 3, 4);
  FAILS(QRANE_INVALID_ARGUMENT, "a is 3 x 3 where 4 x 3 is needed", qrane_refactor_d(qr, &bad));
  FAILS(QRANE_INVALID_ARGUMENT, "side is 2", qrane_apply_q_d(qr, 2, &b));
  FAILS(QRANE_INVALID_ARGUMENT, "c is null", qrane_apply_qt_d(qr, QRANE_LEFT, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "c->rows is 3 where Q is 4 x 4", qrane_apply_q_d(qr, QRANE_LEFT, &x));
  FAILS(QRANE_INVALID_ARGUMENT, "c->cols is 1 where Q is 4 x 4", qrane_apply_qt_d(qr, QRANE_RIGHT, &b));
  FAILS(QRANE_INVALID_ARGUMENT, "b is null", qrane_solve_d(qr, NULL, NULL, &x, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "x is null", qrane_solve_d(qr, &b, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "b->rows is 3 where A has 4 rows", qrane_solve_d(qr, &x, NULL, &x, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "x is 4 x 1 where 3 x 1 is needed", qrane_solve_d(qr, &b, NULL, &b, NULL));
  solution.size = 4;
  FAILS(QRANE_INVALID_ARGUMENT, "info->size is 4", qrane_solve_d(qr, &b, NULL, &x, &solution));
  solve_options.size = 2;
  FAILS(QRANE_INVALID_ARGUMENT, "options->size is 2", qrane_solve_d(qr, &b, &solve_options, &x, NULL));
  OK(qrane_solve_d(qr, &b, NULL, &x, NULL)); /* none of this harmed it */
  qrane_qr_destroy(qr);

  options.q = QRANE_Q_NONE;
  OK(qrane_factor_d(context, &a, &options, &qr));
  bad = qrane_host_d(out, 4, 3, 4);
  FAILS(QRANE_UNAVAILABLE, "qrane_q_d", qrane_q_d(qr, &bad));
  FAILS(QRANE_UNAVAILABLE, "qrane_apply_q_d", qrane_apply_q_d(qr, QRANE_LEFT, &b));
  qrane_qr_destroy(qr);
  qrane_qr_destroy(NULL);
}

/* Too little memory says how many bytes were needed; the same context then factors something smaller. */
static void test_memory_limit(int backend) {
  enum { ROWS = 40000, COLS = 20 };
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_context* context = NULL;
  qrane_qr* qr = NULL;
  double* values = calloc((size_t)ROWS * COLS, sizeof(double));
  qrane_matrix_d large = qrane_host_d(values, ROWS, COLS, ROWS), small = qrane_host_d(values, 30, 5, 30);
  int i;
  for (i = 0; i < ROWS * COLS; ++i) values[i] = element(i, 1);
  options.backend = backend;
  options.memory_limit_bytes = 4000000;
  OK(qrane_context_create(&options, &context));
  FAILS(QRANE_OUT_OF_MEMORY, "bytes", qrane_factor_d(context, &large, NULL, &qr));
  EXPECT(qr == NULL);
  OK(qrane_factor_d(context, &small, NULL, &qr));
  qrane_context_destroy(context); /* the factorization keeps what it needs of it */
  if (qr != NULL) {
    double r[25];
    const qrane_matrix_d r_view = qrane_host_d(r, 5, 5, 5);
    OK(qrane_r_d(qr, &r_view));
  }
  qrane_qr_destroy(qr);
  free(values);
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "cpu";
  const int backend = backend_named(name);
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_device_info info = QRANE_DEVICE_INFO_INIT;
  qrane_context* context = NULL;

  EXPECT(strcmp(qrane_last_error(), "") == 0);
  EXPECT(strcmp(qrane_version(), QRANE_VERSION_STRING) == 0);
  EXPECT(strcmp(qrane_status_name(QRANE_OUT_OF_MEMORY), "out_of_memory") == 0);
  EXPECT(strcmp(qrane_status_name(12345), "unknown") == 0);

  options.backend = backend;
  if (qrane_context_create(&options, &context) != QRANE_OK) {
    printf("skipped: %s\n", qrane_last_error());
    return 77;
  }
  OK(qrane_context_info(context, &info));
  EXPECT(info.backend == backend && info.compute_units > 0 && info.memory_bytes > 0 && info.name[0] != '\0');
  printf("%s: %s\n", name, info.name);

  test_double(context, QRANE_ALGORITHM_AUTOMATIC, QRANE_Q_IMPLICIT);
  test_double(context, QRANE_ALGORITHM_TSQR, QRANE_Q_IMPLICIT);
  test_double(context, QRANE_ALGORITHM_CAQR, QRANE_Q_IMPLICIT);
  test_double(context, QRANE_ALGORITHM_BLOCKED, QRANE_Q_LAPACK);
  test_double(context, QRANE_ALGORITHM_AUTOMATIC, QRANE_Q_THIN);
  test_float(context);
  test_rank(context);
  test_pivoted(context);
  test_empty(context);
  test_factor_errors(context);
  test_use_errors(context);
  OK(qrane_context_synchronize(context));
  qrane_context_destroy(context);
  test_context_errors(backend);
  test_memory_limit(backend);
  return report_failures();
}
