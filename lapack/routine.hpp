// SPDX-License-Identifier: Apache-2.0
// One exported symbol: the function of that name underneath, and what has been counted of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace qrane::lapack {

/// Constant-initialized, so that a call before this library's constructors have run finds it whole.
class Routine {
 public:
  /// `symbol` is what is exported and looked up, `label` the name that reports use.
  constexpr Routine(const char* symbol, const char* label) : symbol_(symbol), label_(label) {}

  /// The function underneath. Ends the program, as the loader does, where no loaded object has one.
  void* next() {
    void* const known = next_.load(std::memory_order_acquire);
    return known ? known : look_up();
  }

  /// Adds one call to the report that QRANE_LAPACK_REPORT asks for.
  void count(bool taken, std::chrono::nanoseconds time);

 private:
  friend class Report;
  struct Count {
    std::atomic<std::int64_t> calls{0}, nanoseconds{0};
  };

  void* look_up();

  const char* symbol_;
  const char* label_;
  std::atomic<void*> next_{nullptr};
  Count taken_, forwarded_;
  std::atomic<bool> listed_{false};
  Routine* other_ = nullptr;  ///< the list of those that were counted
};

/// Whether calls are counted.
bool reporting();

}  // namespace qrane::lapack
