// SPDX-License-Identifier: Apache-2.0
// QR tile kernels of the CPU backend, the nodes of a tree: one thread per task, BLAS inside.
//
// A node gathers the rows that a group of columns really touches (of head 0 only the group's own rows; of the others
// the rows above the group's end), so the stacked triangles cost what LAPACK's tpqrt costs and stay triangles.
#include "cpu/panels/tile.hpp"

namespace qrane::backend::cpu {

using namespace tiles;

namespace {

/// The stacked triangles of one tree node, and the rows of them that a group of columns touches.
template <class T>
struct Heads {
  T* data;  // head 0, column 0
  Index count, stride, ld, cols;

  T* at(Index head, Index j) const { return data + head * stride + j * ld; }
  /// Rows of group [j, j + n): n of head 0, the first j + n of every other head.
  Index group_rows(Index j, Index n) const { return n + (count - 1) * (j + n); }

  /// Moves whole rows of columns [first, first + c.cols) between the heads of `matrix` and a dense tile.
  template <bool to_tile>
  static void move_rows(T* matrix, Index count, Index stride, Index ld, Index j, Index n, const Tile<T>& c) {
    for (Index col = 0; col < c.cols; ++col) {
      T* y = c.column(col);
      for (Index head = 0; head < count; ++head) {
        T* x = matrix + head * stride + col * ld + (head == 0 ? j : 0);
        const Index rows = head == 0 ? n : j + n;
        if constexpr (to_tile)
          std::copy(x, x + rows, y);
        else
          std::copy(y, y + rows, x);
        y += rows;
      }
    }
  }

  /// As move_rows for the group's own columns, upper triangles only; zeros below when gathering.
  template <bool to_tile>
  void move_group(Index j, Index n, const Tile<T>& c) const {
    for (Index col = 0; col < n; ++col) {
      T* y = c.column(col);
      for (Index head = 0; head < count; ++head) {
        T* x = at(head, j + col) + (head == 0 ? j : 0);
        const Index rows = head == 0 ? n : j + n;
        const Index live = head == 0 ? col + 1 : j + col + 1;
        if constexpr (to_tile) {
          std::copy(x, x + live, y);
          std::fill(y + live, y + rows, T(0));
        } else {
          std::copy(y, y + live, x);
        }
        y += rows;
      }
    }
  }

  /// V of a factored group: the identity on top of the other heads' triangles.
  Tile<T> group_v(Index j, Index n, Workspace<T>& work) const {
    const Index rows = group_rows(j, n);
    const Tile<T> v{work.get(slot_v, rows * n), rows, n, rows};
    move_group<true>(j, n, v);
    for (Index col = 0; col < n; ++col)
      for (Index i = 0; i < n; ++i) v(i, col) = T(i == col);
    return v;
  }
};

/// tpqrt of stacked triangles.
template <class T>
void factor_heads(const Heads<T>& heads, T* t, Index inner, Workspace<T>& work) {
  std::vector<int> exponents(static_cast<std::size_t>(heads.cols), 0);
  bool scaled = false;
  for (Index j = 0; j < heads.cols; ++j) {
    T largest = 0;  // of the whole stack: all heads of a column are scaled alike
    for (Index head = 0; head < heads.count; ++head) largest = std::max(largest, max_abs(heads.at(head, j), j + 1));
    exponents[static_cast<std::size_t>(j)] = scaling_exponent(largest);
    scaled = scaled || exponents[static_cast<std::size_t>(j)] != 0;
  }
  if (scaled)
    for (Index head = 0; head < heads.count; ++head)
      for (Index j = 0; j < heads.cols; ++j) scale_by(heads.at(head, j), j + 1, exponents[static_cast<std::size_t>(j)]);
  for (Index j = 0; j < heads.cols; j += inner, t += inner * inner) {
    const Index n = std::min(inner, heads.cols - j);
    const Index rows = heads.group_rows(j, n);
    const Tile<T> group{work.get(slot_panel, rows * n), rows, n, rows};
    heads.template move_group<true>(j, n, group);
    factor_columns(group, t, inner, work);
    heads.template move_group<false>(j, n, group);
    const Index right = heads.cols - j - n;
    if (right == 0) continue;
    const Tile<T> v = heads.group_v(j, n, work);
    const Tile<T> c{work.get(slot_c, rows * right), rows, right, rows};
    heads.template move_rows<true>(heads.at(0, j + n), heads.count, heads.stride, heads.ld, j, n, c);
    apply_wy(v, t, inner, Op::transpose, c, work);
    heads.template move_rows<false>(heads.at(0, j + n), heads.count, heads.stride, heads.ld, j, n, c);
  }
  if (scaled)
    for (Index j = 0; j < heads.cols; ++j) scale_by(heads.at(0, j), j + 1, -exponents[static_cast<std::size_t>(j)]);
}

template <class T>
Heads<T> heads_of(const Panel<Cpu, T>& panel, const BlockTask& task) {
  T* first = panel.a.data + task.matrix * panel.a.stride + task.row + task.col * panel.a.ld;
  return {first, task.rows, task.stride, panel.a.ld, task.cols};
}

}  // namespace

template <class T>
void factor_tree(const Queue& queue, const Panel<Cpu, T>& panel) {
  if (queue.skip()) return;
  const blas::SingleThread single;
  std::vector<Workspace<T>> work(static_cast<std::size_t>(queue.threads()));
  queue.workers().run(panel.task_count, operations(panel, panel.max_cols), [&](Index k, int worker) {
    factor_heads(heads_of(panel, panel.tasks[k]), panel.t + panel.tasks[k].t, panel.inner,
                 work[static_cast<std::size_t>(worker)]);
  });
}

template <class T>
void apply_qt_tree(const Queue& queue, const Apply<Cpu, T>& apply) {
  if (queue.skip()) return;
  const Panel<Cpu, T>& panel = apply.panel;
  for_tasks_and_columns(apply, queue.workers(),
                        [&](const BlockTask& task, Index first, Index cols, Workspace<T>& work) {
                          const Heads<T> heads = heads_of(panel, task);
                          T* c = apply.c.data + task.matrix * apply.c.stride + task.row + first * apply.c.ld;
                          for_groups(task.cols, panel.inner, apply.op, [&](Index j, Index n, Index t) {
                            const Tile<T> v = heads.group_v(j, n, work);
                            const Tile<T> rows{work.get(slot_c, v.rows * cols), v.rows, cols, v.rows};
                            Heads<T>::template move_rows<true>(c, task.rows, task.stride, apply.c.ld, j, n, rows);
                            apply_wy(v, panel.t + task.t + t, panel.inner, apply.op, rows, work);
                            Heads<T>::template move_rows<false>(c, task.rows, task.stride, apply.c.ld, j, n, rows);
                          });
                        });
}

#define QRANE_INSTANTIATE(T)                                     \
  template void factor_tree(const Queue&, const Panel<Cpu, T>&); \
  template void apply_qt_tree(const Queue&, const Apply<Cpu, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
