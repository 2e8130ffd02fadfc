/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches through the C interface: host memory on every backend, and on CUDA device pointers, a table of addresses and
 * a stream of the caller's. Usage: c_interface_batch_test [cpu|opencl|cuda]; exit status 77 (skip) when it is absent.
 */
#if QRANE_TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "support/c_checks.h"

enum { M = 24, N = 5, COUNT = 7, NRHS = 2, A_SIZE = M * N * COUNT };

static double a[A_SIZE], q[A_SIZE], r[N * N * COUNT], packed[A_SIZE], tau[N * COUNT], c[A_SIZE], b[M * NRHS * COUNT],
    x[N * NRHS * COUNT];

/* Matrix k: deterministic and well conditioned; the right-hand sides are A times 1, 2, ... and its double. */
static void fill(void) {
  int i, j, k;
  memset(b, 0, sizeof b);
  for (k = 0; k < COUNT; ++k) {
    for (j = 0; j < N; ++j) {
      for (i = 0; i < M; ++i) {
        const double value = sin(1.0 + 2.0 * i + 11.0 * j + 0.5 * i * j + 3.0 * k);
        a[i + j * M + k * M * N] = value;
        b[i + k * M * NRHS] += (j + 1) * value;
        b[i + M + k * M * NRHS] += 2 * (j + 1) * value;
      }
    }
  }
}

static qrane_batch_d host_batch(double* data, int64_t rows, int64_t cols) {
  qrane_batch_d batch = {{NULL, 0, 0, 0, 0, 0, NULL, 0}, 0, COUNT, NULL};
  batch.first = qrane_host_d(data, rows, cols, rows);
  batch.stride = rows * cols;
  return batch;
}

/* c := Q R of every matrix. */
static void multiply(void) {
  int i, j, k, l;
  for (k = 0; k < COUNT; ++k) {
    for (j = 0; j < N; ++j) {
      for (i = 0; i < M; ++i) {
        double sum = 0;
        for (l = 0; l <= j; ++l) sum += q[i + l * M + k * M * N] * r[l + j * N + k * N * N];
        c[i + j * M + k * M * N] = sum;
      }
    }
  }
}

static void test_host(qrane_context* context) {
  const qrane_batch_d a_batch = host_batch(a, M, N), q_batch = host_batch(q, M, N), r_batch = host_batch(r, N, N),
                      packed_batch = host_batch(packed, M, N), tau_batch = host_batch(tau, N, 1),
                      c_batch = host_batch(c, M, N), b_batch = host_batch(b, M, NRHS), x_batch = host_batch(x, N, NRHS);
  qrane_batch_d bad = a_batch;
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_factor_info info = QRANE_FACTOR_INFO_INIT;
  qrane_batch_qr* qr = NULL;
  qrane_batch_s single = {{NULL, 0, 0, 0, 0, 0, NULL, 0}, 0, 0, NULL};
  int64_t ranks[COUNT];
  int j, k;
  options.q = QRANE_Q_LAPACK;
  OK(qrane_batch_factor_d(context, &a_batch, &options, &qr));
  if (qr == NULL) return;
  OK(qrane_batch_qr_info(qr, &info));
  EXPECT(info.rows == M && info.cols == N && info.scalar_bytes == 8 && info.q == QRANE_Q_LAPACK);
  OK(qrane_batch_r_d(qr, &r_batch));
  OK(qrane_batch_q_d(qr, &q_batch));
  multiply();
  EXPECT(largest_difference(a, c, A_SIZE) < 1e-13);
  OK(qrane_batch_reflectors_d(qr, &packed_batch, &tau_batch));
  for (k = 0; k < COUNT; ++k) {
    for (j = 0; j < N; ++j) {
      EXPECT(packed[j + j * M + k * M * N] == r[j + j * N + k * N * N]);
      EXPECT(tau[j + k * N] >= 1 && tau[j + k * N] <= 2);
    }
  }
  memcpy(c, a, sizeof a);
  OK(qrane_batch_apply_qt_d(qr, &c_batch));
  for (k = 0; k < COUNT; ++k) EXPECT(fabs(c[k * M * N] - r[k * N * N]) < 1e-13);
  OK(qrane_batch_apply_q_d(qr, &c_batch));
  EXPECT(largest_difference(a, c, A_SIZE) < 1e-13);
  OK(qrane_batch_solve_d(qr, &b_batch, NULL, &x_batch, ranks));
  for (k = 0; k < COUNT; ++k) {
    EXPECT(ranks[k] == N);
    for (j = 0; j < N; ++j) EXPECT(fabs(x[j + k * N * NRHS] - (j + 1)) < 1e-11);
    for (j = 0; j < N; ++j) EXPECT(fabs(x[j + N + k * N * NRHS] - 2 * (j + 1)) < 1e-11);
  }
  OK(qrane_batch_refactor_d(qr, &a_batch));

  FAILS(QRANE_INVALID_ARGUMENT, "ending in _d", qrane_batch_refactor_s(qr, &single));
  FAILS(QRANE_INVALID_ARGUMENT, "a is null", qrane_batch_refactor_d(qr, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "qr is null", qrane_batch_r_d(NULL, &r_batch));
  FAILS(QRANE_INVALID_ARGUMENT, "out", qrane_batch_r_d(qr, &q_batch));
  bad.stride = M * N - 1;
  FAILS(QRANE_INVALID_ARGUMENT, "stride", qrane_batch_refactor_d(qr, &bad));
  bad = a_batch;
  bad.count = -1;
  FAILS(QRANE_INVALID_ARGUMENT, "a->count is -1", qrane_batch_refactor_d(qr, &bad));
  bad = a_batch;
  bad.first.ld = M - 1;
  FAILS(QRANE_INVALID_ARGUMENT, "a->ld", qrane_batch_refactor_d(qr, &bad));
  qrane_batch_qr_destroy(qr);
  qrane_batch_qr_destroy(NULL);
  options.q = QRANE_Q_THIN;
  OK(qrane_batch_factor_d(context, &a_batch, &options, &qr));
  FAILS(QRANE_UNAVAILABLE, "reflectors", qrane_batch_apply_q_d(qr, &c_batch));
  qrane_batch_qr_destroy(qr);
}

/* A table of host addresses gives what a stride gives. */
static void test_table(qrane_context* context) {
  static double r_of_table[N * N * COUNT];
  double* addresses[COUNT];
  const qrane_batch_d r_batch = host_batch(r_of_table, N, N);
  qrane_batch_d table = host_batch(NULL, M, N);
  qrane_batch_qr* qr = NULL;
  int k;
  for (k = 0; k < COUNT; ++k) addresses[k] = a + k * M * N;
  table.pointers = addresses;
  OK(qrane_batch_factor_d(context, &table, NULL, &qr));
  if (qr == NULL) return;
  OK(qrane_batch_r_d(qr, &r_batch));
  EXPECT(largest_difference(r, r_of_table, N * N * COUNT) == 0);
  qrane_batch_qr_destroy(qr);
}

/* The R of every matrix of `changed`, rows x cols each, is that of the updated batch up to the signs of its rows. */
static void expect_same_r(qrane_context* context, const qrane_batch_qr* qr, double* changed, int rows, int cols) {
  static double updated[N * N * COUNT], wanted[N * N * COUNT];
  const qrane_batch_d matrices = host_batch(changed, rows, cols), r_updated = host_batch(updated, cols, cols),
                      r_wanted = host_batch(wanted, cols, cols);
  qrane_batch_qr* again = NULL;
  int i;
  OK(qrane_batch_factor_d(context, &matrices, NULL, &again));
  OK(qrane_batch_r_d(qr, &r_updated));
  OK(qrane_batch_r_d(again, &r_wanted));
  for (i = 0; i < cols * cols * COUNT; ++i) updated[i] = fabs(updated[i]), wanted[i] = fabs(wanted[i]);
  EXPECT(largest_difference(updated, wanted, cols * cols * COUNT) < 1e-12);
  qrane_batch_qr_destroy(again);
}

/* Rows and columns of every matrix; refusals name the matrix. */
static void test_updates(qrane_context* context) {
  enum { P = 2, K = 3 };
  static double more[P * N * COUNT], grown[(M + P) * N * COUNT], narrow[M * (N - 1) * COUNT];
  static double deficient[A_SIZE], gone[N * COUNT];
  const qrane_batch_d a_batch = host_batch(a, M, N), u = host_batch(more, P, N), one = host_batch(gone, 1, N),
                      lost = host_batch(deficient, M, N);
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_update_report report = QRANE_UPDATE_REPORT_INIT;
  int32_t refused[COUNT];
  qrane_batch_qr* qr = NULL;
  int i, j, k;
  for (i = 0; i < P * N * COUNT; ++i) more[i] = cos(0.7 * i);
  for (k = 0; k < COUNT; ++k)
    for (j = 0; j < N; ++j) {
      for (i = 0; i < M + P; ++i)
        grown[i + (j + k * N) * (M + P)] = i < K       ? a[i + (j + k * N) * M]
                                           : i < K + P ? more[i - K + (j + k * N) * P]
                                                       : a[i - P + (j + k * N) * M];
      if (j != 1) memcpy(narrow + (j - (j > 1) + k * (N - 1)) * M, a + (j + k * N) * M, M * sizeof(double));
    }
  options.q = QRANE_Q_THIN;
  OK(qrane_batch_factor_d(context, &a_batch, &options, &qr));
  if (qr == NULL) return;
  OK(qrane_batch_insert_rows_d(qr, K, &u, NULL, &report));
  EXPECT(report.p == P && report.k == K && report.rows == M && !report.refused);
  expect_same_r(context, qr, grown, M + P, N);
  OK(qrane_batch_delete_rows_d(qr, K, P, NULL, NULL, NULL, refused));
  expect_same_r(context, qr, a, M, N);
  for (k = 0; k < COUNT; ++k) EXPECT(refused[k] == 0);
  OK(qrane_batch_delete_columns_d(qr, 1, 1, NULL, NULL));
  expect_same_r(context, qr, narrow, M, N - 1);
  FAILS(QRANE_INVALID_ARGUMENT, "u is null", qrane_batch_insert_rows_d(qr, 0, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "p = 9", qrane_batch_delete_columns_d(qr, 0, 9, NULL, NULL));
  qrane_batch_qr_destroy(qr);

  /* row 5 alone makes column 2 of matrix 4 independent */
  memcpy(deficient, a, sizeof a);
  for (i = 0; i < M; ++i) deficient[i + (2 + 4 * N) * M] = i == 5;
  for (k = 0; k < COUNT; ++k)
    for (j = 0; j < N; ++j) gone[j + k * N] = deficient[5 + (j + k * N) * M];
  options.q = QRANE_Q_NONE;
  OK(qrane_batch_factor_d(context, &lost, &options, &qr));
  FAILS(QRANE_INVALID_ARGUMENT, "removed", qrane_batch_delete_rows_d(qr, 5, 1, NULL, NULL, NULL, NULL));
  OK(qrane_batch_delete_rows_d(qr, 5, 1, &one, NULL, &report, refused));
  EXPECT(report.refused);
  for (k = 0; k < COUNT; ++k) EXPECT(refused[k] == (k == 4));
  qrane_batch_qr_destroy(qr);
}

#if QRANE_TEST_CUDA
static qrane_batch_d device_batch(double* data, int64_t rows, int64_t cols) {
  qrane_batch_d batch = host_batch(data, rows, cols);
  batch.first.memory = QRANE_MEMORY_DEVICE;
  return batch;
}

/* In place on device pointers and the caller's stream, and by a table of device addresses. */
static void test_cuda(void) {
  static double back[A_SIZE], r_back[N * N * COUNT];
  double *g_a = NULL, *g_r = NULL, **g_table = NULL, *addresses[COUNT];
  cudaStream_t stream = NULL;
  qrane_context_options context_options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_options options = QRANE_OPTIONS_INIT;
  qrane_context* context = NULL;
  qrane_batch_qr *qr = NULL, *of_table = NULL;
  qrane_batch_d a_batch, r_batch, table;
  int k;
  EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
  EXPECT(cudaMalloc((void**)&g_a, sizeof a) == cudaSuccess && cudaMalloc((void**)&g_r, sizeof r) == cudaSuccess &&
         cudaMalloc((void**)&g_table, sizeof addresses) == cudaSuccess);
  for (k = 0; k < COUNT; ++k) addresses[k] = g_a + k * M * N;
  cudaMemcpyAsync(g_table, addresses, sizeof addresses, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(g_a, a, sizeof a, cudaMemcpyHostToDevice, stream);
  context_options.backend = QRANE_BACKEND_CUDA;
  context_options.stream = stream;
  OK(qrane_context_create(&context_options, &context));
  a_batch = device_batch(g_a, M, N), r_batch = device_batch(g_r, N, N), table = device_batch(NULL, M, N);
  table.pointers = g_table;

  OK(qrane_batch_factor_d(context, &table, NULL, &of_table));
  OK(qrane_batch_r_d(of_table, &r_batch));
  cudaMemcpyAsync(r_back, g_r, sizeof r, cudaMemcpyDeviceToHost, stream);
  EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
  EXPECT(largest_difference(r, r_back, N * N * COUNT) == 0);

  options.q = QRANE_Q_LAPACK;
  OK(qrane_batch_factor_in_place_d(context, &a_batch, &options, &qr));
  cudaMemcpyAsync(back, g_a, sizeof a, cudaMemcpyDeviceToHost, stream);
  EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
  EXPECT(largest_difference(packed, back, A_SIZE) == 0);
  qrane_batch_qr_destroy(qr);
  qrane_batch_qr_destroy(of_table);
  qrane_context_destroy(context);
  cudaFree(g_a), cudaFree(g_r), cudaFree(g_table), cudaStreamDestroy(stream);
}
#endif

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "cpu";
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_device_info info = QRANE_DEVICE_INFO_INIT;
  qrane_context* context = NULL;
  options.backend = backend_named(name);
  if (qrane_context_create(&options, &context) != QRANE_OK) {
    printf("skipped: %s\n", qrane_last_error());
    return 77;
  }
  OK(qrane_context_info(context, &info));
  if (!info.has_double) {
    printf("skipped: %s has no double precision\n", info.name);
    return 77;
  }
  fill();
  test_host(context);
  test_table(context);
  test_updates(context);
  qrane_context_destroy(context);
#if QRANE_TEST_CUDA
  if (options.backend == QRANE_BACKEND_CUDA) test_cuda();
#endif
  return report_failures();
}
