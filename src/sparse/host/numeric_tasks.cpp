// SPDX-License-Identifier: Apache-2.0
// Factors the tree with several threads: one scheduler of tasks for ranges, fronts and parts of large fronts.
//
// A range of whole subtrees is one task. A front above the ranges is one task or, if it is large, many
// (upper_front.hpp).
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/queue/blas.hpp"
#include "sparse/host/numeric.hpp"
#include "sparse/host/upper_front.hpp"

namespace qrane::sparse {

namespace {
constexpr int spins = 1000;
}  // namespace

template <class T>
class NumericTasks {
 public:
  explicit NumericTasks(Numeric<T>& numeric)
      : n_(numeric), s_(numeric.symbolic()), plan_(numeric.plan_), upper_(numeric.plan_.upper.size()) {}

  void run() {
    try {
      lend_stacks();
      start();
      const auto pool = n_.pools_.take(n_.threads_);
      threads_ = pool->threads();
      pool->run(n_.threads_, Index{1} << 40, [&](Index, int worker) { work(n_.workers_[worker]); });
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
    take_stacks_back();
    if (!error_) return;
    for (Upper& u : upper_) n_.region_.give_back(std::exchange(u.matrix.a, nullptr));
    ready_ = {};
    held_ = {};
    std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// Allocates a front. After the first run a thread waits until others free memory, and meanwhile takes tasks of
  /// fronts that are in memory. The region grows only when no other thread could free anything.
  T* take_front(Index count, NumericWorker<T>& worker) {
    if (!n_.ran_) return n_.region_.template take<T>(count, true);
    std::unique_lock lock(mutex_);
    for (;;) {
      if (T* const front = n_.region_.template take<T>(count, false)) return front;
      if (error_) throw Stopped{};
      if (!ready_.empty() && ready_.top().kind <= Kind::block) {
        take_task(lock, worker);
        announce();
      } else if (starved_ + 1 == busy_ && (ready_.empty() || busy_ == threads_)) {
        return n_.region_.template take<T>(count, true);
      } else {
        ++starved_;
        changed_.wait(lock);
        --starved_;
      }
    }
  }

  void give_back_front(T* front) noexcept {
    n_.region_.give_back(front);
    const std::lock_guard lock(mutex_);
    if (starved_ > 0) changed_.notify_all();
  }

 private:
  enum class Kind { panel, block, front, range };  // by priority

  struct Task {
    Kind kind;
    Index front;  // or range
    Index block = 0;
    std::size_t until = 0;                     // block: panels factored when it begins
    bool operator<(const Task& other) const {  // the queue's top is the greatest
      return std::tuple(kind, front, block) > std::tuple(other.kind, other.front, other.block);
    }
  };

  struct Stopped {};  // another thread has failed
  using Upper = UpperFront<T>;

  /// Stacks are taken first, while the region is empty, so that they have the same addresses in every run.
  void lend_stacks() {
    const Index elements = plan_.stack_elements;
    for (NumericWorker<T>& worker : n_.workers_)
      worker.cb_stack.lend(elements > 0 ? n_.region_.template take<T>(elements, true) : nullptr, elements);
  }
  void take_stacks_back() noexcept {
    for (NumericWorker<T>& worker : n_.workers_) {
      n_.region_.give_back(worker.cb_stack.data());
      worker.cb_stack.lend(nullptr, 0);
    }
  }

  void start() {
    ranges_left_ = plan_.ranges.size();
    ended_.assign(plan_.ranges.size() + upper_.size(), 0);
    all_ended_ = 0;
    for (std::size_t u = 0; u < upper_.size(); ++u) {
      const Index f = plan_.upper[u];
      upper_[u].waiting = s_.fronts[f].child_count;
      upper_[u].row = 0;
      upper_[u].factored = 0;
      upper_[u].panel_busy = false;
      if (upper_[u].waiting == 0) offer({Kind::front, f});
    }
    for (std::size_t r = 0; r < plan_.ranges.size(); ++r) offer({Kind::range, static_cast<Index>(r)});
    left_ = static_cast<Index>(plan_.ranges.size() + upper_.size());
    busy_ = starved_ = sleeping_ = 0;
  }

  /// Task number of a range or an upper front.
  Index order_of(Kind kind, Index front) const {
    return kind == Kind::range ? plan_.order_of_range[front] : plan_.order_of_upper[plan_.upper_of[front]];
  }

  /// Queues a range or front whose children are done, or holds it until look-ahead allows it.
  void offer(const Task& task) {
    const Index order = order_of(task.kind, task.front);
    if (plan_.after[order] <= all_ended_)
      ready_.push(task);
    else
      held_.emplace(order, task);
  }

  void task_ended(Kind kind, Index front) {
    --left_;
    ended_[order_of(kind, front)] = 1;
    while (all_ended_ < std::ssize(ended_) && ended_[all_ended_]) ++all_ended_;
    for (auto held = held_.begin(); held != held_.end() && plan_.after[held->first] <= all_ended_;) {
      ready_.push(held->second);
      held = held_.erase(held);
    }
  }

  void work(NumericWorker<T>& worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!something_to_do()) wait(lock);
      if (left_ == 0 || error_) return;
      ++busy_;
      take_task(lock, worker);
      --busy_;
      announce();
    }
  }

  /// Wakes threads for the queued tasks, except one that this thread takes itself.
  void announce() {
    if (left_ == 0 || error_ || starved_ > 0) {
      events_.fetch_add(1);
      changed_.notify_all();
    } else if (ready_.size() > 1) {
      events_.fetch_add(1);
      for (std::size_t k = 1; k < ready_.size() && k <= sleeping_; ++k) changed_.notify_one();
    }
  }

  /// Runs the most urgent task with the lock released.
  void take_task(std::unique_lock<std::mutex>& lock, NumericWorker<T>& worker) {
    Task task = ready_.top();
    ready_.pop();
    if (task.kind == Kind::block) task.until = upper(task.front).factored;
    lock.unlock();
    std::exception_ptr failure;
    try {
      execute(task, worker);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    try {  // queuing may allocate
      if (!failure) completed(task);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && !error_) error_ = failure;
  }

  bool something_to_do() const { return !ready_.empty() || left_ == 0 || error_; }

  /// Waits for a task: spins for some microseconds, then sleeps.
  void wait(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t seen = events_.load();
    lock.unlock();
    for (int i = 0; i < spins && events_.load(std::memory_order_relaxed) == seen; ++i) backend::cpu::relax();
    lock.lock();
    ++sleeping_;
    changed_.wait(lock, [&] { return something_to_do(); });
    --sleeping_;
  }

  Upper& upper(Index f) { return upper_[plan_.upper_of[f]]; }

  void execute(const Task& task, NumericWorker<T>& worker) {
    switch (task.kind) {
      case Kind::range: {
        const NumericPlan::Range& range = plan_.ranges[task.front];
        Index cols = 0;
        for (Index f = range.first; f <= range.last; ++f) cols = std::max(cols, s_.fronts[f].cols);
        borrow(worker.result, cols);
        n_.factor_range(range.first, range.last, worker);
        give_back(worker.result);
        return;
      }
      case Kind::front: return begin(task.front, worker);
      case Kind::panel: return next_panel(task.front, worker);
      case Kind::block:
        upper(task.front).update_block(task.block, task.until, worker.scratch);
        return n_.progress_->add(0);  // the thread of the callback may get no other tasks for long
    }
  }

  /// Assembles a front; a small one is factored and stored at once.
  void begin(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    u.layout = n_.lay_out(f, worker);
    // the layout's vectors must outlive the worker's next task
    if (u.layout.stair == worker.stair.data()) {
      u.stair.swap(worker.stair);
      u.own_slot.swap(worker.own_slot);
      u.child_slot.swap(worker.child_slot);
    }
    u.matrix = n_.matrix_of(f, u.layout);
    u.rule = n_.drop_rule(f, worker);
    u.exponents.swap(worker.exponents);
    borrow(u.result, u.matrix.cols);
    u.result.plan(u.matrix, n_.options_.keep_q || n_.rhs_);
    u.matrix.begin = u.result.begin.data();
    u.matrix.a = take_front(u.matrix.elements(), worker);
    n_.assemble(f, u.layout, u.matrix, u.result, worker);
    const Front& shape = s_.fronts[f];
    if (u.result.direct || shape.flops < large_front || u.result.panels.size() < 3) {
      factor_front(u.matrix, u.result, u.rule, worker.scratch, *n_.progress_, shape.flops);
      u.factored = u.result.panels.size();
      finish(f, worker);
      return;
    }
    u.share();
  }

  void finish(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    n_.store(f, u.matrix, u.result, worker);
    n_.leave_front(f, std::exchange(u.matrix.a, nullptr));
    give_back(u.result);
  }

  /// A spare result for a front of so many columns: the smallest that is large enough, else the largest.
  void borrow(FrontResult<T>& result, Index cols) {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return;
    const Index needed = FrontResult<T>::triangle_elements(cols);
    std::size_t best = 0;
    for (std::size_t k = 1; k < spare_.size(); ++k) {
      const Index most = spare_[best].most_elements(), other = spare_[k].most_elements();
      if (most < needed ? other > most : other >= needed && other < most) best = k;
    }
    result = std::move(spare_[best]);
    spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(best));
  }
  void give_back(FrontResult<T>& result) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::exchange(result, {}));
  }

  /// The next panel; after the last one, the front's end.
  void next_panel(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    if (u.all_factored())
      finish(f, worker);
    else
      n_.progress_->add(s_.fronts[f].flops * u.factor_next_panel(worker.scratch));
  }

  void completed(const Task& task) {
    if (task.kind == Kind::range) {
      for (const Index root : plan_.ranges[task.front].roots) child_done(root);
      if (--ranges_left_ == 0) take_stacks_back();
      task_ended(Kind::range, task.front);
      return;
    }
    Upper& u = upper(task.front);
    if (task.kind == Kind::block) {
      u.updated[task.block] = task.until;
      u.busy[task.block] = 0;
    }
    if (task.kind == Kind::panel) {
      u.panel_busy = false;
      ++u.factored;
    }
    if (!u.matrix.a) {
      child_done(task.front);
      task_ended(Kind::front, task.front);
    } else {
      queue(task.front, u);
    }
  }

  void child_done(Index f) {
    const Index parent = s_.fronts[f].parent;
    if (parent >= 0 && --upper(parent).waiting == 0) offer({Kind::front, parent});
  }

  /// The tasks that a front's state allows next.
  void queue(Index f, Upper& u) {
    if (!u.panel_busy && u.panel_may_begin()) {
      u.panel_busy = true;
      ready_.push({Kind::panel, f});
    }
    for (std::size_t b = 0; b < u.updated.size(); ++b)
      if (u.begin_block(b)) ready_.push({Kind::block, f, static_cast<Index>(b)});
  }

  Numeric<T>& n_;
  const Symbolic& s_;
  const NumericPlan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Task> ready_;
  std::map<Index, Task> held_;  // by task number: held back by NumericPlan::after
  std::vector<char> ended_;     // by task number
  Index all_ended_ = 0;         // tasks 0 .. all_ended_ - 1 have ended
  std::vector<Upper> upper_;
  std::vector<FrontResult<T>> spare_;
  std::size_t threads_ = 0;                            // of the pool
  std::size_t busy_ = 0, starved_ = 0, sleeping_ = 0;  // threads with a task; of these, waiting for memory; asleep
  std::atomic<std::uint64_t> events_{0};               // changes when spinning threads should look again
  Index left_ = 0;                                     // tasks
  std::size_t ranges_left_ = 0;                        // of them
  std::exception_ptr error_;
};

template <class T>
T* Numeric<T>::take_front(Index count, Worker& worker) {
  return tasks_ ? tasks_->take_front(count, worker) : region_.template take<T>(count, true);
}

template <class T>
void Numeric<T>::give_back_front(T* front) noexcept {
  if (tasks_)
    tasks_->give_back_front(front);
  else
    region_.give_back(front);
}

template <class T>
void Numeric<T>::factor_all() {
  const backend::cpu::blas::SingleThread single;
  const Index count = symbolic_->front_count();
  if (threads_ > 1) {
    if (!tasks_) tasks_ = std::make_shared<NumericTasks<T>>(*this);
    tasks_->run();
    return;
  }
  factor_range(0, count - 1, workers_[0]);
}

#define QRANE_INSTANTIATE(T)                                    \
  template void Numeric<T>::factor_all();                       \
  template T* Numeric<T>::take_front(Index, NumericWorker<T>&); \
  template void Numeric<T>::give_back_front(T*) noexcept;
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::sparse
