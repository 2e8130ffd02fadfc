// SPDX-License-Identifier: Apache-2.0
// QR tile kernels of the CPU backend, contiguous blocks: one thread per task, BLAS inside. Flops of a block of r rows,
// c columns: 2 r c^2 - 2 c^3 / 3.
#include "cpu/panels/tile.hpp"

namespace qrane::backend::cpu {

using namespace tiles;

namespace {

/// geqrt of one contiguous block.
template <class T>
void factor_block(const Tile<T>& a, T* t, Index inner, const std::int32_t* staircase, std::int32_t* pivots_out,
                  double drop_tolerance, Workspace<T>& work) {
  const std::vector<int> exponents = scaling_exponents(a);
  if (!exponents.empty())
    for (Index j = 0; j < a.cols; ++j) scale_by(a.column(j), a.rows, exponents[static_cast<std::size_t>(j)]);
  std::vector<std::int32_t> pivots(static_cast<std::size_t>(a.cols));
  Index pivot = 0;
  for (Index j = 0; j < a.cols; j += inner, t += inner * inner) {
    const Index n = std::min(inner, a.cols - j);
    const Index first_row = pivot;
    // rows past the staircase are zero in this group and left alone by it
    const Index height =
        staircase ? std::clamp<Index>(staircase[j + n - 1], std::min(pivot + n, a.rows), a.rows) : a.rows;
    const Tile<T> group{a.column(j), height, n, a.ld};
    const Rules rules{staircase ? staircase + j : nullptr, drop_tolerance, exponents.empty() ? nullptr : &exponents[j]};
    pivot = factor_columns(group, pivot, t, inner, &pivots[j], rules, work);
    if (pivot == first_row || j + n >= a.cols) continue;
    const Tile<T> lower{group.data + first_row, height - first_row, n, a.ld};
    std::vector<std::int32_t> local(&pivots[j], &pivots[j] + n);
    for (auto& p : local) p = p < 0 ? -1 : p - static_cast<std::int32_t>(first_row);
    const Tile<T> v = explicit_v(lower, local.data(), work);
    apply_wy(v, t, inner, Op::transpose, {a.column(j + n) + first_row, lower.rows, a.cols - j - n, a.ld}, work);
  }
  if (!exponents.empty()) {
    Index live = 0;  // R's rows of column j: all pivots up to and including its own
    for (Index j = 0; j < a.cols; ++j) {
      live += pivots[j] >= 0;
      scale_by(a.column(j), std::min(live, a.rows), -exponents[static_cast<std::size_t>(j)]);
    }
  }
  if (pivots_out) std::copy(pivots.begin(), pivots.end(), pivots_out);
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
    factor_block(block, panel.t + task.t, panel.inner,
                 panel.staircase && task.staircase >= 0 ? panel.staircase + task.staircase : nullptr,
                 panel.pivots ? panel.pivots + k * panel.max_cols : nullptr, panel.drop_tolerance,
                 work[static_cast<std::size_t>(worker)]);
  });
}

template <class T>
void apply_qt_h(const Queue& queue, const Apply<Cpu, T>& apply) {
  if (queue.skip()) return;
  const Panel<Cpu, T>& panel = apply.panel;
  for_tasks_and_columns(
      apply, queue.workers(), [&](const BlockTask& task, Index k, Index first, Index cols, Workspace<T>& work) {
        const std::int32_t* pivots = panel.pivots ? panel.pivots + k * panel.max_cols : nullptr;
        const T* block = panel.a.data + task.matrix * panel.a.stride + task.row + task.col * panel.a.ld;
        T* c = apply.c.data + task.matrix * apply.c.stride + task.row + first * apply.c.ld;
        for_groups(task.cols, panel.inner, apply.op, [&](Index j, Index n, Index t) {
          if (!pivots && j >= task.rows) return;
          // without pivots a group's reflectors live in rows j and below
          const Index top = pivots ? 0 : j;
          const Tile<T> group{const_cast<T*>(block) + top + j * panel.a.ld, task.rows - top, n, panel.a.ld};
          const Tile<T> v = explicit_v(group, pivots ? pivots + j : nullptr, work);
          apply_wy(v, panel.t + task.t + t, panel.inner, apply.op, {c + top, task.rows - top, cols, apply.c.ld}, work);
        });
      });
}

#define QRANE_INSTANTIATE(T)                         \
  template void factor(const Queue&, const Panel<Cpu, T>&); \
  template void apply_qt_h(const Queue&, const Apply<Cpu, T>&);
QRANE_INSTANTIATE(float)
QRANE_INSTANTIATE(double)
#undef QRANE_INSTANTIATE

}  // namespace qrane::backend::cpu
