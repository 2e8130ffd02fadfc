// SPDX-License-Identifier: Apache-2.0
// Frontal matrices on the CPU, word for word as vocabulary/fronts.hpp defines them: the reference of the other
// backends. (The CPU's own way through a sparse matrix is sparse/host/numeric.hpp.)
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/queue/blas.hpp"
#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

template <class T>
class Front {
 public:
  Front(const Fronts<Cpu, T>& fronts, std::int32_t number)
      : f_(fronts), shape_(fronts.shapes[number]), state_(fronts.states[number]), width_(fronts.panel) {}

  Index cols() const { return shape_.cols; }
  /// Columns of the front and of the right-hand sides.
  Index all_cols() const { return shape_.cols + f_.rhs_cols; }
  std::int32_t panels() const { return (shape_.cols + f_.panel - 1) / f_.panel; }
  Index panel_end(std::int32_t k) const { return std::min<Index>(shape_.cols, (k + 1) * width_); }

  void lay_out() const;
  /// Columns [first, last); those from cols() on are right-hand sides.
  void assemble(Index first, Index last) const;
  void factor_panel(std::int32_t k) const;
  void update(std::int32_t k, Index first, Index cols) const;
  void finish(Index first, Index last) const;
  void pack(const FrontPieceTask& piece) const;
  void unpack(const FrontPieceTask& piece) const;

 private:
  T* column(Index j) const { return f_.storage + shape_.matrix + j * shape_.ld; }
  T* corner(Index j) const { return f_.storage + shape_.corner + j * width_; }
  T* t(Index j) const { return f_.storage + shape_.t + j * width_; }
  std::int32_t& pivot(Index j) const { return f_.pivot[shape_.columns + j]; }
  FrontPanelState& panel(Index k) const { return f_.panels[shape_.panels + k]; }
  /// R(i, j), wherever it is.
  T r(Index i, Index j) const {
    const Index first_row = panel(j / width_).first_row;
    return i < first_row ? column(j)[i] : corner(j)[i - first_row];
  }
  T block(Index i, Index j) const { return r(state_.r_rows + i, shape_.pivots + j); }
  /// f(child, the child's columns in this front from the first one of its contribution block on)
  template <class F>
  void for_each_child(F&& f) const {
    for (Index c = 0; c < shape_.child_count; ++c) {
      const Front child(f_, f_.children[shape_.children + c]);
      f(child, f_.parent_col + child.shape_.columns + child.shape_.pivots);
    }
  }
  bool drop(Index j, double norm, double& true_norm) const;
  /// R of column j from the panel's first row to `row` goes to the corner, zeros take its place.
  void move_to_corner(Index j, Index first_row, Index row) const;
  void reflect(const T* v, T tau, Index row, Index height, Index first, Index last) const;

  const Fronts<Cpu, T>& f_;
  const FrontShape& shape_;
  FrontState& state_;
  Index width_;
};

template <class T>
void Front<T>::lay_out() const {
  std::int32_t* const stair = f_.stair + shape_.columns;
  const auto own = [&](auto&& place) {
    for (Index r = shape_.first_row; r < shape_.first_row + shape_.own_rows; ++r) place(f_.own_column[r], r);
  };
  const auto children = [&](auto&& place) {
    for_each_child([&](const Front& child, const std::int32_t* cols) {
      for (Index i = 0; i < child.state_.cb_rows; ++i) place(cols[i], child, i);
    });
  };
  // How many rows begin in each column, then where those rows begin, which the placing turns into where they end.
  std::fill_n(stair, shape_.cols, 0);
  own([&](std::int32_t col, Index) { ++stair[col]; });
  children([&](std::int32_t col, const Front&, Index) { ++stair[col]; });
  std::int32_t rows = 0;
  for (Index j = 0; j < shape_.cols; ++j) {
    const std::int32_t count = stair[j];
    stair[j] = rows;
    rows += count;
  }
  std::int32_t* const ids = f_.row_ids + shape_.row_ids;
  own([&](std::int32_t col, Index r) {
    const std::int32_t slot = stair[col]++;
    f_.own_slot[r] = slot;
    ids[slot] = static_cast<std::int32_t>(r);
  });
  children([&](std::int32_t col, const Front& child, Index i) {
    const std::int32_t slot = stair[col]++;
    f_.cb_slot[child.shape_.slots + i] = slot;
    ids[slot] = f_.row_ids[child.shape_.row_ids + child.state_.r_rows + i];
  });
  state_ = {0, rows, 0, 0, 0};
}

template <class T>
void Front<T>::assemble(Index first, Index last) const {
  constexpr Index vector = 16;  // kernels may read whole vectors
  const Index zeros = std::min<Index>(shape_.ld, (state_.rows + vector - 1) / vector * vector);
  for (Index j = first; j < last; ++j) std::fill_n(column(j), zeros, T(0));
  for (Index r = shape_.first_row; r < shape_.first_row + shape_.own_rows; ++r)
    for (Index p = f_.row_begin[r]; p < f_.row_begin[r + 1]; ++p)
      if (const Index j = f_.entry_col[p]; j >= first && j < last) column(j)[f_.own_slot[r]] = f_.values[p];
  for_each_child([&](const Front& child, const std::int32_t* cols) {
    if (child.shape_.packed < 0) return;
    const std::int32_t* const slot = f_.cb_slot + child.shape_.slots;
    for (Index j = 0; j < child.shape_.cols - child.shape_.pivots; ++j) {
      if (cols[j] < first || cols[j] >= last) continue;
      T* const target = column(cols[j]);
      const T* const packed = f_.storage + child.shape_.packed + packed_front_block(j, child.shape_.cb_bound);
      for (Index i = 0; i < std::min<Index>(j + 1, child.state_.cb_rows); ++i)
        target[slot[i]] = child.shape_.packed > 0 ? packed[i] : child.block(i, j);
    }
  });
  const std::int32_t* const ids = f_.row_ids + shape_.row_ids;
  for (Index j = std::max(first, cols()); j < last; ++j)
    for (Index i = 0; i < state_.rows; ++i) column(j)[i] = f_.rhs[ids[i] + (j - cols()) * f_.rhs_ld];
}

template <class T>
bool Front<T>::drop(Index j, double norm, double& true_norm) const {
  if (f_.tolerance < 0 || j >= shape_.pivots) return false;
  true_norm = f_.exponents ? std::ldexp(norm, -f_.exponents[shape_.first_col + j]) : norm;
  return (f_.scaled_tolerance ? norm : true_norm) <= f_.tolerance;  // NaN stays
}

template <class T>
void Front<T>::move_to_corner(Index j, Index first_row, Index row) const {
  T* const x = column(j);
  std::copy(x + first_row, x + row, corner(j));
  std::fill(x + first_row, x + row, T(0));
}

/// Columns [first, last) := (I - tau v vᵀ) of them in rows row .. height - 1.
template <class T>
void Front<T>::reflect(const T* v, T tau, Index row, Index height, Index first, Index last) const {
  for (Index j = first; j < last; ++j) {
    T* const c = column(j);
    T sum = 0;
    for (Index i = row; i < height; ++i) sum += v[i] * c[i];
    for (Index i = row; i < height; ++i) c[i] -= tau * sum * v[i];
  }
}

template <class T>
void Front<T>::factor_panel(std::int32_t k) const {
  // squares below this underflow, and columns are scaled so that nothing is lost with what is below it
  constexpr T negligible = sizeof(T) == 4 ? T(1e-34) : T(1e-290);
  const Index begin = k * width_, end = panel_end(k), rows = state_.rows, first_row = state_.position;
  Index row = first_row, bottom = first_row;  // the next pivot's; end of the longest column so far
  for (Index j = begin; j < end; ++j) {
    T* const x = column(j);
    std::fill_n(corner(j), width_, T(0));
    std::fill_n(t(j), width_, T(0));
    pivot(j) = -1;
    if (row >= rows) {
      move_to_corner(j, first_row, rows);
      continue;
    }
    const Index height = std::min<Index>(rows, std::max<Index>(f_.stair[shape_.columns + j], row + 1));
    bottom = std::max(bottom, height);
    const T alpha = x[row];
    T tail = 0;
    for (Index i = row + 1; i < height; ++i) tail += x[i] * x[i];
    const T norm = std::sqrt(alpha * alpha + tail);
    if (double true_norm; drop(j, norm, true_norm)) {
      state_.dropped += true_norm * true_norm;
      move_to_corner(j, first_row, row);
      std::fill(x + row, x + height, T(0));
      continue;
    }
    T tau = 0, beta = alpha;
    if (tail <= negligible) {  // H = I; NaN goes the other way and spreads
      std::fill(x + row + 1, x + height, T(0));
    } else {
      beta = -std::copysign(norm, alpha);
      tau = (beta - alpha) / beta;
      for (Index i = row + 1; i < height; ++i) x[i] /= alpha - beta;
    }
    move_to_corner(j, first_row, row);
    corner(j)[row - first_row] = beta;
    x[row] = 1;
    pivot(j) = static_cast<std::int32_t>(row);
    if (tau != 0) {
      reflect(x, tau, row, height, j + 1, end);
      // T(:, j) = -tau T Vᵀ v
      T* const tj = t(j);
      for (Index l = begin; l < j; ++l) {
        T z = 0;
        for (Index i = row; i < height; ++i) z += column(l)[i] * x[i];
        for (Index i = 0; i <= l - begin; ++i) tj[i] -= tau * t(l)[i] * z;
      }
      tj[j - begin] = tau;
    }
    ++row;
    state_.r_rows += j < shape_.pivots;
  }
  panel(k) = {static_cast<std::int32_t>(first_row), static_cast<std::int32_t>(bottom - first_row),
              static_cast<std::int32_t>(row - first_row), 0};
  state_.position = static_cast<std::int32_t>(row);
}

template <class T>
void Front<T>::update(std::int32_t k, Index first, Index cols) const {
  const FrontPanelState& state = panel(k);
  if (state.live == 0 || cols <= 0) return;
  const Index begin = k * width_, n = panel_end(k) - begin;
  const T* const v = column(begin) + state.first_row;
  T* const c = column(first) + state.first_row;
  std::vector<T> w(static_cast<std::size_t>(n * cols));
  // w = Vᵀ C;  w = Tᵀ w;  C = C - V w
  blas::gemm(Op::transpose, Op::none, n, cols, state.height, T(1), v, shape_.ld, c, shape_.ld, T(0), w.data(), n);
  blas::trmm_upper(Op::transpose, n, cols, t(begin), width_, w.data(), n);
  blas::gemm(Op::none, Op::none, state.height, cols, n, T(-1), v, shape_.ld, w.data(), n, T(1), c, shape_.ld);
}

template <class T>
void Front<T>::finish(Index first, Index last) const {
  if (first == 0) state_.cb_rows = std::min(state_.rows - state_.r_rows, shape_.cols - shape_.pivots);
  T* target = f_.r + shape_.r;
  Index live = 0;
  for (Index j = 0; j < std::min(last, cols()); ++j) {
    const bool pivotal = j < shape_.pivots;
    if (pivotal) live += pivot(j) >= 0;
    if (j >= first)
      for (Index i = 0; i < live; ++i) target[i] = r(i, j);
    target += std::min<Index>(pivotal ? j + 1 : shape_.r_bound, shape_.r_bound);
  }
  const std::int32_t* const ids = f_.row_ids + shape_.row_ids;
  for (Index j = std::max(first, cols()); j < last; ++j)
    for (Index i = 0; i < state_.rows; ++i) f_.rhs[ids[i] + (j - cols()) * f_.rhs_ld] = column(j)[i];
}

template <class T>
void Front<T>::pack(const FrontPieceTask& piece) const {
  T* target = f_.storage + piece.place;
  for (Index j = piece.first; j < piece.first + piece.cols; ++j) {
    for (Index i = 0; i < std::min<Index>(j + 1, state_.cb_rows); ++i) target[i] = block(i, j);
    target += std::min<Index>(j + 1, shape_.cb_bound);
  }
}

template <class T>
void Front<T>::unpack(const FrontPieceTask& piece) const {
  const Front parent(f_, piece.parent);
  const std::int32_t* const slot = f_.cb_slot + shape_.slots;
  const T* source = f_.storage + piece.place;
  for (Index j = piece.first; j < piece.first + piece.cols; ++j) {
    T* const target = parent.column(f_.parent_col[shape_.columns + shape_.pivots + j]);
    for (Index i = 0; i < std::min<Index>(j + 1, state_.cb_rows); ++i) target[slot[i]] = source[i];
    source += std::min<Index>(j + 1, shape_.cb_bound);
  }
}

/// For the pool: operations of `count` tasks of about so many each.
template <class Task>
Index operations(const FrontTasks<Cpu, Task>& tasks, Index each_row_and_col) {
  return tasks.count * tasks.max_rows * tasks.max_cols * each_row_and_col;
}

/// body(front, first column, last) for each task's share of the columns.
template <class T, class F>
void run_shares(ThreadPool& workers, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontShare>& tasks, F&& body) {
  workers.run(tasks.count, operations(tasks, 4), [&](Index i, int) {
    const FrontShare& share = tasks.tasks[i];
    const Front<T> front(fronts, share.front);
    body(front, front.all_cols() * share.part / share.parts, front.all_cols() * (share.part + 1) / share.parts);
  });
}

}  // namespace

template <class T>
void lay_out_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, std::int32_t>& list) {
  if (queue.skip()) return;
  queue.workers().run(list.count, list.count * (list.max_rows + list.max_cols) * 8,
                      [&](Index i, int) { Front<T>(fronts, list.tasks[i]).lay_out(); });
}

template <class T>
void assemble_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontShare>& tasks) {
  if (queue.skip()) return;
  run_shares(queue.workers(), fronts, tasks,
             [](const auto& front, Index first, Index last) { front.assemble(first, last); });
}

template <class T>
void factor_front_panels(const Queue& queue, const Fronts<Cpu, T>& fronts,
                         const FrontTasks<Cpu, FrontPanelTask>& tasks) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, tasks.count * tasks.max_rows * fronts.panel * fronts.panel * 3,
                      [&](Index i, int) { Front<T>(fronts, tasks.tasks[i].front).factor_panel(tasks.tasks[i].panel); });
}

template <class T>
void update_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontUpdateTask>& tasks) {
  if (queue.skip()) return;
  const blas::SingleThread single;
  const Index cols = std::min<Index>(tasks.max_cols, queue.limits(T{}).front_update_cols);
  queue.workers().run(tasks.count, tasks.count * tasks.max_rows * cols * fronts.panel * 4, [&](Index i, int) {
    const FrontUpdateTask& task = tasks.tasks[i];
    Front<T>(fronts, task.front).update(task.panel, task.first, task.cols);
  });
}

template <class T>
void finish_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontShare>& tasks) {
  if (queue.skip()) return;
  run_shares(queue.workers(), fronts, tasks,
             [](const auto& front, Index first, Index last) { front.finish(first, last); });
}

template <class T>
void pack_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontPieceTask>& tasks) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, operations(tasks, 4),
                      [&](Index i, int) { Front<T>(fronts, tasks.tasks[i].front).pack(tasks.tasks[i]); });
}

template <class T>
void unpack_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, FrontPieceTask>& tasks) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, operations(tasks, 4),
                      [&](Index i, int) { Front<T>(fronts, tasks.tasks[i].front).unpack(tasks.tasks[i]); });
}

// V and T are written in any case: they are what the panels are made of here.
template <class T>
void factor_whole_fronts(const Queue& queue, const Fronts<Cpu, T>& fronts, const FrontTasks<Cpu, std::int32_t>& list,
                         bool) {
  if (queue.skip()) return;
  const blas::SingleThread single;
  queue.workers().run(list.count, operations(list, 4 * fronts.panel), [&](Index i, int) {
    const Front<T> front(fronts, list.tasks[i]);
    front.lay_out();
    front.assemble(0, front.all_cols());
    for (std::int32_t k = 0; k < front.panels(); ++k) {
      front.factor_panel(k);
      front.update(k, front.panel_end(k), front.all_cols() - front.panel_end(k));
    }
    front.finish(0, front.all_cols());
  });
}

#define QRANE_INSTANTIATE(T)                                                                                      \
  template void lay_out_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, std::int32_t>&);        \
  template void assemble_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontShare>&);         \
  template void factor_front_panels(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontPanelTask>&); \
  template void update_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontUpdateTask>&);      \
  template void finish_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontShare>&);           \
  template void pack_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontPieceTask>&);         \
  template void unpack_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, FrontPieceTask>&);       \
  template void factor_whole_fronts(const Queue&, const Fronts<Cpu, T>&, const FrontTasks<Cpu, std::int32_t>&, bool);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
