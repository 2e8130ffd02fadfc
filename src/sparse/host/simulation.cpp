// SPDX-License-Identifier: Apache-2.0
#include "sparse/host/simulation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace qrane::sparse {

namespace {

/// Elements of a front's matrix, estimated.
Index stored_elements(const Symbolic& s, const Front& front) {
  constexpr Index alike = 64;  // columns
  Index sum = 0;
  for (Index j = 0; j < front.cols; j += alike) {
    const Index end = std::min(j + alike, front.cols);
    sum += (end - j) * std::min(front.rows, std::max(end, s.stair[front.cols_begin + end - 1]));
  }
  return sum;
}

}  // namespace

Simulation::Simulation(const Symbolic& s, const NumericPlan& plan, const std::vector<double>& work, int threads)
    : threads_(threads), tasks_(work.size()) {
  for (std::size_t k = 0; k < work.size(); ++k) tasks_[k].work = work[k];
  const auto join = [&](Index task, Index parent) {
    if (parent < 0) return;
    const Index to = plan.order_of_upper[plan.upper_of[parent]];
    tasks_[task].parents.push_back(to);
    ++tasks_[to].children;
  };
  for (std::size_t r = 0; r < plan.ranges.size(); ++r) {
    Index& elements = tasks_[plan.order_of_range[r]].elements;
    for (Index f = plan.ranges[r].first; f <= plan.ranges[r].last; ++f)
      elements = std::max(elements, stored_elements(s, s.fronts[f]));
    for (const Index f : plan.ranges[r].roots) join(plan.order_of_range[r], s.fronts[f].parent);
  }
  for (std::size_t u = 0; u < plan.upper.size(); ++u) {
    const Front& front = s.fronts[plan.upper[u]];
    Task& task = tasks_[plan.order_of_upper[u]];
    task.upper = true;
    task.elements = stored_elements(s, front);
    if (front.flops >= large_front) task.most_threads = 1 + static_cast<double>(front.cols / large_front_block);
    join(plan.order_of_upper[u], front.parent);
  }
}

bool Simulation::shared_by_all(Index task) const { return tasks_[task].most_threads >= threads_; }

Simulation::Outcome Simulation::run(const std::vector<Index>& after) const {
  std::vector<Index> waiting, held, ready;  // heaps: held by `after`, ready by urgency
  std::vector<char> ended(tasks_.size(), 0);
  std::vector<std::pair<Index, double>> running;  // remaining work of tasks
  Index all_ended = 0;
  const auto later = [&](Index a, Index b) {
    const Task &x = tasks_[a], &y = tasks_[b];
    return x.upper != y.upper ? y.upper : a > b;
  };
  const auto waits_longer = [&](Index a, Index b) { return after[a] > after[b]; };
  const auto offer = [&](Index k) {
    if (after[k] > all_ended) {
      held.push_back(k);
      std::push_heap(held.begin(), held.end(), waits_longer);
      return;
    }
    ready.push_back(k);
    std::push_heap(ready.begin(), ready.end(), later);
  };
  for (std::size_t k = 0; k < tasks_.size(); ++k) {
    waiting.push_back(tasks_[k].children);
    if (waiting[k] == 0) offer(static_cast<Index>(k));
  }
  Outcome outcome;
  for (;;) {
    double free = threads_, shared = 0;  // idle threads; threads that large fronts could use
    for (const auto& [k, left] : running) {
      const double most = tasks_[k].most_threads;
      (most > 0 ? shared : free) += most > 0 ? most : -1;
    }
    while (free > shared && !ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      const Task& task = tasks_[ready.back()];
      running.emplace_back(ready.back(), task.work);
      ready.pop_back();
      (task.most_threads > 0 ? shared : free) += task.most_threads > 0 ? task.most_threads : -1;
    }
    if (running.empty()) return outcome;
    Index elements = 0;
    for (const auto& [k, left] : running) elements += tasks_[k].elements;
    outcome.elements = std::max(outcome.elements, elements);
    const auto rate = [&](Index k) {
      const double most = tasks_[k].most_threads;
      return most > 0 ? most * std::min(1.0, free / shared) : 1.0;
    };
    double step = std::numeric_limits<double>::max();
    for (const auto& [k, left] : running)
      if (rate(k) > 0) step = std::min(step, left / rate(k));
    outcome.duration += step;
    std::vector<Index> done;
    for (auto& [k, left] : running) {
      left -= step * rate(k);
      if (left <= 1e-9 * tasks_[k].work) done.push_back(k);
    }
    std::erase_if(running, [&](const auto& r) { return r.second <= 1e-9 * tasks_[r.first].work; });
    for (const Index k : done) {
      ended[k] = 1;
      for (const Index parent : tasks_[k].parents)
        if (--waiting[parent] == 0) offer(parent);
    }
    while (all_ended < std::ssize(ended) && ended[all_ended]) ++all_ended;
    while (!held.empty() && after[held.front()] <= all_ended) {
      std::pop_heap(held.begin(), held.end(), waits_longer);
      offer(held.back());
      held.pop_back();
    }
  }
}

}  // namespace qrane::sparse
