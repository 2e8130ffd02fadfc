// SPDX-License-Identifier: Apache-2.0
// The bucket scheduler of one front.
#include "paper/tiles/scheduler.hpp"

#include <algorithm>
#include <functional>

#include <qrane/error.hpp>

namespace qrane::sparse {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

bool Round::empty() const {
  return factorize.empty() && apply.empty() && apply_factorize.empty() && s_assembly.empty() && pack_assembly.empty();
}

void Round::clear() {
  bundles.clear();
  row_tiles.clear();
  factorize.clear();
  apply.clear();
  apply_factorize.clear();
  s_assembly.clear();
  pack_assembly.clear();
  r_final.clear();
}

std::int32_t SlotPool::take() {
  if (free_.empty()) return slots_++;
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::begin_round() {
  for (const std::int32_t slot : given_back_) {
    free_.push_back(slot);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
  }
  given_back_.clear();
}

BucketScheduler::BucketScheduler(std::int32_t front, Index rows, Index cols, std::span<const Index> staircase,
                                 const ScheduleOptions& options)
    : front_(front), options_(options) {
  detail::check(options.tile >= 1 && options.bundle >= 2 && options.apply_columns >= 1, ErrorCode::invalid_argument,
                "a schedule needs tiles of at least 1, bundles of at least 2 and Apply tasks of at least 1 tile, not ",
                options.tile, ", ", options.bundle, " and ", options.apply_columns);
  const Index tile = options.tile;
  tile_columns_ = static_cast<std::int32_t>((cols + tile - 1) / tile);
  const std::int32_t tile_rows = static_cast<std::int32_t>((rows + tile - 1) / tile);
  left_.assign(at(tile_rows), 0);
  triangular_.assign(at(tile_rows), 0);
  bound_.assign(at(tile_rows), 0);
  in_bucket_.assign(at(tile_columns_) + 1, 0);
  idle_.resize(at(tile_columns_));
  open_below_.assign(at(tile_columns_), 0);
  std::int32_t column = 0;
  for (std::int32_t i = 0; i < tile_rows; ++i) {
    // the first tile whose last column reaches below the row tile's first row
    while (!staircase.empty() && column < tile_columns_ &&
           staircase[static_cast<std::size_t>(std::min<Index>((column + 1) * tile, cols) - 1)] <= i * tile)
      ++column;
    left_[at(i)] = tile_columns_ == 0 ? 0 : column;
    ++in_bucket_[at(left_[at(i)])];
  }
}

void BucketScheduler::collect_idle() {
  for (auto& bucket : idle_) bucket.clear();
  std::vector<char> unsettled(at(tile_columns_), 0);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(left_.size()); ++i) {
    const std::int32_t column = left_[at(i)];
    if (column >= tile_columns_) continue;
    if (!triangular_[at(i)] || in_bucket_[at(column)] > 1) unsettled[at(column)] = 1;
    if (!bound_[at(i)]) idle_[at(column)].push_back(i);
  }
  char open = 0;
  for (std::int32_t column = 0; column < tile_columns_; ++column) {
    open_below_[at(column)] = open;
    open |= unsettled[at(column)];
  }
}

bool BucketScheduler::others_may_join(std::int32_t column) const {
  return in_bucket_[at(column)] > 1 || open_below_[at(column)];
}

/// What goes on from earlier bundles: pipelined, the rest of each bundle whose update is due; plain, the rests updated
/// in the last round. from[k] is the index in due_ that factored[k] continues, or -1.
void BucketScheduler::continue_bundles(std::vector<Kept>& factored, std::vector<std::int32_t>& from) {
  const auto go_on = [&](std::vector<std::int32_t> rows, std::int32_t column, std::int32_t source) {
    if (options_.pipelined) {
      auto& idle = idle_[at(column)];
      while (static_cast<std::int32_t>(rows.size()) < options_.bundle && !idle.empty()) {
        rows.push_back(idle.front());
        idle.erase(idle.begin());
      }
      std::sort(rows.begin(), rows.end());
    }
    if (rows.size() == 1 && others_may_join(column)) {
      bound_[at(rows[0])] = 0;
      if (source < 0) {  // free at once; after its update otherwise
        auto& idle = idle_[at(column)];
        idle.insert(std::lower_bound(idle.begin(), idle.end(), rows[0]), rows[0]);
      }
      return;
    }
    factored.push_back({column, -1, std::move(rows)});
    from.push_back(source);
  };
  if (options_.pipelined) {
    for (std::size_t k = 0; k < due_.size(); ++k) {
      const Kept& bundle = due_[k];
      if (bundle.rows.size() > 1)
        go_on({bundle.rows.begin() + 1, bundle.rows.end()}, bundle.column + 1, static_cast<std::int32_t>(k));
    }
  } else {
    for (Kept& bundle : rest_) go_on(std::move(bundle.rows), bundle.column, -1);
  }
}

/// Idle row tiles of a bucket, bundle by bundle from the top. One that is alone has nothing to do if it is a triangle,
/// and waits if others may come.
void BucketScheduler::new_bundles(std::vector<Kept>& factored) {
  for (std::int32_t column = 0; column < tile_columns_; ++column) {
    const auto& idle = idle_[at(column)];
    for (std::size_t first = 0; first < idle.size();) {
      const std::size_t count = std::min(idle.size() - first, at(options_.bundle));
      if (count == 1 && (triangular_[at(idle[first])] || others_may_join(column))) break;
      factored.push_back(
          {column, -1, {idle.begin() + static_cast<Index>(first), idle.begin() + static_cast<Index>(first + count)}});
      first += count;
    }
  }
}

/// The row tiles of bundles given to this round move on.
void BucketScheduler::advance(const std::vector<Kept>& factored) {
  for (const Kept& bundle : factored) {
    triangular_[at(bundle.rows[0])] = 1;
    bound_[at(bundle.rows[0])] = 0;
    for (std::size_t k = 1; k < bundle.rows.size(); ++k) {
      const std::int32_t row = bundle.rows[k];
      --in_bucket_[at(bundle.column)];
      ++in_bucket_[at(bundle.column) + 1];
      left_[at(row)] = bundle.column + 1;
      triangular_[at(row)] = 0;
      bound_[at(row)] = 1;
    }
  }
}

std::int32_t BucketScheduler::put(Round& round, const Kept& bundle) const {
  round.bundles.push_back({front_, bundle.column, static_cast<std::int32_t>(round.row_tiles.size()),
                           static_cast<std::int32_t>(bundle.rows.size()), bundle.vt});
  round.row_tiles.insert(round.row_tiles.end(), bundle.rows.begin(), bundle.rows.end());
  return static_cast<std::int32_t>(round.bundles.size()) - 1;
}

bool BucketScheduler::next(Round& round, SlotPool& slots) {
  collect_idle();
  std::vector<Kept> factored;
  std::vector<std::int32_t> from;
  continue_bundles(factored, from);
  new_bundles(factored);
  from.resize(factored.size(), -1);
  if (due_.empty() && factored.empty()) return false;

  std::vector<std::int32_t> due_index;
  for (const Kept& bundle : due_) due_index.push_back(put(round, bundle));
  std::vector<char> fused(due_.size(), 0);
  for (std::size_t k = 0; k < factored.size(); ++k) {
    factored[k].vt = slots.take();
    const std::int32_t bundle = put(round, factored[k]);
    if (from[k] < 0) {
      round.factorize.push_back({bundle});
    } else {
      round.apply_factorize.push_back({due_index[at(from[k])], bundle});
      fused[at(from[k])] = 1;
    }
  }
  for (std::size_t k = 0; k < due_.size(); ++k)
    for (std::int32_t first = due_[k].column + 1 + fused[k]; first < tile_columns_; first += options_.apply_columns)
      round.apply.push_back({due_index[k], first, std::min(options_.apply_columns, tile_columns_ - first)});

  rest_.clear();
  for (Kept& bundle : due_) {
    slots.give_back(bundle.vt);
    if (options_.pipelined) {  // those that were not factored at once are free now
      for (std::size_t k = 1; k < bundle.rows.size(); ++k) bound_[at(bundle.rows[k])] = 0;
    } else if (bundle.rows.size() > 1) {
      bundle.rows.erase(bundle.rows.begin());
      rest_.push_back({bundle.column + 1, -1, std::move(bundle.rows)});
    }
  }
  advance(factored);
  due_.clear();
  for (Kept& bundle : factored) {
    if (bundle.column + 1 < tile_columns_)
      due_.push_back(std::move(bundle));
    else
      slots.give_back(bundle.vt);
  }
  return true;
}

bool BucketScheduler::final_columns(Index cols) const {
  const Index tiles = (cols + options_.tile - 1) / options_.tile;
  for (std::size_t i = 0; i < left_.size(); ++i)
    if (left_[i] < tiles && (!triangular_[i] || in_bucket_[at(left_[i])] > 1)) return false;
  return std::none_of(due_.begin(), due_.end(), [&](const Kept& bundle) { return bundle.column < tiles; });
}

std::int32_t BucketScheduler::row_tile_of(std::int32_t column) const {
  for (std::size_t i = 0; i < left_.size(); ++i)
    if (left_[i] == column && triangular_[i] && in_bucket_[at(column)] == 1) return static_cast<std::int32_t>(i);
  return -1;
}

std::vector<std::int32_t> BucketScheduler::row_order() const {
  std::vector<std::int32_t> last(at(tile_columns_), -1), order;
  for (std::size_t i = 0; i < left_.size(); ++i)
    if (left_[i] < tile_columns_ && triangular_[i] && in_bucket_[at(left_[i])] == 1)
      last[at(left_[i])] = static_cast<std::int32_t>(i);
  for (const std::int32_t row : last)
    if (row >= 0) order.push_back(row);
  return order;
}

}  // namespace qrane::sparse
