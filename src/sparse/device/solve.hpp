// SPDX-License-Identifier: Apache-2.0
// Uses of the factors on the device that holds them: Q and Qᵀ, triangular solves, residuals, by the kernels of
// vocabulary/front_solve.hpp in the order of solve_schedule.hpp. Right-hand sides in device memory stay there.
//
// Many right-hand sides go in groups of as many columns as there is room for; each column's numbers are the same bits
// in any company. Nothing waits for the host within a group but, at its end, for the norms of residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/error.hpp>

#include "sparse/device/lines.hpp"
#include "sparse/device/plan/front_rounds.hpp"
#include "sparse/device/solve_tables.hpp"
#include "sparse/device/uses.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceSolve final : public DeviceUses<T>, private DeviceLines<B, T> {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

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
  /// staged plan sends it, all right-hand sides that rode along are the host's.
  bool can(FactorUse use) const override {
    constexpr bool reaches_host = std::is_pointer_v<Pointer<T>>;
    if (use == FactorUse::solve_riding) return reaches_host;
    return q_here_ || (use == FactorUse::solve && !factors_.options().keep_q);
  }
  bool pays(FactorUse use, Index cols, bool resident) const override {
    const UseSeconds seconds = cost_.seconds(use, cols, resident);
    return seconds.device < seconds.host;
  }

  void check_finite(const char* name, MatrixView<const T> a) override {
    dense::check_finite<B, T>(queue_, name, dense::as_device<B>(a), a.layout == Layout::row_major);
  }

  void apply(Op op, MatrixView<T> c) override {
    const bool transpose = op == Op::transpose;
    in_groups(c.cols, {.q = true}, [&](Index first, Index cols) {
      const MatrixView<T> part = columns(c, first, cols);
      const User user(*this, part);
      Group group(*this, cols, lines({.q = true}));
      const auto& order = run().q_order;
      const auto& rows = pattern().row_perm;
      take(user, transpose ? rows : order, group.by_row, s().rows, group, !transpose);
      reflect(op, group);
      give(group.by_row, s().rows, group, user, transpose ? order : rows, transpose);
      user.store(part);
    });
  }

  SparseSolution<T> solve(MatrixView<const T> b) override {
    const bool q = factors_.options().keep_q;
    const Needs needs{.r = true, .up = !q, .q = q};
    SparseSolution<T> solution = start();
    Output x(*this, s().cols, b.cols, b.memory);
    in_groups(b.cols, needs, [&](Index first, Index cols) {
      const User user(*this, columns(b, first, cols));
      Group group(*this, cols, lines(needs));
      const auto take_b = [&] { take(user, pattern().row_perm, group.by_row, s().rows, group); };
      take_b();
      if (q) {
        reflect(Op::transpose, group);
        copy_by(group.by_row, run().r_rows, group.y, {}, factors_.rank(), group);
        down(group);
        take_b();
        add_product(-1, group.x, group);
        give(group.x, s().cols, group, x.columns(first, cols), pattern().col_perm, false, fronts_.exponents);
      } else {
        // Rᵀ R x = Sᵀ b, then once more for what is left (Björck, "Stability analysis of the method of seminormal
        // equations for linear least squares problems", 1987)
        zero(group.total, s().cols, group);
        for (int pass = 0; pass < 2; ++pass) {
          add_transposed_product(1, {}, group);
          up(group);
          down(group);
          copy_by(group.x, {}, group.total, {}, s().cols, group, true);
          take_b();
          add_product(-1, group.total, group);
        }
        give(group.total, s().cols, group, x.columns(first, cols), pattern().col_perm, false, fronts_.exponents);
      }
      add_norms(group.by_row, s().rows, {}, group, solution);
    });
    solution.x = x.finish();
    return solution;
  }

  SparseSolution<T> solve_riding(Memory where) override {
    const Needs needs{.r = true};
    SparseSolution<T> solution = start();
    Output x(*this, s().cols, fronts_.rhs_cols, where);
    in_groups(fronts_.rhs_cols, needs, [&](Index first, Index cols) {
      Group group(*this, cols, lines(needs));
      copy_lines(queue_, backend::CopyLines<B, T>{.source = fronts_.rhs + first * fronts_.rhs_ld,
                                                 .target = group.y,
                                                 .source_index = run().r_rows,
                                                 .source_line = 1,
                                                 .source_step = fronts_.rhs_ld,
                                                 .target_line = cols,
                                                 .count = factors_.rank(),
                                                 .cols = static_cast<std::int32_t>(cols)});
      down(group);
      give(group.x, s().cols, group, x.columns(first, cols), pattern().col_perm, false, fronts_.exponents);
    });
    solution.x = x.finish();
    return solution;
  }

  SparseSolution<T> solve_transposed(MatrixView<const T> b) override {
    const Needs needs{.r = true, .up = true, .q = true};
    SparseSolution<T> solution = start();
    Output x(*this, s().rows, b.cols, b.memory);
    in_groups(b.cols, needs, [&](Index first, Index cols) {
      const User user(*this, columns(b, first, cols));
      Group group(*this, cols, lines(needs));
      const auto take_b = [&] { take(user, pattern().col_perm, group.z, s().cols, group, false, fronts_.exponents); };
      take_b();
      up(group);
      zero(group.by_row, s().rows, group);
      copy_by(group.y, {}, group.by_row, run().r_rows, factors_.rank(), group);
      reflect(Op::none, group);
      take_b();
      add_transposed_product(-1, group.z, group);
      give(group.by_row, s().rows, group, x.columns(first, cols), pattern().row_perm, false);
      add_norms(group.z, s().cols, fronts_.exponents, group, solution);
    });
    solution.x = x.finish();
    return solution;
  }

 private:
  using Lines = DeviceLines<B, T>;
  using Lines::add_norms, Lines::columns, Lines::copy_by, Lines::give, Lines::queue_, Lines::sum, Lines::take,
      Lines::zero;
  using typename Lines::Group, typename Lines::Output, typename Lines::User;
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

  /// What a use takes beside the user's columns.
  struct Needs {
    bool r = false, up = false, q = false;
  };
  /// Elements for one right-hand side.
  Index elements(const Needs& needs) {
    const Index slots = static_cast<Index>(s().front_cols.size());
    return s().rows + std::max(s().rows, s().cols) + (needs.r ? factors_.rank() + 2 * s().cols : 0) +
           (needs.up ? slots + s().cols : 0) + (needs.q ? pattern().q.most_parts * fronts_.panel : 0);
  }

  typename Lines::GroupLines lines(const Needs& needs) {
    typename Lines::GroupLines count;
    count.by_row = s().rows;
    if (needs.r) {
      count.x = s().cols;
      count.y = factors_.rank();
    }
    if (needs.up) {
      count.z = s().cols;
      count.w = static_cast<Index>(s().front_cols.size());
    }
    if (needs.r && needs.up && !needs.q) count.total = s().cols;
    if (needs.q) count.products = pattern().q.most_parts * fronts_.panel;
    return count;
  }

  /// work(first column, columns), so many at a time as there is room for.
  template <class Work>
  void in_groups(Index cols, const Needs& needs, Work work) {
    if (cols == 0) return;
    const Index column = elements(needs) * static_cast<Index>(sizeof(T));
    const Index room = std::min<Index>(room_bytes_ < 0 ? usual_room : room_bytes_, usual_room);
    const Index step = std::clamp<Index>(room / std::max<Index>(column, 1), 1, most_cols);
    for (Index first = 0; first < cols; first += step) work(first, std::min(step, cols - first));
  }

  SparseSolution<T> start() const {
    SparseSolution<T> solution;
    solution.rank = factors_.rank();
    solution.full = std::min(s().rows, s().cols);
    return solution;
  }

  // -- products with S --------------------------------------------------------------------------------------------

  /// by_row += sign S x.
  void add_product(int sign, const Pointer<T>& x, const Group& group) {
    sum({.out = group.by_row,
         .in = group.by_row,
         .x = x,
         .values = fronts_.values,
         .index = pattern().col_index,
         .begin = fronts_.row_begin,
         .count = s().rows,
         .sign = sign},
        group);
  }
  /// z := in + sign Sᵀ by_row.
  void add_transposed_product(int sign, const Pointer<T>& in, const Group& group) {
    const TransposeTables<B>& t = transposed();
    sum({.out = group.z,
         .in = in,
         .x = group.by_row,
         .values = fronts_.values,
         .index = t.row,
         .entry = t.entry,
         .begin = t.begin,
         .count = s().cols,
         .sign = sign},
        group);
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

  /// x from R x = y; y is destroyed.
  void down(const Group& group) {
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
  /// y from Rᵀ y = z; z is destroyed.
  void up(const Group& group) {
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

  /// by_row := Qᵀ or Q of it.
  void reflect(Op op, const Group& group) {
    const PatternTables<B>& t = pattern();
    backend::FrontReflect<B, T> f;
    f.panel = fronts_.panel;
    f.cols = static_cast<std::int32_t>(group.cols);
    f.shapes = fronts_.shapes;
    f.panels = fronts_.panels;
    f.row_ids = fronts_.row_ids;
    f.storage = fronts_.storage;
    f.lines = group.by_row;
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
