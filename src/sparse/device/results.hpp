// SPDX-License-Identifier: Apache-2.0
// What a device's factorization is asked for when it is done, as the records that factors.hpp reads: ranks, live
// columns, rows, right-hand sides, panels of Q. R, and with Q the fronts' memory, are in host memory by then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sparse/device/host_memory.hpp"
#include "sparse/device/memory.hpp"
#include "sparse/factors.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceResults {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  /// Sets `stored` and `dropped` (of every front), and rhs where there is one. What they point to lives until the next
  /// call. Returns the bytes that came from the device.
  Index fetch(Queue& queue, const Symbolic& symbolic, const backend::Fronts<B, T>& fronts,
              const DeviceMemory<B, T>& memory, bool keep_q, T* rhs, std::vector<StoredFront<T>>& stored,
              std::vector<double>& dropped) {
    const FrontRounds& plan = memory.plan;
    bytes_ = 0;
    const bool with_rows = keep_q || fronts.rhs_cols > 0;
    const backend::FrontState* const states = states_.of(queue, fronts.states, symbolic.front_count(), bytes_);
    const std::int32_t* const rows = with_rows ? rows_.of(queue, fronts.row_ids, plan.row_ids_size, bytes_) : nullptr;
    download(queue, fronts.rhs, rhs, symbolic.rows * fronts.rhs_cols);
    queue.synchronize();
    for (std::size_t f = 0; f < stored.size(); ++f) {
      const backend::FrontShape& shape = plan.shapes[f];
      stored[f].rows = states[f].rows;
      stored[f].r_rows = states[f].r_rows;
      stored[f].cb_rows = states[f].cb_rows;
      stored[f].r = memory.host_r(f);
      stored[f].r_bound = shape.r_bound;
      dropped[f] = states[f].dropped;
    }
    fetch_live_columns(queue, plan, fronts, static_cast<Index>(symbolic.front_cols.size()), stored);
    if (with_rows) {
      row_ids_.assign(rows, rows + plan.row_ids_size);
      for (std::size_t f = 0; f < stored.size(); ++f) stored[f].row_ids = row_ids_.data() + plan.shapes[f].row_ids;
    }
    return bytes_;
  }

  /// Panels of Q, when the fronts are on the host.
  void fetch_panels(Queue& queue, const backend::Fronts<B, T>& fronts, const DeviceMemory<B, T>& memory,
                    std::vector<StoredFront<T>>& stored) {
    const FrontRounds& plan = memory.plan;
    std::vector<backend::FrontPanelState> states(plan.panels_size);
    download(queue, fronts.panels, states.data(), plan.panels_size);
    panels_.resize(states.size());
    const Index width = fronts.panel;
    for (std::size_t f = 0; f < stored.size(); ++f) {
      const backend::FrontShape& shape = plan.shapes[f];
      stored[f].panels = panels_.data() + shape.panels;
      stored[f].panel_count = 0;
      for (Index first = 0, k = shape.panels; first < shape.cols; first += width, ++k) {
        const backend::FrontPanelState& state = states[k];
        if (state.live == 0) continue;
        T* const v = memory.host_stored(f, shape.matrix + first * shape.ld + state.first_row);
        T* const t = memory.host_stored(f, shape.t + first * width);
        stored[f].panels[stored[f].panel_count++] = {
            state.first_row, state.height, std::min<Index>(width, shape.cols - first), v, shape.ld, t, width};
      }
    }
  }

 private:
  /// Where arrays of the device arrive, run after run.
  template <class U>
  class Landing {
   public:
    /// `count` numbers, there when the queue has been synchronized; counts their bytes.
    const U* of(Queue& queue, Pointer<U> source, Index count, Index& bytes) {
      if (count > room_) {
        memory_ = HostMemory<B, U>(queue, count);
        room_ = count;
      }
      if (count > 0) queue.download_later(source, memory_.data(), count);
      bytes += count * static_cast<Index>(sizeof(U));
      return memory_.data();
    }

   private:
    HostMemory<B, U> memory_;
    Index room_ = 0;
  };

  template <class U>
  void download(Queue& queue, Pointer<U> source, U* target, Index count) {
    if (count > 0) queue.download(source, target, count);
    bytes_ += count * static_cast<Index>(sizeof(U));
  }

  /// Which pivotal columns live, of fronts that have not all of them.
  void fetch_live_columns(Queue& queue, const FrontRounds& plan, const backend::Fronts<B, T>& fronts, Index columns,
                          std::vector<StoredFront<T>>& stored) {
    Index count = 0;
    for (std::size_t f = 0; f < stored.size(); ++f)
      if (stored[f].r_rows < plan.shapes[f].pivots) count += plan.shapes[f].pivots;
    if (count == 0) return;
    const std::int32_t* const pivots = pivots_.of(queue, fronts.pivot, columns, bytes_);
    queue.synchronize();
    live_.resize(count);
    std::int32_t* next = live_.data();
    for (std::size_t f = 0; f < stored.size(); ++f) {
      const backend::FrontShape& shape = plan.shapes[f];
      if (stored[f].r_rows == shape.pivots) continue;
      stored[f].live_count = next;
      std::int32_t live = 0;
      for (Index j = 0; j < shape.pivots; ++j) *next++ = live += pivots[shape.columns + j] >= 0;
    }
  }

  Landing<backend::FrontState> states_;
  Landing<std::int32_t> pivots_, rows_;
  std::vector<std::int32_t> live_;
  std::vector<Index> row_ids_;
  std::vector<StoredPanel<T>> panels_;
  Index bytes_ = 0;
};

}  // namespace qrane::sparse
