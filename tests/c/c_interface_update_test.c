/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates through the C interface: every change in the forms thin and R only, right-hand sides carried along, and bad
 * input. Usage: c_interface_update_test [cpu|opencl|cuda]; exit status 77 (skip) when the backend is absent.
 */
#include "support/c_checks.h"

enum { M = 30, N = 6, P = 3, K = 2, NRHS = 2, MOST = (M + P) * (N + P) };

static double element(int i, int j) { return sin(1.0 + 2.3 * i + 11.7 * j + 0.51 * i * j); }

static double a[M * N], rows[P * N], columns[M * P], b[M * NRHS], e[P * NRHS];
static double after[MOST], q[MOST], r[MOST];

static void fill(void) {
  int i, j;
  for (j = 0; j < N; ++j) {
    for (i = 0; i < M; ++i) a[i + j * M] = element(i, j);
    for (i = 0; i < P; ++i) rows[i + j * P] = element(i + 50, j);
  }
  for (i = 0; i < M * P; ++i) columns[i] = element(i % M, 20 + i / M);
  for (i = 0; i < M * NRHS; ++i) b[i] = element(i % M, 30 + i / M);
  for (i = 0; i < P * NRHS; ++i) e[i] = element(50 + i % P, 30 + i / P);
}

/* |matrix - Q R| and |I - Q'Q|, the largest element. */
static double error_of(int m, int n, const double* matrix) {
  double worst = 0;
  int i, j, l;
  for (j = 0; j < n; ++j) {
    for (i = 0; i < m; ++i) {
      double gap = matrix[i + j * m];
      for (l = 0; l < n; ++l) gap -= q[i + l * m] * r[l + j * n];
      if (!(fabs(gap) <= worst)) worst = fabs(gap);
    }
    for (i = 0; i < n; ++i) {
      double gap = i == j ? 1.0 : 0.0;
      for (l = 0; l < m; ++l) gap -= q[l + i * m] * q[l + j * m];
      if (!(fabs(gap) <= worst)) worst = fabs(gap);
    }
  }
  return worst;
}

/* `after` := a without the given block of rows and columns; new rows or columns at the same place. */
static void change(int m, int n, int row_in, int row_out, int col_in, int col_out) {
  int i, j, to = 0;
  const int new_m = m + row_in - row_out, new_n = n + col_in - col_out;
  for (j = 0; j < new_n; ++j) {
    const int in_column = j >= K && j < K + col_in;
    const int from_j = j < K ? j : j - col_in + col_out;
    for (i = 0; i < new_m; ++i) {
      const int in_row = i >= K && i < K + row_in;
      const int from_i = i < K ? i : i - row_in + row_out;
      after[to++] = in_column ? columns[i + (j - K) * m] : in_row ? rows[i - K + j * P] : a[from_i + from_j * m];
    }
  }
}

static void check_factors(const qrane_qr* qr, int m, int n) {
  qrane_factor_info shape = QRANE_FACTOR_INFO_INIT;
  const qrane_matrix_d q_matrix = qrane_host_d(q, m, n, m), r_matrix = qrane_host_d(r, n, n, n);
  OK(qrane_qr_info(qr, &shape));
  EXPECT(shape.rows == m && shape.cols == n);
  OK(qrane_q_d(qr, &q_matrix));
  OK(qrane_r_d(qr, &r_matrix));
  EXPECT(error_of(m, n, after) < 1e-12);
}

static void test_changes(qrane_context* context) {
  const qrane_matrix_d matrix = qrane_host_d(a, M, N, M), u = qrane_host_d(rows, P, N, P),
                       w = qrane_host_d(columns, M, P, M);
  qrane_options options = QRANE_OPTIONS_INIT;
  int kind;
  options.q = QRANE_Q_THIN;
  for (kind = 0; kind < 4; ++kind) {
    qrane_qr* qr = NULL;
    qrane_update_report report = QRANE_UPDATE_REPORT_INIT;
    const int m = kind == 0 ? M + P : kind == 1 ? M - P : M, n = kind == 2 ? N + P : kind == 3 ? N - P : N;
    OK(qrane_factor_d(context, &matrix, &options, &qr));
    if (kind == 0) OK(qrane_insert_rows_d(qr, K, &u, NULL, NULL, NULL, &report));
    if (kind == 1) OK(qrane_delete_rows_d(qr, K, P, NULL, NULL, NULL, NULL, &report));
    if (kind == 2) OK(qrane_insert_columns_d(qr, K, &w, NULL, NULL, &report));
    if (kind == 3) OK(qrane_delete_columns_d(qr, K, P, NULL, NULL, &report));
    EXPECT(report.k == K && report.p == P && report.rows == M && report.cols == N);
    EXPECT(report.method != QRANE_UPDATE_AUTOMATIC && !report.refused);
    change(M, N, kind == 0 ? P : 0, kind == 1 ? P : 0, kind == 2 ? P : 0, kind == 3 ? P : 0);
    check_factors(qr, m, n);
    qrane_qr_destroy(qr);
  }
}

/* A'(A x - b) of the least-squares solution is zero. */
static double gradient(int m, const double* x, const double* right) {
  double worst = 0;
  int i, j, c, l;
  for (c = 0; c < NRHS; ++c) {
    for (j = 0; j < N; ++j) {
      double sum = 0;
      for (i = 0; i < m; ++i) {
        double gap = right[i + c * m];
        for (l = 0; l < N; ++l) gap -= after[i + l * m] * x[l + c * N];
        sum += gap * after[i + j * m];
      }
      if (!(fabs(sum) <= worst)) worst = fabs(sum);
    }
  }
  return worst;
}

static void test_right_hand_sides(qrane_context* context, int form) {
  const qrane_matrix_d matrix = qrane_host_d(a, M, N, M), u = qrane_host_d(rows, P, N, P),
                       right = qrane_host_d(b, M, NRHS, M), more = qrane_host_d(e, P, NRHS, P),
                       out_rows = qrane_host_d(a + K, P, N, M), out_b = qrane_host_d(b + K, P, NRHS, M);
  double x[N * NRHS], both[(M + P) * NRHS], norms[NRHS];
  const qrane_matrix_d x_matrix = qrane_host_d(x, N, NRHS, N);
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_solution info = QRANE_SOLUTION_INIT;
  qrane_qr* qr = NULL;
  const int r_only = form == QRANE_Q_NONE;
  int64_t refused = -1;
  int i, c;
  options.q = form;
  OK(qrane_factor_d(context, &matrix, &options, &qr));
  FAILS(QRANE_UNAVAILABLE, "attach", qrane_solve_attached_d(qr, NULL, &x_matrix, &info));
  OK(qrane_attach_d(qr, &right, form == QRANE_Q_NONE ? &matrix : NULL));
  OK(qrane_insert_rows_d(qr, K, &u, &more, NULL, NULL, NULL));
  OK(qrane_solve_attached_d(qr, NULL, &x_matrix, &info));
  EXPECT(info.rank == N);
  change(M, N, P, 0, 0, 0);
  for (c = 0; c < NRHS; ++c)
    for (i = 0; i < M + P; ++i)
      both[i + c * (M + P)] = i < K ? b[i + c * M] : i < K + P ? e[i - K + c * P] : b[i - P + c * M];
  EXPECT(gradient(M + P, x, both) < 1e-11);
  OK(qrane_residual_norms(qr, norms, NRHS));
  EXPECT(norms[0] > 0 && norms[1] > 0);
  FAILS(QRANE_INVALID_ARGUMENT, "count is 1", qrane_residual_norms(qr, norms, 1));

  /* the new rows go again, and then three of A's own */
  OK(qrane_delete_rows_d(qr, K, P, r_only ? &u : NULL, r_only ? &more : NULL, NULL, NULL, NULL));
  OK(qrane_delete_rows_d(qr, K, P, r_only ? &out_rows : NULL, r_only ? &out_b : NULL, NULL, NULL, NULL));
  OK(qrane_solve_attached_d(qr, NULL, &x_matrix, &info));
  change(M, N, 0, P, 0, 0);
  for (c = 0; c < NRHS; ++c)
    for (i = 0; i < M - P; ++i) both[i + c * (M - P)] = b[(i < K ? i : i + P) + c * M];
  EXPECT(gradient(M - P, x, both) < 1e-11);
  OK(qrane_refused_updates(qr, &refused));
  EXPECT(refused == 0);
  qrane_qr_destroy(qr);
}

static void test_rank_k(qrane_context* context) {
  const qrane_matrix_d matrix = qrane_host_d(a, M, N, M), u = qrane_host_d(columns, M, P, M);
  double v[N * P];
  const qrane_matrix_d v_matrix = qrane_host_d(v, N, P, N), after_matrix = qrane_host_d(after, M, N, M);
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_qr* qr = NULL;
  double drift = -1;
  int i, j, l;
  options.q = QRANE_Q_THIN;
  for (i = 0; i < N * P; ++i) v[i] = element(i, 40);
  for (j = 0; j < N; ++j) {
    for (i = 0; i < M; ++i) {
      after[i + j * M] = a[i + j * M];
      for (l = 0; l < P; ++l) after[i + j * M] += columns[i + l * M] * v[j + l * N];
    }
  }
  OK(qrane_factor_d(context, &matrix, &options, &qr));
  OK(qrane_rank_k_update_d(qr, &u, &v_matrix, NULL, NULL, NULL));
  check_factors(qr, M, N);
  OK(qrane_drift_d(qr, &after_matrix, &drift));
  EXPECT(drift >= 0 && drift < 30);
  qrane_qr_destroy(qr);
}

static void test_bad_input(qrane_context* context) {
  const qrane_matrix_d matrix = qrane_host_d(a, M, N, M), u = qrane_host_d(rows, P, N, P),
                       narrow = qrane_host_d(rows, P, N - 1, P);
  const qrane_matrix_s single = {NULL, 0, 0, 0, 0, 0, NULL, 0};
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_update_options how = QRANE_UPDATE_OPTIONS_INIT;
  double poisoned[P * N];
  const qrane_matrix_d nan_rows = qrane_host_d(poisoned, P, N, P);
  qrane_qr* qr = NULL;
  options.q = QRANE_Q_THIN;
  OK(qrane_factor_d(context, &matrix, &options, &qr));
  FAILS(QRANE_INVALID_ARGUMENT, "31", qrane_insert_rows_d(qr, M + 1, &u, NULL, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "5", qrane_insert_rows_d(qr, 0, &narrow, NULL, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "-1", qrane_delete_rows_d(qr, -1, 1, NULL, NULL, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "7", qrane_delete_columns_d(qr, 0, N + 1, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "u is null", qrane_insert_columns_d(qr, 0, NULL, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "double", qrane_insert_rows_s(qr, 0, &single, NULL, NULL, NULL, NULL));
  how.method = 99;
  FAILS(QRANE_INVALID_ARGUMENT, "options->method", qrane_delete_rows_d(qr, 0, 1, NULL, NULL, NULL, &how, NULL));
  how.method = QRANE_UPDATE_AUTOMATIC;
  how.check_finite = 1;
  memcpy(poisoned, rows, sizeof poisoned);
  poisoned[1 + 2 * P] = NAN;
  FAILS(QRANE_NOT_FINITE, "row 1, column 2", qrane_insert_rows_d(qr, 0, &nan_rows, NULL, NULL, &how, NULL));
  memcpy(after, a, sizeof a);
  check_factors(qr, M, N); /* as it was */
  qrane_qr_destroy(qr);
  options.q = QRANE_Q_NONE;
  OK(qrane_factor_d(context, &matrix, &options, &qr));
  FAILS(QRANE_INVALID_ARGUMENT, "removed", qrane_delete_rows_d(qr, 0, 1, NULL, NULL, NULL, NULL, NULL));
  FAILS(QRANE_UNAVAILABLE, "updated", qrane_insert_columns_d(qr, 0, &matrix, NULL, NULL, NULL));
  qrane_qr_destroy(qr);
}

int main(int argc, char** argv) {
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_device_info info = QRANE_DEVICE_INFO_INIT;
  qrane_context* context = NULL;
  const char* name = argc > 1 ? argv[1] : "cpu";
  options.backend = backend_named(name);
  if (qrane_context_create(&options, &context) != QRANE_OK) {
    printf("skipped: %s\n", qrane_last_error());
    return 77;
  }
  OK(qrane_context_info(context, &info));
  fill();
  if (info.has_double) {
    test_changes(context);
    test_right_hand_sides(context, QRANE_Q_THIN);
    test_right_hand_sides(context, QRANE_Q_NONE);
    test_rank_k(context);
    test_bad_input(context);
  }
  qrane_context_destroy(context);
  return report_failures();
}
