// SPDX-License-Identifier: Apache-2.0
// CPU backend: memory, data movement and reductions.
#include "cpu/queue/queue.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "cpu/queue/blas_core.hpp"
#include "vocabulary/reserve.hpp"

// OpenBLAS only.
extern "C" __attribute__((weak)) char* openblas_get_config(void);

namespace qrane::backend::cpu {

namespace {
std::int64_t free_machine_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::int64_t value = 0;
  while (info >> key >> value) {
    if (key == "MemAvailable:") return value * 1024;
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}
}  // namespace

struct Queue::Pool {
  std::int64_t limit = 0;
  std::int64_t used = 0;
  std::mutex mutex;
  std::unordered_map<std::byte*, std::int64_t> sizes;
  std::int64_t free_bytes() const { return limit > 0 ? limit - used : free_machine_bytes(); }

  std::byte* allocate(Index bytes) {
    const std::lock_guard lock(mutex);
    const std::int64_t free = free_bytes();
    detail::check(bytes <= free, ErrorCode::out_of_memory, "out of memory on the CPU: needed ", bytes, " bytes, ", free,
                  " are free");
    auto* p = static_cast<std::byte*>(std::aligned_alloc(256, static_cast<std::size_t>((bytes + 255) / 256 * 256)));
    detail::check(p != nullptr, ErrorCode::out_of_memory, "out of memory on the CPU: needed ", bytes, " bytes, ", free,
                  " are free");
    used += bytes;
    sizes[p] = bytes;
    return p;
  }
};

namespace {

constexpr Index chunk_elements = 1 << 15;  // one partial sum each: the same partition for any number of threads

/// Combines term(element) over row chunks in parallel, then over the chunks in order.
template <class T, class Term, class Combine>
double reduce(const DeviceMatrix<Cpu, T>& a, ThreadPool& workers, Term term, Combine combine) {
  const Index per_column = std::max<Index>(1, (a.rows + chunk_elements - 1) / chunk_elements);
  std::vector<double> partial(static_cast<std::size_t>(per_column * a.cols), 0.0);
  workers.run(per_column * a.cols, a.rows * a.cols, [&](Index k, int) {
    const T* column = a.data + k / per_column * a.ld;
    const Index first = (k % per_column) * chunk_elements;
    double sum = 0;
    for (Index i = first; i < std::min(a.rows, first + chunk_elements); ++i)
      sum = combine(sum, term(static_cast<double>(column[i])));
    partial[static_cast<std::size_t>(k)] = sum;
  });
  double total = 0;
  for (double p : partial) total = combine(total, p);
  return total;
}

/// body(matrix of the batch, first column, last column): all columns, about chunk_elements at a time.
template <class T>
void for_columns(const DeviceMatrix<Cpu, T>& a, ThreadPool& workers,
                 const std::function<void(Index, Index, Index)>& body) {
  const Index at_once = std::max<Index>(1, chunk_elements / std::max<Index>(a.rows, 1));
  const Index groups = (a.cols + at_once - 1) / at_once;
  workers.run(groups * a.count, a.rows * a.cols * a.count, [&](Index k, int) {
    const Index first = k % groups * at_once;
    body(k / groups, first, std::min(a.cols, first + at_once));
  });
}

double add(double a, double b) { return a + b; }
double larger_or_nan(double a, double b) { return (a != a || a > b) ? a : b; }

}  // namespace

Queue::Queue(int threads, std::int64_t memory_limit_bytes) : pool_(std::make_shared<Pool>()) {
  detail::check(threads >= 0, ErrorCode::invalid_argument, "threads must not be negative, got ", threads);
  detail::check(memory_limit_bytes >= 0, ErrorCode::invalid_argument, "memory_limit_bytes must not be negative, got ",
                memory_limit_bytes);
  workers_ = std::make_shared<ThreadPool>(threads > 0 ? threads : available_cores());
  pool_->limit = memory_limit_bytes;
}

Index Queue::available_bytes() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->free_bytes();
}

std::byte* Queue::allocate(Index bytes) {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "allocation of a negative size: ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  std::byte* const p = allocate_with_reserves([&] { return pool_->allocate(bytes); });
  if (poison) std::memset(p, 0xff, static_cast<std::size_t>(bytes));
  return p;
}

void Queue::release(std::byte* p) {
  if (!p) return;
  const std::lock_guard lock(pool_->mutex);
  const auto it = pool_->sizes.find(p);
  if (it != pool_->sizes.end()) {
    pool_->used -= it->second;
    pool_->sizes.erase(it);
  }
  std::free(p);
}

Queue Queue::when(const std::int32_t* condition) const {
  Queue q = *this;
  q.condition_ = condition;
  return q;
}

template <class T>
Limits Queue::limits(T) const {
  Limits l;
  l.max_panel_cols = 1 << 20;
  l.max_block_rows = 1 << 30;
  l.max_allocation_bytes = pool_->limit > 0 ? pool_->limit : std::numeric_limits<std::int64_t>::max();
  l.max_cholesky = 1024;
  return l;
}

template <class T>
void Queue::copy(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, T> c, Part part) {
  if (skip()) return;
  for_columns(a, *workers_, [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      const Index diagonal = std::min(j, a.rows);
      const Index below = std::min(j + 1, a.rows);
      switch (part) {
        case Part::all: std::copy(x, x + a.rows, y); break;
        case Part::upper_only: std::copy(x, x + below, y); break;
        case Part::upper:
          std::copy(x, x + below, y);
          std::fill(y + below, y + a.rows, T(0));
          break;
        case Part::unit_lower:
          std::fill(y, y + diagonal, T(0));
          if (j < a.rows) y[j] = T(1);
          std::copy(x + below, x + a.rows, y + below);
          break;
      }
    }
  });
}

template <class T>
void Queue::transpose(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, T> c) {
  if (skip()) return;
  constexpr Index tile = 32;
  const Index row_tiles = (a.rows + tile - 1) / tile;
  workers_->run(a.count * row_tiles, a.count * a.rows * a.cols, [&](Index k, int) {
    const T* x = a.data + k / row_tiles * a.stride;
    T* y = c.data + k / row_tiles * c.stride;
    const Index first = k % row_tiles * tile, last = std::min(a.rows, first + tile);
    for (Index j0 = 0; j0 < a.cols; j0 += tile)
      for (Index i = first; i < last; ++i)
        for (Index j = j0; j < std::min(a.cols, j0 + tile); ++j) y[j + i * c.ld] = x[i + j * a.ld];
  });
}

template <class T>
void Queue::copy_rows(DeviceMatrix<Cpu, T> a, const std::int64_t* sources, DeviceMatrix<Cpu, T> c,
                      const std::int64_t* targets, Index count) {
  if (skip()) return;
  a.rows = count;  // as much work as a copy of that many rows
  for_columns(a, *workers_, [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      for (Index i = 0; i < count; ++i) y[targets ? targets[i] : i] = x[sources ? sources[i] : i];
    }
  });
}

template <class T>
void Queue::fill(DeviceMatrix<Cpu, T> a, T off_diagonal, T diagonal) {
  if (skip()) return;
  for_columns(a, *workers_, [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      T* x = a.data + b * a.stride + j * a.ld;
      std::fill(x, x + a.rows, off_diagonal);
      if (j < a.rows) x[j] = diagonal;
    }
  });
}

template <class T>
void Queue::narrow(DeviceMatrix<Cpu, double> a, DeviceMatrix<Cpu, T> c, Part part) {
  if (skip()) return;
  for (Index b = 0; b < a.count; ++b) {
    for (Index j = 0; j < a.cols; ++j) {
      const double* x = a.data + b * a.stride + j * a.ld;
      T* y = c.data + b * c.stride + j * c.ld;
      for (Index i = 0; i < a.rows; ++i) {
        const bool take = part == Part::all || (part == Part::unit_lower ? i > j : i <= j);
        if (take) {
          y[i] = static_cast<T>(x[i]);
        } else if (part != Part::upper_only) {
          y[i] = T(part == Part::unit_lower && i == j ? 1 : 0);
        }
      }
    }
  }
}

template <class T>
void Queue::widen(DeviceMatrix<Cpu, T> a, DeviceMatrix<Cpu, double> c) {
  if (skip()) return;
  for_columns(a, *workers_, [&](Index b, Index first, Index last) {
    for (Index j = first; j < last; ++j) {
      const T* x = a.data + b * a.stride + j * a.ld;
      std::copy(x, x + a.rows, c.data + b * c.stride + j * c.ld);
    }
  });
}

template <class T>
void Queue::sum_squares(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu>) {
  if (skip()) return;
  *result = reduce(
      a, *workers_, [](double x) { return x * x; }, add);
}
template <class T>
void Queue::sum_abs(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu>) {
  if (skip()) return;
  *result = reduce(
      a, *workers_, [](double x) { return std::abs(x); }, add);
}
template <class T>
void Queue::max_abs(DeviceMatrix<Cpu, T> a, double* result, Scratch<Cpu>) {
  if (skip()) return;
  *result = reduce(
      a, *workers_, [](double x) { return std::abs(x); }, larger_or_nan);
}

template <class T>
void Queue::first_not_finite(DeviceMatrix<Cpu, T> a, std::int64_t* row_col, Scratch<Cpu>) {
  if (skip()) return;
  row_col[0] = row_col[1] = -1;
  for (Index j = 0; j < a.cols; ++j) {
    const T* x = a.data + j * a.ld;
    for (Index i = 0; i < a.rows; ++i) {
      if (std::isfinite(x[i])) continue;
      row_col[0] = i;
      row_col[1] = j;
      return;
    }
  }
}

std::vector<DeviceInfo> device_infos() {
  DeviceInfo d;
  d.backend = Backend::cpu;
  d.name = "CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      d.name = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  }
#if defined(__x86_64__)
  d.architecture = "x86_64";
#elif defined(__aarch64__)
  d.architecture = "aarch64";
#endif
  d.driver = openblas_get_config ? openblas_get_config() : "BLAS";
  if (const BlasCore core = blas_core(); !core.fitting.empty()) {
    d.driver += "; it runs kernels for " + core.used + " where this processor has " + core.fitting +
                ": set OPENBLAS_CORETYPE=" + core.fitting;
  }
  d.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  d.free_bytes = free_machine_bytes();
  d.compute_units = available_cores();
  return {d};
}

#define QRANE_INSTANTIATE(T)                                                                                           \
  template Limits Queue::limits(T) const;                                                                              \
  template void Queue::copy(DeviceMatrix<Cpu, T>, DeviceMatrix<Cpu, T>, Part);                                         \
  template void Queue::transpose(DeviceMatrix<Cpu, T>, DeviceMatrix<Cpu, T>);                                          \
  template void Queue::copy_rows(DeviceMatrix<Cpu, T>, const std::int64_t*, DeviceMatrix<Cpu, T>, const std::int64_t*, \
                                 Index);                                                                               \
  template void Queue::fill(DeviceMatrix<Cpu, T>, T, T);                                                               \
  template void Queue::narrow(DeviceMatrix<Cpu, double>, DeviceMatrix<Cpu, T>, Part);                                  \
  template void Queue::widen(DeviceMatrix<Cpu, T>, DeviceMatrix<Cpu, double>);                                         \
  template void Queue::sum_squares(DeviceMatrix<Cpu, T>, double*, Scratch<Cpu>);                                       \
  template void Queue::sum_abs(DeviceMatrix<Cpu, T>, double*, Scratch<Cpu>);                                           \
  template void Queue::max_abs(DeviceMatrix<Cpu, T>, double*, Scratch<Cpu>);                                           \
  template void Queue::first_not_finite(DeviceMatrix<Cpu, T>, std::int64_t*, Scratch<Cpu>);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

static_assert(Vocabulary<Queue, Cpu, float> && Vocabulary<Queue, Cpu, double>);

}  // namespace qrane::backend::cpu
