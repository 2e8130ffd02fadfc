// SPDX-License-Identifier: Apache-2.0
// Factoring the tree with several threads.
//
// Fronts whose subtree is a small part of all work are factored in ranges of whole subtrees, one thread each. A front
// above them is one task, or, if it is large, many:
//
//     panel 0 | panel 1 | panel 2 | panel 3 | ...      the chain: update panel k by panel k - 1, factor it
//             |         | block 0      | block 1 ...   beside it: blocks of columns beyond panel k, updated by panels
//                                                      0 .. k - 1 in order, up to where the chain is
//
// A column meets the panels in order whoever does it, and the widths of products do not depend on who is free.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cpu/blas.hpp"
#include "sparse/numeric.hpp"

namespace qrane::sparse {

namespace {
std::size_t at(Index i) { return static_cast<std::size_t>(i); }
constexpr Index block_columns = 256;
constexpr double large_front = 2e7;  // flops from which a front is cut up
}  // namespace

template <class T>
class NumericTasks {
 public:
  explicit NumericTasks(Numeric<T>& numeric) : n_(numeric), s_(numeric.symbolic()) { divide(); }

  ~NumericTasks() {
    for (Upper& u : upper_) n_.region_.give_back(u.matrix.a);  // of fronts that an exception left behind
  }

  void run() {
    n_.thread_pool_->run(n_.threads_, Index{1} << 40, [&](Index, int worker) { work(n_.workers_[at(worker)]); });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  enum class Kind { chain, block, front, range };  // in the order of urgency

  struct Task {
    Kind kind;
    Index front;  // or range
    Index block = 0;
    std::size_t until = 0;                     // block: panels that are factored when it begins
    bool operator<(const Task& other) const {  // the queue's top is the greatest
      return std::tuple(kind, front, block) > std::tuple(other.kind, other.front, other.block);
    }
  };

  struct Range {
    Index first, last;
    std::vector<Index> roots;  // of subtrees
  };

  /// A front above the ranges.
  struct Upper {
    FrontLayout layout;
    FrontMatrix<T> matrix;
    FrontResult<T> result;
    DropRule rule;
    std::vector<Index> stair;
    std::vector<Local> own_slot, child_slot;
    std::vector<int> exponents;
    Index waiting = 0;         // children
    Index row = 0;             // first of the next panel
    std::size_t factored = 0;  // panels
    bool chain_busy = false;
    std::vector<std::size_t> updated;  // per block of columns: panels
    std::vector<char> busy;
  };

  void divide() {
    const Index count = s_.front_count();
    std::vector<double> subtree(at(count));
    double total = 0;
    for (Index f = 0; f < count; ++f) {
      const double own = front_work(s_.fronts[at(f)]);
      total += own;
      subtree[at(f)] += own;
      if (const Index parent = s_.fronts[at(f)].parent; parent >= 0) subtree[at(parent)] += subtree[at(f)];
    }
    const double most = total / (8.0 * n_.threads_), enough = most / 4;
    upper_of_.assign(at(count), -1);
    to_region_.assign(at(count), 0);
    double gathered = 0;
    const auto close = [&](Index last) {
      if (open_ < 0) return;
      ranges_.push_back({open_, last, {}});
      open_ = -1;
      gathered = 0;
    };
    for (Index f = 0; f < count; ++f) {
      const bool above = subtree[at(f)] > most;
      if (above) {
        close(f - 1);
        upper_of_[at(f)] = static_cast<Index>(upper_.size());
        upper_.emplace_back();
        to_region_[at(f)] = 1;
        continue;
      }
      if (open_ < 0) open_ = f;
      const Index parent = s_.fronts[at(f)].parent;
      if (parent >= 0 && subtree[at(parent)] <= most) continue;
      to_region_[at(f)] = 1;
      gathered += subtree[at(f)];
      if (gathered >= enough) close(f);
    }
    close(count - 1);
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      for (Index f = ranges_[r].first; f <= ranges_[r].last; ++f)
        if (to_region_[at(f)]) ranges_[r].roots.push_back(f);
      ready_.push({Kind::range, static_cast<Index>(r)});
    }
    left_ = static_cast<Index>(ranges_.size() + upper_.size());
    for (Index f = 0; f < count; ++f) {
      if (upper_of_[at(f)] < 0) continue;
      Upper& upper = upper_[at(upper_of_[at(f)])];
      upper.waiting = s_.fronts[at(f)].child_count;
      if (upper.waiting == 0) ready_.push({Kind::front, f});
    }
  }

  void work(NumericWorker<T>& worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !ready_.empty() || left_ == 0 || error_; });
      if (left_ == 0 || error_) return;
      Task task = ready_.top();
      ready_.pop();
      if (task.kind == Kind::range) ++ranges_begun_;
      const bool ranges_over = ranges_begun_ == ranges_.size() && task.kind != Kind::range;
      if (task.kind == Kind::block) task.until = upper(task.front).factored;
      lock.unlock();
      std::exception_ptr failure;
      try {
        if (ranges_over) n_.release_small(worker);
        execute(task, worker);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) {
        if (!error_) error_ = failure;
      } else {
        completed(task);
      }
      changed_.notify_all();
    }
  }

  Upper& upper(Index f) { return upper_[at(upper_of_[at(f)])]; }

  void execute(const Task& task, NumericWorker<T>& worker) {
    switch (task.kind) {
      case Kind::range: {
        const Range& range = ranges_[at(task.front)];
        n_.factor_range(range.first, range.last, to_region_, worker);
        return;
      }
      case Kind::front: return begin(task.front, worker);
      case Kind::chain: return chain(task.front, worker);
      case Kind::block: return block(task, worker);
    }
  }

  /// Assembles a front; a small one is factored and stored at once.
  void begin(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    u.layout = n_.lay_out(f, worker);
    // what lay_out left in the worker must outlive the worker's next task
    if (u.layout.stair == worker.stair.data()) {
      u.stair.swap(worker.stair);
      u.own_slot.swap(worker.own_slot);
      u.child_slot.swap(worker.child_slot);
    }
    u.matrix = n_.matrix_of(f, u.layout);
    u.rule = n_.drop_rule(f, worker);
    u.exponents.swap(worker.exponents);
    u.result.plan(u.matrix, n_.options_.keep_q || n_.rhs_);
    u.matrix.a = n_.region_.template take<T>(u.matrix.ld * u.matrix.cols);
    n_.assemble(f, u.layout, u.matrix, u.result, worker);
    const Front& shape = s_.fronts[at(f)];
    for (Index c = 0; c < shape.child_count; ++c) n_.release_cb(n_.stored_[at(s_.children[at(shape.child_begin + c)])]);
    if (u.result.direct || shape.flops < large_front || u.result.panels.size() < 3) {
      factor_front(u.matrix, u.result, u.rule, worker.scratch);
      u.factored = u.result.panels.size();
      finish(f, worker);
      n_.progress_->add(shape.flops);
      return;
    }
    u.updated.assign(at((u.matrix.cols + block_columns - 1) / block_columns), 0);
    u.busy.assign(u.updated.size(), 0);
  }

  void finish(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    n_.store(f, u.matrix, u.result, CbPlace::region, worker);
    n_.region_.give_back(std::exchange(u.matrix.a, nullptr));
    u.result = FrontResult<T>{};
  }

  Index end_of(const Upper& u, std::size_t panel) const {
    return u.result.panels[panel].col + u.result.panels[panel].cols;
  }

  /// The next panel; after the last one, the front's end.
  void chain(Index f, NumericWorker<T>& worker) {
    Upper& u = upper(f);
    const std::size_t k = u.factored;
    if (k == u.result.panels.size()) {
      finish(f, worker);
      return;
    }
    if (k > 0) update_columns(u.matrix, u.result, k - 1, u.result.panels[k].col, end_of(u, k), worker.scratch);
    u.row = factor_panel(u.matrix, u.result, k, u.row, u.rule, worker.scratch);
    n_.progress_->add(s_.fronts[at(f)].flops *
                      (share_left(u, k) - (k + 1 < u.result.panels.size() ? share_left(u, k + 1) : 0)));
  }

  /// Of a front's flops, about: from panel k on.
  static double share_left(const Upper& u, std::size_t k) {
    const double all = static_cast<double>(u.matrix.cols), left = all - static_cast<double>(u.result.panels[k].col);
    return left * left / (all * all);
  }

  /// A block's updates by all panels that are factored; the chain does each panel's first columns.
  void block(const Task& task, NumericWorker<T>& worker) {
    const Upper& u = upper(task.front);
    const Index first = task.block * block_columns, last = std::min(first + block_columns, u.matrix.cols);
    for (std::size_t k = u.updated[at(task.block)]; k < task.until; ++k)
      update_columns(u.matrix, u.result, k, std::max(first, columns_begin(u, k)), last, worker.scratch);
  }

  /// Where the blocks' share of panel k's update begins: behind panel k + 1.
  Index columns_begin(const Upper& u, std::size_t k) const {
    return k + 1 < u.result.panels.size() ? end_of(u, k + 1) : u.matrix.cols;
  }

  void completed(const Task& task) {
    if (task.kind == Kind::range) {
      for (const Index root : ranges_[at(task.front)].roots) child_done(root);
      --left_;
      return;
    }
    Upper& u = upper(task.front);
    if (task.kind == Kind::block) {
      u.updated[at(task.block)] = task.until;
      u.busy[at(task.block)] = 0;
    }
    if (task.kind == Kind::chain) {
      u.chain_busy = false;
      ++u.factored;
    }
    if (!u.matrix.a) {
      child_done(task.front);
      --left_;
    } else {
      queue(task.front, u);
    }
  }

  void child_done(Index f) {
    const Index parent = s_.fronts[at(f)].parent;
    if (parent >= 0 && --upper(parent).waiting == 0) ready_.push({Kind::front, parent});
  }

  /// What a front's state allows next.
  void queue(Index f, Upper& u) {
    const std::size_t next = u.factored, all = u.result.panels.size();
    if (!u.chain_busy) {
      bool free = true;
      if (next >= 2 && next < all) {
        const Index first = u.result.panels[next].col / block_columns, last = (end_of(u, next) - 1) / block_columns;
        for (Index b = first; b <= last; ++b) free = free && u.updated[at(b)] >= next - 1;
      }
      if (free) {
        u.chain_busy = true;
        ready_.push({Kind::chain, f});
      }
    }
    for (std::size_t b = 0; b < u.updated.size(); ++b) {
      if (u.busy[b] || u.updated[b] >= next) continue;
      const Index end = std::min(static_cast<Index>(b + 1) * block_columns, u.matrix.cols);
      if (end <= columns_begin(u, u.updated[b])) {
        u.updated[b] = next;  // the chain has passed it
        continue;
      }
      u.busy[b] = 1;
      ready_.push({Kind::block, f, static_cast<Index>(b)});
    }
  }

  Numeric<T>& n_;
  const Symbolic& s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Task> ready_;
  std::vector<Range> ranges_;
  std::vector<Upper> upper_;
  std::vector<Index> upper_of_;
  std::vector<char> to_region_;
  std::size_t ranges_begun_ = 0;
  Index open_ = -1, left_ = 0;
  std::exception_ptr error_;
};

template <class T>
void Numeric<T>::factor_all() {
  const backend::cpu::blas::SingleThread single;
  const Index count = symbolic_->front_count();
  if (thread_pool_ && count > 0) {
    NumericTasks<T>(*this).run();
    return;
  }
  factor_range(0, count - 1, std::vector<char>(at(count), 0), workers_[0]);
}

template void Numeric<float>::factor_all();
template void Numeric<double>::factor_all();

}  // namespace qrane::sparse
