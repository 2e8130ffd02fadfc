// SPDX-License-Identifier: Apache-2.0
// Uses of the factors on the device that holds them: Q and Qᵀ, triangular solves, residuals, by the kernels of
// backend/front_solve.hpp in the order of solve_schedule.hpp. Right-hand sides in device memory stay there.
//
// Many right-hand sides go in groups of as many columns as there is room for; each column's numbers are the same bits in any
// company. Nothing waits for the host within a group
// but, at its end, for the norms of residuals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <qrane/error.hpp>

#include "dense/transfer.hpp"
#include "sparse/device_uses.hpp"
#include "sparse/front_rounds.hpp"
#include "sparse/solve_tables.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceSolve final : public DeviceUses<T> {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  /// What a run has left; all of it outlives this. q_here: and fronts with Q. room_bytes: for more right-hand sides than
  /// one at a time; < 0: no limit.
  DeviceSolve(const Queue& queue, const Factors<T>& factors, const FrontRounds& plan,
              const backend::Fronts<B, T>& fronts, bool q_here, Index room_bytes)
      : queue_(queue),
        factors_(factors),
        plan_(plan),
        fronts_(fronts),
        q_here_(q_here),
        room_bytes_(room_bytes),
        cost_(backend_from_string(B::name), factors.symbolic(), plan.shapes, fronts.panel, plan.storage_size, plan.r_size,
              factors.options().keep_q, sizeof(T)) {}

  /// The factors are another run's.
  void forget_run() { run_.reset(); }

  /// Without Q, solutions must be the same bits in any memory: where kernels do not reach R on the host, to which a staged
  /// plan sends it, all right-hand sides that rode along are the host's.
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
      Group group(*this, cols, {.q = true});
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
      Group group(*this, cols, needs);
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
      Group group(*this, cols, needs);
      queue_.copy_lines(backend::CopyLines<B, T>{.source = fronts_.rhs + first * fronts_.rhs_ld,
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
      Group group(*this, cols, needs);
      const auto take_b = [&] {
        take(user, pattern().col_perm, group.z, s().cols, group, false, fronts_.exponents);
      };
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
  static constexpr Index most_cols = 128;   // of a group
  static constexpr Index norm_parts = 128;  // of the lines whose norms are taken

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

  template <class U>
  static MatrixView<U> columns(MatrixView<U> v, Index first, Index cols) {
    const Index skip = v.layout == Layout::row_major ? first : first * v.ld;
    if (v.data) v.data += skip;
    v.offset += skip;
    v.cols = cols;
    return v;
  }

  /// A user's matrix as lines: where it is, if that is device memory, else a copy.
  class User {
   public:
    User(DeviceSolve& solve, MatrixView<const T> view) : solve_(solve) {
      backend::DeviceMatrix<B, T> m;
      if (dense::is_resident<B>(view)) {
        m = dense::as_device<B>(view);
      } else {
        copy_.emplace(solve.queue_, view.rows, view.cols);
        m = copy_->matrix;
        dense::load<B, T>(solve.queue_, view, m);
      }
      const bool row_major = !copy_ && view.layout == Layout::row_major;
      data = m.data;
      line = row_major ? m.ld : 1;
      step = row_major ? 1 : m.ld;
    }
    void store(MatrixView<T> view) const {
      if (copy_) dense::store<B, T>(solve_.queue_, copy_->matrix, view);
    }
    Pointer<T> data{};
    Index line = 0, step = 0;

   private:
    DeviceSolve& solve_;
    std::optional<dense::Temporary<B, T>> copy_;
  };

  /// A result: in device memory, and then where the right-hand side is.
  class Output {
   public:
    Output(DeviceSolve& solve, Index rows, Index cols, Memory where)
        : solve_(solve), where_(where), matrix_(dense::device_matrix<B, T>(solve.queue_, rows, cols)) {}
    User columns(Index first, Index cols) { return User(solve_, DeviceSolve::columns(matrix_.view(), first, cols)); }
    Matrix<T> finish() {
      if (where_ == Memory::device) return std::move(matrix_);
      return dense::export_matrix<B, T>(solve_.queue_, dense::as_device<B>(matrix_.view()), where_);
    }

   private:
    DeviceSolve& solve_;
    Memory where_;
    Matrix<T> matrix_;
  };

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

  /// Lines of a group of right-hand sides.
  struct Group {
    Group(DeviceSolve& solve, Index columns, const Needs& needs) : cols(columns) {
      dense::Carver<B> counting;
      carve(counting, solve, needs);
      memory = dense::Buffer<B>(solve.queue_, counting.used());
      dense::Carver<B> carver(memory.template as<std::byte>());
      carve(carver, solve, needs);
    }
    void carve(dense::Carver<B>& carver, DeviceSolve& solve, const Needs& needs) {
      const Symbolic& s = solve.s();
      by_row = carver.template take<T>(s.rows * cols);
      partials = carver.template take<double>(2 * norm_parts * cols);
      if (needs.r) {
        x = carver.template take<T>(s.cols * cols);
        y = carver.template take<T>(solve.factors_.rank() * cols);
      }
      if (needs.up) {
        z = carver.template take<T>(s.cols * cols);
        w = carver.template take<T>(static_cast<Index>(s.front_cols.size()) * cols);
      }
      if (needs.r && needs.up && !needs.q) total = carver.template take<T>(s.cols * cols);
      if (needs.q) products = carver.template take<T>(solve.pattern().q.most_parts * solve.fronts_.panel * cols);
    }
    Index cols;
    dense::Buffer<B> memory;
    Pointer<T> by_row{}, x{}, y{}, z{}, w{}, total{}, products{};
    Pointer<double> partials{};
  };

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

  /// target line k := the user's line list[k] or, `identity`: the other way round, target line list[k] := line k.
  void take(const User& user, const Pointer<std::int32_t>& list, const Pointer<T>& target, Index count,
            const Group& group, bool scattered = false, const Pointer<std::int32_t>& exponents = {}) {
    queue_.copy_lines(backend::CopyLines<B, T>{.source = user.data,
                                               .target = target,
                                               .source_index = scattered ? Pointer<std::int32_t>{} : list,
                                               .target_index = scattered ? list : Pointer<std::int32_t>{},
                                               .exponents = exponents,
                                               .source_line = user.line,
                                               .source_step = user.step,
                                               .target_line = group.cols,
                                               .count = count,
                                               .cols = static_cast<std::int32_t>(group.cols)});
  }
  /// The user's line list[k] := line k or, `gathered`, line k := line list[k].
  void give(const Pointer<T>& source, Index count, const Group& group, const User& user,
            const Pointer<std::int32_t>& list, bool gathered, const Pointer<std::int32_t>& exponents = {}) {
    queue_.copy_lines(backend::CopyLines<B, T>{.source = source,
                                               .target = user.data,
                                               .source_index = gathered ? list : Pointer<std::int32_t>{},
                                               .target_index = gathered ? Pointer<std::int32_t>{} : list,
                                               .exponents = exponents,
                                               .source_line = group.cols,
                                               .target_line = user.line,
                                               .target_step = user.step,
                                               .count = count,
                                               .cols = static_cast<std::int32_t>(group.cols)});
  }
  void copy_by(const Pointer<T>& source, const Pointer<std::int32_t>& source_index, const Pointer<T>& target,
               const Pointer<std::int32_t>& target_index, Index count, const Group& group, bool add = false) {
    queue_.copy_lines(backend::CopyLines<B, T>{.source = source,
                                               .target = target,
                                               .source_index = source_index,
                                               .target_index = target_index,
                                               .source_line = group.cols,
                                               .target_line = group.cols,
                                               .count = count,
                                               .cols = static_cast<std::int32_t>(group.cols),
                                               .add = add});
  }
  void zero(const Pointer<T>& lines, Index count, const Group& group) {
    const Index size = count * group.cols;
    if (size > 0) queue_.fill(backend::DeviceMatrix<B, T>{lines, size, 1, size, 0, 1}, T(0), T(0));
  }

  // -- products with S --------------------------------------------------------------------------------------------

  /// by_row += sign S x.
  void add_product(int sign, const Pointer<T>& x, const Group& group) {
    sum({.out = group.by_row, .in = group.by_row, .x = x, .values = fronts_.values, .index = pattern().col_index,
         .begin = fronts_.row_begin, .count = s().rows, .sign = sign},
        group);
  }
  /// z := in + sign Sᵀ by_row.
  void add_transposed_product(int sign, const Pointer<T>& in, const Group& group) {
    const TransposeTables<B>& t = transposed();
    sum({.out = group.z, .in = in, .x = group.by_row, .values = fronts_.values, .index = t.row, .entry = t.entry,
         .begin = t.begin, .count = s().cols, .sign = sign},
        group);
  }
  void sum(backend::SumLines<B, T> task, const Group& group) {
    task.cols = static_cast<std::int32_t>(group.cols);
    if (task.count > 0) queue_.sum_lines(task);
  }

  void add_norms(const Pointer<T>& lines, Index count, const Pointer<std::int32_t>& exponents, const Group& group,
                 SparseSolution<T>& solution) {
    backend::NormLines<B, T> task{.lines = lines,
                                  .exponents = exponents,
                                  .partials = group.partials,
                                  .count = count,
                                  .cols = static_cast<std::int32_t>(group.cols),
                                  .sign = -1,
                                  .parts = static_cast<std::int32_t>(norm_parts)};
    queue_.norm_lines(task);
    std::vector<double> partials(static_cast<std::size_t>(2 * norm_parts * group.cols));
    queue_.download(group.partials, partials.data(), static_cast<Index>(partials.size()));
    for (Index c = 0; c < group.cols; ++c) {
      long double squares = 0;
      for (Index p = 0; p < norm_parts; ++p) {
        const double* const pair = partials.data() + 2 * (p * group.cols + c);
        squares += static_cast<long double>(pair[0]) * pair[0] * pair[1];
      }
      solution.residual_norms.push_back(static_cast<double>(std::sqrt(squares)));
    }
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
        queue_.update_front_rows(f, tasks(t.down_blocks, launch), Op::none);
      else
        queue_.solve_front_rows(f, tasks(t.down_blocks, launch), Op::none);
    }
    singletons(t.singletons.down_begin, {.out = group.x, .in = group.y, .x = group.x, .values = fronts_.values,
                                         .list = t.single_down, .index = t.col_index, .begin = fronts_.row_begin},
               group);
  }
  /// y from Rᵀ y = z; z is destroyed.
  void up(const Group& group) {
    const PatternTables<B>& t = pattern();
    const backend::FrontSolve<B, T> f = bound(group);
    const backend::SumLines<B, T> columns{.x = group.y, .values = fronts_.values, .index = t.single_row,
                                          .entry = t.single_entry, .begin = t.single_begin, .sign = -1};
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
          sum({.out = group.w, .in = group.z, .x = group.w, .list = t.slots + launch.first, .in_index = t.own,
               .index = t.sources, .begin = t.sources_begin, .count = launch.count},
              group);
          break;
        case SolveStep::update: queue_.update_front_rows(f, tasks(t.up_blocks, launch), Op::transpose); break;
        default: queue_.solve_front_rows(f, tasks(t.up_blocks, launch), Op::transpose);
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
        queue_.reflect_front_lines(f, tasks(t.whole, launch), op);
      } else {
        queue_.multiply_front_panels(f, tasks(t.parts, launch));
        queue_.update_front_lines(f, tasks(t.parts, launch), op);
      }
    }
  }

  static constexpr Index usual_room = Index{1} << 30;  // bytes

  Queue queue_;
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
