/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface: statuses, matrices and contexts. Conventions: qrane.h.
 */
#ifndef QRANE_QRANE_CORE_H
#define QRANE_QRANE_CORE_H

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
  QRANE_FILE = 3,             /* not used by the C interface */
  QRANE_UNAVAILABLE = 4,      /* backend or device not built in or not found; or Q was not kept */
  QRANE_OUT_OF_MEMORY = 5,    /* the sentence says how many bytes were needed and free */
  QRANE_RANK_DEFICIENT = 6,   /* full rank was required (refuse_deficient) and is not there */
  QRANE_DEVICE = 7,           /* the device reported a failure */
  QRANE_INTERRUPTED = 8,      /* not used by the C interface */
  QRANE_NOT_CONVERGED = 9,    /* an iteration reached its limit (SVD) */
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

#ifdef __cplusplus
}
#endif

#endif
