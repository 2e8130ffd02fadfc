// SPDX-License-Identifier: Apache-2.0
// The order in which a device factors the fronts, and where each of them lies: plain values, from the pattern alone.
// (Algorithm 980, sections 3.1-3.3: rounds, and panels of many fronts at once without a barrier between levels.)
//
// In each round every front that is ready moves on by one panel of columns; a small one is done whole in one round. A
// front begins in the round after its last child has ended. Front of three panels, `|` between rounds:
//
//   urgent  lay_out assemble panel 0 | narrow 0 -> 1, panel 1 | narrow 1 -> 2, panel 2, closing, tail, finish |
//   beside                           | wide 0 -> 2 ..         |                                               |
//
// Urgent steps run in the order of FrontStep, those beside at the same time; a round begins when both have ended. Panel k
// updates the columns of panel k + 1 first (narrow), so that this one is factored while the others (wide, in strips) are
// still being updated. `closing`: the last panel's update of what is right of it: right-hand sides, and columns that rows
// do not reach, whose empty panels are `tail`. Where these are many, they take a round of their own.
//
// A front's memory is held from its first round until its parent is assembled; with Q kept, for ever. Under a limit fronts
// begin in postorder, each when there is room for it: at worst one after the other, which takes the least that a tree
// whose contribution blocks stay can do with.
// Time and memory are linear in fronts and tasks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/fronts.hpp"
#include "sparse/symbolic.hpp"

namespace qrane::sparse {

struct FrontRoundsOptions {
  Index rhs_cols = 0;
  Index panel = 32;           ///< columns
  Index whole_elements = 0;   ///< fronts of at most so many elements, right-hand sides included, are done whole
  Index update_cols = 128;    ///< most columns of an update
  Index share_elements = Index{1} << 15;  ///< of a front's matrix, that one share of assembly or packing has
  Index alignment = 16;       ///< elements; of columns and whatever begins in storage
  bool keep_q = true;
  bool detect_rank = true;    ///< false: no column is dropped, rows are as the analysis counted them
  bool late = false;          ///< fronts begin as late as the number of rounds allows, instead of as soon: less memory
  Index storage_limit = -1;   ///< elements; < 0: none. Not with keep_q
};

enum class FrontStep { lay_out, assemble, narrow, panel, closing, tail, finish, whole, wide };
inline constexpr int front_steps = 9;
inline bool is_urgent(FrontStep step) { return step < FrontStep::whole; }

/// Independent tasks first .. first + count - 1 of the step's list.
struct FrontLaunch {
  FrontStep step{};
  Index first = 0, count = 0;
  /// Largest rows_bound, cols + rhs_cols of all fronts of the class: a front is treated alike in whatever company.
  std::int32_t max_rows = 0, max_cols = 0;
};

struct FrontRounds {
  std::vector<backend::FrontShape> shapes;
  std::vector<std::int32_t> lists;              ///< lay_out, whole
  std::vector<backend::FrontShare> shares;      ///< assemble, finish
  std::vector<backend::FrontPanelTask> panels;  ///< panel, tail
  std::vector<backend::FrontUpdateTask> updates;  ///< narrow, closing, wide
  std::vector<FrontLaunch> launches;            ///< round by round, in the order of FrontStep
  std::vector<Index> round_begin;               ///< rounds + 1, into launches
  std::vector<std::int32_t> begin, end;         ///< rounds of each front, both included
  std::vector<Index> r_final;                   ///< after round k elements of r before r_final[k] are final

  // elements of the arrays that kernels write
  Index storage_size = 0, r_size = 0, row_ids_size = 0, slots_size = 0, panels_size = 0;

  Index rounds() const { return static_cast<Index>(round_begin.size()) - 1; }
};

/// Throws Error{invalid_argument} naming a front whose counts do not fit the shapes' 32 bits. Where storage_limit is too
/// small even for one front after the other, the plan is that one, and its storage_size says what it takes.
FrontRounds plan_rounds(const Symbolic& symbolic, const FrontRoundsOptions& options);

/// Addresses for blocks that come and go: a good fit in constant time, holes merge. Two-level bins as in Masmano, Ripoll,
/// Crespo, Real, "TLSF", 2004; blocks are numbers here, nothing lies in the memory itself.
class BlockPlanner {
 public:
  BlockPlanner();
  /// Returns a handle; -1 where a limit is given that the block's end would pass.
  Index take(Index size, Index limit = -1);
  void give_back(Index handle);
  Index address(Index handle) const { return blocks_[static_cast<std::size_t>(handle)].begin; }
  /// The largest end of a block so far.
  Index extent() const { return extent_; }

 private:
  static constexpr int sub_bits = 3, bins = 64 << sub_bits;
  struct Block {
    Index begin, size;
    Index before, after;          // neighbours in memory
    Index bin_before, bin_after;  // of a hole, in its bin
    bool hole;
  };
  static int bin_of(Index size);
  Index find(Index size) const;
  void open(Index block);   // becomes a hole
  void close(Index block);  // leaves its bin
  Index insert(Index begin, Index size, Index before, Index after);

  std::vector<Block> blocks_;
  std::vector<Index> spare_;  // handles
  std::array<Index, bins> first_;
  std::array<std::uint64_t, bins / 64> filled_{};
  Index last_ = -1;  // in memory
  Index extent_ = 0;
};

}  // namespace qrane::sparse
