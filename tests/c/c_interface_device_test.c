/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface on memory and queues of the caller's: a cl_command_queue with cl_mem and offset, a cudaStream_t with
 * device pointers. Usage: c_interface_device_test opencl|cuda; exit status 77 (skip) when it is absent.
 */
#if QRANE_TEST_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif
#if QRANE_TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "support/c_checks.h"

enum { M = 200, N = 9, LD = 211, OFFSET = 13, TOTAL = OFFSET + LD * N };

/* Device memory of the caller's, and how to reach it. */
typedef struct device {
  void* queue;
  qrane_matrix_d (*view)(void* memory, int64_t rows, int64_t cols, int64_t ld); /* from element OFFSET on */
  void* (*put)(struct device* device, const double* values, size_t count);
  void (*get)(struct device* device, void* memory, double* values, size_t count);
  void (*free_memory)(void* memory);
  void* context;
} device;

#if QRANE_TEST_OPENCL
static qrane_matrix_d opencl_view(void* memory, int64_t rows, int64_t cols, int64_t ld) {
  return qrane_buffer_d(memory, OFFSET, rows, cols, ld);
}
static void* opencl_put(device* d, const double* values, size_t count) {
  cl_mem memory = clCreateBuffer(d->context, CL_MEM_READ_WRITE, count * sizeof *values, NULL, NULL);
  clEnqueueWriteBuffer(d->queue, memory, CL_TRUE, 0, count * sizeof *values, values, 0, NULL, NULL);
  return memory;
}
static void opencl_get(device* d, void* memory, double* values, size_t count) {
  clEnqueueReadBuffer(d->queue, memory, CL_TRUE, 0, count * sizeof *values, values, 0, NULL, NULL);
}
static void opencl_free(void* memory) { clReleaseMemObject(memory); }

static int open_opencl(device* d) {
  cl_platform_id platforms[8];
  cl_device_id id;
  cl_uint count = 0, k;
  if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS) return 0;
  for (k = 0; k < count && k < 8; ++k) {
    if (clGetDeviceIDs(platforms[k], CL_DEVICE_TYPE_ALL, 1, &id, NULL) != CL_SUCCESS) continue;
    d->context = clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
    if (d->context == NULL) continue;
    d->queue = clCreateCommandQueue(d->context, id, 0, NULL);
    d->view = opencl_view, d->put = opencl_put, d->get = opencl_get, d->free_memory = opencl_free;
    return d->queue != NULL;
  }
  return 0;
}
#endif

#if QRANE_TEST_CUDA
static qrane_matrix_d cuda_view(void* memory, int64_t rows, int64_t cols, int64_t ld) {
  return qrane_device_d((const double*)memory + OFFSET, rows, cols, ld);
}
static void* cuda_put(device* d, const double* values, size_t count) {
  void* memory = NULL;
  if (cudaMalloc(&memory, count * sizeof *values) != cudaSuccess) return NULL;
  cudaMemcpyAsync(memory, values, count * sizeof *values, cudaMemcpyHostToDevice, d->queue);
  return memory;
}
static void cuda_get(device* d, void* memory, double* values, size_t count) {
  cudaMemcpyAsync(values, memory, count * sizeof *values, cudaMemcpyDeviceToHost, d->queue);
  cudaStreamSynchronize(d->queue);
}
static void cuda_free(void* memory) { cudaFree(memory); }

static int open_cuda(device* d) {
  cudaStream_t stream;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0 || cudaStreamCreate(&stream) != cudaSuccess) return 0;
  d->queue = stream;
  d->view = cuda_view, d->put = cuda_put, d->get = cuda_get, d->free_memory = cuda_free;
  return 1;
}
#endif

/* A with slack, its first element OFFSET into the memory; b = A times 1, 2, ... */
static void test(device* d, qrane_context* context) {
  static double a[TOTAL], b[OFFSET + M], x[OFFSET + N], back[TOTAL];
  static double r[N * N], r_host[N * N];
  const qrane_matrix_d host_a = qrane_host_d(a + OFFSET, M, N, LD), host_r = qrane_host_d(r_host, N, N, N);
  qrane_matrix_d view_a, view_b, view_x, out = qrane_host_d(r, N, N, N);
  qrane_qr *qr = NULL, *of_host = NULL;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  void *device_a, *device_b, *device_x;
  int i, j;
  for (i = 0; i < TOTAL; ++i) a[i] = -77;
  for (i = 0; i < OFFSET + M; ++i) b[i] = 0;
  for (i = 0; i < OFFSET + N; ++i) x[i] = -5;
  for (j = 0; j < N; ++j) {
    for (i = 0; i < M; ++i) {
      a[OFFSET + i + j * LD] = sin(1.0 + 2.0 * i + 11.0 * j + 0.5 * i * j);
      b[OFFSET + i] += (j + 1) * a[OFFSET + i + j * LD];
    }
  }
  device_a = d->put(d, a, TOTAL), device_b = d->put(d, b, OFFSET + M), device_x = d->put(d, x, OFFSET + N);
  view_a = d->view(device_a, M, N, LD), view_b = d->view(device_b, M, 1, M), view_x = d->view(device_x, N, 1, N);

  OK(qrane_factor_d(context, &view_a, NULL, &qr));
  OK(qrane_factor_d(context, &host_a, NULL, &of_host));
  if (qr == NULL || of_host == NULL) return;
  OK(qrane_r_d(qr, &out));
  OK(qrane_r_d(of_host, &host_r));
  EXPECT(memcmp(r, r_host, sizeof r) == 0); /* the same numbers, wherever they came from */

  OK(qrane_solve_d(qr, &view_b, NULL, &view_x, &solution));
  EXPECT(solution.rank == N);
  d->get(d, device_x, x, OFFSET + N);
  for (j = 0; j < OFFSET; ++j) EXPECT(x[j] == -5);
  for (j = 0; j < N; ++j) EXPECT(fabs(x[OFFSET + j] - (j + 1)) < 1e-11);

  /* in place, in the caller's memory: Q^T b, then back */
  OK(qrane_apply_qt_d(qr, QRANE_LEFT, &view_b));
  OK(qrane_apply_q_d(qr, QRANE_LEFT, &view_b));
  OK(qrane_context_synchronize(context));
  d->get(d, device_b, back, OFFSET + M);
  for (i = 0; i < OFFSET; ++i) EXPECT(back[i] == 0);
  for (i = 0; i < M; ++i) EXPECT(fabs(back[OFFSET + i] - b[OFFSET + i]) < 1e-12);

  /* Q over A, nothing else in that memory touched */
  OK(qrane_q_d(qr, &view_a));
  OK(qrane_context_synchronize(context));
  d->get(d, device_a, back, TOTAL);
  for (i = 0; i < OFFSET; ++i) EXPECT(back[i] == -77);
  for (j = 0; j < N; ++j) {
    double norm = 0;
    for (i = 0; i < M; ++i) norm += back[OFFSET + i + j * LD] * back[OFFSET + i + j * LD];
    EXPECT(fabs(norm - 1) < 1e-13);
    for (i = M; i < (j < N - 1 ? LD : M); ++i) EXPECT(back[OFFSET + i + j * LD] == -77);
  }
  qrane_qr_destroy(qr);
  qrane_qr_destroy(of_host);

  if (view_a.buffer != NULL) {
    view_a.buffer = NULL;
    EXPECT(qrane_factor_d(context, &view_a, NULL, &qr) == QRANE_INVALID_ARGUMENT);
    EXPECT(strstr(qrane_last_error(), "a->buffer is null") != NULL);
    view_a.buffer = device_a, view_a.offset = -1;
    EXPECT(qrane_factor_d(context, &view_a, NULL, &qr) == QRANE_INVALID_ARGUMENT);
    EXPECT(strstr(qrane_last_error(), "a->offset is -1") != NULL);
  }
  d->free_memory(device_a), d->free_memory(device_b), d->free_memory(device_x);
}

int main(int argc, char** argv) {
  const int cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
  qrane_context_options options = QRANE_CONTEXT_OPTIONS_INIT;
  qrane_device_info info = QRANE_DEVICE_INFO_INIT;
  qrane_context* context = NULL;
  device d;
  int found = 0;
  memset(&d, 0, sizeof d);
#if QRANE_TEST_OPENCL
  if (!cuda) found = open_opencl(&d);
#endif
#if QRANE_TEST_CUDA
  if (cuda) found = open_cuda(&d);
#endif
  if (!found) {
    printf("skipped: no %s device, or built without it\n", cuda ? "cuda" : "opencl");
    return 77;
  }
  options.backend = cuda ? QRANE_BACKEND_CUDA : QRANE_BACKEND_OPENCL;
  options.stream = d.queue;
  OK(qrane_context_create(&options, &context));
  if (context == NULL) return 1;
  OK(qrane_context_info(context, &info));
  if (!info.has_double) {
    printf("skipped: %s has no double precision\n", info.name);
    return 77;
  }
  test(&d, context);
  qrane_context_destroy(context);
  return report_failures();
}
