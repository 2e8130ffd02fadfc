// SPDX-License-Identifier: Apache-2.0
// Blocked Householder QR with LAPACK-shaped reflectors: panels as in dense/blocked_panel.hpp, the trailing matrix by
// two products.
//
//      panel P  -->  V (unit lower trapezoidal), T, S R
//      C := C - V (Tᵀ (Vᵀ C))
//
// Two levels: panels of b columns update only the rest of their block of B columns (B a multiple of b); the
// block's T is then put together from its panels',
//
//      V = [V1 V2],  T = [ T1  -T1 (V1ᵀ V2) T2 ]
//                        [ 0          T2       ]
//
// and the matrix right of the block is updated once, by products with B columns, which run at full rate. One product
// for each panel, Y2 = V2 T2 transposed times the rows of its block's other columns, gives both T2ᵀ V2ᵀ V1 and the
// T2ᵀ V2ᵀ C of the update.
//
// Look-ahead: block k first updates the columns of block k + 1, which is then factored on a second queue while the
// first updates the rest. (On backends with one queue the order is the one below, too.)
//
//      first    wait F0 | update rest by 0        | wait F1 | update rest by 1       ...
//      second   F0 | update 1 by 0 | F1 (factor)  | wait rest by 0 | update 2 by 1 | F2 ...
//
// T factors: block k's at t + k B^2 per matrix (leading dimension B), tau on their diagonals.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "dense/blocked_panel.hpp"
#include "dense/compact_wy.hpp"

namespace qrane::dense {

/// Panels of one shape of matrix.
template <class B>
struct BlockedSchedule {
  Index panel_cols = 0;
  Index block_cols = 0;
  std::vector<BlockedPanel<B>> panels;
};

template <class B, class T>
BlockedSchedule<B> make_blocked_schedule(typename B::Queue& queue, Index rows, Index cols, Index batch, int panel_cols,
                                         int block_cols, const TreeShape& shape, const PanelMethod& method) {
  BlockedSchedule<B> s;
  s.panel_cols = panel_cols;
  s.block_cols = block_cols;
  const Index k = std::min(rows, cols);
  for (Index col = 0; col < k; col += panel_cols)
    s.panels.push_back(
        make_blocked_panel<B, T>(queue, rows - col, std::min<Index>(panel_cols, k - col), batch, shape, method));
  if (k > block_cols) (void)queue.side();  // now: making one allocates
  return s;
}

/// Memory that a blocked factorization uses for one panel at a time and two blocks.
template <class B, class T>
struct BlockedWorkspace {
  PanelWorkspace<B, T> panel;
  std::array<backend::DeviceMatrix<B, T>, 2> v;  // m x B: V of a block as a full matrix; blocks take turns
  backend::DeviceMatrix<B, T> products;          // B x B: Y2ᵀ [V1 . C] of a block's panels
  UpdateWorkspace<B, T> ahead, rest;             // updates of the next block, and of all the rest

  BlockedWorkspace() = default;
  /// applied: columns that Q is applied to at once.
  BlockedWorkspace(Carver<B>& carver, Index rows, Index cols, Index applied, Index batch, Index b, Index block,
                   Index t_elements, const PanelMethod& method)
      : panel(carver, rows, cols, batch, b, t_elements, method) {
    const bool several = std::min(rows, cols) > block;
    v[0] = carver.template matrix<T>(rows, block, batch);
    v[1] = several ? carver.template matrix<T>(rows, block, batch) : v[0];
    products = carver.template matrix<T>(block, block, batch);
    if (several) ahead = UpdateWorkspace<B, T>(carver, block, block, batch);
    rest = UpdateWorkspace<B, T>(carver, block, std::max(applied, block), batch);
  }
};

/// The blocks above the diagonal of a block's T, whose diagonal blocks (b wide) are there; the products hold Y2ᵀ V1.
template <class B, class T>
void join_t(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& t, Index b,
            const BlockedWorkspace<B, T>& work) {
  using backend::Op;
  for (Index col = b; col < t.cols; col += b) {
    const Index n = std::min(b, t.cols - col);
    // T12 = -T1 (V1ᵀ Y2)
    gemm(queue, Op::none, Op::transpose, T(-1), t.block(0, 0, col, col), work.products.block(col, 0, n, col), T(0),
         t.block(0, col, col, n));
  }
}

/// Factors columns [first, end) of a from row `first` on, which earlier blocks have been applied to; leaves V in v
/// (rows from `first` on) and T in t, which is `joined` or else that of each panel alone.
template <class B, class T>
void factor_block(typename B::Queue& queue, const BlockedSchedule<B>& schedule, const backend::DeviceMatrix<B, T>& a,
                  Index first, Index end, const backend::DeviceMatrix<B, T>& t, const backend::DeviceMatrix<B, T>& v,
                  bool joined, const BlockedWorkspace<B, T>& work) {
  using backend::Op;
  const Index m = a.rows;
  fill(queue, v.block(0, 0, end - first, end - first), T(0), T(0));
  for (Index col = first; col < end; col += schedule.panel_cols) {
    const Index b = std::min(schedule.panel_cols, end - col), at = col - first, index = col / schedule.panel_cols;
    const auto panel_v = v.block(at, at, m - col, b);
    const auto panel_y = work.panel.y.block(0, 0, m - col, b);
    factor_panel(queue, schedule.panels[static_cast<std::size_t>(index)], index, a.block(col, col, m - col, b),
                 t.block(at, at, b, b), panel_v, panel_y, work.panel);
    const Index from = joined && at > 0 ? 0 : at + b, to = col + b == end ? at : end - first;
    if (from >= to) continue;
    const auto products = work.products.block(at, from, b, to - from);
    gemm(queue, Op::transpose, Op::none, T(1), panel_y, a.block(col, first + from, m - col, to - from), T(0), products);
    if (col + b == end) continue;
    const Index right = end - col - b;
    gemm(queue, Op::none, Op::none, T(-1), panel_v, work.products.block(at, at + b, b, right), T(1),
         a.block(col, col + b, m - col, right));
  }
  if (joined) join_t(queue, t, schedule.panel_cols, work);
}

/// Factors a in place; t is B x (B * blocks). Without `reflectors` R alone is wanted.
template <class B, class T>
void blocked(typename B::Queue& queue, const BlockedSchedule<B>& schedule, const backend::DeviceMatrix<B, T>& a,
             const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work, bool reflectors = true) {
  using backend::Op;
  const Index k = std::min(a.rows, a.cols), m = a.rows, block = schedule.block_cols;
  auto side = k > block ? queue.side() : queue;
  fill(queue, t, T(0), T(0));
  if (const auto& p = work.panel; p.method.cholesky_passes > 0) set_flags(queue, p.refused, 2 * p.panels, 0);
  side.follow(queue);
  for (Index first = 0, turn = 0; first < k; first += block, turn = 1 - turn) {
    const Index end = std::min(first + block, k), next = std::min(end + block, k);
    const auto factor = block_t(t, first / block, end - first);
    const auto v = work.v[static_cast<std::size_t>(turn)].block(0, 0, m - first, end - first);
    factor_block(side, schedule, a, first, end, factor, v, reflectors || end < a.cols, work);
    if (next > end)
      side.follow(queue);  // the last update of the rest has been to the next block's columns, and read its V
    queue.follow(side);
    apply_block_reflector(side, v, factor, Op::transpose, a.block(first, end, m - first, next - end), work.ahead);
    apply_block_reflector(queue, v, factor, Op::transpose, a.block(first, next, m - first, a.cols - next), work.rest);
  }
  queue.follow(side);
}

/// The T factors of given reflectors, from Vᵀ V of each block and tau, k numbers in host memory (LAPACK name: larft):
///
///     T_j = [ T_{j-1}  -tau_j T_{j-1} (V_{j-1}ᵀ v_j) ]
///           [    0                 tau_j             ]
template <class B, class T>
void t_from_reflectors(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a, const T* tau,
                       const backend::DeviceMatrix<B, T>& t, const BlockedWorkspace<B, T>& work) {
  using backend::Op;
  const Index k = std::min(a.rows, a.cols), block = t.ld;
  if (k == 0) return;
  fill(queue, t, T(0), T(0));
  for (Index first = 0; first < k; first += block) {
    const Index n = std::min(block, k - first);
    const auto v = work.v[0].block(0, 0, a.rows - first, n);
    copy(queue, a.block(first, first, a.rows - first, n), v, backend::Part::unit_lower);
    gemm(queue, Op::transpose, Op::none, T(1), v, v, T(0), block_t(t, first / block, n));
  }
  std::vector<T> host(static_cast<std::size_t>(block * t.cols));
  queue.download(t.data, host.data(), block * t.cols);
  for (Index j = 0; j < k; ++j) {
    const Index at = j % block;
    T* const column = host.data() + j * block;
    const T* const before = column - at * block;
    for (Index i = 0; i < at; ++i) {
      T sum = 0;
      for (Index l = i; l < at; ++l) sum += before[i + l * block] * column[l];
      column[i] = -tau[j] * sum;
    }
    column[at] = tau[j];
    std::fill(column + at + 1, column + block, T(0));
  }
  queue.upload(host.data(), t.data, block * t.cols);
}

/// C := Qᵀ C or Q C with the reflectors of `blocked`.
template <class B, class T>
void apply_blocked(typename B::Queue& queue, const backend::DeviceMatrix<B, T>& a, const backend::DeviceMatrix<B, T>& t,
                   backend::Op op, const backend::DeviceMatrix<B, T>& c, const BlockedWorkspace<B, T>& work,
                   bool identity = false) {
  using namespace backend;
  const Index k = std::min(a.rows, a.cols), block_cols = t.ld;
  const Index blocks = (k + block_cols - 1) / block_cols;
  for (Index i = 0; i < blocks; ++i) {
    const Index index = op == Op::transpose ? i : blocks - 1 - i;
    const Index col = index * block_cols;
    const Index n = std::min(block_cols, k - col);
    const auto v = work.v[0].block(0, 0, a.rows - col, n);
    copy(queue, a.block(col, col, a.rows - col, n), v, Part::unit_lower);
    const Index first = identity ? std::min(col, c.cols) : 0;
    apply_block_reflector(queue, v, block_t(t, index, n), op, c.block(col, first, a.rows - col, c.cols - first),
                          work.rest);
  }
}

}  // namespace qrane::dense
