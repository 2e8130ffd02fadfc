// SPDX-License-Identifier: Apache-2.0
// Threads of the CPU backend. Waiting threads sleep after some microseconds: on a machine that others use too, a
// barrier that spins waits for threads that are not running, and small problems become many times slower.
#pragma once

#include <functional>
#include <memory>

#include <qrane/matrix.hpp>

namespace qrane::backend::cpu {

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
  /// of a body is thrown here once the others have ended. Which worker takes which i is not fixed: bodies write to
  /// places that depend on i alone, so that results repeat.
  void run(Index count, Index operations, const std::function<void(Index, int)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrane::backend::cpu
