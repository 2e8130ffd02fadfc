// SPDX-License-Identifier: Apache-2.0
#include "cpu/queue/thread_pool.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <qrane/error.hpp>
#include <qrane/interrupt.hpp>

namespace qrane::backend::cpu {

namespace {
constexpr int spins = 4000;  // a few microseconds to tens of them
}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work, done;
  std::atomic<std::uint64_t> generation{0};  // counts jobs; changed under the mutex
  bool stop = false;

  // the present job
  const std::function<void(Index, int)>* body = nullptr;
  Index count = 0;
  std::atomic<Index> next{0};
  std::atomic<int> busy{0};  // workers that have not finished the present job
  std::exception_ptr error;

  std::vector<std::thread> workers;

#ifndef NDEBUG
  std::atomic<bool> in_use{false};
#endif

  /// Takes items until none is left.
  void take(int worker) {
    for (Index i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        (*body)(i, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(count);
      }
    }
  }

  void serve(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
      for (int i = 0; i < spins && generation.load() == seen; ++i) relax();
      {
        std::unique_lock lock(mutex);
        work.wait(lock, [&] { return stop || generation.load() != seen; });
        if (stop) return;
        seen = generation.load();
      }
      take(worker);
      if (busy.fetch_sub(1) == 1) {
        const std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }
};

int available_cores() {
#if defined(__linux__)
  // std::thread counts all that are online
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  state_->workers.reserve(static_cast<std::size_t>(threads > 1 ? threads - 1 : 0));
  try {
    for (int worker = 1; worker < threads; ++worker)
      state_->workers.emplace_back([s = state_.get(), worker] { s->serve(worker); });
  } catch (const std::system_error&) {  // the system gives no more threads: those that there are do the work
  } catch (const std::bad_alloc&) {
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

#ifndef NDEBUG
/// One run at a time: a pool belongs to one context, and a context to one thread at a time.
class ThreadPool::Use {
 public:
  explicit Use(std::atomic<bool>& in_use) : in_use_(in_use) {
    detail::check(!in_use_.exchange(true), ErrorCode::invalid_argument,
                  "one context is used by two threads at once; give each thread a context of its own");
  }
  ~Use() { in_use_.store(false); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<bool>& in_use_;
};
#endif

void ThreadPool::run(Index count, Index operations, const std::function<void(Index, int)>& body) {
#ifndef NDEBUG
  const Use use(state_->in_use);
#endif
  PollScope::poll();
  constexpr Index worth_a_thread = Index{1} << 15;
  if (count <= 1 || operations < 2 * worth_a_thread || state_->workers.empty()) {
    for (Index i = 0; i < count; ++i) body(i, 0);
    return;
  }
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.next.store(0);
    s.busy.store(static_cast<int>(s.workers.size()));
    s.error = nullptr;
    s.generation.fetch_add(1);
  }
  s.work.notify_all();
  s.take(0);
  for (int i = 0; i < spins && s.busy.load() > 0; ++i) relax();
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.busy.load() == 0; });
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

ThreadPools::Lease ThreadPools::take(int threads) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& p) { return p->threads() == threads; });
    if (found != idle_.end()) {
      std::unique_ptr<ThreadPool> pool = std::move(*found);
      idle_.erase(found);
      return {*this, std::move(pool)};
    }
  }
  return {*this, std::make_unique<ThreadPool>(threads)};
}

void ThreadPools::give_back(std::unique_ptr<ThreadPool> pool) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(pool));
  } catch (const std::bad_alloc&) {  // its threads end
  }
}

}  // namespace qrane::backend::cpu
