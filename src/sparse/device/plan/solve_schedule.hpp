// SPDX-License-Identifier: Apache-2.0
// The order in which a device uses the factors: blocks of R's rows for triangular solves, panels of Q, and the levels
// of singletons. Plain values, from the pattern alone. (Algorithm 980, section 2.1; Davis, ACM TOMS 38(1), 2011,
// section 2.4; the levels: Anderson, Saad, "Solving sparse triangular linear systems on parallel computers", 1989.)
//
// Rounds as in front_rounds.hpp: in each of them every front that is ready moves on by one block of rows of R. Rᵀ y = b
// goes up the tree, a front after its children; R x = y goes down, the same rounds from the last to the first. What a
// front hands up in the first is not added into its parent's lines but fetched by the parent, in a fixed order: for
// every column of a front the list of its children's columns that fall on it.
//
//   up     gather the lines of fronts that begin | solve block k | update the columns right of it
//   down   update the block's rows and those above by block k + 1 (at first: by the columns that are not pivotal) |
//   solve k
//
// Qᵀ goes up by panels, Q down the same rounds. Time and memory are linear in fronts, index lists and tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/analysis/symbolic.hpp"
#include "vocabulary/front_solve.hpp"

namespace qrane::sparse {

enum class SolveStep { gather, solve, update, whole, panels };

struct SolveLaunch {
  SolveStep step{};
  Index first = 0, count = 0;
};

struct RSchedule {
  std::vector<backend::FrontBlock> up_blocks, down_blocks;
  std::vector<SolveLaunch> up, down;        ///< in order; gather: of slots, else of the blocks
  std::vector<std::int32_t> slots;          ///< lines of fronts' columns (front_cols' places), by round
  std::vector<std::int32_t> own;            ///< by slot: the pivotal column of S, or -1
  std::vector<std::int64_t> sources_begin;  ///< slots + 1
  std::vector<std::int32_t> sources;        ///< slots of children, ascending
  Index rounds = 0;
};

/// r_bound of the shapes: rows that a front's part of R has at most. Columns up to `fused_cols` are updated by the task
/// that solves, where a front has but one block.
RSchedule plan_r_solves(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                        Index fused_cols = 256);

Index r_solve_rounds(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes);

struct QSchedule {
  std::vector<std::int32_t> whole;             ///< fronts, by round
  std::vector<backend::FrontPanelPart> parts;  ///< by round; the parts of a panel follow each other
  std::vector<SolveLaunch> up;                 ///< for Qᵀ; for Q from the last to the first
  Index most_parts = 0;                        ///< of a launch
  Index rounds = 0;
};

struct QScheduleOptions {
  Index panel = 32;
  Index whole_elements = Index{1} << 16;  ///< fronts of at most so many take one round
  Index part_rows = 512;
};
QSchedule plan_q_products(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                          const QScheduleOptions& options = {});
Index q_product_rounds(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                       const QScheduleOptions& options = {});

/// R's rows of singletons, R11 upper triangular: rows whose order is free between begins of levels.
struct SingletonSchedule {
  std::vector<std::int32_t> down, up;       ///< rows by level: for R11 x = y, and for R11ᵀ y = b
  std::vector<Index> down_begin, up_begin;  ///< levels + 1
  // R11 and R12 by columns of S; entry: of S's values. A singleton's pivot comes first
  std::vector<std::int64_t> column_begin;  ///< columns + 1
  std::vector<std::int32_t> row, entry;
  std::vector<std::int32_t> others;  ///< columns of fronts with entries in singletons' rows
};
SingletonSchedule plan_singletons(const Symbolic& symbolic);

/// S by columns, for Sᵀ.
struct ColumnsOfS {
  std::vector<std::int64_t> begin;  ///< columns + 1
  std::vector<std::int32_t> row, entry;
};
ColumnsOfS columns_of(const Symbolic& symbolic);

/// Whether lines and entries can be counted in the 32 bits of these lists.
bool fits_solve_lists(const Symbolic& symbolic);

}  // namespace qrane::sparse
