// SPDX-License-Identifier: Apache-2.0
#include <lapack/session.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include <qrane/error.hpp>

namespace qrane::lapack {
namespace {

struct Settings {
  ContextOptions device;
  std::optional<double> least;  ///< QRANE_LAPACK_MIN
};

void complain(const std::string& words) { std::fprintf(stderr, "libqrane_lapack: %s\n", words.c_str()); }

/// "cuda", "cuda:1"; throws Error naming the text.
void read_device(const std::string& text, ContextOptions& options) {
  const std::size_t colon = text.find(':');
  options.backend = backend_from_string(text.substr(0, colon));
  if (colon == std::string::npos) return;
  char* end = nullptr;
  const long index = std::strtol(text.c_str() + colon + 1, &end, 10);
  detail::check(*end == '\0' && end != text.c_str() + colon + 1 && index >= 0 && index < 1 << 16,
                ErrorCode::invalid_argument, "QRANE_LAPACK_DEVICE=", text, ": BACKEND or BACKEND:NUMBER is needed");
  options.device = static_cast<int>(index);
}

Settings read_settings() {
  Settings s;
  // The number of threads that the program asks of its BLAS holds for qrane, too.
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    if (const char* text = std::getenv(name)) s.device.threads = std::clamp(std::atoi(text), 0, 1 << 16);
  if (const char* text = std::getenv("QRANE_LAPACK_DEVICE"); text && *text) read_device(text, s.device);
  if (const char* text = std::getenv("QRANE_LAPACK_MIN"); text && *text) {
    char* end = nullptr;
    s.least = std::strtod(text, &end);
    detail::check(*end == '\0' && *s.least >= 0, ErrorCode::invalid_argument, "QRANE_LAPACK_MIN=", text,
                  ": a number that is not negative is needed");
  }
  return s;
}

/// Without settings that can be read, nothing is taken.
const std::optional<Settings>& settings() {
  static const std::optional<Settings> read = []() -> std::optional<Settings> {
    try {
      return read_settings();
    } catch (const std::exception& error) {
      complain(error.what() + std::string("; all calls go to the LAPACK underneath"));
      return std::nullopt;
    }
  }();
  return read;
}

std::atomic_flag busy = ATOMIC_FLAG_INIT;

/// Never destroyed: calls may come while the process ends. After a fork the child's is made anew, since threads and
/// CUDA do not survive one.
const Context* current = nullptr;
pid_t owner = 0;

const Context* make_context() {
  if (owner == ::getpid()) return current;
  owner = ::getpid();
  current = nullptr;
  try {
    current = new Context(settings()->device);
  } catch (const std::exception& error) {
    if (settings()->device.backend != Backend::automatic)
      complain(error.what() + std::string("; all calls go to the LAPACK underneath"));
  }
  return current;
}

/// Where qrane is faster than the LAPACK underneath it.
struct Pays {
  double least;   ///< m * n * max(min(m, n), others)
  double aspect;  ///< rows for each column
};

/// Measured against OpenBLAS 0.3.21 on 1 and 2 cores (docs/lapack.md). Only R alone of tall matrices pays: reflectors,
/// and products with those given, are at best as fast.
constexpr Pays on_cpu(Work work) {
  if (work == Work::reduce) return {1.5e6, 16};
  return {std::numeric_limits<double>::infinity(), 0};
}

/// Not measured: a size at which transfers and launches, a millisecond or two, cost less than LAPACK's time.
constexpr Pays on_gpu{3e8, 0};

}  // namespace

Session::Turn::Turn() : mine_(!busy.test_and_set(std::memory_order_acquire)) {}
Session::Turn::~Turn() {
  if (mine_) busy.clear(std::memory_order_release);
}

bool Session::worthwhile(Work work, Index m, Index n, Index others) {
  if (!settings() || std::max({m, n, others}) > std::numeric_limits<int>::max()) return false;
  const double size =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max(std::min(m, n), others));
  if (settings()->least) return size >= *settings()->least && make_context();
  // Small calls never make the context.
  if (size < on_cpu(Work::reduce).least || !make_context()) return false;
  const Pays pays = current->backend() == Backend::cpu ? on_cpu(work) : on_gpu;
  return size >= pays.least && static_cast<double>(m) >= pays.aspect * static_cast<double>(n);
}

const Context& Session::context() { return *current; }

const char* Session::backend_name() { return current ? to_string(current->backend()) : "qrane"; }

}  // namespace qrane::lapack
