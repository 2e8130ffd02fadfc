// SPDX-License-Identifier: Apache-2.0
// How a front's panel (panel.cu, panel_gram.cu) begins, and what it leaves besides V, R and T.
#pragma once

#include "cuda/fronts/front.cuh"
#include "cuda/fronts/panel_rows.cuh"
#include "vocabulary/fronts.hpp"

namespace qrane::backend::cuda::front_panel {

/// What the panel leaves besides V, R and T; by the first warp of block 0. dropped: norms of dropped columns.
template <class T>
__device__ void conclude(const Panel<T>& panel, const Fronts<Cuda, T>& f, FrontPanelTask task, const FrontShape& shape,
                         int first_row, const double* dropped) {
  const int lane = threadIdx.x, first_col = task.panel * f.panel, pivots = min(max(shape.pivots - first_col, 0), 32);
  const int row = panel.live_before(lane);
  const bool inside = lane < panel.cols, live = inside && panel.is_live(lane);
  int height = inside && row < panel.room ? min(panel.room, max(panel.stair_of_lane, row + 1)) : 0;
  double norm = 0;
  if (inside && !live && row < panel.room)
    norm = ldexp(dropped[lane], f.exponents != nullptr ? -f.exponents[shape.first_col + first_col + lane] : 0);
  norm *= norm;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    height = max(height, __shfl_xor_sync(0xffffffffu, height, d));
    norm += __shfl_xor_sync(0xffffffffu, norm, d);
  }
  if (inside) f.pivot[shape.columns + first_col + lane] = live ? first_row + row : -1;
  if (lane != 0) return;
  f.panels[shape.panels + task.panel] = {first_row, height, panel.live, 0};
  FrontState& state = f.states[task.front];
  state.dropped += norm;
  state.position = first_row + panel.live;
  state.r_rows += __popc(panel.live_set & static_cast<unsigned>((std::uint64_t(1) << pivots) - 1));
}

/// All of the panel's rows in the front; and limits of columns' norms, seen after a barrier.
template <class T>
__device__ Panel<T> begin(const Fronts<Cuda, T>& f, FrontPanelTask task, const FrontShape& shape,
                          const FrontState& state, double* limit) {
  Panel<T> panel;
  const int lane = threadIdx.x % 32, first_col = task.panel * f.panel;
  panel.cols = min(f.panel, shape.cols - first_col);
  panel.ld_corner = f.panel;
  panel.room = state.rows - state.position;
  panel.corner = f.storage + shape.corner + Index(first_col) * f.panel;
  panel.t = f.storage + shape.t + Index(first_col) * f.panel;
  panel.stair_of_lane = lane < panel.cols ? f.stair[shape.columns + first_col + lane] - state.position : 0;
  if (threadIdx.x < 32) {
    const double tolerance = tolerance_of(f);
    const bool may_drop = lane < panel.cols && first_col + lane < shape.pivots && tolerance >= 0;
    const int exponent = may_drop && f.exponents != nullptr ? f.exponents[shape.first_col + first_col + lane] : 0;
    limit[lane] = may_drop ? drop_limit(f, tolerance, exponent) : -1.0;
  }
  const int last = __shfl_sync(0xffffffffu, panel.stair_of_lane, panel.cols - 1);
  panel.rows = min(panel.room, max(last, panel.cols));
  panel.device = {f.storage + shape.matrix + state.position + first_col * Index(shape.ld), shape.ld, panel.rows,
                  panel.cols};
  return panel;
}

}  // namespace qrane::backend::cuda::front_panel
