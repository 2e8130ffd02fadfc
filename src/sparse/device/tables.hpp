// SPDX-License-Identifier: Apache-2.0
// What kernels of fronts are bound to, but for the fronts' own memory and R: the plan's and the analysis's tables,
// which go to the device once, and the arrays that kernels write beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "dense/buffer.hpp"
#include "sparse/device/image.hpp"
#include "sparse/device/plan/front_rounds.hpp"

namespace qrane::sparse {

template <class B, class T>
class DeviceTables {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  DeviceTables() = default;
  DeviceTables(Queue& queue, const Symbolic& symbolic, const FrontRounds& plan, Index panel, Index rhs_cols) {
    fronts.panel = static_cast<std::int32_t>(panel);
    fronts.rhs_cols = static_cast<std::int32_t>(rhs_cols);
    fronts.rhs_ld = symbolic.rows;
    place_constants(queue, symbolic, plan);
    place_variables(queue, symbolic, plan);
  }

  backend::Fronts<B, T> fronts;
  Pointer<double> tolerance{};        ///< of fronts, on the device
  Pointer<std::int32_t> exponents{};  ///< room for them; fronts.exponents says whether there are any

  Index bytes() const { return constants_.bytes() + variables_.bytes(); }
  /// What they would be.
  static Index bytes_for(const Symbolic& symbolic, const FrontRounds& plan, Index rhs_cols) {
    DeviceImage image(true);
    lay_out(image, symbolic, plan, {});
    DeviceTables counted;
    counted.fronts.rhs_cols = static_cast<std::int32_t>(rhs_cols);
    dense::Carver<B> carver;
    counted.carve(carver, symbolic, plan);
    return image.size() + carver.used();
  }

  /// Queues one of the plan's launches.
  void start(Queue& queue, const FrontLaunch& launch, bool keep_q) const {
    const auto tasks = [&](auto list) {
      using Task = std::remove_cvref_t<decltype(task_of(list))>;
      return backend::FrontTasks<B, Task>{list + launch.first, launch.count,  launch.max_rows,
                                          launch.max_cols,     launch.blocks, launch.max_elements};
    };
    switch (launch.step) {
      case FrontStep::lay_out: return lay_out_fronts(queue, fronts, tasks(lists_));
      case FrontStep::whole: return factor_whole_fronts(queue, fronts, tasks(lists_), keep_q);
      case FrontStep::assemble: return assemble_fronts(queue, fronts, tasks(shares_));
      case FrontStep::finish: return finish_fronts(queue, fronts, tasks(shares_));
      case FrontStep::pack: return pack_fronts(queue, fronts, tasks(pieces_));
      case FrontStep::unpack: return unpack_fronts(queue, fronts, tasks(pieces_));
      case FrontStep::panel:
      case FrontStep::tail: return factor_front_panels(queue, fronts, tasks(panels_));
      case FrontStep::narrow:
      case FrontStep::closing:
      case FrontStep::trailing: return update_fronts(queue, fronts, tasks(updates_));
      case FrontStep::pair: update_fronts_pair(queue, fronts, tasks(updates_));
    }
  }

 private:
  // what a list's pointer points to
  static std::int32_t task_of(Pointer<std::int32_t>);
  static backend::FrontShare task_of(Pointer<backend::FrontShare>);
  static backend::FrontPanelTask task_of(Pointer<backend::FrontPanelTask>);
  static backend::FrontUpdateTask task_of(Pointer<backend::FrontUpdateTask>);
  static backend::FrontPieceTask task_of(Pointer<backend::FrontPieceTask>);

  struct Offsets {
    Index shapes, children, row_begin, entry_col, own, parent_col, stair, own_slot, cb_slot;
    Index lists, shares, panels, updates, pieces;
  };
  /// own_column: leftmost local column of each row; empty where they are only counted.
  static Offsets lay_out(DeviceImage& image, const Symbolic& s, const FrontRounds& plan,
                         const std::vector<std::int32_t>& own_column) {
    return {image.add(plan.shapes),
            image.add_narrow(s.children),
            image.add(s.row_begin),
            image.add(s.entry_col),
            own_column.empty() ? image.reserve(s.rows * sizeof(std::int32_t)) : image.add(own_column),
            image.add(s.parent_col),
            image.add_narrow(s.stair),
            image.add(s.own_slot),
            image.add(s.cb_slot),
            image.add(plan.lists),
            image.add(plan.shares),
            image.add(plan.panels),
            image.add(plan.updates),
            image.add(plan.pieces)};
  }

  void place_constants(Queue& queue, const Symbolic& s, const FrontRounds& plan) {
    std::vector<std::int32_t> own_column(s.rows, 0);
    for (const Front& front : s.fronts)
      for (Index r = front.first_row; r < front.first_row + front.own_rows; ++r)
        own_column[r] = s.entry_col[s.row_begin[r]];
    DeviceImage image;
    const Offsets offsets = lay_out(image, s, plan, own_column);
    constants_ = image.upload<B>(queue);
    fronts.shapes = constants_.template as<backend::FrontShape>(offsets.shapes);
    fronts.children = constants_.template as<std::int32_t>(offsets.children);
    fronts.row_begin = constants_.template as<std::int64_t>(offsets.row_begin);
    fronts.entry_col = constants_.template as<std::int32_t>(offsets.entry_col);
    fronts.own_column = constants_.template as<std::int32_t>(offsets.own);
    fronts.parent_col = constants_.template as<std::int32_t>(offsets.parent_col);
    fronts.full_stair = constants_.template as<std::int32_t>(offsets.stair);
    fronts.full_own_slot = constants_.template as<std::int32_t>(offsets.own_slot);
    fronts.full_cb_slot = constants_.template as<std::int32_t>(offsets.cb_slot);
    lists_ = constants_.template as<std::int32_t>(offsets.lists);
    shares_ = constants_.template as<backend::FrontShare>(offsets.shares);
    panels_ = constants_.template as<backend::FrontPanelTask>(offsets.panels);
    updates_ = constants_.template as<backend::FrontUpdateTask>(offsets.updates);
    pieces_ = constants_.template as<backend::FrontPieceTask>(offsets.pieces);
  }

  void place_variables(Queue& queue, const Symbolic& s, const FrontRounds& plan) {
    dense::Carver<B> counting;
    carve(counting, s, plan);
    variables_ = dense::Buffer<B>(queue, counting.used());
    dense::Carver<B> carver(variables_.template as<std::byte>());
    carve(carver, s, plan);
  }
  void carve(dense::Carver<B>& carver, const Symbolic& s, const FrontRounds& plan) {
    const auto columns = static_cast<Index>(s.front_cols.size());
    fronts.values = carver.template take<T>(s.entries);
    tolerance = carver.template take<double>(1);
    exponents = carver.template take<std::int32_t>(s.cols);
    fronts.rhs = carver.template take<T>(backend::elements_of<T>(s.rows, fronts.rhs_cols));
    fronts.states = carver.template take<backend::FrontState>(s.front_count());
    fronts.panels = carver.template take<backend::FrontPanelState>(plan.panels_size);
    fronts.stair = carver.template take<std::int32_t>(columns);
    fronts.own_slot = carver.template take<std::int32_t>(s.rows);
    fronts.cb_slot = carver.template take<std::int32_t>(plan.slots_size);
    fronts.row_ids = carver.template take<std::int32_t>(plan.row_ids_size);
    fronts.pivot = carver.template take<std::int32_t>(columns);
  }

  dense::Buffer<B> constants_, variables_;
  Pointer<std::int32_t> lists_{};
  Pointer<backend::FrontShare> shares_{};
  Pointer<backend::FrontPanelTask> panels_{};
  Pointer<backend::FrontUpdateTask> updates_{};
  Pointer<backend::FrontPieceTask> pieces_{};
};

}  // namespace qrane::sparse
