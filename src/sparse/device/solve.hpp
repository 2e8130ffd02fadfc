// SPDX-License-Identifier: Apache-2.0
// The steps of solve.hpp on the device that holds the factors: Q and Qᵀ, triangular solves, products with S, by the
// kernels of vocabulary/front_solve.hpp in the order of solve_schedule.hpp. Right-hand sides in device memory stay
// there.
//
// Many right-hand sides are taken in groups of as many columns as there is room for; each column's numbers are the same
// bits in any company. Nothing waits for the host within a group but, at its end, for the norms of residuals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <qrane/error.hpp>

#include "sparse/device/lines.hpp"
#include "sparse/device/plan/front_rounds.hpp"
#include "sparse/device/solve_cost.hpp"
#include "sparse/device/solve_tables.hpp"
#include "sparse/solve.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceSolve final : public Solves<DeviceSolve<B, T>, T>, private DeviceLines<B, T> {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  using Lines = DeviceLines<B, T>;
  using typename Lines::Group, typename Lines::Output, typename Lines::User;

  /// What a run has left; all of it outlives this. q_here: and fronts with Q. room_bytes: for more right-hand sides
  /// than one at a time; < 0: no limit.
  DeviceSolve(const Queue& queue, const Factors<T>& factors, const FrontRounds& plan,
              const backend::Fronts<B, T>& fronts, bool q_here, Index room_bytes)
      : Lines(queue),
        factors_(factors),
        plan_(plan),
        fronts_(fronts),
        q_here_(q_here),
        room_bytes_(room_bytes),
        cost_(backend_from_string(B::name), factors.symbolic(), plan.shapes, fronts.panel, plan.storage_size,
              plan.r_size, factors.options().keep_q, sizeof(T)) {}

  /// The factors are another run's.
  void forget_run() { run_.reset(); }

  /// Without Q, solutions must be the same bits in any memory: where kernels do not reach R on the host, to which a
  /// staged plan sends it, all right-hand sides that the factorization carried along are the host's.
  bool can(FactorUse use) const override {
    if (use == FactorUse::solve_riding) return B::reaches_host;
    return q_here_ || (use == FactorUse::solve && !factors_.options().keep_q);
  }
  bool pays(FactorUse use, Index cols, bool resident) const override {
    const UseSeconds seconds = cost_.seconds(use, cols, resident);
    return seconds.device < seconds.host;
  }

  void check_finite(const char* name, MatrixView<const T> a) override {
    dense::check_finite<B, T>(queue_, name, dense::as_device<B>(a), a.layout == Layout::row_major);
  }

  // -- the steps of solve.hpp -------------------------------------------------------------------------------------

  const Factors<T>& factors() const { return factors_; }
  Index riding_cols() const { return fronts_.rhs_cols; }

  /// work(first column, group), as many columns at a time as there is room for.
  template <class Work>
  void in_groups(Index cols, const GroupNeeds& needs, Work work) {
    if (cols == 0) return;
    const Index column = elements(needs) * static_cast<Index>(sizeof(T));
    const Index room = std::min<Index>(room_bytes_ < 0 ? usual_room : room_bytes_, usual_room);
    const Index step = std::clamp<Index>(room / std::max<Index>(column, 1), 1, most_cols);
    for (Index first = 0; first < cols; first += step) {
      Group group(*this, std::min(step, cols - first), lines(needs));
      work(first, group);
    }
  }
  User user(MatrixView<const T> view) { return User(*this, view); }
  void store(const User& user, MatrixView<T> view) { user.store(view); }
  Output output(Index rows, Index cols, Memory where) { return Output(*this, rows, cols, where); }

  void take_rows(const User& u, const Group& g) { take(u, pattern().row_perm, g.rows, s().rows, g); }
  void give_rows(const Group& g, const User& u) { give(g.rows, s().rows, g, u, pattern().row_perm, false); }
  void take_q_rows(const User& u, const Group& g) { take(u, run().q_rows, g.rows, s().rows, g, true); }
  void give_q_rows(const Group& g, const User& u) { give(g.rows, s().rows, g, u, run().q_rows, true); }
  void take_cols(const User& u, const Group& g) {
    take(u, pattern().col_perm, g.z, s().cols, g, false, fronts_.exponents);
  }
  void give_cols(const Pointer<T>& lines, const Group& g, const User& u) {
    give(lines, s().cols, g, u, pattern().col_perm, false, fronts_.exponents);
  }
  void take_riding(Index first, const Group& g) {
    copy_lines(queue_, backend::CopyLines<B, T>{.source = fronts_.rhs + first * fronts_.rhs_ld,
                                                .target = g.y,
                                                .source_index = run().q_rows,
                                                .source_line = 1,
                                                .source_step = fronts_.rhs_ld,
                                                .target_line = g.cols,
                                                .count = factors_.rank(),
                                                .cols = static_cast<std::int32_t>(g.cols)});
  }
  void r_of_rows(const Group& g) { copy_by(g.rows, run().q_rows, g.y, {}, factors_.rank(), g); }
  void rows_of_r(const Group& g) {
    zero(g.rows, s().rows, g);
    copy_by(g.y, {}, g.rows, run().q_rows, factors_.rank(), g);
  }
  void clear_total(const Group& g) { zero(g.total, s().cols, g); }
  void add_total(const Group& g) { copy_by(g.x, {}, g.total, {}, s().cols, g, true); }
  void row_norms(const Group& g, Solution<T>& solution) { add_norms(g.rows, s().rows, {}, g, solution); }
  void col_norms(const Group& g, Solution<T>& solution) { add_norms(g.z, s().cols, fronts_.exponents, g, solution); }

  void subtract_product(const Pointer<T>& x, const Group& g) {
    sum({.out = g.rows,
         .in = g.rows,
         .x = x,
         .values = fronts_.values,
         .index = pattern().col_index,
         .begin = fronts_.row_begin,
         .count = s().rows,
         .sign = -1},
        g);
  }
  void normal(const Group& g) { add_normal(1, {}, g); }
  void subtract_normal(const Group& g) { add_normal(-1, g.z, g); }

  void solve_r(const Group& group) {
    const PatternTables<B>& t = pattern();
    const backend::FrontSolve<B, T> f = bound(group);
    zero(group.x, s().cols, group);
    for (const SolveLaunch& launch : t.r.down) {
      if (launch.step == SolveStep::update)
        update_front_rows(queue_, f, tasks(t.down_blocks, launch), Op::none);
      else
        solve_front_rows(queue_, f, tasks(t.down_blocks, launch), Op::none);
    }
    singletons(t.singletons.down_begin,
               {.out = group.x,
                .in = group.y,
                .x = group.x,
                .values = fronts_.values,
                .list = t.single_down,
                .index = t.col_index,
                .begin = fronts_.row_begin},
               group);
  }
  void solve_rt(const Group& group) {
    const PatternTables<B>& t = pattern();
    const backend::FrontSolve<B, T> f = bound(group);
    const backend::SumLines<B, T> columns{.x = group.y,
                                          .values = fronts_.values,
                                          .index = t.single_row,
                                          .entry = t.single_entry,
                                          .begin = t.single_begin,
                                          .sign = -1};
    backend::SumLines<B, T> levels = columns;
    levels.out = group.y, levels.in = group.z, levels.list = t.single_up;
    singletons(t.singletons.up_begin, levels, group);
    backend::SumLines<B, T> others = columns;
    others.out = others.in = group.z, others.list = t.others;
    others.count = static_cast<Index>(t.singletons.others.size());
    sum(others, group);
    for (const SolveLaunch& launch : t.r.up) {
      switch (launch.step) {
        case SolveStep::gather:
          sum({.out = group.w,
               .in = group.z,
               .x = group.w,
               .list = t.slots + launch.first,
               .in_index = t.own,
               .index = t.sources,
               .begin = t.sources_begin,
               .count = launch.count},
              group);
          break;
        case SolveStep::update: update_front_rows(queue_, f, tasks(t.up_blocks, launch), Op::transpose); break;
        default: solve_front_rows(queue_, f, tasks(t.up_blocks, launch), Op::transpose);
      }
    }
  }
  void reflect(Op op, const Group& group) {
    const PatternTables<B>& t = pattern();
    backend::FrontReflect<B, T> f;
    f.panel = fronts_.panel;
    f.cols = static_cast<std::int32_t>(group.cols);
    f.shapes = fronts_.shapes;
    f.panels = fronts_.panels;
    f.row_ids = fronts_.row_ids;
    f.storage = fronts_.storage;
    f.lines = group.rows;
    f.products = group.products;
    const std::size_t count = t.q.up.size();
    for (std::size_t k = 0; k < count; ++k) {
      const SolveLaunch& launch = t.q.up[op == Op::transpose ? k : count - 1 - k];
      if (launch.step == SolveStep::whole) {
        reflect_front_lines(queue_, f, tasks(t.whole, launch), op);
      } else {
        multiply_front_panels(queue_, f, tasks(t.parts, launch));
        update_front_lines(queue_, f, tasks(t.parts, launch), op);
      }
    }
  }

 private:
  using Lines::add_norms, Lines::copy_by, Lines::give, Lines::queue_, Lines::sum, Lines::take, Lines::zero;
  static constexpr Index most_cols = 128;  // of a group

  const Symbolic& s() const { return factors_.symbolic(); }

  const PatternTables<B>& pattern() {
    if (!pattern_) pattern_.emplace(queue_, s(), plan_.shapes, q_here_, fronts_.panel);
    return *pattern_;
  }
  const TransposeTables<B>& transposed() {
    if (!transposed_) transposed_.emplace(queue_, s());
    return *transposed_;
  }
  const RunTables<B>& run() {
    if (!run_) run_.emplace(queue_, factors_);
    return *run_;
  }

  // -- right-hand sides -------------------------------------------------------------------------------------------

  /// Elements for one right-hand side.
  Index elements(const GroupNeeds& needs) {
    const Index slots = static_cast<Index>(s().front_cols.size());
    return s().rows + std::max(s().rows, s().cols) + (needs.r ? factors_.rank() + 2 * s().cols : 0) +
           (needs.rt ? slots + s().cols : 0) + (needs.q ? pattern().q.most_parts * fronts_.panel : 0);
  }

  typename Lines::GroupLines lines(const GroupNeeds& needs) {
    typename Lines::GroupLines count;
    count.rows = s().rows;
    if (needs.r) {
      count.x = s().cols;
      count.y = factors_.rank();
    }
    if (needs.rt) {
      count.z = s().cols;
      count.w = static_cast<Index>(s().front_cols.size());
    }
    if (needs.r && needs.rt && !needs.q) count.total = s().cols;
    if (needs.q) count.products = pattern().q.most_parts * fronts_.panel;
    return count;
  }

  /// z := in + sign Sᵀ rows
  void add_normal(int sign, const Pointer<T>& in, const Group& g) {
    const TransposeTables<B>& t = transposed();
    sum({.out = g.z,
         .in = in,
         .x = g.rows,
         .values = fronts_.values,
         .index = t.row,
         .entry = t.entry,
         .begin = t.begin,
         .count = s().cols,
         .sign = sign},
        g);
  }

  // -- the factors ------------------------------------------------------------------------------------------------

  backend::FrontSolve<B, T> bound(const Group& group) {
    backend::FrontSolve<B, T> f;
    f.cols = static_cast<std::int32_t>(group.cols);
    f.shapes = fronts_.shapes;
    f.states = fronts_.states;
    f.r_begin = run().r_begin;
    f.live = run().live;
    f.front_cols = pattern().front_cols;
    f.r = fronts_.r;
    f.x = group.x;
    f.y = group.y;
    f.w = group.w;
    return f;
  }
  template <class Task>
  static backend::FrontTasks<B, Task> tasks(const Pointer<Task>& list, const SolveLaunch& launch) {
    return {list + launch.first, launch.count, 0, 0};
  }

  void singletons(const std::vector<Index>& levels, backend::SumLines<B, T> task, const Group& group) {
    const Pointer<std::int32_t> list = task.list;
    task.sign = -1;
    task.skip = 1;
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
      task.list = list + levels[l];
      task.count = levels[l + 1] - levels[l];
      sum(task, group);
    }
  }

  static constexpr Index usual_room = Index{1} << 30;  // bytes

  const Factors<T>& factors_;
  const FrontRounds& plan_;
  const backend::Fronts<B, T>& fronts_;
  bool q_here_;
  Index room_bytes_;
  UseCost cost_;
  std::optional<PatternTables<B>> pattern_;
  std::optional<TransposeTables<B>> transposed_;
  std::optional<RunTables<B>> run_;
};

}  // namespace qrane::sparse
