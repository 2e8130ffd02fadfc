// SPDX-License-Identifier: Apache-2.0
// What a device does round by round to factor many fronts at once: a pure, deterministic function of their shapes.
// Yeralan, Davis, Sid-Lakhdar, Ranka, "Algorithm 980: Sparse QR Factorization on the GPU" (ACM TOMS 2017), sections 3.1
// (bucket scheduler) and 3.3 (tree).
//
// A front is cut into square tiles. A row tile stands in the bucket of its leftmost tile that is not zero, and moves to
// the right until every bucket holds one, with an upper triangle there:
//
//      bucket    0   1   2                     a bundle is a few row tiles of one bucket, factored together:
//              | x   x   x |  row tile 0         its topmost keeps a triangle in this bucket,
//              | x   x   x |           1         the others are zero there now and go on to the next bucket,
//              | .   x   x |           2         and the update of all columns to the right is due in the next round.
//              | .   .   x |           3
//
// Tasks of one round depend on nothing in that round. A bundle's V stays in the front's tiles, but for the top tile's,
// which lies beside T in the bundle's VT tile; so that the top row tile may be factored again while the update is made.
//
// Plain: the rest of a bundle stays together, is updated in the next round and factored in the one after that.
// Pipelined: the task that updates the rest's next column factors it at once (Apply/Factorize), together with idle row
// tiles of that bucket that fill the bundle up (its delta). A row tile alone waits as long as others can still join it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <qrane/matrix.hpp>

#include "paper/tiles/front_tiles.hpp"

namespace qrane::sparse {

struct ScheduleOptions {
  std::int32_t tile = 32;   ///< rows and columns of a tile
  std::int32_t bundle = 3;  ///< row tiles of a bundle, at most; at least 2
  bool pipelined = true;
  std::int32_t apply_columns = 1 << 20;  ///< column tiles of an Apply task, at most
  Index s_entries = 4096;                ///< entries of A that one S-Assembly task scatters, at most
  std::int32_t pack_side = 1024;         ///< rows and columns of the block that one Pack-Assembly task moves, at most
};

using backend::ApplyFactorizeTask;
using backend::ApplyTask;
using backend::Bundle;
using backend::FactorizeTask;
using backend::PackAssemblyTask;
using backend::SAssemblyTask;

/// One launch: everything in it may run at once.
struct Round {
  std::vector<Bundle> bundles;  ///< those whose update is due, then those factored in this round
  std::vector<std::int32_t> row_tiles;
  std::vector<FactorizeTask> factorize;
  std::vector<ApplyTask> apply;
  std::vector<ApplyFactorizeTask> apply_factorize;
  std::vector<SAssemblyTask> s_assembly;
  std::vector<PackAssemblyTask> pack_assembly;
  std::vector<std::int32_t> r_final;  ///< fronts whose rows of R are final after this round

  std::span<const std::int32_t> rows_of(const Bundle& bundle) const {
    return std::span(row_tiles).subspan(static_cast<std::size_t>(bundle.first_row),
                                        static_cast<std::size_t>(bundle.rows));
  }
  bool empty() const;
  void clear();
};

/// VT tiles: the lowest free slot is taken. What is given back was still used in this round, and is free in the next.
class SlotPool {
 public:
  void begin_round();
  std::int32_t take();
  void give_back(std::int32_t slot) { given_back_.push_back(slot); }
  std::int32_t slots() const { return slots_; }  ///< most in use at once

 private:
  std::vector<std::int32_t> free_;  // heap, smallest first
  std::vector<std::int32_t> given_back_;
  std::int32_t slots_ = 0;
};

/// The bucket scheduler of one front.
class BucketScheduler {
 public:
  /// `staircase`: for each column the number of leading rows that may be nonzero, nondecreasing; empty: all of them.
  BucketScheduler(std::int32_t front, Index rows, Index cols, std::span<const Index> staircase,
                  const ScheduleOptions& options);

  /// Appends the tasks of the next round. False, and nothing appended, when all is done.
  bool next(Round& round, SlotPool& slots);

  /// Columns [0, cols) have their final rows of R, once what `next` has given so far is done.
  bool final_columns(Index cols) const;
  /// The row tile that a bucket ends with, -1 while there is none.
  std::int32_t row_tile_of(std::int32_t column) const;
  /// Those of all buckets that have one, from the left: where rows of R are.
  std::vector<std::int32_t> row_order() const;

 private:
  struct Kept {  // a bundle between rounds
    std::int32_t column;
    std::int32_t vt;
    std::vector<std::int32_t> rows;
  };
  void collect_idle();
  bool others_may_join(std::int32_t column) const;
  void continue_bundles(std::vector<Kept>& factored, std::vector<std::int32_t>& from);
  void new_bundles(std::vector<Kept>& factored);
  void advance(const std::vector<Kept>& factored);
  std::int32_t put(Round& round, const Kept& bundle) const;

  std::int32_t front_, tile_columns_;
  ScheduleOptions options_;
  std::vector<std::int32_t> left_;  // bucket of each row tile; tile_columns_: zero
  std::vector<char> triangular_;    // its leftmost tile is an upper triangle
  std::vector<char> bound_;         // in the rest of a bundle whose update is due, or (plain) that is to be factored
  std::vector<std::int32_t> in_bucket_;
  std::vector<std::vector<std::int32_t>> idle_;  // by bucket, ascending; rebuilt every round
  std::vector<char> open_below_;                 // some bucket further left is unsettled
  std::vector<Kept> due_;                        // factored in the last round
  std::vector<Kept> rest_;                       // plain: updated in the last round, to be factored in this one
};

/// A front as the tree's scheduler sees it.
struct ScheduledFront {
  std::int32_t parent = -1;
  Index rows = 0, cols = 0;
  Index pivots = 0;                  ///< columns eliminated here
  std::span<const Index> staircase;  ///< of all columns, or empty
  Index s_entries = 0;               ///< nonzeros of A scattered into it
  Index contribution_rows = 0;       ///< rows that go to the parent, cols - pivots wide
};

/// What a front is about. All of a round's moves are decided from the states before it.
enum class FrontState {
  sleeping,    ///< no child has finished yet
  assembling,  ///< has its place; S-Assembly was given; waits for children
  factoring,
  packing,  ///< its contribution is to be packed in the next round
  done
};

/// Many fronts at once, each at its own pace: no barrier between levels of the tree.
class TreeScheduler {
 public:
  /// Fronts in postorder: parent > child. The staircases must outlive the scheduler.
  TreeScheduler(std::vector<ScheduledFront> fronts, const ScheduleOptions& options = {});

  /// The next round into `round`, cleared first. False when all is done.
  bool next(Round& round);

  FrontState state(std::int32_t front) const { return states_[static_cast<std::size_t>(front)]; }
  /// For a front whose rows of R are final: which row tile holds rows 32 k .. of R and of the contribution block below
  /// it (32: a tile). Those of R's rows at first, all of them once it packs.
  const std::vector<std::int32_t>& row_order(std::int32_t front) const {
    return row_order_[static_cast<std::size_t>(front)];
  }
  std::int32_t vt_slots() const { return slots_.slots(); }

 private:
  void assemble(std::int32_t front, Round& round);
  void pack(std::int32_t front, Round& round) const;
  bool factor(std::int32_t front, Round& round);

  std::vector<ScheduledFront> fronts_;
  ScheduleOptions options_;
  std::vector<FrontState> states_;
  std::vector<std::int32_t> children_left_;
  std::vector<std::vector<BucketScheduler>> buckets_;  // none or one for each front: only while it is factored
  std::vector<char> r_final_;
  std::vector<std::vector<std::int32_t>> row_order_;
  std::vector<std::int32_t> active_;  // ascending
  SlotPool slots_;
};

}  // namespace qrane::sparse
