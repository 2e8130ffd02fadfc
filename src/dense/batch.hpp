// SPDX-License-Identifier: Apache-2.0
// Householder QR of a batch of matrices, LAPACK-shaped, every panel by one block: no tree, nothing to reconstruct, and
// each matrix's result depends on that matrix alone.
//
//   small       a backend that factors a whole matrix in one warp does so: V, R and tau, no T (FactorSmall)
//   otherwise   panels of b columns, in blocks of B columns whose panels update the rest of their block; the block's T
//               is put together from its panels', and the matrix at its right is updated once (as in dense/blocked.hpp)
//
//                   first          end
//                 |   R   |  R   |  R   ...           V of a block in `v`, (m - first) x B with its ones and zeros;
//         first   | V \ R |  R   |  R                 T of block k at t + k B^2 per matrix, leading dimension B,
//                 | V  V \|  A   |  A                 tau on its diagonal
//                   panel   panel
//
// Canonical flops, plus m b B of the panels and m B^2 of T per block. Reads and writes the matrix at the right of a
// block three times for every B columns.
#pragma once

#include <vector>

#include "dense/compact_wy.hpp"
#include "dense/implicit_q.hpp"
#include "plan/plan.hpp"

namespace qrane::dense {

/// The panels of one shape, and the tasks of the tile kernels that work on them: one per matrix and panel.
template <class B>
struct WholePanels {
  struct One {
    Index col = 0, cols = 0;
  };
  std::vector<One> panels;
  Index tile_rows = 0;  // up to this height a panel is applied by apply_qt_h, in one launch, rather than by products
  Index count = 0;
  Buffer<B> tasks;  // panels x count for apply_qt_h, then for backends without factor_panel as many for factor

  WholePanels() = default;
  /// t_stride, compact_stride: elements between two matrices of the T factors, and of where `factor` leaves its T.
  WholePanels(typename B::Queue& queue, const Plan& plan, const backend::Limits& limits, Index t_stride,
              Index compact_stride)
      : tile_rows(limits.max_block_rows <= tallest_tile ? limits.max_block_rows : 0), count(plan.count) {
    const Index k = std::min(plan.rows, plan.cols);
    for (Index col = 0; col < k; col += panels.back().cols) {
      const Index end = std::min(k, (col / plan.expert.block_cols + 1) * plan.expert.block_cols);
      const Index cols = std::min<Index>(plan.expert.panel_cols, plan::widest_whole_panel(limits, plan.rows - col));
      panels.push_back({col, std::min(cols, end - col)});
    }
    std::vector<backend::BlockTask> list;
    for (const Index stride : {t_stride, compact_stride})
      for (const One& panel : panels)
        for (Index b = 0; b < plan.count; ++b)
          list.push_back({0, b * stride, static_cast<std::int32_t>(b), static_cast<std::int32_t>(plan.rows - panel.col),
                          0, 0, static_cast<std::int32_t>(panel.cols)});
    if (list.empty()) return;
    tasks = Buffer<B>(queue, static_cast<Index>(list.size() * sizeof(backend::BlockTask)));
    queue.upload(list.data(), tasks.template as<backend::BlockTask>(), static_cast<Index>(list.size()));
  }

  /// The panel as the tile kernels see it; t has leading dimension t.ld and lies as `compact` says.
  template <class T>
  backend::Panel<B, T> tile(std::size_t index, const backend::DeviceMatrix<B, T>& a,
                            const backend::DeviceMatrix<B, T>& t, bool compact) const {
    backend::Panel<B, T> panel;
    panel.a = a;
    panel.t = t.data;
    panel.tasks = tasks.template as<backend::BlockTask>() +
                  (static_cast<Index>(index) + (compact ? static_cast<Index>(panels.size()) : 0)) * count;
    panel.task_count = count;
    panel.max_rows = static_cast<std::int32_t>(a.rows);
    panel.max_cols = static_cast<std::int32_t>(a.cols);
    panel.inner = static_cast<std::int32_t>(t.ld);
    return panel;
  }

 private:
  static constexpr Index tallest_tile = 1 << 16;  // backends that say more have no tiles
};

template <class B, class T>
struct HouseholderWorkspace {
  backend::DeviceMatrix<B, T> tau;   // small: k x 1
  backend::DeviceMatrix<B, T> v;     // m x B: V of a block as a full matrix
  backend::DeviceMatrix<B, T> gram;  // B x B: its Vᵀ V
  UpdateWorkspace<B, T> update;      // max(n, B) columns

  HouseholderWorkspace() = default;
  HouseholderWorkspace(Carver<B>& carver, const Plan& plan) {
    const Index m = plan.rows, n = plan.cols, k = std::min(m, n), block = plan.expert.block_cols;
    if (plan.expert.small) {
      tau = carver.template matrix<T>(k, 1, plan.count);
      return;
    }
    v = carver.template matrix<T>(m, block, plan.count);
    gram = carver.template matrix<T>(block, block, plan.count);
    update = UpdateWorkspace<B, T>(carver, block, std::max(n, block), plan.count);
  }
};

/// R and V of panel `index` in place, its T, and V with its ones and zeros.
template <class B, class T>
void factor_whole_panel(typename B::Queue& queue, const WholePanels<B>& panels, std::size_t index,
                        const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& t,
                        const backend::DeviceMatrix<B, T>& v, const HouseholderWorkspace<B, T>& work) {
  if (queue.limits(T{}).whole_panel_rows > 0) {
    factor_whole_panel(queue, backend::WholePanel<B, T>{a, t, v});
  } else {
    // factor wants its T compact
    const auto& w = work.update.w;
    const backend::DeviceMatrix<B, T> compact{w.data, a.cols, a.cols, a.cols, w.stride, a.count};
    factor(queue, panels.tile(index, a, compact, true));
    copy(queue, compact, t, backend::Part::upper);
    copy(queue, a, v, backend::Part::unit_lower);
  }
}

/// Panels [first, last) of a block, and what is done with them.
struct PanelRange {
  std::size_t first = 0, last = 0;
};

/// The panels from `first` on that start before column `end`.
template <class B>
PanelRange panels_before(const WholePanels<B>& panels, std::size_t first, Index end) {
  PanelRange range{first, first};
  while (range.last < panels.panels.size() && panels.panels[range.last].col < end) ++range.last;
  return range;
}

/// The part of a block's T above the diagonal blocks of its panels: T12 = -T1 (V1ᵀ V2) T2.
///
/// Vᵀ V is summed over pieces of few rows: where all rows of V are alike (a matrix of ones) the rounding errors of one
/// long sum all point the same way, and T would no more fit V.
template <class B, class T>
void join_whole_t(typename B::Queue& queue, const WholePanels<B>& panels, PanelRange range,
                  const backend::DeviceMatrix<B, T>& t, const backend::DeviceMatrix<B, T>& v,
                  const HouseholderWorkspace<B, T>& work) {
  using backend::Op;
  constexpr Index piece_rows = 128;
  if (range.last - range.first < 2) return;
  const Index first = panels.panels[range.first].col;
  const auto gram = work.gram.block(0, 0, t.cols, t.cols);
  for (Index row = 0; row < v.rows; row += piece_rows) {
    const auto piece = v.block(row, 0, std::min(piece_rows, v.rows - row), v.cols);
    gemm(queue, Op::transpose, Op::none, T(1), piece, piece, T(row > 0 ? 1 : 0), gram);
  }
  for (std::size_t p = range.first + 1; p < range.last; ++p) {
    const Index col = panels.panels[p].col - first, n = panels.panels[p].cols;
    const auto product = work.update.w.block(0, 0, col, n);
    gemm(queue, Op::none, Op::none, T(1), gram.block(0, col, col, n), t.block(col, col, n, n), T(0), product);
    gemm(queue, Op::none, Op::none, T(-1), t.block(0, 0, col, col), product, T(0), t.block(0, col, col, n));
  }
}

/// Whether the T of the block at column `first` is joined: its panels are then applied together.
template <class B>
bool is_joined(const WholePanels<B>& panels, Index rows, Index cols, Index first, Index end) {
  return end < cols || rows - first > panels.tile_rows;
}

/// Factors a in place; t is B x (B * blocks).
template <class B, class T>
void householder(typename B::Queue& queue, const WholePanels<B>& panels, const backend::DeviceMatrix<B, T>& a,
                 const backend::DeviceMatrix<B, T>& t, const HouseholderWorkspace<B, T>& work) {
  using backend::Op;
  const Index k = std::min(a.rows, a.cols), m = a.rows, block_cols = t.ld;
  fill(queue, t, T(0), T(0));
  PanelRange range;
  for (Index first = 0; first < k; first += block_cols) {
    const Index end = std::min(first + block_cols, k);
    range = panels_before(panels, range.last, end);
    const bool joined = is_joined(panels, m, a.cols, first, end);
    const auto t_block = block_t(t, first / block_cols, end - first);
    const auto v = work.v.block(0, 0, m - first, end - first);
    if (joined && range.last - range.first > 1) fill(queue, v.block(0, 0, end - first, end - first), T(0), T(0));
    for (std::size_t p = range.first; p < range.last; ++p) {
      const Index col = panels.panels[p].col, b = panels.panels[p].cols;
      const auto panel = a.block(col, col, m - col, b), rest = a.block(col, col + b, m - col, end - col - b);
      const auto panel_t = t_block.block(col - first, col - first, b, b);
      const auto panel_v = v.block(col - first, col - first, m - col, b);
      factor_whole_panel(queue, panels, p, panel, panel_t, panel_v, work);
      if (rest.cols == 0) continue;
      if (m - col <= panels.tile_rows)
        apply_qt_h(queue, backend::Apply<B, T>{panels.tile(p, panel, panel_t, false), rest, Op::transpose});
      else
        apply_block_reflector(queue, panel_v, panel_t, Op::transpose, rest, work.update);
    }
    if (!joined) continue;
    join_whole_t(queue, panels, range, t_block, v, work);
    apply_block_reflector(queue, v, t_block, Op::transpose, a.block(first, end, m - first, a.cols - end), work.update);
  }
}

/// C := Qᵀ C or Q C with the panels of a block that was not joined.
template <class B, class T>
void apply_panels(typename B::Queue& queue, const WholePanels<B>& panels, PanelRange range, Index first,
                  const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& t_block, backend::Op op,
                  const backend::DeviceMatrix<B, T>& c) {
  if (c.cols == 0) return;
  for (std::size_t i = 0; i < range.last - range.first; ++i) {
    const std::size_t p = op == backend::Op::transpose ? range.first + i : range.last - 1 - i;
    const Index col = panels.panels[p].col, b = panels.panels[p].cols, rows = a.rows - col;
    const auto tile = panels.tile(p, a.block(col, col, rows, b), t_block.block(col - first, col - first, b, b), false);
    apply_qt_h(queue, backend::Apply<B, T>{tile, c.block(col, 0, rows, c.cols), op});
  }
}

/// C := Qᵀ C or Q C with the reflectors of `householder`, as many columns at a time as the workspace is wide.
/// `identity`: C holds leading columns of the identity, so that a block leaves the columns before its own alone.
template <class B, class T>
void apply_householder(typename B::Queue& queue, const WholePanels<B>& panels, const backend::DeviceMatrix<B, T>& a,
                       const backend::DeviceMatrix<B, T>& t, backend::Op op, const backend::DeviceMatrix<B, T>& c,
                       const HouseholderWorkspace<B, T>& work, bool identity = false) {
  const Index k = std::min(a.rows, a.cols), block_cols = t.ld, wide = work.update.w.cols;
  const Index blocks = (k + block_cols - 1) / block_cols;
  std::vector<PanelRange> ranges;
  for (Index i = 0; i < blocks; ++i)
    ranges.push_back(panels_before(panels, i > 0 ? ranges.back().last : 0, (i + 1) * block_cols));
  for (Index i = 0; i < blocks; ++i) {
    const Index index = op == backend::Op::transpose ? i : blocks - 1 - i;
    const Index col = index * block_cols, n = std::min(block_cols, k - col);
    const Index from = identity ? std::min(col, c.cols) : 0;
    const auto t_block = block_t(t, index, n);
    if (!is_joined(panels, a.rows, a.cols, col, col + n)) {
      apply_panels(queue, panels, ranges[static_cast<std::size_t>(index)], col, a, t_block, op,
                   c.columns(from, c.cols - from));
      continue;
    }
    const auto v = work.v.block(0, 0, a.rows - col, n);
    copy(queue, a.block(col, col, a.rows - col, n), v, backend::Part::unit_lower);
    for (Index first = from; first < c.cols; first += wide)
      apply_block_reflector(queue, v, t_block, op, c.block(col, first, a.rows - col, std::min(wide, c.cols - first)),
                            work.update);
  }
}

}  // namespace qrane::dense
