// SPDX-License-Identifier: Apache-2.0
#include <cli/blas.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <io/partial_file.hpp>

#include "cpu/queue/blas_core.hpp"

namespace qrane::cli {

void restart_on_fitting_core(char** argv) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;  // the user's, or ours the second time
  const backend::cpu::BlasCore core = backend::cpu::blas_core();
  if (core.fitting.empty() || ::setenv("OPENBLAS_CORETYPE", core.fitting.c_str(), 0) != 0) return;
  ::execv("/proc/self/exe", argv);
  ::unsetenv("OPENBLAS_CORETYPE");  // it could not be run again: then as it is
}

}  // namespace qrane::cli

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

/// Refusals of the same request in a row, and the pause after each: 64 times 10 ms.
constexpr int most_refusals = 64;
constexpr useconds_t pause_us = 10000;

[[noreturn]] void end_without_memory(std::size_t bytes) {
  char words[256];
  const int length = std::snprintf(words, sizeof(words),
                                   "qrane: out of memory: %zu bytes of work space for a thread of the BLAS library are "
                                   "refused; raise the limit (ulimit -v) or use fewer threads (OPENBLAS_NUM_THREADS)\n",
                                   bytes);
  (void)!::write(STDERR_FILENO, words, static_cast<std::size_t>(length));
  qrane::io::remove_partial_files();
  ::_exit(1);
}

}  // namespace

/// The shared libraries' mmap. OpenBLAS asks again and again for a buffer that it is refused, in threads that begin
/// before main: a request that is refused many times in a row ends the program with words.
extern "C" __attribute__((visibility("default"))) void* mmap(void* address, std::size_t length, int protection,
                                                             int flags, int file, off_t offset) noexcept {
  static thread_local std::size_t refused_length = 0;
  static thread_local int refusals = 0;
  void* const result = reinterpret_cast<void*>(::syscall(SYS_mmap, address, length, protection, flags, file, offset));
  const bool memory = file == -1 && protection == (PROT_READ | PROT_WRITE);
  if (!memory) return result;
  if (result != MAP_FAILED || errno != ENOMEM) {
    refusals = 0;
    return result;
  }
  refusals = length == refused_length ? refusals + 1 : 1;
  refused_length = length;
  if (refusals == most_refusals) end_without_memory(length);
  if (refusals > 1) ::usleep(pause_us);
  errno = ENOMEM;
  return result;
}
#endif
