// SPDX-License-Identifier: Apache-2.0
// What the tests of frontal matrices (src/vocabulary/fronts.hpp) share: all arrays of a plan in host memory, made from
// an analysis or by hand; the same on the device; and a walk through the tree. The tests are apart by kernel:
// kernels_fronts_{layout,panels,updates,tree}.hpp. Included by kernels_test.hpp.
#pragma once

#include <algorithm>
#include <numeric>

#include "cpu/whole.hpp"
#include "sparse/analysis/symbolic.hpp"
#include "support/sparse.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::test {

using qrane::test::Triplets;

/// Everything that Fronts points to. What kernels make is full of values that would show if they were read: NaN, and
/// numbers that are no index.
template <class T>
struct HostFronts {
  static constexpr std::int32_t unset = -77;
  static constexpr Index pad = 64;  // elements between the pieces of `storage` and `r`; nothing may be written there

  std::int32_t panel = 32, rhs_cols = 0;
  std::int64_t rhs_ld = 0;
  double tolerance = -1;
  std::vector<FrontShape> shapes;
  std::vector<std::int32_t> children, entry_col, own_column, parent_col, full_stair, full_own_slot, full_cb_slot;
  std::vector<std::int64_t> row_begin;
  std::vector<T> values, rhs;
  std::vector<std::int32_t> exponents;
  std::vector<FrontState> states;
  std::vector<FrontPanelState> panels;
  std::vector<std::int32_t> stair, own_slot, cb_slot, row_ids, pivot;
  std::vector<T> storage, r;

  // not on the device
  std::vector<std::vector<std::int32_t>> levels;  // fronts by level, leaves first
  std::vector<Index> front_cols;                  // permuted column of local column j: front_cols[shape.columns + j]
  Index rows = 0, cols = 0;                       // of S
  std::int64_t storage_size = pad, r_size = pad;

  std::int32_t count() const { return static_cast<std::int32_t>(shapes.size()); }
  Index panel_count(Index f) const { return (shapes[std::size_t(f)].cols + panel - 1) / panel; }
  Index all_cols(Index f) const { return shapes[std::size_t(f)].cols + rhs_cols; }
  const FrontShape& shape(Index f) const { return shapes[std::size_t(f)]; }
  FrontState& state(Index f) { return states[std::size_t(f)]; }
  const FrontState& state(Index f) const { return states[std::size_t(f)]; }
  T& matrix(Index f, Index i, Index j) { return storage[std::size_t(shape(f).matrix + i + j * shape(f).ld)]; }
  const T& matrix(Index f, Index i, Index j) const {
    return storage[std::size_t(shape(f).matrix + i + j * shape(f).ld)];
  }
  const T& corner(Index f, Index i, Index j) const { return storage[std::size_t(shape(f).corner + i + j * panel)]; }
  const T& t(Index f, Index i, Index j) const { return storage[std::size_t(shape(f).t + i + j * panel)]; }
  std::int32_t pivot_of(Index f, Index j) const { return pivot[std::size_t(shape(f).columns + j)]; }
  std::int32_t& stair_of(Index f, Index j) { return stair[std::size_t(shape(f).columns + j)]; }
  FrontPanelState& panel_state(Index f, Index k) { return panels[std::size_t(shape(f).panels + k)]; }
  const FrontPanelState& panel_state(Index f, Index k) const { return panels[std::size_t(shape(f).panels + k)]; }
  /// R(i, j) from where the front holds it.
  T r_of(Index f, Index i, Index j) const {
    const Index first = panel_state(f, j / panel).first_row;
    return i < first ? matrix(f, i, j) : corner(f, i - first, j);
  }
  /// Where finish_fronts puts column j of R's rows of front f.
  std::int64_t packed(Index f, Index j) const {
    std::int64_t at = shape(f).r;
    for (Index i = 0; i < j; ++i)
      at += std::min<Index>(i < shape(f).pivots ? i + 1 : shape(f).r_bound, shape(f).r_bound);
    return at;
  }

  /// Numbers the front: places in all that kernels make, by rows_bound, cols, pivots, own_rows, which are set.
  void place(FrontShape shape) {
    const auto take = [](std::int64_t& end, std::int64_t size) {
      const std::int64_t begin = end;
      end += (size + pad - 1) / pad * pad + pad;
      return begin;
    };
    shape.ld = count() % 3 == 1 ? shape.rows_bound + 1 : (std::max(shape.rows_bound, 1) + 15) / 16 * 16;
    shape.cb_bound = std::min(shape.rows_bound, shape.cols - shape.pivots);
    shape.r_bound = std::min(shape.rows_bound, shape.pivots);
    shape.matrix = take(storage_size, std::int64_t{shape.ld} * (shape.cols + rhs_cols));
    shape.corner = take(storage_size, std::int64_t{panel} * shape.cols);
    shape.t = take(storage_size, std::int64_t{panel} * shape.cols);
    std::int64_t packed = 0;
    for (Index j = 0; j < shape.cols; ++j)
      packed += std::min<Index>(j < shape.pivots ? j + 1 : shape.r_bound, shape.r_bound);
    shape.r = take(r_size, packed);
    shape.slots = std::int64_t(cb_slot.size());
    cb_slot.resize(cb_slot.size() + std::size_t(shape.cb_bound));
    shape.row_ids = std::int64_t(row_ids.size());
    row_ids.resize(row_ids.size() + std::size_t(shape.rows_bound));
    shape.panels = std::int64_t(panels.size());
    panels.resize(panels.size() + std::size_t((shape.cols + panel - 1) / panel));
    shapes.push_back(shape);
  }

  void forget_results() {
    const auto columns = shapes.empty() ? 0 : std::size_t(shapes.back().columns + shapes.back().cols);
    states.assign(shapes.size(), {-1, unset, unset, unset, unset});
    std::fill(panels.begin(), panels.end(), FrontPanelState{unset, unset, unset, unset});
    stair.assign(columns, unset);
    pivot.assign(columns, unset);
    own_slot.assign(std::size_t(rows), unset);
    std::fill(cb_slot.begin(), cb_slot.end(), unset);
    std::fill(row_ids.begin(), row_ids.end(), unset);
    storage.assign(std::size_t(storage_size), std::numeric_limits<T>::quiet_NaN());
    r.assign(std::size_t(r_size), std::numeric_limits<T>::quiet_NaN());
  }
};

/// f(host array, device array) for all of them; those that kernels make by for_each_made.
template <class T, class D, class F>
void for_each_made(HostFronts<T>& h, D& d, F&& f) {
  f(h.rhs, d.rhs), f(h.states, d.states), f(h.panels, d.panels), f(h.stair, d.stair), f(h.own_slot, d.own_slot);
  f(h.cb_slot, d.cb_slot), f(h.row_ids, d.row_ids), f(h.pivot, d.pivot), f(h.storage, d.storage), f(h.r, d.r);
}
template <class T, class D, class F>
void for_each_array(HostFronts<T>& h, D& d, F&& f) {
  f(h.shapes, d.shapes), f(h.children, d.children), f(h.row_begin, d.row_begin), f(h.entry_col, d.entry_col);
  f(h.own_column, d.own_column), f(h.parent_col, d.parent_col), f(h.full_stair, d.full_stair);
  f(h.full_own_slot, d.full_own_slot), f(h.full_cb_slot, d.full_cb_slot), f(h.values, d.values),
      f(h.exponents, d.exponents);
  for_each_made(h, d, f);
}

template <class B, class T, class F>
Fronts<B, T> bound(HostFronts<T>& h, F&& f) {
  Fronts<B, T> d;
  d.panel = h.panel, d.rhs_cols = h.rhs_cols, d.rhs_ld = h.rhs_ld, d.tolerance = h.tolerance;
  for_each_array(h, d, f);
  return d;
}
/// Tasks as they lie in host memory.
template <class T>
Fronts<Cpu, T> on_host(HostFronts<T>& h) {
  return bound<Cpu>(h, [](auto& host, auto& pointer) { pointer = host.empty() ? nullptr : host.data(); });
}

/// The fronts of an analyzed matrix. `values` of S, by rows; right-hand sides random.
template <class T>
HostFronts<T> fronts_of(const sparse::Symbolic& s, const std::vector<double>& values, std::int32_t rhs_cols,
                        std::int32_t panel = 32) {
  HostFronts<T> h;
  h.panel = panel, h.rhs_cols = rhs_cols;
  h.rows = s.rows, h.cols = s.cols;
  h.rhs_ld = s.rows + 3;
  h.row_begin.assign(s.row_begin.begin(), s.row_begin.end());
  h.entry_col.assign(s.entry_col.begin(), s.entry_col.end());
  h.own_column.assign(std::size_t(s.rows), HostFronts<T>::unset);
  h.parent_col.assign(s.parent_col.begin(), s.parent_col.end());
  h.full_stair.assign(s.stair.begin(), s.stair.end());
  h.full_own_slot.assign(s.own_slot.begin(), s.own_slot.end());
  h.full_cb_slot.assign(s.cb_slot.begin(), s.cb_slot.end());
  h.children.assign(s.children.begin(), s.children.end());
  h.front_cols = s.front_cols;
  h.values.assign(values.begin(), values.end());
  for (Index f = 0; f < s.front_count(); ++f) {
    const sparse::Front& front = s.fronts[std::size_t(f)];
    const auto narrow = [](Index i) { return static_cast<std::int32_t>(i); };
    FrontShape shape{};
    shape.columns = front.cols_begin, shape.first_row = front.first_row, shape.full_slots = front.cb_begin;
    shape.children = front.child_begin, shape.child_count = narrow(front.child_count),
    shape.first_col = front.first_col;
    shape.rows_bound = narrow(front.rows_bound), shape.cols = narrow(front.cols), shape.pivots = narrow(front.pivots);
    shape.own_rows = narrow(front.own_rows), shape.full_rows = narrow(front.rows),
    shape.cb_rows = narrow(front.cb_rows);
    h.place(shape);
    for (Index r = front.first_row; r < front.first_row + front.own_rows; ++r)
      h.own_column[std::size_t(r)] = s.entry_col[std::size_t(s.row_begin[std::size_t(r)])];
    if (h.levels.size() <= std::size_t(front.level)) h.levels.resize(std::size_t(front.level) + 1);
    h.levels[std::size_t(front.level)].push_back(narrow(f));
  }
  std::mt19937_64 engine(9);
  std::normal_distribution<double> normal;
  h.rhs.assign(std::size_t(h.rhs_ld * rhs_cols), canary<T>);
  for (Index j = 0; j < rhs_cols; ++j)
    for (Index i = 0; i < s.rows; ++i) h.rhs[std::size_t(i + j * h.rhs_ld)] = T(normal(engine));
  h.forget_results();
  return h;
}

struct FrontMatrixCase {
  std::string name;
  sparse::Symbolic symbolic;
  std::vector<double> values;  // of S, by rows
  double tolerance = -1;
};

/// A tree as it comes, without singletons and, unless `merge`, without merged fronts.
inline FrontMatrixCase front_case(std::string name, const Triplets& a, bool merge, double tolerance) {
  sparse::AnalyzeOptions options;
  options.ordering = sparse::Ordering::amd;
  options.singletons = false;
  if (!merge)
    options.expert.amalgamation = sparse::Amalgamation{.columns = {0, 0, 0}, .zeros = {0, 0, 0}, .zeros_beyond = 0};
  FrontMatrixCase c{std::move(name), sparse::analyze_pattern(a.view(), options, {}, false), {}, tolerance};
  c.values.resize(std::size_t(c.symbolic.entries));
  sparse::gather_values(c.symbolic, a.value.data(), c.values.data());
  return c;
}

/// Trees deep and flat, tall and wide, fronts of one panel and of several; ranks full and not, so that fronts have
/// other rows than the analysis says; zero rows; rows that run out. In a small run of random ones one of each kind,
/// half as long and twice as dense.
inline std::vector<FrontMatrixCase> front_cases() {
  const auto random = [](Index rows, Index cols, double density, unsigned seed) {
    const Index part = small_run() ? 2 : 1;
    return qrane::test::random_sparse(rows / part, cols / part, density * double(part), seed);
  };
  std::vector<FrontMatrixCase> all;
  for (unsigned seed = 0; seed < 3; ++seed) {
    const auto add = [&](unsigned seed_in_small, const std::string& name, const Triplets& a, bool merge,
                         double tolerance) {
      if (!small_run() || seed == seed_in_small)
        all.push_back(front_case(name + " " + std::to_string(seed), a, merge, tolerance));
    };
    add(0, "tall", random(120, 60, 0.04, seed), false, -1);
    add(1, "square", random(90, 90, 0.03, 10 + seed), false, -1);
    add(2, "wide", random(50, 90, 0.05, 20 + seed), true, -1);
    Triplets dependent = random(150, 100, 0.03, 30 + seed);
    // every fifth column a multiple of the one before, every seventh row zero
    std::vector<std::vector<std::size_t>> of_column(std::size_t(dependent.cols));
    for (std::size_t k = 0; k < dependent.row.size(); ++k) of_column[std::size_t(dependent.col[k])].push_back(k);
    for (Index j = 5; j < dependent.cols; j += 5) {
      for (const std::size_t k : of_column[std::size_t(j)]) dependent.value[k] = 0;
      for (const std::size_t k : of_column[std::size_t(j - 1)])
        dependent.add(dependent.row[k], j, -1.5 * dependent.value[k]);
    }
    for (std::size_t k = 0; k < dependent.row.size(); ++k)
      if (dependent.row[k] % 7 == 3) dependent.value[k] = 0;
    add(1, "dependent", dependent, seed == 1, 1e-4);
  }
  all.push_back(front_case("one column", {6, 1, {5, 0, 3}, {0, 0, 0}, {1.0, 2.0, -1.0}}, true, -1));
  all.push_back(front_case("one row", {1, 6, {0, 0, 0}, {4, 0, 2}, {1.0, 2.0, -1.0}}, true, 0));
  Triplets zeros = qrane::test::random_sparse(30, 20, 0.2, 40);
  std::fill(zeros.value.begin(), zeros.value.end(), 0.0);
  all.push_back(front_case("zeros kept", zeros, true, -1));
  all.push_back(front_case("zeros dropped", zeros, true, 0));
  all.push_back(front_case("larger fronts", random(300, 150, 0.04, 50), true, -1));
  return all;
}

/// The fixture of these tests: a reference beside the backend's queue.
template <class Case>
class FrontKernels : public Kernels<Case> {
 public:
  using B = typename Kernels<Case>::B;
  using T = typename Kernels<Case>::T;

 protected:
  cpu::Queue reference_{2};

  Fronts<B, T> to_device(HostFronts<T>& h) {
    return bound<B>(h, [&](auto& host, auto& pointer) {
      if (!host.empty()) pointer = this->upload(host);
    });
  }
  /// What the kernels have made.
  void to_host(Fronts<B, T>& d, HostFronts<T>& h) {
    for_each_made(h, d, [&](auto& host, auto& pointer) {
      if (!host.empty()) this->q().download(pointer, host.data(), Index(host.size()));
    });
  }
  template <class Task>
  FrontTasks<B, Task> tasks(const HostFronts<T>& h, const std::vector<Task>& list) {
    return front_tasks<B>(h, list, this->upload(list));
  }

 public:
  template <class On, class Task>
  static FrontTasks<On, Task> front_tasks(const HostFronts<T>& h, const std::vector<Task>& list,
                                          typename On::template Pointer<Task> pointer) {
    FrontTasks<On, Task> result{pointer, Index(list.size())};
    for (const Task& task : list) {
      const std::int32_t f = front_number(task);
      result.max_rows = std::max(result.max_rows, h.shape(f).rows_bound);
      result.max_cols = std::max(result.max_cols, std::int32_t(h.all_cols(f)));
    }
    return result;
  }

 protected:
  /// The reference's, on host memory.
  template <class Task>
  static FrontTasks<Cpu, Task> host_tasks(const HostFronts<T>& h, std::vector<Task>& list) {
    return front_tasks<Cpu>(h, list, list.data());
  }
  static std::int32_t front_number(std::int32_t f) { return f; }
  template <class Task>
  static std::int32_t front_number(const Task& task) {
    return task.front;
  }

  /// Each front in 1, 2, 3, ... parts.
  static std::vector<FrontShare> shares(const std::vector<std::int32_t>& list) {
    std::vector<FrontShare> result;
    for (const std::int32_t f : list)
      for (std::int32_t part = 0; part < 1 + f % 4; ++part) result.push_back({f, part, 1 + f % 4, 0});
    return result;
  }
  /// Update by panel k of all columns to the right, `most` at a time.
  static void add_updates(const HostFronts<T>& h, std::int32_t f, std::int32_t k, Index most,
                          std::vector<FrontUpdateTask>& list) {
    const auto end = std::int32_t(h.all_cols(f));
    for (std::int32_t first = std::min(h.shape(f).cols, (k + 1) * h.panel), cols; first < end; first += cols) {
      cols = std::min(end - first, std::int32_t(most));
      list.push_back({f, k, first, cols});
    }
  }

 public:
  /// One level of the tree by the kernels for large fronts; `list` makes tasks of vectors.
  template <class Queue, class F, class Tasks>
  static void walk_level(Queue& queue, const HostFronts<T>& h, const F& fronts, std::size_t level, Tasks&& list) {
    std::vector<std::int32_t> numbers = h.levels[level];
    std::vector<FrontShare> parts = shares(numbers);
    lay_out_fronts(queue, fronts, list(numbers));
    assemble_fronts(queue, fronts, list(parts));
    Index panels = 0;
    for (const std::int32_t f : numbers) panels = std::max(panels, h.panel_count(f));
    for (std::int32_t k = 0; k < panels; ++k) {
      std::vector<FrontPanelTask> factored;
      std::vector<FrontUpdateTask> updated;
      for (const std::int32_t f : numbers) {
        if (k >= h.panel_count(f)) continue;
        factored.push_back({f, k});
        add_updates(h, f, k, queue.limits(T{}).front_update_cols, updated);
      }
      factor_front_panels(queue, fronts, list(factored));
      update_fronts(queue, fronts, list(updated));
    }
    finish_fronts(queue, fronts, list(parts));
  }
  /// The same by the kernel for small fronts where they are small, by the others where not.
  template <class Queue, class F, class Tasks>
  static void walk_level_whole(Queue& queue, HostFronts<T>& h, const F& fronts, std::size_t level, bool keep_q,
                               Tasks&& list) {
    std::vector<std::int32_t> small, large;
    for (const std::int32_t f : h.levels[level])
      (h.shape(f).rows_bound * h.all_cols(f) <= queue.limits(T{}).front_whole_elements ? small : large).push_back(f);
    factor_whole_fronts(queue, fronts, list(small), keep_q);
    h.levels[level].swap(large);
    walk_level(queue, h, fronts, level, list);
    h.levels[level].swap(large);
  }

 protected:
  void walk_on_host(HostFronts<T>& h) {
    const Fronts<Cpu, T> fronts = on_host(h);
    for (std::size_t level = 0; level < h.levels.size(); ++level)
      walk_level(reference_, h, fronts, level, [&](auto& list) { return host_tasks(h, list); });
  }
};

TYPED_TEST_SUITE(FrontKernels, KernelTypes);

}  // namespace qrane::backend::test
