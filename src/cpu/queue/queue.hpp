// SPDX-License-Identifier: Apache-2.0
// The queue of the CPU backend, the reference that tests trust and a product of its own: memory and threads. Every
// operation given to it is finished when it returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <qrane/context.hpp>

#include "cpu/cpu.hpp"
#include "cpu/queue/thread_pool.hpp"
#include "vocabulary/queue.hpp"

namespace qrane::backend::cpu {

class Queue : public InOrder<Queue> {
 public:
  /// threads = 0: all cores. memory_limit_bytes = 0: no limit but the machine's.
  explicit Queue(int threads = 0, std::int64_t memory_limit_bytes = 0);

  /// Tests set this: memory is then handed out full of bytes that make NaN in both precisions and set every flag, so
  /// that a result that depends on unset memory shows.
  static inline std::atomic<bool> poison = false;

  std::byte* allocate(Index bytes) const;
  void release(std::byte* p) const;
  /// Bytes of the machine, or of the limit, that allocations may still take.
  Index available_bytes() const;
  template <class T>
  void upload(const T* source, T* target, Index count) const {
    std::copy_n(source, count, target);
  }
  template <class T>
  void download(const T* source, T* target, Index count) const {
    std::copy_n(source, count, target);
  }
  void synchronize() const {}
  Queue when(const std::int32_t* condition) const;
  template <class T>
  Limits limits(T) const;

  /// Whether the condition says no.
  bool skip() const { return condition_ && *condition_ == 0; }
  ThreadPool& workers() const { return *workers_; }
  int threads() const { return workers_->threads(); }
  /// Time marks for benchmarks.
  std::chrono::steady_clock::time_point record() const { return std::chrono::steady_clock::now(); }
  double elapsed_ms(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) const {
    return std::chrono::duration<double, std::milli>(b - a).count();
  }

 private:
  struct Pool;  // what has been handed out, against the limit

  std::shared_ptr<ThreadPool> workers_;
  std::shared_ptr<Pool> pool_;
  const std::int32_t* condition_ = nullptr;
};

/// The one CPU "device".
std::vector<DeviceInfo> device_infos();

}  // namespace qrane::backend::cpu
