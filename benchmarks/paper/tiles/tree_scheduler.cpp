// SPDX-License-Identifier: Apache-2.0
// Many bucket schedulers at once, and the assembly around them (section 3.3 of the paper).
#include <algorithm>
#include <utility>

#include <qrane/error.hpp>

#include "paper/tiles/scheduler.hpp"

namespace qrane::sparse {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

TreeScheduler::TreeScheduler(std::vector<ScheduledFront> fronts, const ScheduleOptions& options)
    : fronts_(std::move(fronts)),
      options_(options),
      states_(fronts_.size(), FrontState::sleeping),
      children_left_(fronts_.size(), 0),
      buckets_(fronts_.size()),
      r_final_(fronts_.size(), 0),
      row_order_(fronts_.size()) {
  detail::check(options.s_entries >= 1 && options.pack_side >= 1, ErrorCode::invalid_argument, "assembly tasks of ",
                options.s_entries, " entries and blocks of ", options.pack_side, " are none");
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const std::int32_t parent = fronts_[f].parent;
    detail::check(parent < 0 || (parent > static_cast<std::int32_t>(f) && at(parent) < fronts_.size()),
                  ErrorCode::invalid_argument, "front ", f, " has parent ", parent, ", which does not come after it");
    if (parent >= 0) ++children_left_[at(parent)];
  }
  for (std::size_t f = 0; f < fronts_.size(); ++f)
    if (children_left_[f] == 0) active_.push_back(static_cast<std::int32_t>(f));
}

void TreeScheduler::assemble(std::int32_t front, Round& round) {
  const Index entries = fronts_[at(front)].s_entries;
  for (Index first = 0; first < entries; first += options_.s_entries)
    round.s_assembly.push_back({front, first, std::min(options_.s_entries, entries - first)});
  states_[at(front)] = FrontState::assembling;
}

void TreeScheduler::pack(std::int32_t front, Round& round) const {
  const ScheduledFront& f = fronts_[at(front)];
  const auto rows = static_cast<std::int32_t>(f.contribution_rows), cols = static_cast<std::int32_t>(f.cols - f.pivots);
  const std::int32_t side = options_.pack_side;
  for (std::int32_t j = 0; j < cols; j += side)
    for (std::int32_t i = 0; i < std::min(rows, j + side); i += side)  // an upper trapezoid
      round.pack_assembly.push_back({front, i, std::min(side, rows - i), j, std::min(side, cols - j)});
}

/// The front's next tasks, or its end.
bool TreeScheduler::factor(std::int32_t front, Round& round) {
  const ScheduledFront& f = fronts_[at(front)];
  auto& bucket = buckets_[at(front)];
  if (bucket.empty()) bucket.emplace_back(front, f.rows, f.cols, f.staircase, options_);
  const bool more = bucket[0].next(round, slots_);
  if (!r_final_[at(front)] && (!more || bucket[0].final_columns(f.pivots))) {
    r_final_[at(front)] = 1;
    row_order_[at(front)] = bucket[0].row_order();
    round.r_final.push_back(front);
  }
  if (more) return true;
  row_order_[at(front)] = bucket[0].row_order();
  bucket.clear();
  bucket.shrink_to_fit();
  return false;
}

bool TreeScheduler::next(Round& round) {
  round.clear();
  slots_.begin_round();
  std::vector<std::int32_t> woken;  // fronts whose first contribution comes in this round
  std::vector<std::int32_t> packed;
  bool moved = false;
  // Ascending: a child's state is decided before its parent's; what a child packs now is there in the next round.
  for (const std::int32_t front : active_) {
    FrontState& state = states_[at(front)];
    if (state == FrontState::sleeping) {
      assemble(front, round);
      moved = true;
      continue;
    }
    if (state == FrontState::assembling && children_left_[at(front)] == 0) state = FrontState::factoring;
    if (state == FrontState::factoring) {
      if (factor(front, round)) {
        moved = true;
        continue;
      }
      state = FrontState::packing;
    }
    if (state != FrontState::packing) continue;
    moved = true;
    state = FrontState::done;
    const std::int32_t parent = fronts_[at(front)].parent;
    if (parent < 0) continue;
    pack(front, round);
    packed.push_back(parent);
    if (states_[at(parent)] == FrontState::sleeping) {
      assemble(parent, round);
      woken.push_back(parent);
    }
  }
  for (const std::int32_t parent : packed) --children_left_[at(parent)];
  std::erase_if(active_, [&](std::int32_t front) { return states_[at(front)] == FrontState::done; });
  active_.insert(active_.end(), woken.begin(), woken.end());
  std::sort(active_.begin(), active_.end());
  return moved;
}

}  // namespace qrane::sparse
