// SPDX-License-Identifier: Apache-2.0
// Uses of factored fronts on the CPU, word for word as vocabulary/front_solve.hpp defines them: the reference of the
// other backends. (The CPU's own way is sparse/factors_solve.cpp.)
#include "vocabulary/front_solve.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/whole.hpp"

namespace qrane::backend::cpu {

namespace {

/// A front as a solve sees it.
template <class T>
class SolveFront {
 public:
  SolveFront(const FrontSolve<Cpu, T>& f, const FrontBlock& task)
      : f_(f), task_(task), shape_(f.shapes[task.front]), first_line_(f.r_begin[task.front]) {
    r_rows_ = f.states[task.front].r_rows;
    row_ = std::min<Index>(task.row, r_rows_);
    end_ = std::min<Index>(task.row + task.rows, r_rows_);
  }

  void solve(Op op) const {
    if (op == Op::none) {
      subtract_columns();
      for (Index k = end_ - 1; k >= row_; --k) {
        const T* const r = column(k);
        for (Index c = 0; c < f_.cols; ++c) {
          const T value = y(k)[c] /= r[k];
          for (Index i = row_; i < k; ++i) y(i)[c] -= value * r[i];
          x(k)[c] = value;
        }
      }
      return;
    }
    for (Index k = row_; k < end_; ++k) {
      const T* const r = column(k);
      for (Index c = 0; c < f_.cols; ++c) {
        T sum = w(k)[c];
        for (Index i = row_; i < k; ++i) sum -= r[i] * y(i)[c];
        y(k)[c] = sum / r[k];
      }
    }
    subtract_rows();
  }
  void update(Op op) const { op == Op::none ? subtract_columns() : subtract_rows(); }

 private:
  bool has(Index q) const { return q < r_rows_ || q >= shape_.r_bound; }
  Index local(Index q) const {
    return q < shape_.r_bound ? f_.live[first_line_ + q] : shape_.pivots + q - shape_.r_bound;
  }
  const T* column(Index q) const {
    const Index j = local(q), pivotal = std::min<Index>(j, shape_.pivots), m = shape_.r_bound;
    const Index whole = std::min(pivotal, m);
    return f_.r + shape_.r + whole * (whole + 1) / 2 + (j - whole) * m;
  }
  T* y(Index i) const { return f_.y + (first_line_ + i) * f_.cols; }
  T* x(Index q) const { return f_.x + Index{f_.front_cols[shape_.columns + local(q)]} * f_.cols; }
  T* w(Index q) const { return f_.w + (shape_.columns + local(q)) * f_.cols; }

  void subtract_columns() const {
    for (Index q = task_.first; q < task_.first + task_.cols; ++q) {
      if (!has(q)) continue;
      const T* const r = column(q);
      for (Index i = row_; i < end_; ++i)
        for (Index c = 0; c < f_.cols; ++c) y(i)[c] -= r[i] * x(q)[c];
    }
  }
  void subtract_rows() const {
    for (Index q = task_.first; q < task_.first + task_.cols; ++q) {
      if (!has(q)) continue;
      const T* const r = column(q);
      for (Index c = 0; c < f_.cols; ++c) {
        T sum = 0;
        for (Index i = row_; i < end_; ++i) sum += r[i] * y(i)[c];
        w(q)[c] -= sum;
      }
    }
  }

  const FrontSolve<Cpu, T>& f_;
  const FrontBlock& task_;
  const FrontShape& shape_;
  Index first_line_, r_rows_, row_, end_;
};

/// A panel of Q and the lines of its rows.
template <class T>
class ReflectPanel {
 public:
  ReflectPanel(const FrontReflect<Cpu, T>& f, std::int32_t front, std::int32_t panel)
      : f_(f), shape_(f.shapes[front]), state_(f.panels[shape_.panels + panel]) {
    begin_ = Index{panel} * f.panel;
    n_ = state_.live > 0 ? std::min<Index>(f.panel, shape_.cols - begin_) : 0;
    v_ = f.storage + shape_.matrix + begin_ * shape_.ld + state_.first_row;
    t_ = f.storage + shape_.t + begin_ * f.panel;
    ids_ = f.row_ids + shape_.row_ids + state_.first_row;
  }
  Index row_of(const FrontPanelPart& p, Index part) const { return Index{state_.height} * part / p.parts; }

  /// product := Vᵀ C of those rows.
  void multiply(Index first, Index last, T* product) const {
    std::fill_n(product, f_.panel * f_.cols, T(0));
    for (Index j = 0; j < n_; ++j)
      for (Index i = first; i < last; ++i)
        for (Index c = 0; c < f_.cols; ++c) product[j * f_.cols + c] += v_[i + j * shape_.ld] * line(i)[c];
  }
  /// C of those rows := C - V op(T) (sum of products).
  void subtract(Index first, Index last, Op op, const T* products, Index parts) const {
    const Index size = f_.panel * f_.cols;
    std::vector<T> sum(size, T(0)), u(size, T(0));
    for (Index p = 0; p < parts; ++p)
      for (Index e = 0; e < size; ++e) sum[e] += products[p * size + e];
    for (Index i = 0; i < n_; ++i)
      for (Index j = op == Op::none ? i : 0; j < (op == Op::none ? n_ : i + 1); ++j)
        for (Index c = 0; c < f_.cols; ++c)
          u[i * f_.cols + c] += (op == Op::none ? t_[i + j * f_.panel] : t_[j + i * f_.panel]) * sum[j * f_.cols + c];
    for (Index j = 0; j < n_; ++j)
      for (Index i = first; i < last; ++i)
        for (Index c = 0; c < f_.cols; ++c) line(i)[c] -= v_[i + j * shape_.ld] * u[j * f_.cols + c];
  }
  void reflect(Op op) const {
    std::vector<T> product(Index{f_.panel} * f_.cols);
    multiply(0, state_.height, product.data());
    subtract(0, state_.height, op, product.data(), 1);
  }

 private:
  T* line(Index i) const { return f_.lines + Index{ids_[i]} * f_.cols; }

  const FrontReflect<Cpu, T>& f_;
  const FrontShape& shape_;
  const FrontPanelState& state_;
  Index begin_, n_;
  const T *v_, *t_;
  const std::int32_t* ids_;
};

/// For the pool, roughly.
constexpr Index task_operations = 1 << 14;

}  // namespace

template <class T>
void copy_lines(const Queue& queue, const CopyLines<Cpu, T>& task) {
  if (queue.skip()) return;
  for (Index k = 0; k < task.count; ++k) {
    const T* const from = task.source + (task.source_index ? task.source_index[k] : k) * task.source_line;
    T* const to = task.target + (task.target_index ? task.target_index[k] : k) * task.target_line;
    const int exponent = task.exponents ? task.sign * task.exponents[k] : 0;
    for (Index c = 0; c < task.cols; ++c) {
      const T value = exponent == 0 ? from[c * task.source_step] : std::ldexp(from[c * task.source_step], exponent);
      T& place = to[c * task.target_step];
      place = task.add ? place + value : value;
    }
  }
}

template <class T>
void sum_lines(const Queue& queue, const SumLines<Cpu, T>& task) {
  if (queue.skip()) return;
  const auto value = [&](Index p) { return task.values ? task.values[task.entry ? task.entry[p] : p] : T(1); };
  queue.workers().run(task.count, task.count * task.cols * 16, [&](Index k, int) {
    const Index o = task.list ? task.list[k] : k, i = task.in_index ? task.in_index[o] : o;
    for (Index c = 0; c < task.cols; ++c) {
      T sum = task.in && i >= 0 ? task.in[i * task.cols + c] : T(0);
      for (Index p = task.begin[o] + task.skip; p < task.begin[o + 1]; ++p)
        sum += static_cast<T>(task.sign) * value(p) * task.x[Index{task.index[p]} * task.cols + c];
      task.out[o * task.cols + c] = task.skip > 0 ? sum / value(task.begin[o]) : sum;
    }
  });
}

template <class T>
void norm_lines(const Queue& queue, const NormLines<Cpu, T>& task) {
  if (queue.skip()) return;
  for (Index part = 0; part < task.parts; ++part)
    for (Index c = 0; c < task.cols; ++c) {
      double scale = 0, sum = 0;
      const auto each = [&](auto visit) {
        for (Index k = task.count * part / task.parts; k < task.count * (part + 1) / task.parts; ++k)
          visit(std::abs(std::ldexp(static_cast<double>(task.lines[k * task.cols + c]),
                                    task.exponents ? task.sign * task.exponents[k] : 0)));
      };
      each([&](double v) { scale = std::max(scale, v); });
      const double divisor = scale > 0 && std::isfinite(scale) ? scale : 1;
      each([&](double v) { sum += (v / divisor) * (v / divisor); });
      double* const out = task.partials + 2 * (part * task.cols + c);
      out[0] = divisor;
      out[1] = sum;
    }
}

template <class T>
void solve_front_rows(const Queue& queue, const FrontSolve<Cpu, T>& f, const FrontTasks<Cpu, FrontBlock>& tasks,
                      Op op) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, tasks.count * task_operations,
                      [&](Index i, int) { SolveFront<T>(f, tasks.tasks[i]).solve(op); });
}

template <class T>
void update_front_rows(const Queue& queue, const FrontSolve<Cpu, T>& f, const FrontTasks<Cpu, FrontBlock>& tasks,
                       Op op) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, tasks.count * task_operations,
                      [&](Index i, int) { SolveFront<T>(f, tasks.tasks[i]).update(op); });
}

template <class T>
void reflect_front_lines(const Queue& queue, const FrontReflect<Cpu, T>& f, const FrontTasks<Cpu, std::int32_t>& list,
                         Op op) {
  if (queue.skip()) return;
  queue.workers().run(list.count, list.count * task_operations, [&](Index i, int) {
    const std::int32_t front = list.tasks[i], count = (f.shapes[front].cols + f.panel - 1) / f.panel;
    for (std::int32_t p = 0; p < count; ++p)
      ReflectPanel<T>(f, front, op == Op::transpose ? p : count - 1 - p).reflect(op);
  });
}

template <class T>
void multiply_front_panels(const Queue& queue, const FrontReflect<Cpu, T>& f,
                           const FrontTasks<Cpu, FrontPanelPart>& tasks) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, tasks.count * task_operations, [&](Index i, int) {
    const FrontPanelPart& p = tasks.tasks[i];
    const ReflectPanel<T> panel(f, p.front, p.panel);
    panel.multiply(panel.row_of(p, p.part), panel.row_of(p, p.part + 1), f.products + i * f.panel * f.cols);
  });
}

template <class T>
void update_front_lines(const Queue& queue, const FrontReflect<Cpu, T>& f, const FrontTasks<Cpu, FrontPanelPart>& tasks,
                        Op op) {
  if (queue.skip()) return;
  queue.workers().run(tasks.count, tasks.count * task_operations, [&](Index i, int) {
    const FrontPanelPart& p = tasks.tasks[i];
    const ReflectPanel<T> panel(f, p.front, p.panel);
    panel.subtract(panel.row_of(p, p.part), panel.row_of(p, p.part + 1), op,
                   f.products + (i - p.part) * f.panel * f.cols, p.parts);
  });
}

#define QRANE_INSTANTIATE(T)                                                                                          \
  template void copy_lines(const Queue&, const CopyLines<Cpu, T>&);                                                   \
  template void sum_lines(const Queue&, const SumLines<Cpu, T>&);                                                     \
  template void norm_lines(const Queue&, const NormLines<Cpu, T>&);                                                   \
  template void solve_front_rows(const Queue&, const FrontSolve<Cpu, T>&, const FrontTasks<Cpu, FrontBlock>&, Op);    \
  template void update_front_rows(const Queue&, const FrontSolve<Cpu, T>&, const FrontTasks<Cpu, FrontBlock>&, Op);   \
  template void reflect_front_lines(const Queue&, const FrontReflect<Cpu, T>&, const FrontTasks<Cpu, std::int32_t>&,  \
                                    Op);                                                                              \
  template void multiply_front_panels(const Queue&, const FrontReflect<Cpu, T>&,                                      \
                                      const FrontTasks<Cpu, FrontPanelPart>&);                                        \
  template void update_front_lines(const Queue&, const FrontReflect<Cpu, T>&, const FrontTasks<Cpu, FrontPanelPart>&, \
                                   Op);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
