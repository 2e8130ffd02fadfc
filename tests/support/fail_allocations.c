/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a program (LD_PRELOAD), lets its allocations fail from main() on. Environment:
 *   FAIL_ALLOCATION=K    the K-th allocation returns null; K+ also all that follow
 *   FAIL_COUNT=FILE      at the end the number of allocations is written there, then the number of the first allocation
 *                        of each call stack
 *   FAIL_TRACE=1         the stack of the (first) failing allocation goes to standard error
 * Programs that this one starts are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static atomic_int active;
static atomic_long count;
static long failing; /* 0: none */
static int all_that_follow, trace;
static char count_file[4096];
static __thread int inside;

enum { stack_depth = 24, table_size = 1 << 18 };
static _Atomic unsigned long stacks[table_size]; /* hashes of the call stacks seen; open addressing */
static long firsts[table_size];
static atomic_long first_count;

static void note_stack(long k) {
  void* frames[stack_depth];
  inside = 1;
  const int depth = backtrace(frames, stack_depth);
  inside = 0;
  unsigned long hash = 1469598103934665603ul;
  for (int i = 2; i < depth; ++i) hash = (hash ^ (unsigned long)frames[i]) * 1099511628211ul;
  hash |= 1;
  for (unsigned long slot = hash >> 20;; ++slot) {
    unsigned long seen = 0;
    if (atomic_compare_exchange_strong(&stacks[slot % table_size], &seen, hash)) break;
    if (seen == hash) return;
  }
  const long place = atomic_fetch_add(&first_count, 1);
  if (place < table_size / 2) firsts[place] = k;
}

static int fails(void) {
  if (inside || !atomic_load(&active)) return 0;
  const long k = atomic_fetch_add(&count, 1) + 1;
  if (failing == 0 && count_file[0] != '\0') note_stack(k);
  if (failing == 0 || k < failing || (k > failing && !all_that_follow)) return 0;
  if (trace && k == failing) {
    void* frames[64];
    inside = 1;
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    inside = 0;
  }
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void* realloc(void* p, size_t size) { return fails() ? NULL : __libc_realloc(p, size); }
void* memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void** p, size_t alignment, size_t size) {
  void* taken = fails() ? NULL : __libc_memalign(alignment, size);
  if (taken == NULL) return ENOMEM;
  *p = taken;
  return 0;
}

static void at_end(void) {
  atomic_store(&active, 0);
  if (count_file[0] == '\0') return;
  inside = 1;
  FILE* file = fopen(count_file, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&count));
  for (long i = 0; i < atomic_load(&first_count) && i < table_size / 2; ++i) fprintf(file, "%ld\n", firsts[i]);
  fclose(file);
}

static int (*real_main)(int, char**, char**);
static int counted_main(int argc, char** argv, char** environment) {
  const char* which = getenv("FAIL_ALLOCATION");
  const char* file = getenv("FAIL_COUNT");
  failing = which ? atol(which) : 0;
  all_that_follow = which && strchr(which, '+') != NULL;
  trace = getenv("FAIL_TRACE") != NULL;
  if (trace || file) {
    void* frame;
    backtrace(&frame, 1); /* loads what it needs */
  }
  if (file) snprintf(count_file, sizeof count_file, "%s", file);
  unsetenv("LD_PRELOAD");
  atexit(at_end); /* runs before the destructors of what was made earlier */
  atomic_store(&active, 1);
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
                       void*);
  Start start;
  void* found = dlsym(RTLD_NEXT, "__libc_start_main");
  memcpy(&start, &found, sizeof start);
  real_main = main;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
