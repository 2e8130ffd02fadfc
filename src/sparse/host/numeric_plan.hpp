// SPDX-License-Identifier: Apache-2.0
// How threads divide a tree of fronts, and where contribution blocks are stored. Both follow from the pattern alone and
// do not depend on timing.
//
// A range is a set of whole subtrees, each a small part of all work. One thread factors it, with its contribution
// blocks on that thread's stack. Ranges and the fronts above them ("upper") are tasks, numbered in postorder.
// Look-ahead is bounded: task k waits for tasks 0 .. after[k] - 1. The bound is the best of a few in a simulation of
// time and memory. Contribution blocks of ranges' roots and of upper fronts have fixed places as well, either nested,
//
//     children's places side by side  | a | b | c |
//     the parent's in their place     | parent  |      children are assembled before the parent's block is stored
//
// or, where that takes less memory, places that are reused once `after` guarantees that their blocks are consumed.
#pragma once

#include <vector>

#include "sparse/analysis/symbolic.hpp"

namespace qrane::sparse {

/// Estimated work of factoring a front, used to balance threads.
inline double front_work(const Front& front) {
  return front.flops + 20.0 * static_cast<double>(front.rows) * static_cast<double>(front.cols) + 2000;
}

/// Upper fronts of at least so many flops are shared by threads.
constexpr double large_front = 2e7;
/// Columns of a block of such a front, the unit of work of one thread.
constexpr Index large_front_block = 256;

/// Fronts of ranges with at least so many entries are allocated in the region instead of the thread's own memory.
constexpr Index large_front_entries = Index{1} << 15;

/// How many of `threads` have enough work to be worth waking.
int useful_threads(const Symbolic& symbolic, int threads);

struct NumericPlan {
  struct Range {
    Index first = 0, last = -1;  ///< fronts
    std::vector<Index> roots;    ///< of its subtrees
  };
  std::vector<Range> ranges;
  std::vector<Index> upper;                           ///< fronts above the ranges, ascending
  std::vector<Index> upper_of;                        ///< index in `upper` of every front, or -1
  std::vector<Index> order_of_upper, order_of_range;  ///< task numbers
  std::vector<Index> after;                           ///< task k waits for tasks 0 .. after[k] - 1; ascending
  std::vector<Index> place;  ///< of every front: offset of its contribution block in shared memory; -1: on a stack
  Index stays = -1;          ///< a large root that is the last front: its R stays in the front's memory; -1: none
  Index shared_elements = 0;
  Index stack_elements = 0;  ///< of each thread
};

/// With one thread the plan is a single range with all contribution blocks on its stack.
NumericPlan plan_numeric(const Symbolic& symbolic, int threads);

/// Elements that a contribution block, or a root's R, takes on a stack or in its place: rounded up for alignment.
Index left_elements(Index elements);

}  // namespace qrane::sparse
