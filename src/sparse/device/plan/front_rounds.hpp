// SPDX-License-Identifier: Apache-2.0
// The order in which a device factors the fronts, and where each of them lies: plain values, from the pattern alone.
// (Algorithm 980, sections 3.1-3.3: rounds, and panels of many fronts at once without a barrier between levels.)
//
// In each round every front that is ready moves on by one panel of columns; a small one is done whole in one round. A
// front begins in the round after its last child has ended. Front of three panels, `|` between rounds:
//
//   urgent  lay_out assemble | panel 0 | narrow 0 -> 1, panel 1 | narrow 1 -> 2, panel 2, closing, tail, finish |
//   beside                   |         | wide 0 -> 2 ..         |                                               |
//
// In tall fronts the others are updated by two panels at once, which moves half the memory: by panels k and k + 1 in
// rounds k + 2 and k + 3, a half of the columns in each; the narrow updates keep the columns of the next panels
// current:
//
//   urgent  .. narrow k-1 -> k, panel k      | narrow k -> k+1, k+2, panel k+1  | narrow k+1 -> k+2, panel k+2
//   beside  .. pair k-2, k-1 -> k+1 .. half  | pair k-2, k-1 -> half ..         | pair k, k+1 -> k+3 ..
//
// Urgent steps run in the order of FrontStep, those beside at the same time; a front's round begins when both have
// ended (front_lanes.hpp: what a launch waits for). Fronts being assembled hold up nobody else's panels. Panel k
// updates the columns of panel k + 1 first (narrow), so that this one is factored while the others (wide, in strips)
// are still being updated. `closing`: the last panel's update of what is right of it: right-hand sides, and columns
// that rows do not reach, whose empty panels are `tail`. Where these are many, they take a round of their own.
//
// A front's memory is held from its first round until its parent is assembled; with Q kept, for ever. Under a limit
// (staging.hpp) its contribution block may leave for host memory before, `pack`, and come back into its parent,
// `unpack`, beside other work; R and Q leave when a front has ended:
//
//   urgent  lay_out assemble unpack | unpack panel 0 | ...                    beside of some round later  | pack | pack
//   |
//
// Time and memory are linear in fronts and tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sparse/analysis/symbolic.hpp"
#include "sparse/device/plan/staging.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::sparse {

struct FrontRoundsOptions {
  Index rhs_cols = 0;
  Index panel = 32;          ///< columns
  Index whole_elements = 0;  ///< fronts of at most so many elements, right-hand sides included, are done whole,
  Index whole_rows = std::numeric_limits<Index>::max();  ///< if they have at most so many rows
  Index update_cols = 128;                               ///< most columns of an update
  int update_blocks = 1;                                 ///< most that may share an update, a power of two
  Index pair_cols = 0;                    ///< most columns of an update by two panels; 0: the device has none
  Index pair_rows = 1024;                 ///< fronts of fewer rows, with full rank, are updated by one panel at a time
  Index share_elements = Index{1} << 13;  ///< of a front's matrix, that one share of assembly or packing has
  Index alignment = 16;                   ///< elements; of columns and whatever begins in storage
  bool keep_q = true;
  bool detect_rank = true;   ///< false: no column is dropped, rows are as the analysis counted them
  bool late = false;         ///< fronts begin as late as the number of rounds allows, instead of as soon: less memory
  Index storage_limit = -1;  ///< elements; < 0: none, else at least least_storage()
  Index piece = Index{1} << 22;  ///< elements of a staging buffer, where the limit leaves so much
  bool r_in_storage =
      false;  ///< under a limit R of a front lies behind its T, to be copied; else it is packed elsewhere
};

enum class FrontStep { lay_out, assemble, unpack, narrow, panel, closing, tail, finish, whole, pair, wide, pack };
inline constexpr int front_steps = 12;
/// Panels of more rows do not wait for those of other fronts.
inline constexpr Index tall_rows = 4096;
inline bool is_urgent(FrontStep step) { return step < FrontStep::whole; }

/// Independent tasks first .. first + count - 1 of the step's list.
struct FrontLaunch {
  FrontStep step{};
  Index first = 0, count = 0;
  /// Largest rows_bound, cols + rhs_cols of all fronts of the class: a front is treated alike in whatever company.
  std::int32_t max_rows = 0, max_cols = 0;
  std::int32_t blocks = 1;  ///< updates: that share a task
  bool tall = false;        ///< narrow and closing updates: by panels of more than tall_rows rows
  Index max_elements = 0;   ///< like max_rows, of rows_bound * (cols + rhs_cols)
};

struct FrontRounds {
  std::vector<backend::FrontShape> shapes;
  std::vector<std::int32_t> lists;                ///< lay_out, whole
  std::vector<backend::FrontShare> shares;        ///< assemble, finish
  std::vector<backend::FrontPanelTask> panels;    ///< panel, tail
  std::vector<backend::FrontUpdateTask> updates;  ///< narrow, closing, pair, wide
  std::vector<backend::FrontPieceTask> pieces;    ///< unpack, pack
  std::vector<FrontLaunch> launches;              ///< round by round, in the order of FrontStep
  std::vector<Index> round_begin;                 ///< rounds + 1, into launches
  std::vector<std::int32_t> begin, start, end;    ///< rounds of each front: the first, its first panel's, the last
  std::vector<Index> r_final;  ///< after round k elements of r before r_final[k] are final; if not in storage

  // under a limit; see staging.hpp for when copies may begin and are done
  std::vector<StagedCopy> outs, ins, images;  ///< by rounds
  std::vector<std::int32_t> stage;            ///< of each front; else empty
  std::vector<Index>
      host_shift;  ///< what an element of a front's image has in host memory more than in storage; else empty
  Index blocks_size = 0, images_size = 0;  ///< elements of host memory
  bool staged() const { return !stage.empty(); }
  std::int32_t stages() const { return stage.empty() ? 1 : *std::max_element(stage.begin(), stage.end()) + 1; }

  // elements of the arrays that kernels write
  Index storage_size = 0, r_size = 0, row_ids_size = 0, slots_size = 0, panels_size = 0;

  Index rounds() const { return static_cast<Index>(round_begin.size()) - 1; }
};

/// What a limit must leave at least, and the front that is to blame.
struct LeastStorage {
  Index elements = 0, front = -1;
};
LeastStorage least_storage(const Symbolic& symbolic, const FrontRoundsOptions& options);

/// Throws Error{invalid_argument} naming a front whose counts do not fit the shapes' 32 bits, or the limit that is too
/// small.
FrontRounds plan_rounds(const Symbolic& symbolic, const FrontRoundsOptions& options);

}  // namespace qrane::sparse
