// SPDX-License-Identifier: Apache-2.0
// QR tile kernels of the CPU backend, contiguous blocks: one thread per task, BLAS inside. Flops of a block of r rows,
// c columns: 2 r c^2 - 2 c^3 / 3.
#include "cpu/panels/tile.hpp"

namespace qrane::backend::cpu {

using namespace tiles;

namespace {

/// geqrt of one contiguous block.
template <class T>
void factor_block(const Tile<T>& a, T* t, Index inner, Workspace<T>& work) {
  const std::vector<int> exponents = scaling_exponents(a);
  if (!exponents.empty())
    for (Index j = 0; j < a.cols; ++j) scale_by(a.column(j), a.rows, exponents[static_cast<std::size_t>(j)]);
  for (Index j = 0; j < a.cols; j += inner, t += inner * inner) {
    const Index n = std::min(inner, a.cols - j), right = a.cols - j - n, top = std::min(j, a.rows);
    const Tile<T> group{a.column(j) + top, a.rows - top, n, a.ld};
    factor_columns(group, t, inner, work);
    if (group.rows == 0 || right == 0) continue;
    apply_wy(explicit_v(group, work), t, inner, Op::transpose, {a.column(j + n) + top, group.rows, right, a.ld}, work);
  }
  if (!exponents.empty())
    for (Index j = 0; j < a.cols; ++j)
      scale_by(a.column(j), std::min(j + 1, a.rows), -exponents[static_cast<std::size_t>(j)]);
}

}  // namespace

template <class T>
void factor(const Queue& queue, const Panel<Cpu, T>& panel) {
  if (queue.skip()) return;
  const blas::SingleThread single;
  std::vector<Workspace<T>> work(static_cast<std::size_t>(queue.threads()));
  queue.workers().run(panel.task_count, operations(panel, panel.max_cols), [&](Index k, int worker) {
    const BlockTask& task = panel.tasks[k];
    const Tile<T> block{panel.a.data + task.matrix * panel.a.stride + task.row + task.col * panel.a.ld, task.rows,
                        task.cols, panel.a.ld};
    factor_block(block, panel.t + task.t, panel.inner, work[static_cast<std::size_t>(worker)]);
  });
}

template <class T>
void apply_qt_h(const Queue& queue, const Apply<Cpu, T>& apply) {
  if (queue.skip()) return;
  const Panel<Cpu, T>& panel = apply.panel;
  for_tasks_and_columns(
      apply, queue.workers(), [&](const BlockTask& task, Index first, Index cols, Workspace<T>& work) {
        const T* block = panel.a.data + task.matrix * panel.a.stride + task.row + task.col * panel.a.ld;
        T* c = apply.c.data + task.matrix * apply.c.stride + task.row + first * apply.c.ld;
        for_groups(task.cols, panel.inner, apply.op, [&](Index j, Index n, Index t) {
          if (j >= task.rows) return;
          const Tile<T> group{const_cast<T*>(block) + j + j * panel.a.ld, task.rows - j, n, panel.a.ld};
          apply_wy(explicit_v(group, work), panel.t + task.t + t, panel.inner, apply.op,
                   {c + j, task.rows - j, cols, apply.c.ld}, work);
        });
      });
}

#define QRANE_INSTANTIATE(T)                                \
  template void factor(const Queue&, const Panel<Cpu, T>&); \
  template void apply_qt_h(const Queue&, const Apply<Cpu, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)

}  // namespace qrane::backend::cpu
