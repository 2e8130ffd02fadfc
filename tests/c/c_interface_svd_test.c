/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SVD and robust PCA through the C interface. Usage: c_interface_svd_test [cpu|opencl|cuda]; exit status 77 (skip)
 * when the backend is absent.
 */
#include "support/c_checks.h"

enum { M = 40, N = 6 };

static double element(int i, int j) { return sin(1.0 + 2.3 * i + 11.7 * j + 0.51 * i * j); }

static void test_svd(qrane_context* context) {
  double a[M * N], u[M * N], s[N], vt[N * N], alone[N];
  const qrane_matrix_d a_view = qrane_host_d(a, M, N, M), u_view = qrane_host_d(u, M, N, M),
                       s_view = qrane_host_d(s, N, 1, N), vt_view = qrane_host_d(vt, N, N, N),
                       alone_view = qrane_host_d(alone, N, 1, N);
  const qrane_matrix_s single = {NULL, 0, 0, 0, 0, 0, NULL, 0};
  qrane_svd_options options = QRANE_SVD_OPTIONS_INIT;
  qrane_svd_info info = QRANE_SVD_INFO_INIT;
  double worst = 0;
  int i, j, l;
  for (j = 0; j < N; ++j)
    for (i = 0; i < M; ++i) a[i + j * M] = element(i, j == N - 1 ? 0 : j); /* rank N - 1 */
  OK(qrane_svd_d(context, &a_view, NULL, &u_view, &s_view, &vt_view, &info));
  EXPECT(info.rank == N - 1 && info.full == N);
  EXPECT(info.absolute_tolerance > 0 && info.absolute_tolerance < 1e-12 && info.condition > 1e12);
  for (j = 0; j < N; ++j) {
    EXPECT(j == 0 || s[j] <= s[j - 1]);
    for (i = 0; i < M; ++i) {
      double gap = a[i + j * M];
      for (l = 0; l < N; ++l) gap -= u[i + l * M] * s[l] * vt[l + j * N];
      if (!(fabs(gap) <= worst)) worst = fabs(gap);
    }
  }
  EXPECT(worst < 1e-13);
  options.relative_tolerance = 0.99;
  OK(qrane_svd_d(context, &a_view, &options, NULL, &alone_view, NULL, &info));
  EXPECT(info.rank == 1);
  EXPECT(largest_difference(s, alone, N) < 1e-12);
  FAILS(QRANE_INVALID_ARGUMENT, "s is 6 x 6", qrane_svd_d(context, &a_view, NULL, NULL, &vt_view, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "u is 6 x 6", qrane_svd_d(context, &a_view, NULL, &vt_view, &s_view, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "s is null", qrane_svd_d(context, &a_view, NULL, NULL, NULL, NULL, NULL));
  FAILS(QRANE_INVALID_ARGUMENT, "context is null", qrane_svd_s(NULL, &single, NULL, NULL, &single, NULL, NULL));
  options.algorithm = 17;
  FAILS(QRANE_INVALID_ARGUMENT, "options->algorithm",
        qrane_svd_d(context, &a_view, &options, NULL, &s_view, NULL, NULL));
  options.algorithm = QRANE_ALGORITHM_AUTOMATIC;
  options.check_finite = 1;
  a[2 + 3 * M] = NAN;
  FAILS(QRANE_NOT_FINITE, "row 2, column 3", qrane_svd_d(context, &a_view, &options, NULL, &s_view, NULL, NULL));
}

static int count_iterations(const qrane_robust_pca_progress* progress, void* user) {
  int* last = user;
  *last = progress->iteration;
  return 0;
}

static int stop_at_once(const qrane_robust_pca_progress* progress, void* user) {
  (void)progress, (void)user;
  return 1;
}

static void test_robust_pca(qrane_context* context) {
  static double m[M * N], low[M * N], sparse[M * N], sum[M * N];
  const qrane_matrix_d m_view = qrane_host_d(m, M, N, M), low_view = qrane_host_d(low, M, N, M),
                       sparse_view = qrane_host_d(sparse, M, N, M);
  qrane_robust_pca_options options = QRANE_ROBUST_PCA_OPTIONS_INIT;
  qrane_robust_pca_info info = QRANE_ROBUST_PCA_INFO_INIT;
  int last = 0, i, j;
  for (j = 0; j < N; ++j)
    for (i = 0; i < M; ++i) m[i + j * M] = (1 + 0.1 * i) * (1 + 0.05 * j);
  m[7 + 2 * M] += 20;
  m[21 + 4 * M] -= 20;
  options.relative_tolerance = 1e-8;
  options.on_iteration = count_iterations;
  options.user = &last;
  OK(qrane_robust_pca_d(context, &m_view, &options, &low_view, &sparse_view, &info));
  EXPECT(info.converged && info.iterations == last && last > 1 && info.residual <= 1e-8);
  for (i = 0; i < M * N; ++i) sum[i] = low[i] + sparse[i];
  EXPECT(largest_difference(m, sum, M * N) < 1e-5);
  EXPECT(sparse[7 + 2 * M] > 10 && sparse[21 + 4 * M] < -10);
  options.on_iteration = stop_at_once;
  OK(qrane_robust_pca_d(context, &m_view, &options, NULL, NULL, &info));
  EXPECT(!info.converged && info.iterations == 1);
  FAILS(QRANE_INVALID_ARGUMENT, "m is null", qrane_robust_pca_d(context, NULL, NULL, NULL, NULL, NULL));
  options.rho = 0.5;
  FAILS(QRANE_INVALID_ARGUMENT, "rho", qrane_robust_pca_d(context, &m_view, &options, NULL, NULL, NULL));
  options.rho = 1.5;
  options.method = 5;
  FAILS(QRANE_INVALID_ARGUMENT, "options->method", qrane_robust_pca_d(context, &m_view, &options, NULL, NULL, NULL));
}

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
  test_svd(context);
  test_robust_pca(context);
  qrane_context_destroy(context);
  return report_failures();
}
