// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/solve_schedule.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace qrane::sparse {

namespace {

using backend::FrontBlock;
using backend::FrontPanelPart;
using backend::FrontShape;

constexpr Index block_rows = backend::front_block_rows;

std::int32_t narrow(Index i) { return static_cast<std::int32_t>(i); }
Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

/// First round of every front, children before their parent, and the number of rounds.
struct Courses {
  std::vector<Index> begin, length;
  Index rounds = 0;

  template <class Length>
  Courses(const Symbolic& s, Length length_of) : begin(s.fronts.size(), 0), length(s.fronts.size()) {
    for (std::size_t f = 0; f < s.fronts.size(); ++f) {  // children come first
      length[f] = length_of(f);
      const Index end = begin[f] + length[f];
      rounds = std::max(rounds, end);
      if (const Index parent = s.fronts[f].parent; parent >= 0) begin[parent] = std::max(begin[parent], end);
    }
  }
};

/// Tasks of all fronts, sorted by round; stable within a round.
template <class Task>
class ByRound {
 public:
  explicit ByRound(Index rounds) : begin_(rounds + 1, 0) {}
  void add(Index round, const Task& task) {
    ++begin_[round + 1];
    tasks_.push_back(task);
    rounds_.push_back(narrow(round));
  }
  std::vector<Task> sorted() {
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<Index> next(begin_.begin(), begin_.end() - 1);
    std::vector<Task> result(tasks_.size());
    for (std::size_t k = 0; k < tasks_.size(); ++k) result[next[rounds_[k]]++] = tasks_[k];
    return result;
  }
  /// Valid after sorted().
  void launch(std::vector<SolveLaunch>& list, SolveStep step, Index round, Index offset = 0) const {
    const Index first = begin_[round], count = begin_[round + 1] - first;
    if (count > 0) list.push_back({step, offset + first, count});
  }

 private:
  std::vector<Task> tasks_;
  std::vector<std::int32_t> rounds_;
  std::vector<Index> begin_;
};

std::vector<FrontBlock> joined(std::vector<FrontBlock> a, const std::vector<FrontBlock>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// For every column of a front, the children's columns that map to it, ascending.
void list_sources(const Symbolic& s, RSchedule& out) {
  const std::size_t slots = s.front_cols.size();
  out.own.assign(slots, -1);
  out.sources_begin.assign(slots + 1, 0);
  const auto each = [&](auto visit) {  // visit(slot of the parent, slot of the child), children ascending
    for (const Front& front : s.fronts)
      for (Index c = 0; c < front.child_count; ++c) {
        const Front& child = s.fronts[s.children[front.child_begin + c]];
        for (Index j = child.pivots; j < child.cols; ++j)
          if (const Local to = s.parent_col[child.cols_begin + j]; to >= 0)
            visit(front.cols_begin + to, child.cols_begin + j);
      }
  };
  for (const Front& front : s.fronts)
    for (Index j = 0; j < front.pivots; ++j) out.own[front.cols_begin + j] = narrow(front.first_col + j);
  each([&](Index to, Index) { ++out.sources_begin[to + 1]; });
  std::partial_sum(out.sources_begin.begin(), out.sources_begin.end(), out.sources_begin.begin());
  out.sources.resize(out.sources_begin.back());
  std::vector<std::int64_t> next(out.sources_begin.begin(), out.sources_begin.end() - 1);
  each([&](Index to, Index from) { out.sources[next[to]++] = narrow(from); });
}

Courses r_courses(const Symbolic& s, const std::vector<FrontShape>& shapes) {
  return Courses(s, [&](std::size_t f) { return std::max<Index>(ceil_div(shapes[f].r_bound, block_rows), 1); });
}

bool is_whole(const FrontShape& f, const QScheduleOptions& options) {
  return Index{f.rows_bound} * f.cols <= options.whole_elements;
}
/// Columns that rows may reach: each non-pivotal column takes a row, and any pivotal column may be dropped.
Index panels(const FrontShape& f, const QScheduleOptions& options) {
  return ceil_div(std::min<Index>(f.cols, Index{f.rows_bound} + f.pivots), options.panel);
}
Courses q_courses(const Symbolic& s, const std::vector<FrontShape>& shapes, const QScheduleOptions& options) {
  return Courses(s, [&](std::size_t f) {
    return is_whole(shapes[f], options) ? 1 : std::max<Index>(panels(shapes[f], options), 1);
  });
}

}  // namespace

Index r_solve_rounds(const Symbolic& symbolic, const std::vector<FrontShape>& shapes) {
  return r_courses(symbolic, shapes).rounds;
}
Index q_product_rounds(const Symbolic& symbolic, const std::vector<FrontShape>& shapes,
                       const QScheduleOptions& options) {
  return q_courses(symbolic, shapes, options).rounds;
}

RSchedule plan_r_solves(const Symbolic& s, const std::vector<FrontShape>& shapes, Index fused_cols) {
  RSchedule out;
  list_sources(s, out);
  const Courses courses = r_courses(s, shapes);
  out.rounds = courses.rounds;
  ByRound<FrontBlock> up_solves(out.rounds), up_updates(out.rounds), down_solves(out.rounds), down_updates(out.rounds);
  ByRound<std::int32_t> slots(out.rounds);
  for (std::size_t f = 0; f < shapes.size(); ++f) {
    const FrontShape& shape = shapes[f];
    const auto front = static_cast<std::int32_t>(f);
    const Index m = shape.r_bound, others = shape.cols - shape.pivots, all = m + others, begin = courses.begin[f];
    for (Index j = 0; j < shape.cols; ++j) slots.add(begin, narrow(shape.columns + j));
    const bool one = m <= block_rows;
    for (Index row = 0, round = begin; row < m; row += block_rows, ++round) {
      const Index rows = std::min(block_rows, m - row), right = row + rows;
      const auto block = [&](Index first_row, Index count, Index first, Index cols) {
        return FrontBlock{front, narrow(first_row), narrow(count), narrow(first), narrow(cols), 0};
      };
      const bool fused = one && others <= fused_cols;
      up_solves.add(round, block(row, rows, right, fused ? others : 0));
      if (!fused)
        for (Index first = right; first < all; first += block_rows)
          up_updates.add(round, block(row, rows, first, std::min(block_rows, all - first)));
      down_solves.add(round, block(row, rows, right, one ? others : 0));
      // this block's rows and those above are updated by the block that the previous round solved
      const bool last = right == m;
      if (one || (last && others == 0)) continue;
      for (Index above = 0; above <= row; above += block_rows)
        down_updates.add(round, block(above, std::min(block_rows, m - above), right,
                                      last ? others : std::min(block_rows, m - right)));
    }
  }
  out.slots = slots.sorted();
  const std::vector<FrontBlock> first = up_solves.sorted(), third = down_solves.sorted();
  out.up_blocks = joined(first, up_updates.sorted());
  out.down_blocks = joined(third, down_updates.sorted());
  for (Index r = 0; r < out.rounds; ++r) {
    slots.launch(out.up, SolveStep::gather, r);
    up_solves.launch(out.up, SolveStep::solve, r);
    up_updates.launch(out.up, SolveStep::update, r, static_cast<Index>(first.size()));
  }
  for (Index r = out.rounds - 1; r >= 0; --r) {
    down_updates.launch(out.down, SolveStep::update, r, static_cast<Index>(third.size()));
    down_solves.launch(out.down, SolveStep::solve, r);
  }
  return out;
}

QSchedule plan_q_products(const Symbolic& s, const std::vector<FrontShape>& shapes, const QScheduleOptions& options) {
  QSchedule out;
  const Courses courses = q_courses(s, shapes, options);
  out.rounds = courses.rounds;
  ByRound<std::int32_t> whole(out.rounds);
  ByRound<FrontPanelPart> parts(out.rounds);
  for (std::size_t f = 0; f < shapes.size(); ++f) {
    const FrontShape& shape = shapes[f];
    const auto front = static_cast<std::int32_t>(f);
    if (is_whole(shape, options)) {
      if (shape.rows_bound > 0 && shape.cols > 0) whole.add(courses.begin[f], front);
      continue;
    }
    const Index count = std::max<Index>(ceil_div(shape.rows_bound, options.part_rows), 1);
    for (Index p = 0; p < panels(shape, options); ++p)
      for (Index k = 0; k < count; ++k)
        parts.add(courses.begin[f] + p, FrontPanelPart{front, narrow(p), narrow(k), narrow(count)});
  }
  out.whole = whole.sorted();
  out.parts = parts.sorted();
  for (Index r = 0; r < out.rounds; ++r) {
    whole.launch(out.up, SolveStep::whole, r);
    parts.launch(out.up, SolveStep::panels, r);
  }
  for (const SolveLaunch& launch : out.up)
    if (launch.step == SolveStep::panels) out.most_parts = std::max(out.most_parts, launch.count);
  return out;
}

SingletonSchedule plan_singletons(const Symbolic& s) {
  SingletonSchedule out;
  const Index n = s.singletons;
  const auto each = [&](auto visit) {  // visit(row, column, entry), pivots first in their rows
    for (Index k = 0; k < n; ++k)
      for (Index p = s.row_begin[k]; p < s.row_begin[k + 1]; ++p) visit(k, s.singleton_cols[p], p);
  };
  // down: after the singletons to its right in its row; up: after those above it in its column
  std::vector<Index> down(n, 0), up(n, 0);
  for (Index k = n - 1; k >= 0; --k)
    for (Index p = s.row_begin[k] + 1; p < s.row_begin[k + 1]; ++p)
      if (const Index j = s.singleton_cols[p]; j < n) down[k] = std::max(down[k], down[j] + 1);
  each([&](Index k, Index j, Index) {
    if (j < n && j > k) up[j] = std::max(up[j], up[k] + 1);
  });
  const auto by_level = [&](const std::vector<Index>& level, std::vector<std::int32_t>& list,
                            std::vector<Index>& begin) {
    begin.assign(level.empty() ? 1 : (*std::max_element(level.begin(), level.end())) + 2, 0);
    for (const Index l : level) ++begin[l + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<Index> next = begin;
    list.resize(level.size());
    for (std::size_t k = 0; k < level.size(); ++k) list[next[level[k]]++] = static_cast<std::int32_t>(k);
  };
  by_level(down, out.down, out.down_begin);
  by_level(up, out.up, out.up_begin);
  out.column_begin.assign(s.cols + 1, 0);
  each([&](Index, Index j, Index) { ++out.column_begin[j + 1]; });
  std::partial_sum(out.column_begin.begin(), out.column_begin.end(), out.column_begin.begin());
  out.row.resize(out.column_begin.back());
  out.entry.resize(out.row.size());
  std::vector<std::int64_t> next(out.column_begin.begin(), out.column_begin.end() - 1);
  for (Index k = 0; k < n; ++k) ++next[k];  // the pivot's place
  each([&](Index k, Index j, Index p) {
    const std::int64_t place = j == k ? out.column_begin[k] : next[j]++;
    out.row[place] = narrow(k);
    out.entry[place] = narrow(p);
  });
  for (Index j = n; j < s.cols - s.empty_cols; ++j)
    if (out.column_begin[j] < out.column_begin[j + 1]) out.others.push_back(narrow(j));
  return out;
}

ColumnsOfS columns_of(const Symbolic& s) {
  ColumnsOfS out;
  out.begin.assign(s.cols + 1, 0);
  s.for_each_row([&](Index, Index first, Index last, auto column) {
    for (Index p = first; p < last; ++p) ++out.begin[column(p) + 1];
  });
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  out.row.resize(s.entries);
  out.entry.resize(s.entries);
  std::vector<std::int64_t> next(out.begin.begin(), out.begin.end() - 1);
  s.for_each_row([&](Index k, Index first, Index last, auto column) {
    for (Index p = first; p < last; ++p) {
      const std::int64_t place = next[column(p)]++;
      out.row[place] = narrow(k);
      out.entry[place] = narrow(p);
    }
  });
  return out;
}

bool fits_solve_lists(const Symbolic& s) {
  constexpr Index most = std::numeric_limits<std::int32_t>::max();
  return s.rows < most && s.cols < most && s.entries < most && static_cast<Index>(s.front_cols.size()) < most;
}

}  // namespace qrane::sparse
