// SPDX-License-Identifier: Apache-2.0
// The CPU queue: memory, limits, and what device it is.
#include "cpu/queue/queue.hpp"

#include <unistd.h>

#include <algorithm>
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
    try {
      sizes[p] = bytes;
    } catch (...) {
      std::free(p);
      throw;
    }
    used += bytes;
    return p;
  }
};

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

std::byte* Queue::allocate(Index bytes) const {
  detail::check(bytes >= 0, ErrorCode::invalid_argument, "allocation of a negative size: ", bytes, " bytes");
  if (bytes == 0) return nullptr;
  std::byte* const p = allocate_with_reserves([&] { return pool_->allocate(bytes); });
  if (poison) std::memset(p, 0xff, static_cast<std::size_t>(bytes));
  return p;
}

void Queue::release(std::byte* p) const {
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
  constexpr std::int32_t any_columns = 1 << 15;
  l.host_pivot_cols = 512;
  l.max_multiply_full = any_columns;
  l.max_small_svd = any_columns;
  l.max_sweep_carry = 256;
  l.max_sweep_block = 256;
  l.max_update_cols = 512;  // beyond, blocks by BLAS are faster
  l.max_update_rows = 64;
  l.front_update_cols = 256;                                // what stays in the cache between an update's products
  l.front_whole_elements = 32768 / static_cast<Index>(sizeof(T));  // what one core's nearest cache holds
  return l;
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

template Limits Queue::limits(float) const;
template Limits Queue::limits(double) const;

}  // namespace qrane::backend::cpu
