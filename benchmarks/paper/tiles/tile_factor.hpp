// SPDX-License-Identifier: Apache-2.0
// The sparse paper's factorization as written: every front cut into tiles, the tree's schedule of rounds, one launch a
// round. (Yeralan, Davis, Sid-Lakhdar, Ranka, Algorithm 980, sections 3.1-3.3.) No rank detection, and Q is not kept:
// the baseline that the product's own way on devices is measured against, and R with full rank for users who name it.
//
// Fronts have their memory side by side, from first to last, as in the paper. All rounds are planned once for a
// pattern.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "dense/buffer.hpp"
#include "paper/tiles/scheduler.hpp"
#include "sparse/analysis/symbolic.hpp"

namespace qrane::sparse {

/// Offset of column j of R in a front's packed rows: of pivotal column j the first min(j + 1, rows) rows, then columns
/// of `rows`.
inline Index packed_column(Index j, Index pivots, Index rows) {
  const Index head = std::min(std::min(j, pivots), rows);
  return head * (head + 1) / 2 + (j - head) * rows;
}

template <class B, class T>
class TileFactor {
 public:
  using Queue = typename B::Queue;
  template <class U>
  using Pointer = typename B::template Pointer<U>;

  /// Plans all rounds and takes all memory. Throws Error{out_of_memory}.
  TileFactor(const Queue& queue, std::shared_ptr<const Symbolic> symbolic, ScheduleOptions options = {})
      : queue_(queue), symbolic_(std::move(symbolic)), options_(options) {
    options_.tile = backend::front_tile;
    detail::check(options_.bundle <= backend::widest_bundle, ErrorCode::invalid_argument, "bundles of ",
                  options_.bundle, " row tiles: the tile kernels take at most ", backend::widest_bundle);
    lay_out();
    plan_rounds();
    upload_lists();
  }

  /// Queues the factorization of these values of S. R is in r() once the queue has come that far.
  void run(const T* values) {
    queue_.upload(values, round_.values, symbolic_->entries);
    const Index elements = storage_elements_;
    fill(queue_, backend::DeviceMatrix<B, T>{round_.storage, elements, 1, std::max<Index>(elements, 1), 0, 1}, T(0),
         T(0));
    for (const Launch& launch : launches_) run_tile_round(queue_, bound(launch), options_.bundle);
  }

  /// Front f's rows of R, packed (see packed_column), from r_offset(f) on; min(rows, pivots) of them.
  std::vector<T> r() {
    std::vector<T> host(static_cast<std::size_t>(r_elements_));
    if (r_elements_ > 0) queue_.download(round_.r, host.data(), r_elements_);
    return host;
  }
  Index r_offset(Index front) const { return fronts_[static_cast<std::size_t>(front)].r; }
  Index rounds() const { return static_cast<Index>(launches_.size()); }
  Index bytes() const { return memory_.bytes(); }
  /// Of all tiles that tasks touch, zeros and padding included: what the device does. In multiplications and additions.
  double executed_flops() const { return executed_flops_; }

 private:
  /// Where a round's lists are in tasks_: bytes, and counts.
  struct List {
    Index offset = 0;
    std::int32_t count = 0;
  };
  struct Launch {
    List bundles, row_tiles, order, apply_factorize, factorize, apply, pack, s_assembly, finish;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static Index whole_tiles(Index n) {
    return (n + backend::front_tile - 1) / backend::front_tile * backend::front_tile;
  }

  void lay_out() {
    for (const Front& f : symbolic_->fronts) {
      backend::TileFront front{};
      front.matrix = storage_elements_;
      front.r = r_elements_;
      front.columns = f.cols_begin;
      front.first_row = f.first_row;
      front.slots = f.cb_begin;
      front.ld = static_cast<std::int32_t>(whole_tiles(f.rows));
      front.cols = static_cast<std::int32_t>(f.cols);
      front.pivots = static_cast<std::int32_t>(f.pivots);
      front.parent = static_cast<std::int32_t>(f.parent);
      front.own_rows = static_cast<std::int32_t>(f.own_rows);
      front.r_rows = static_cast<std::int32_t>(f.r_rows);
      fronts_.push_back(front);
      storage_elements_ += front.ld * whole_tiles(f.cols);
      r_elements_ += packed_column(f.cols, f.pivots, f.r_rows);
    }
  }

  template <class Task>
  List put(const std::vector<Task>& list) {
    tasks_.resize((tasks_.size() + 15) / 16 * 16);
    const List place{static_cast<Index>(tasks_.size()), static_cast<std::int32_t>(list.size())};
    tasks_.resize(tasks_.size() + list.size() * sizeof(Task));
    if (!list.empty()) std::memcpy(tasks_.data() + place.offset, list.data(), list.size() * sizeof(Task));
    return place;
  }

  void plan_rounds() {
    std::vector<ScheduledFront> scheduled;
    for (const Front& f : symbolic_->fronts) {
      ScheduledFront front;
      front.parent = static_cast<std::int32_t>(f.parent);
      front.rows = f.rows;
      front.cols = f.cols;
      front.pivots = f.pivots;
      front.staircase = {symbolic_->stair.data() + f.cols_begin, at(f.cols)};
      front.s_entries = symbolic_->row_begin[at(f.first_row + f.own_rows)] - symbolic_->row_begin[at(f.first_row)];
      front.contribution_rows = f.parent >= 0 ? f.cb_rows : 0;
      scheduled.push_back(front);
    }
    TreeScheduler scheduler(std::move(scheduled), options_);
    Round round;
    std::vector<std::int32_t> finished;  // in the round before
    while (scheduler.next(round)) {
      add(round, finished, scheduler);
      finished = round.r_final;
    }
    round.clear();
    if (!finished.empty()) add(round, finished, scheduler);
    vt_slots_ = scheduler.vt_slots();
  }

  void add(const Round& round, const std::vector<std::int32_t>& finished, const TreeScheduler& scheduler) {
    std::vector<std::int32_t> order;
    const auto order_of = [&](std::int32_t front) {
      const auto& rows = scheduler.row_order(front);
      order.insert(order.end(), rows.begin(), rows.end());
      return static_cast<std::int32_t>(order.size() - rows.size());
    };
    std::vector<backend::PackTilesTask> pack;
    std::int32_t packing = -1, place = 0;
    for (const PackAssemblyTask& block : round.pack_assembly) {
      if (block.front != packing) packing = block.front, place = order_of(packing);
      pack.push_back({block, place});
    }
    std::vector<backend::FinishTilesTask> finish;
    for (const std::int32_t f : finished) {
      constexpr Index share = 1 << 14;  // elements of R that one task moves, about
      const backend::TileFront& front = fronts_[at(f)];
      const Index elements = packed_column(front.cols, front.pivots, front.r_rows);
      const auto parts = static_cast<std::int32_t>(std::clamp<Index>(elements / share, 1, 1024));
      place = order_of(f);
      for (std::int32_t part = 0; part < parts; ++part) finish.push_back({f, place, part, parts});
    }
    const auto flops = [&](std::int32_t bundle, Index columns) {
      const double n = backend::front_tile;
      const double rows = n * round.bundles[at(bundle)].rows;
      return static_cast<double>(columns) * (4 * n * rows * n + 2 * n * n * n);
    };
    for (const ApplyTask& task : round.apply) executed_flops_ += flops(task.bundle, task.columns);
    for (const ApplyFactorizeTask& task : round.apply_factorize)
      executed_flops_ += flops(task.applied, 1) + flops(task.factored, 1) / 2;
    for (const FactorizeTask& task : round.factorize) executed_flops_ += flops(task.bundle, 1) / 2;
    launches_.push_back({put(round.bundles), put(round.row_tiles), put(order), put(round.apply_factorize),
                         put(round.factorize), put(round.apply), put(pack), put(round.s_assembly), put(finish)});
  }

  void upload_lists() {
    const Symbolic& s = *symbolic_;
    const std::vector<std::int32_t> parent_col(s.parent_col.begin(), s.parent_col.end());
    const std::vector<std::int64_t> row_begin(s.row_begin.begin(), s.row_begin.end());
    Pointer<std::byte> tasks{};
    const auto carve = [&](dense::Carver<B> carver) {
      round_.fronts = carver.template take<backend::TileFront>(static_cast<Index>(fronts_.size()));
      round_.row_begin = carver.template take<std::int64_t>(static_cast<Index>(row_begin.size()));
      round_.entry_col = carver.template take<std::int32_t>(static_cast<Index>(s.entry_col.size()));
      round_.own_slot = carver.template take<std::int32_t>(static_cast<Index>(s.own_slot.size()));
      round_.parent_col = carver.template take<std::int32_t>(static_cast<Index>(parent_col.size()));
      round_.cb_slot = carver.template take<std::int32_t>(static_cast<Index>(s.cb_slot.size()));
      round_.values = carver.template take<T>(s.entries);
      round_.storage = carver.template take<T>(storage_elements_);
      round_.vt = carver.template take<T>(Index{vt_slots_} * backend::vt_elements);
      round_.r = carver.template take<T>(r_elements_);
      tasks = carver.template take<std::byte>(static_cast<Index>(tasks_.size()));
      return carver.used();
    };
    memory_ = dense::Buffer<B>(queue_, std::max<Index>(carve(dense::Carver<B>()), 1));
    carve(dense::Carver<B>(memory_.template as<std::byte>()));
    device_tasks_ = tasks;
    const auto send = [&](const auto& list, auto target) {
      const auto bytes = std::as_bytes(std::span(list));
      if (!bytes.empty())
        queue_.upload(bytes.data(), backend::cast_pointer<std::byte>(target), static_cast<Index>(bytes.size()));
    };
    send(fronts_, round_.fronts);
    send(row_begin, round_.row_begin);
    send(s.entry_col, round_.entry_col);
    send(s.own_slot, round_.own_slot);
    send(parent_col, round_.parent_col);
    send(s.cb_slot, round_.cb_slot);
    send(tasks_, device_tasks_);
    queue_.synchronize();
    tasks_ = {};
  }

  template <class Task>
  Pointer<Task> list(const List& place) const {
    return backend::cast_pointer<Task>(device_tasks_ + place.offset);
  }
  template <class Task>
  backend::TileTasks<B, Task> tasks(const List& place) const {
    return {list<Task>(place), place.count};
  }

  backend::FrontTileRound<B, T> bound(const Launch& launch) const {
    backend::FrontTileRound<B, T> round = round_;
    round.bundles = tasks<Bundle>(launch.bundles);
    round.row_tiles = list<std::int32_t>(launch.row_tiles);
    round.order = list<std::int32_t>(launch.order);
    round.apply_factorize = tasks<ApplyFactorizeTask>(launch.apply_factorize);
    round.factorize = tasks<FactorizeTask>(launch.factorize);
    round.apply = tasks<ApplyTask>(launch.apply);
    round.pack = tasks<backend::PackTilesTask>(launch.pack);
    round.s_assembly = tasks<SAssemblyTask>(launch.s_assembly);
    round.finish = tasks<backend::FinishTilesTask>(launch.finish);
    return round;
  }

  Queue queue_;
  std::shared_ptr<const Symbolic> symbolic_;
  ScheduleOptions options_;
  std::vector<backend::TileFront> fronts_;
  std::vector<Launch> launches_;
  std::vector<std::byte> tasks_;
  Index storage_elements_ = 0, r_elements_ = 0;
  std::int32_t vt_slots_ = 0;
  double executed_flops_ = 0;
  dense::Buffer<B> memory_;
  Pointer<std::byte> device_tasks_{};
  backend::FrontTileRound<B, T> round_;
};

}  // namespace qrane::sparse
