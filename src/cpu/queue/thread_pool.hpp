// SPDX-License-Identifier: Apache-2.0
// Threads of the CPU backend. Waiting threads sleep after some microseconds: on a machine that others use too, a
// barrier that spins waits for threads that are not running, and small problems become many times slower.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <qrane/matrix.hpp>

namespace qrane::backend::cpu {

/// Lets a core's other thread run while this one polls.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Cores that this process may run on: of a machine shared by affinity, the share.
int available_cores();

class ThreadPool {
 public:
  /// `threads` in all, the calling one among them; fewer where the system gives no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// body(i, worker) for all 0 <= i < count, 0 <= worker < threads(); returns when all are done. `operations` in all,
  /// about: a small problem is done before a second thread has woken up, and stays with the calling one. An exception
  /// of a body is thrown here once the others have ended, one of PollScope::poll() before any begins. Which worker
  /// takes which i is not fixed: bodies write to places that depend on i alone, so that results repeat.
  void run(Index count, Index operations, const std::function<void(Index, int)>& body);

 private:
  struct State;
  class Use;
  std::unique_ptr<State> state_;
};

/// Pools that wait for whoever needs threads for a while: starting threads takes longer than a small problem. Safe to
/// use from several threads; must live longer than its leases.
class ThreadPools {
 public:
  class Lease {
   public:
    Lease(ThreadPools& pools, std::unique_ptr<ThreadPool> pool) : pools_(pools), pool_(std::move(pool)) {}
    ~Lease() { pools_.give_back(std::move(pool_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ThreadPool* operator->() const { return pool_.get(); }

   private:
    ThreadPools& pools_;
    std::unique_ptr<ThreadPool> pool_;
  };

  /// An idle pool of so many threads, or a new one.
  Lease take(int threads);

 private:
  void give_back(std::unique_ptr<ThreadPool> pool) noexcept;

  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadPool>> idle_;
};

}  // namespace qrane::backend::cpu
