/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse QR through the C interface: a pattern by columns, rows and triplets, R, solutions, other values, and bad
 * input. Usage: c_interface_sparse_test [cpu|opencl|cuda]; exit status 77 (skip) when the backend is absent.
 */
#include <math.h>
#include <qrane/qrane.h>
#include <stdio.h>
#include <string.h>

enum { M = 40, N = 12, NRHS = 2, ENTRIES = 4 * M };

static int failures = 0;
#define EXPECT(condition) expect((condition), #condition, __LINE__)
#define OK(call) expect((call) == QRANE_OK, #call, __LINE__)
#define FAILS(status, text, call) \
  expect((call) == (status) && strstr(qrane_last_error(), text) != NULL, #call, __LINE__)

static void expect(int condition, const char* text, int line) {
  if (!condition) {
    printf("line %d: not true: %s (%s)\n", line, text, qrane_last_error());
    ++failures;
  }
}

/* Row i has entries in four columns; by rows they stand as they come. */
static int64_t rows[ENTRIES], cols[ENTRIES], row_pointers[M + 1];
static double values[ENTRIES], others[ENTRIES], dense[M * N], b[M * NRHS];
static float values_s[ENTRIES];

static void fill(void) {
  int i, k;
  for (i = 0; i < M; ++i)
    for (k = 0; k < 4; ++k) {
      const int p = 4 * i + k;
      rows[p] = i;
      cols[p] = (i + k * k) % N;
      values[p] = sin(1.0 + 3.7 * i + 1.3 * k) + (k == 0 ? 2.0 : 0.0);
      others[p] = cos(2.0 + 1.9 * i + 2.1 * k) + (k == 0 ? 2.0 : 0.0);
      values_s[p] = (float)values[p];
    }
  for (i = 0; i <= M; ++i) row_pointers[i] = 4 * i;
  for (i = 0; i < M * NRHS; ++i) b[i] = sin(0.3 + 5.1 * i);
}

static void make_dense(const double* v) {
  int p;
  memset(dense, 0, sizeof dense);
  for (p = 0; p < ENTRIES; ++p) dense[rows[p] + cols[p] * M] += v[p];
}

/* The largest element of A'(b - A x) over all right-hand sides. */
static double normal_gap(const double* x) {
  double worst = 0;
  int c, i, j;
  for (c = 0; c < NRHS; ++c) {
    double r[M];
    for (i = 0; i < M; ++i) {
      r[i] = b[i + c * M];
      for (j = 0; j < N; ++j) r[i] -= dense[i + j * M] * x[j + c * N];
    }
    for (j = 0; j < N; ++j) {
      double sum = 0;
      for (i = 0; i < M; ++i) sum += dense[i + j * M] * r[i];
      if (!(fabs(sum) <= worst)) worst = fabs(sum);
    }
  }
  return worst;
}

/* The largest element of R'R - (A P)'(A P). */
static double gram_gap(const qrane_sparse_factor* f) {
  static double r[N * N], r_values[N * N];
  int64_t pointers[N + 1], indices[N * N], order[N];
  double worst = 0;
  int i, j, k;
  OK(qrane_sparse_r_d(f, pointers, NULL, NULL, 0));
  EXPECT(pointers[N] > N && pointers[N] <= N * (N + 1) / 2);
  OK(qrane_sparse_r_d(f, pointers, indices, r_values, N * N));
  OK(qrane_sparse_permutation(f, order, N));
  memset(r, 0, sizeof r);
  for (j = 0; j < N; ++j)
    for (k = (int)pointers[j]; k < pointers[j + 1]; ++k) r[indices[k] + j * N] = r_values[k];
  for (i = 0; i < N; ++i)
    for (j = 0; j < N; ++j) {
      double gap = 0;
      for (k = 0; k < N; ++k) gap += r[k + i * N] * r[k + j * N];
      for (k = 0; k < M; ++k) gap -= dense[k + order[i] * M] * dense[k + order[j] * M];
      if (!(fabs(gap) <= worst)) worst = fabs(gap);
    }
  return worst;
}

static int calls = 0;
static double last_done = 0;
static void progress(double done, double all, void* user) {
  EXPECT(done >= last_done && done <= all);
  last_done = done;
  ++calls;
  *(double*)user = done / all;
}

static void test_storages(qrane_context* context) {
  int64_t column_pointers[N + 1] = {0}, column_rows[ENTRIES], place[N];
  int32_t column_pointers_32[N + 1], column_rows_32[ENTRIES], row_pointers_32[M + 1];
  int32_t cols_32[ENTRIES], rows_32[ENTRIES];
  double column_values[ENTRIES], x[6][N * NRHS], norms[NRHS];
  qrane_matrix_d rhs = qrane_host_d(b, M, NRHS, M);
  int p, k;
  for (p = 0; p < ENTRIES; ++p) ++column_pointers[cols[p] + 1];
  for (k = 0; k < N; ++k) column_pointers[k + 1] += column_pointers[k];
  for (k = 0; k < N; ++k) place[k] = column_pointers[k];
  for (p = 0; p < ENTRIES; ++p) {
    column_rows[place[cols[p]]] = rows[p];
    column_values[place[cols[p]]++] = values[p];
  }
  make_dense(values);
  for (k = 0; k <= N; ++k) column_pointers_32[k] = (int32_t)column_pointers[k];
  for (k = 0; k <= M; ++k) row_pointers_32[k] = (int32_t)row_pointers[k];
  for (p = 0; p < ENTRIES; ++p) {
    column_rows_32[p] = (int32_t)column_rows[p];
    cols_32[p] = (int32_t)cols[p];
    rows_32[p] = (int32_t)rows[p];
  }
  for (k = 0; k < 6; ++k) {
    qrane_sparse_pattern a = k == 0   ? qrane_by_columns(M, N, column_pointers, column_rows)
                             : k == 1 ? qrane_by_rows(M, N, row_pointers, cols)
                             : k == 2 ? qrane_by_triplets(M, N, ENTRIES, rows, cols)
                             : k == 3 ? qrane_by_columns_32(M, N, column_pointers_32, column_rows_32)
                             : k == 4 ? qrane_by_rows_32(M, N, row_pointers_32, cols_32)
                                      : qrane_by_triplets_32(M, N, ENTRIES, rows_32, cols_32);
    qrane_sparse_analysis* analysis = NULL;
    qrane_sparse_factor* f = NULL;
    qrane_matrix_d out = qrane_host_d(x[k], N, NRHS, N);
    qrane_analysis_facts facts = QRANE_ANALYSIS_FACTS_INIT;
    qrane_sparse_solution info = QRANE_SPARSE_SOLUTION_INIT;
    int64_t order[N], seen[N] = {0};
    EXPECT(a.entries == ENTRIES);
    OK(qrane_sparse_analyze(context, &a, NULL, NULL, &analysis));
    OK(qrane_sparse_analysis_facts(analysis, &facts));
    EXPECT(facts.rows == M && facts.cols == N && facts.entries == ENTRIES && facts.rank_bound == N);
    EXPECT(facts.ordering != QRANE_ORDERING_AUTOMATIC && facts.fronts > 0 && facts.flops > 0);
    OK(qrane_sparse_ordering(analysis, order, N));
    for (p = 0; p < N; ++p) ++seen[order[p]];
    for (p = 0; p < N; ++p) EXPECT(seen[p] == 1);
    OK(qrane_sparse_factor_d(analysis, k % 3 == 0 ? column_values : values, ENTRIES, NULL, NULL, &f));
    qrane_sparse_analysis_destroy(analysis); /* the factorization keeps what it needs */
    EXPECT(gram_gap(f) < 1e-12);
    OK(qrane_sparse_solve_d(f, &rhs, &out, &info, norms));
    EXPECT(info.rank == N && info.full == N);
    EXPECT(norms[0] > 0 && norms[1] > 0);
    EXPECT(normal_gap(x[k]) < 1e-12);
    qrane_sparse_factor_destroy(f);
  }
  for (k = 3; k < 6; ++k)
    for (p = 0; p < N * NRHS; ++p) EXPECT(x[k][p] == x[k - 3][p]);
}

static void test_uses(qrane_context* context) {
  qrane_sparse_pattern a = qrane_by_triplets(M, N, ENTRIES, rows, cols);
  qrane_sparse_analysis* analysis = NULL;
  qrane_sparse_factor *f = NULL, *single = NULL;
  qrane_sparse_options options = QRANE_SPARSE_OPTIONS_INIT;
  qrane_sparse_facts facts = QRANE_SPARSE_FACTS_INIT;
  qrane_matrix_d rhs = qrane_host_d(b, M, NRHS, M);
  double x[N * NRHS], c[M * NRHS], w[M * NRHS], share = 0, gap = 0;
  float b_s[M], x_s[N];
  qrane_matrix_d out = qrane_host_d(x, N, NRHS, N), kept = qrane_host_d(c, M, NRHS, M);
  qrane_matrix_s rhs_s = qrane_host_s(b_s, M, 1, M), out_s = qrane_host_s(x_s, N, 1, N);
  int i, j, k;
  OK(qrane_sparse_analyze(context, &a, NULL, NULL, &analysis));

  options.discard_q = 1;
  options.progress = progress;
  options.user = &share;
  OK(qrane_sparse_factor_d(analysis, values, ENTRIES, &rhs, &options, &f));
  EXPECT(calls > 0 && share == 1.0);
  make_dense(values);
  OK(qrane_sparse_solve_d(f, NULL, &out, NULL, NULL));
  EXPECT(normal_gap(x) < 1e-12);
  OK(qrane_sparse_factor_facts(f, &facts));
  EXPECT(facts.rank == N && facts.rows == M && facts.cols == N && facts.scalar_bytes == 8 && facts.peak_bytes > 0);
  EXPECT(facts.on_device == 0 && facts.backend == QRANE_BACKEND_CPU); /* too small for any device */
  FAILS(QRANE_UNAVAILABLE, "Q", qrane_sparse_apply_d(f, 0, &kept));
  last_done = 0;
  OK(qrane_sparse_refactor_d(f, others, ENTRIES, &rhs));
  make_dense(others);
  EXPECT(gram_gap(f) < 1e-12);
  OK(qrane_sparse_solve_d(f, NULL, &out, NULL, NULL));
  EXPECT(normal_gap(x) < 1e-12);
  qrane_sparse_factor_destroy(f);

  for (k = QRANE_PROCESSOR_CPU; k <= QRANE_PROCESSOR_DEVICE; ++k) {
    options.processor = k;
    last_done = 0;
    OK(qrane_sparse_factor_d(analysis, others, ENTRIES, NULL, &options, &f));
    EXPECT(gram_gap(f) < 1e-12);
    OK(qrane_sparse_factor_facts(f, &facts));
    EXPECT(facts.on_device == (k == QRANE_PROCESSOR_DEVICE));
    qrane_sparse_factor_destroy(f);
  }

  OK(qrane_sparse_factor_d(analysis, values, ENTRIES, NULL, NULL, &f));
  make_dense(values);
  memcpy(c, b, sizeof c);
  OK(qrane_sparse_apply_d(f, 1, &kept));
  OK(qrane_sparse_apply_d(f, 0, &kept));
  for (i = 0; i < M * NRHS; ++i) gap = fmax(gap, fabs(c[i] - b[i]));
  EXPECT(gap < 1e-13);
  for (i = 0; i < N * NRHS; ++i) x[i] = cos(1.7 * i);
  {
    qrane_matrix_d wide = qrane_host_d(w, M, NRHS, M);
    OK(qrane_sparse_solve_transposed_d(f, &out, &wide, NULL, NULL));
  }
  for (k = 0, gap = 0; k < NRHS; ++k)
    for (j = 0; j < N; ++j) {
      double sum = x[j + k * N];
      for (i = 0; i < M; ++i) sum -= dense[i + j * M] * w[i + k * M];
      gap = fmax(gap, fabs(sum));
    }
  EXPECT(gap < 1e-12);

  for (i = 0; i < M; ++i) b_s[i] = (float)b[i];
  OK(qrane_sparse_factor_s(analysis, values_s, ENTRIES, NULL, NULL, &single));
  OK(qrane_sparse_solve_s(single, &rhs_s, &out_s, NULL, NULL));
  OK(qrane_sparse_solve_d(f, &rhs, &out, NULL, NULL));
  for (j = 0; j < N; ++j) EXPECT(fabs(x_s[j] - x[j]) < 1e-4);
  FAILS(QRANE_INVALID_ARGUMENT, "made in float", qrane_sparse_solve_d(single, &rhs, &out, NULL, NULL));
  {
    qrane_sparse_refinement refined = QRANE_SPARSE_REFINEMENT_INIT;
    qrane_sparse_pattern narrower = a;
    double norms[NRHS];
    narrower.cols = N - 1;
    OK(qrane_sparse_refine(single, &a, values, -1, &rhs, &out, &refined, norms));
    EXPECT(normal_gap(x) < 1e-12);
    EXPECT(refined.rank == N && refined.full == N && refined.converged == 1 && refined.iterations > 0);
    EXPECT(norms[0] > 0 && norms[1] > 0);
    FAILS(QRANE_INVALID_ARGUMENT, "values is null", qrane_sparse_refine(single, &a, NULL, -1, &rhs, &out, NULL, NULL));
    FAILS(QRANE_INVALID_ARGUMENT, "11", qrane_sparse_refine(single, &narrower, values, -1, &rhs, &out, NULL, NULL));
    FAILS(QRANE_INVALID_ARGUMENT, "x is", qrane_sparse_refine(single, &a, values, -1, &rhs, &rhs, NULL, NULL));
  }
  qrane_sparse_factor_destroy(single);
  qrane_sparse_factor_destroy(f);
  qrane_sparse_analysis_destroy(analysis);
}

static void test_bad_input(qrane_context* context) {
  qrane_sparse_pattern a = qrane_by_triplets(M, N, ENTRIES, rows, cols), bad = a;
  qrane_sparse_analysis* analysis = NULL;
  qrane_sparse_factor* f = NULL;
  qrane_analyze_options order = QRANE_ANALYZE_OPTIONS_INIT;
  qrane_sparse_options options = QRANE_SPARSE_OPTIONS_INIT;
  double x[N], r_values[N];
  int64_t pointers[N + 1], indices[N];
  qrane_matrix_d out = qrane_host_d(x, N, 1, N), rhs = qrane_host_d(b, M - 1, 1, M);
  const int64_t saved = cols[7];
  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_sparse_analyze(NULL, &a, NULL, NULL, &analysis));
  FAILS(QRANE_INVALID_ARGUMENT, "pattern is null", qrane_sparse_analyze(context, NULL, NULL, NULL, &analysis));
  FAILS(QRANE_INVALID_ARGUMENT, "analysis is null", qrane_sparse_analyze(context, &a, NULL, NULL, NULL));
  bad.storage = 3;
  FAILS(QRANE_INVALID_ARGUMENT, "storage is 3", qrane_sparse_analyze(context, &bad, NULL, NULL, &analysis));
  bad = a;
  bad.index_bytes = 2;
  FAILS(QRANE_INVALID_ARGUMENT, "index_bytes is 2", qrane_sparse_analyze(context, &bad, NULL, NULL, &analysis));
  cols[7] = N;
  FAILS(QRANE_INVALID_ARGUMENT, "12", qrane_sparse_analyze(context, &a, NULL, NULL, &analysis));
  cols[7] = saved;
  order.ordering = QRANE_ORDERING_GIVEN;
  FAILS(QRANE_INVALID_ARGUMENT, "permutation", qrane_sparse_analyze(context, &a, NULL, &order, &analysis));
  order.ordering = 6;
  FAILS(QRANE_INVALID_ARGUMENT, "ordering is 6", qrane_sparse_analyze(context, &a, NULL, &order, &analysis));
  EXPECT(analysis == NULL);
  OK(qrane_sparse_analyze(context, &a, NULL, NULL, &analysis));
  FAILS(QRANE_INVALID_ARGUMENT, "count is 1", qrane_sparse_factor_d(analysis, values, 1, NULL, NULL, &f));
  FAILS(QRANE_INVALID_ARGUMENT, "values is null", qrane_sparse_factor_d(analysis, NULL, ENTRIES, NULL, NULL, &f));
  FAILS(QRANE_INVALID_ARGUMENT, "analysis is null", qrane_sparse_factor_d(NULL, values, ENTRIES, NULL, NULL, &f));
  options.processor = 3;
  FAILS(QRANE_INVALID_ARGUMENT, "processor is 3", qrane_sparse_factor_d(analysis, values, ENTRIES, NULL, &options, &f));
  options.processor = QRANE_PROCESSOR_AUTOMATIC;
  options.check_finite = 1;
  others[5] = NAN;
  FAILS(QRANE_NOT_FINITE, "entry 5", qrane_sparse_factor_d(analysis, others, ENTRIES, NULL, &options, &f));
  memset(others, 0, sizeof others);
  options.refuse_deficient = 1;
  FAILS(QRANE_RANK_DEFICIENT, "rank 0 of 12", qrane_sparse_factor_d(analysis, others, ENTRIES, NULL, &options, &f));
  EXPECT(f == NULL);
  OK(qrane_sparse_factor_d(analysis, values, ENTRIES, NULL, NULL, &f));
  FAILS(QRANE_INVALID_ARGUMENT, "39 rows", qrane_sparse_solve_d(f, &rhs, &out, NULL, NULL));
  FAILS(QRANE_UNAVAILABLE, "rhs", qrane_sparse_solve_d(f, NULL, &out, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "capacity is 1", qrane_sparse_r_d(f, pointers, indices, r_values, 1));
  FAILS(QRANE_INVALID_ARGUMENT, "one of row_indices and values", qrane_sparse_r_d(f, pointers, indices, NULL, N));
  FAILS(QRANE_INVALID_ARGUMENT, "count is 3", qrane_sparse_permutation(f, indices, 3));
  FAILS(QRANE_INVALID_ARGUMENT, "made in double", qrane_sparse_refactor_s(f, values_s, ENTRIES, NULL));
  qrane_sparse_factor_destroy(f);
  qrane_sparse_analysis_destroy(analysis);
  qrane_sparse_factor_destroy(NULL);
  qrane_sparse_analysis_destroy(NULL);
}

int main(int argc, char** argv) {
  const char* backend = argc > 1 ? argv[1] : "cpu";
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_context* context = NULL;
  int status;
  options.backend = strcmp(backend, "cuda") == 0     ? QRANE_BACKEND_CUDA
                    : strcmp(backend, "opencl") == 0 ? QRANE_BACKEND_OPENCL
                                                     : QRANE_BACKEND_CPU;
  status = qrane_context_create(&options, &context);
  if (status == QRANE_UNAVAILABLE) {
    printf("skipped: %s\n", qrane_last_error());
    return 77;
  }
  OK(status);
  if (status != QRANE_OK) return 1;
  fill();
  test_storages(context);
  test_uses(context);
  test_bad_input(context);
  qrane_context_destroy(context);
  if (failures == 0) printf("all passed\n");
  return failures != 0;
}
