// SPDX-License-Identifier: Apache-2.0
// solve_schedule.hpp's lists in device memory: those of the pattern go up once, those that rank decides after every
// run.
#pragma once

#include <vector>

#include "sparse/device/image.hpp"
#include "sparse/device/plan/solve_schedule.hpp"
#include "sparse/factors.hpp"

namespace qrane::sparse {

/// Of the pattern; with Q, its schedule too.
template <class B>
struct PatternTables {
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  PatternTables(typename B::Queue& queue, const Symbolic& s, const std::vector<backend::FrontShape>& shapes,
                bool with_q, Index panel)
      : r(plan_r_solves(s, shapes)), singletons(plan_singletons(s)) {
    if (with_q) q = plan_q_products(s, shapes, {.panel = panel});
    DeviceImage image;
    const Index at_row_perm = image.add_narrow(s.row_perm), at_col_perm = image.add_narrow(s.col_perm),
                at_col_index = image.add_narrow(s.columns_of_entries()), at_front_cols = image.add_narrow(s.front_cols),
                at_up = image.add(r.up_blocks), at_down = image.add(r.down_blocks), at_slots = image.add(r.slots),
                at_own = image.add(r.own), at_sources = image.add(r.sources), at_begin = image.add(r.sources_begin),
                at_single_down = image.add(singletons.down), at_single_up = image.add(singletons.up),
                at_single_begin = image.add(singletons.column_begin), at_single_row = image.add(singletons.row),
                at_single_entry = image.add(singletons.entry), at_others = image.add(singletons.others),
                at_whole = image.add(q.whole), at_parts = image.add(q.parts);
    memory = image.upload<B>(queue);
    const auto list = [&](Index offset) { return memory.template as<std::int32_t>(offset); };
    row_perm = list(at_row_perm), col_perm = list(at_col_perm), col_index = list(at_col_index);
    front_cols = list(at_front_cols), slots = list(at_slots), own = list(at_own), sources = list(at_sources);
    sources_begin = memory.template as<std::int64_t>(at_begin);
    up_blocks = memory.template as<backend::FrontBlock>(at_up);
    down_blocks = memory.template as<backend::FrontBlock>(at_down);
    single_down = list(at_single_down), single_up = list(at_single_up), single_row = list(at_single_row);
    single_entry = list(at_single_entry), others = list(at_others), whole = list(at_whole);
    single_begin = memory.template as<std::int64_t>(at_single_begin);
    parts = memory.template as<backend::FrontPanelPart>(at_parts);
    for (auto* host : {&r.slots, &r.own, &r.sources}) *host = {};  // launches are what stays of use on the host
    r.sources_begin = {};
    r.up_blocks = r.down_blocks = {};
    q.parts = {};
    q.whole = {};
  }

  RSchedule r;
  QSchedule q;
  SingletonSchedule singletons;
  dense::Buffer<B> memory;
  Pointer<std::int32_t> row_perm{}, col_perm{}, col_index{}, front_cols{}, slots{}, own{}, sources{};
  Pointer<std::int64_t> sources_begin{};
  Pointer<backend::FrontBlock> up_blocks{}, down_blocks{};
  Pointer<std::int32_t> single_down{}, single_up{}, single_row{}, single_entry{}, others{}, whole{};
  Pointer<std::int64_t> single_begin{};
  Pointer<backend::FrontPanelPart> parts{};
};

/// S by columns.
template <class B>
struct TransposeTables {
  TransposeTables(typename B::Queue& queue, const Symbolic& s) {
    const ColumnsOfS columns = columns_of(s);
    DeviceImage image;
    const Index at_begin = image.add(columns.begin), at_row = image.add(columns.row),
                at_entry = image.add(columns.entry);
    memory = image.upload<B>(queue);
    begin = memory.template as<std::int64_t>(at_begin);
    row = memory.template as<std::int32_t>(at_row);
    entry = memory.template as<std::int32_t>(at_entry);
  }
  dense::Buffer<B> memory;
  typename B::template Pointer<std::int64_t> begin{};
  typename B::template Pointer<std::int32_t> row{}, entry{};
};

/// Of a run.
template <class B>
struct RunTables {
  template <class T>
  RunTables(typename B::Queue& queue, const Factors<T>& factors) {
    const Symbolic& s = factors.symbolic();
    const std::vector<StoredFront<T>>& stored = factors.fronts();
    std::vector<std::int32_t> columns(s.singletons, 0);
    columns.reserve(factors.rank());
    for (std::size_t f = 0; f < stored.size(); ++f)
      for (Index j = 0; j < s.fronts[f].pivots; ++j)
        if (stored[f].is_live(j)) columns.push_back(static_cast<std::int32_t>(j));
    DeviceImage image;
    const Index at_begin = image.add(factors.r_begin()), at_live = image.add(columns),
                at_rows = image.add_narrow(factors.knows_rows() ? factors.q_rows() : std::vector<Index>{});
    memory = image.upload<B>(queue);
    r_begin = memory.template as<std::int64_t>(at_begin);
    live = memory.template as<std::int32_t>(at_live);
    q_rows = memory.template as<std::int32_t>(at_rows);
  }
  dense::Buffer<B> memory;
  typename B::template Pointer<std::int64_t> r_begin{};
  typename B::template Pointer<std::int32_t> live{};    ///< by row of R: its pivotal column, local
  typename B::template Pointer<std::int32_t> q_rows{};  ///< Factors::q_rows(), where fronts know their rows
};

}  // namespace qrane::sparse
