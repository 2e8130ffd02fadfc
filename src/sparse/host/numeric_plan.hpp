// SPDX-License-Identifier: Apache-2.0
// How threads divide a tree of fronts, and where contribution blocks are: from the pattern alone, whatever comes when.
//
// A range is some whole subtrees, each a small part of all work, factored by one thread; its contribution blocks are on
// that thread's stack. Ranges and fronts above them are tasks in postorder, and none begins before all have ended that
// are far before it (`after`); how far is what a rehearsal finds best for time and memory. What ranges hand up, and
// what fronts above them leave, has a place that is fixed, too, either
//
//     children's places side by side  | a | b | c |
//     the parent's over them          | parent  |      its children are assembled before it is there
//
// or, where that needs less, places that are used again by whatever comes so much later.
#pragma once

#include <vector>

#include "sparse/analysis/symbolic.hpp"

namespace qrane::sparse {

/// Work of factoring a front, for the division among threads.
inline double front_work(const Front& front) {
  return front.flops + 20.0 * static_cast<double>(front.rows) * static_cast<double>(front.cols) + 2000;
}

/// Flops from which a front above the ranges is cut up.
constexpr double large_front = 2e7;
/// Columns of a block of it, one thread's at a time.
constexpr Index large_front_block = 256;

/// Entries from which a front of a range has no place of its thread's but one of the region.
constexpr Index large_front_entries = Index{1} << 15;

/// Of at most `threads` as many as have enough to do to pay for waking them.
int useful_threads(const Symbolic& symbolic, int threads);

struct NumericPlan {
  struct Range {
    Index first = 0, last = -1;  ///< fronts
    std::vector<Index> roots;    ///< of its subtrees
  };
  std::vector<Range> ranges;
  std::vector<Index> upper;                           ///< fronts above the ranges, ascending
  std::vector<Index> upper_of;                        ///< of every front its number among those, or -1
  std::vector<Index> order_of_upper, order_of_range;  ///< their numbers as tasks
  std::vector<Index> after;  ///< of each task: so many of the first must have ended when it begins; ascending
  std::vector<Index> place;  ///< of every front: first element of what it leaves in shared memory; -1: on a stack
  Index stays = -1;          ///< a large root that is the last front: its R stays where the front was; -1: none
  Index shared_elements = 0;
  Index stack_elements = 0;  ///< of each thread
};

/// One thread: a single range with everything on its stack.
NumericPlan plan_numeric(const Symbolic& symbolic, int threads);

/// What a front leaves to its parent, or a root as R, takes on a stack or in its place.
Index left_elements(Index elements);

}  // namespace qrane::sparse
