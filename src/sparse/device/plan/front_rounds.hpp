// SPDX-License-Identifier: Apache-2.0
// The order in which a device factors the fronts, and each front's address: plain values, from the pattern alone.
// (Algorithm 980, sections 3.1-3.3: rounds, and panels of many fronts at once without a barrier between levels.)
//
// In each round every ready front factors one panel of columns; a small front is factored whole in one round. A front
// begins in the round after its last child has ended. A front of three panels, `|` between rounds:
//
//   urgent  lay_out assemble | panel 0 | narrow 0 -> 1, panel 1 | narrow 1 -> 2, panel 2, closing, tail, finish |
//   beside                   |         | trailing 0 -> 2 ..     |                                               |
//
// In tall fronts the trailing updates apply two panels at once ("pair"), which halves the memory traffic: panels k and
// k + 1 in rounds k + 2 and k + 3, half of the columns in each. Narrow updates keep the columns of the next panels up
// to date:
//
//   urgent  .. narrow k-1 -> k, panel k      | narrow k -> k+1, k+2, panel k+1  | narrow k+1 -> k+2, panel k+2
//   beside  .. pair k-2, k-1 -> k+1 .. half  | pair k-2, k-1 -> half ..         | pair k, k+1 -> k+3 ..
//
// Urgent steps run in the order of FrontStep, the steps beside them concurrently. A front's next round begins when both
// have ended (front_lanes.hpp has the dependences). Assembly of one front does not delay panels of others. Look-ahead:
// panel k first updates the columns of panel k + 1 (narrow), which is then factored while the other columns (trailing,
// in strips) are updated. `closing` is the last panel's update of the columns right of it: right-hand sides, and
// columns that rows do not reach, whose empty panels are `tail`. If there are many of these, they take a round of their
// own.
//
// A front's memory is held from its first round until its parent is assembled, or for the factor's life if Q is kept.
// Under a memory limit (staging.hpp) its contribution block may be spilled to host memory (`pack`) and read back for
// its parent (`unpack`), concurrently with other work. R and Q are copied to the host when a front has ended:
//
//   urgent  lay_out assemble unpack | unpack panel 0 | ...
//   beside                          |                | ...   | pack | pack |        some round later
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
  Index whole_elements = 0;  ///< fronts of at most so many elements, right-hand sides included,
  Index whole_rows = std::numeric_limits<Index>::max();  ///< and at most so many rows are factored whole
  Index update_cols = 128;                               ///< most columns of an update
  int update_blocks = 1;                                 ///< most blocks that may share an update, a power of two
  Index pair_cols = 0;                    ///< most columns of an update by two panels; 0: the device has none
  Index pair_rows = 1024;                 ///< fronts of fewer rows, with full rank, are updated by one panel at a time
  Index share_elements = Index{1} << 13;  ///< elements of a front's matrix per share of assembly or packing
  Index alignment = 16;                   ///< in elements, of columns and of every array in storage
  bool keep_q = true;
  bool detect_rank = true;   ///< false: no column is dropped, row counts are the analysis's
  bool late = false;         ///< fronts begin as late as the number of rounds allows instead of as early: less memory
  Index storage_limit = -1;  ///< elements, at least least_storage(); < 0: none
  Index piece = Index{1} << 22;  ///< elements of a staging buffer, if the limit allows
  bool r_in_storage =
      false;  ///< under a limit a front's R is stored after its T, to be copied; else it is packed elsewhere
};

enum class FrontStep { lay_out, assemble, unpack, narrow, panel, closing, tail, finish, whole, pair, trailing, pack };
inline constexpr int front_steps = 12;
/// Panels of more rows have a launch of their own, so that they do not wait for other fronts.
inline constexpr Index tall_rows = 4096;
inline bool is_urgent(FrontStep step) { return step < FrontStep::whole; }

/// Independent tasks first .. first + count - 1 of the step's list.
struct FrontLaunch {
  FrontStep step{};
  Index first = 0, count = 0;
  /// Largest rows_bound and cols + rhs_cols of all fronts of the class, so that results do not depend on which fronts
  /// share a launch.
  std::int32_t max_rows = 0, max_cols = 0;
  std::int32_t blocks = 1;  ///< updates: blocks that share a task
  bool tall = false;        ///< narrow and closing updates: by panels of more than tall_rows rows
  Index max_elements = 0;   ///< like max_rows, of rows_bound * (cols + rhs_cols)
};

struct FrontRounds {
  std::vector<backend::FrontShape> shapes;
  std::vector<std::int32_t> lists;                ///< lay_out, whole
  std::vector<backend::FrontShare> shares;        ///< assemble, finish
  std::vector<backend::FrontPanelTask> panels;    ///< panel, tail
  std::vector<backend::FrontUpdateTask> updates;  ///< narrow, closing, pair, trailing
  std::vector<backend::FrontPieceTask> pieces;    ///< unpack, pack
  std::vector<FrontLaunch> launches;              ///< round by round, in the order of FrontStep
  std::vector<Index> round_begin;                 ///< rounds + 1, into launches
  std::vector<std::int32_t> begin, start, end;    ///< of each front: first round, round of its first panel, last round
  std::vector<Index> r_final;  ///< after round k, elements 0 .. r_final[k] - 1 of r are final; if not in storage

  // under a memory limit; staging.hpp says when copies may begin and must end
  std::vector<StagedCopy> outs, ins, images;  ///< by rounds
  std::vector<std::int32_t> stage;            ///< of each front (FactorFacts::stages); empty without a limit
  std::vector<Index>
      host_shift;  ///< of each front: its image's host offset minus its storage offset; empty without a limit
  Index blocks_size = 0, images_size = 0;  ///< elements of host memory
  bool staged() const { return !stage.empty(); }
  std::int32_t stages() const { return stage.empty() ? 1 : *std::max_element(stage.begin(), stage.end()) + 1; }

  // elements of the arrays that kernels write
  Index storage_size = 0, r_size = 0, row_ids_size = 0, slots_size = 0, panels_size = 0;

  Index rounds() const { return static_cast<Index>(round_begin.size()) - 1; }
};

/// The smallest possible memory limit, and the front that determines it.
struct LeastStorage {
  Index elements = 0, front = -1;
};
LeastStorage least_storage(const Symbolic& symbolic, const FrontRoundsOptions& options);

/// Throws Error{invalid_argument} if a front's counts do not fit into 32 bits, or if the limit is too small.
FrontRounds plan_rounds(const Symbolic& symbolic, const FrontRoundsOptions& options);

}  // namespace qrane::sparse
