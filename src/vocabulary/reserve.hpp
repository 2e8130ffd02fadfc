// SPDX-License-Identifier: Apache-2.0
// Device memory that is kept though nobody uses it now, since a call like the last may come: it goes as soon as an
// allocation would fail without.
#pragma once

#include <mutex>
#include <vector>

#include <qrane/error.hpp>

namespace qrane::backend {

/// Somebody who keeps such memory. All of the process are known to each other's allocations, since their contexts may
/// be on one device.
class Reserve {
 public:
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  /// Whether any of them had something to give back. From any thread that holds no lock which releasing memory takes.
  static bool give_back_all() noexcept {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    bool any = false;
    for (Reserve* const reserve : known.all) any = reserve->give_back() || any;
    return any;
  }

 protected:
  Reserve() = default;
  ~Reserve() = default;
  /// Derived classes join when they are complete, and leave before they end.
  void join() {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    known.all.push_back(this);
  }
  void leave() noexcept {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    std::erase(known.all, this);
  }
  /// Releases what is kept and not in use, from any thread; false when there was nothing.
  virtual bool give_back() noexcept = 0;

 private:
  struct Registry {
    std::mutex mutex;
    std::vector<Reserve*> all;
  };
  static Registry& registry() {
    static Registry& known = *new Registry;  // outlives contexts that are themselves static
    return known;
  }
};

/// allocate(), and once more after all reserves gave back what they had, where it throws out_of_memory.
template <class Allocate>
auto allocate_with_reserves(Allocate allocate) {
  try {
    return allocate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  (void)Reserve::give_back_all();  // another thread may have been first
  return allocate();
}

}  // namespace qrane::backend
