// SPDX-License-Identifier: Apache-2.0
#include "sparse/device/plan/staging.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <qrane/error.hpp>

#include "sparse/block_planner.hpp"
#include "sparse/device/plan/staging_places.hpp"

namespace qrane::sparse {

namespace {

class Stager {
 public:
  Stager(const std::vector<StagedFront>& fronts, const StagingOptions& options)
      : fronts_(fronts),
        o_(options),
        outs_(0, options.piece),
        ins_(2 * options.piece, options.piece),
        room_(options.limit - staging_buffers * options.piece) {}

  Staging plan() {
    prepare();
    for (std::int32_t round = 0; begun_ < fronts_.size();) {
      happen(round);
      crowded_ = false;
      begin_what_can(round);
      if (begun_ == fronts_.size()) break;
      if (crowded_) {
        ++round;
        continue;
      }
      detail::check(!events_.empty(), ErrorCode::invalid_argument, "staging: front ", head_, " of ",
                    head_ >= 0 ? fronts_[head_].size : 0, " elements has no room in ", o_.limit);
      round = events_.begin()->first;
    }
    place_in_host_memory(fronts_, o_, outs_, left_in_, out_);
    out_.storage_size = staging_buffers * o_.piece + memory_.extent() * o_.alignment;
    count_stages();
    return std::move(out_);
  }

 private:
  enum class What { free, ended, ready };
  enum class Block { none, in_front, leaving, taken };
  struct Event {
    What what;
    Index front;
  };
  using Order = std::pair<std::int32_t, Index>;  // late, front

  Index block_elements(Index f) const { return packed_front_block(fronts_[f].block_cols, fronts_[f].block_rows); }
  Order order(Index f) const { return {fronts_[f].late, f}; }
  std::pair<const Index*, const Index*> children(Index f) const {
    return {children_.data() + child_begin_[f], children_.data() + child_begin_[f + 1]};
  }
  template <class Visit>
  void for_children(Index f, Visit visit) const {
    for (auto [c, end] = children(f); c != end; ++c) visit(*c);
  }

  void prepare() {
    const std::size_t count = fronts_.size();
    for (auto* rounds : {&out_.begin, &out_.start, &out_.end, &out_.stage}) rounds->assign(count, 0);
    out_.address.assign(count, 0);
    out_.block.assign(count, block_in_front);
    out_.image.assign(count, -1);
    handles_.assign(count, -1);
    state_.assign(count, Block::none);
    packs_of_.resize(count);
    ready_at_.assign(count, 0);
    waiting_for_.assign(count, 0);
    child_begin_.assign(count + 1, 0);
    for (const StagedFront& f : fronts_)
      if (f.parent >= 0) ++child_begin_[f.parent + 1];
    std::partial_sum(child_begin_.begin(), child_begin_.end(), child_begin_.begin());
    children_.resize(child_begin_.back());
    for (std::size_t f = 0; f < count; ++f)
      if (fronts_[f].parent >= 0)
        children_[child_begin_[fronts_[f].parent] + waiting_for_[fronts_[f].parent]++] = static_cast<Index>(f);
    for (std::size_t f = 0; f < count; ++f)
      if (waiting_for_[f] == 0) ready_.insert(order(static_cast<Index>(f)));
  }

  void happen(std::int32_t round) {
    while (!events_.empty() && events_.begin()->first <= round) {
      const std::vector<Event> now = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      for (const auto [what, f] : now) {
        switch (what) {
          case What::free: give_back(f); break;
          case What::ended: end(f, round); break;
          case What::ready:
            if (ready_at_[f] <= round)
              ready_.insert(order(f));
            else
              events_[ready_at_[f]].push_back({What::ready, f});
            break;
        }
      }
    }
  }

  void give_back(Index f) {
    memory_.give_back(handles_[f]);
    coming_free_ -= fronts_[f].size;
    used_ -= fronts_[f].size;
  }
  /// Frees the front's memory after that round, and after its image is copied.
  void free_from(Index f, std::int32_t round) {
    if (fronts_[f].image_size > 0) round = std::max(round, out_.end[f] + 2);
    coming_free_ += fronts_[f].size;
    events_[round].push_back({What::free, f});
  }

  void end(Index f, std::int32_t round) {
    --running_;
    const Index parent = fronts_[f].parent;
    if (parent < 0 || block_elements(f) == 0) {
      free_from(f, round);
    } else {
      state_[f] = Block::in_front;
      resident_.insert({order(parent), f});
    }
    if (parent < 0 || --waiting_for_[parent] > 0) return;
    events_[std::max(round, ready_at_[parent])].push_back({What::ready, parent});
  }

  void begin_what_can(std::int32_t round) {
    for (;;) {
      // the front for which blocks were spilled goes first
      if (head_ < 0 && !ready_.empty()) head_ = ready_.begin()->second;
      if (head_ < 0 || !ready_.contains(order(head_))) return;
      const StagedFront& front = fronts_[head_];
      Index coming = 0;
      if (front.whole)
        for_children(head_, [&](Index c) { coming += state_[c] == Block::leaving ? block_elements(c) : 0; });
      if (coming > ins_.left(round)) {
        crowded_ = true;
        return;
      }
      const Index handle = memory_.take(front.size / o_.alignment, room_ / o_.alignment);
      if (handle < 0) {
        make_room(head_, round);
        return;
      }
      ready_.erase(order(head_));
      begin(std::exchange(head_, -1), handle, round);
    }
  }

  void begin(Index f, Index handle, std::int32_t round) {
    const StagedFront& front = fronts_[f];
    handles_[f] = handle;
    used_ += front.size;
    out_.address[f] = staging_buffers * o_.piece + memory_.address(handle) * o_.alignment;
    out_.begin[f] = out_.start[f] = round;
    for_children(f, [&](Index c) {
      switch (std::exchange(state_[c], Block::taken)) {
        case Block::in_front:
          resident_.erase({order(f), c});
          free_from(c, round + 1);
          break;
        case Block::leaving:
          out_.start[f] = std::max(out_.start[f], front.whole ? bring_whole(c, round) : bring(c, round));
          break;
        default: break;
      }
    });
    out_.end[f] = out_.start[f] + front.rounds - 1;
    out_.rounds = std::max(out_.rounds, out_.end[f] + 1);
    events_[out_.end[f] + 1].push_back({What::ended, f});
    ++running_;
    ++begun_;
  }

  /// Spills blocks until enough memory for front f will be free; further blocks if the free memory is fragmented.
  void make_room(Index f, std::int32_t round) {
    const Index wanted = fronts_[f].size;
    const auto free_then = [&] { return room_ - used_ + coming_free_; };
    const auto evict = [&](bool own) {
      for (auto c = resident_.rbegin(); c != resident_.rend(); ++c)
        if ((fronts_[c->second].parent == f) == own) {
          send_off(c->second, round);
          return true;
        }
      return false;
    };
    while (free_then() < wanted && evict(false)) {
    }
    if (coming_free_ > 0) return;
    while (coming_free_ < wanted / 4 && evict(false)) {
    }
    if (coming_free_ > 0) return;
    Index own = 0;
    for_children(f, [&](Index c) { own += state_[c] == Block::in_front ? fronts_[c].size : 0; });
    if (running_ > 0 && free_then() + own < wanted) return;  // wait until more fronts have ended
    while (free_then() < wanted && evict(true)) {
    }
    while (coming_free_ < wanted / 4 && evict(true)) {
    }
  }

  /// Largest number of columns from `first` on that take at most `elements`.
  Index columns_within(Index f, Index first, Index end, Index elements) const {
    const Index rows = fronts_[f].block_rows, before = packed_front_block(first, rows);
    Index low = first, high = end;
    while (low < high) {
      const Index middle = (low + high + 1) / 2;
      if (packed_front_block(middle, rows) - before <= elements)
        low = middle;
      else
        high = middle - 1;
    }
    return low - first;
  }
  Index elements_of(const StagedPiece& piece) const {
    const Index rows = fronts_[piece.front].block_rows;
    return packed_front_block(piece.first + piece.cols, rows) - packed_front_block(piece.first, rows);
  }

  void send_off(Index c, std::int32_t round) {
    const StagedFront& front = fronts_[c];
    resident_.erase({order(front.parent), c});
    state_[c] = Block::leaving;
    for (Index first = 0; first < front.block_cols;) {
      StagedPiece piece{round, c, first, columns_within(c, first, front.block_cols, outs_.left(round)), 0};
      if (piece.cols == 0) {
        ++round;
        continue;
      }
      piece.place = outs_.take(round, elements_of(piece));
      packs_of_[c].push_back(static_cast<Index>(out_.packs.size()));
      out_.packs.push_back(piece);
      first += piece.cols;
    }
    free_from(c, round + 1);
    const Index parent = front.parent;
    ready_at_[parent] = std::max(ready_at_[parent], round + 2);
    if (ready_.erase(order(parent)) > 0) events_[ready_at_[parent]].push_back({What::ready, parent});
  }

  /// Plans the copies of a block back to the device, from that round on; returns the round of the last.
  std::int32_t bring(Index c, std::int32_t round) {
    out_.block[c] = block_in_pieces;
    for (const Index p : packs_of_[c]) {
      const StagedPiece packed = out_.packs[p];
      for (Index first = packed.first; first < packed.first + packed.cols;) {
        StagedPiece piece{round, c, first, columns_within(c, first, packed.first + packed.cols, ins_.left(round)), 0};
        if (piece.cols == 0) {
          ++round;
          continue;
        }
        piece.place = ins_.take(round, elements_of(piece));
        out_.unpacks.push_back(piece);
        come(packed, piece);
        first += piece.cols;
      }
    }
    return round;
  }
  std::int32_t bring_whole(Index c, std::int32_t round) {
    const Index place = ins_.take(round, block_elements(c));
    out_.block[c] = place;
    for (const Index p : packs_of_[c]) {
      StagedPiece piece = out_.packs[p];
      piece.round = round;
      piece.place = place + packed_front_block(piece.first, fronts_[c].block_rows);
      come(out_.packs[p], piece);
    }
    return round;
  }
  /// The copy of `piece`, a part of `packed`, back to the device. Its host address is so far relative to the data that
  /// were copied out in the same round.
  void come(const StagedPiece& packed, const StagedPiece& piece) {
    const Index rows = fronts_[piece.front].block_rows;
    const Index offset = packed.place - outs_.begin(packed.round) + packed_front_block(piece.first, rows) -
                         packed_front_block(packed.first, rows);
    out_.ins.push_back({piece.round, piece.place, offset, elements_of(piece)});
    left_in_.push_back(packed.round);
  }

  void count_stages() {
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      if (fronts_[f].parent < 0) continue;
      std::int32_t& stage = out_.stage[fronts_[f].parent];
      stage = std::max(stage, out_.stage[f] + (packs_of_[f].empty() ? 0 : 1));
    }
  }

  const std::vector<StagedFront>& fronts_;
  const StagingOptions& o_;
  Staging out_;
  StagingBuffers outs_, ins_;
  BlockPlanner memory_;
  Index room_, used_ = 0, coming_free_ = 0;  // elements for fronts: all, taken, taken and to be freed later
  std::vector<Index> handles_;
  std::vector<Index> child_begin_, children_;
  std::vector<Block> state_;
  std::vector<std::vector<Index>> packs_of_;
  std::vector<std::int32_t> ready_at_, waiting_for_;
  std::map<std::int32_t, std::vector<Event>> events_;
  std::set<Order> ready_;
  std::set<std::pair<Order, Index>> resident_;  // finished blocks, by their parents' order
  std::vector<std::int32_t> left_in_;           // of each copy to the device
  std::size_t begun_ = 0;
  Index head_ = -1;
  int running_ = 0;
  bool crowded_ = false;
};

}  // namespace

Index least_piece(const std::vector<StagedFront>& fronts, Index alignment) {
  std::vector<Index> of_parent(fronts.size(), 0);
  Index least = 1;
  for (const StagedFront& f : fronts) {
    if (f.parent < 0) continue;
    least = std::max(least, std::min(f.block_cols, f.block_rows));
    if (fronts[f.parent].whole)
      least = std::max(least, of_parent[f.parent] += packed_front_block(f.block_cols, f.block_rows));
  }
  return (least + alignment - 1) / alignment * alignment;
}

Staging plan_staging(const std::vector<StagedFront>& fronts, const StagingOptions& options) {
  return Stager(fronts, options).plan();
}

}  // namespace qrane::sparse
