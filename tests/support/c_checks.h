/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the C interface share: checks that count failures and go on, and which backend a test is for. */
#ifndef QRANE_TESTS_C_CHECKS_H
#define QRANE_TESTS_C_CHECKS_H

#include <math.h>
#include <qrane/qrane.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition) expect((condition), #condition, __LINE__)
#define OK(call) expect_ok((call), #call, __LINE__)
/* The call must return `status`, and the sentence must contain `text`. */
#define FAILS(status, text, call) expect_failure((call), (status), (text), #call, __LINE__)

static inline void expect(int condition, const char* text, int line) {
  if (!condition) {
    printf("line %d: not true: %s (%s)\n", line, text, qrane_last_error());
    ++failures;
  }
}

static inline void expect_ok(int status, const char* call, int line) {
  if (status != QRANE_OK) {
    printf("line %d: %s returned %d (%s): %s\n", line, call, status, qrane_status_name(status), qrane_last_error());
    ++failures;
  }
}

static inline void expect_failure(int status, int wanted, const char* text, const char* call, int line) {
  if (status != wanted) {
    printf("line %d: %s returned %d (%s), not %d\n", line, call, status, qrane_last_error(), wanted);
    ++failures;
  } else if (strstr(qrane_last_error(), text) == NULL) {
    printf("line %d: %s said \"%s\", without \"%s\"\n", line, call, qrane_last_error(), text);
    ++failures;
  }
}

static inline double largest_difference(const double* a, const double* b, int count) {
  double largest = 0;
  int i;
  for (i = 0; i < count; ++i) {
    const double difference = fabs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference; /* lets NaN through */
  }
  return largest;
}

static inline qrane_backend backend_named(const char* name) {
  return strcmp(name, "cuda") == 0     ? QRANE_BACKEND_CUDA
         : strcmp(name, "opencl") == 0 ? QRANE_BACKEND_OPENCL
                                       : QRANE_BACKEND_CPU;
}

/* The exit status of a test that ran. */
static inline int report_failures(void) {
  if (failures > 0) printf("%d failures\n", failures);
  return failures > 0;
}

#endif
