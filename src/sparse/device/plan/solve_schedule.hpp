// SPDX-License-Identifier: Apache-2.0
// Schedules of solves on a device: blocks of R's rows for triangular solves, panels of Q, and levels of singletons.
// Plain values, from the pattern alone. (Algorithm 980, section 2.1; Davis, ACM TOMS 38(1), 2011,
// section 2.4; the levels: Anderson, Saad, "Solving sparse triangular linear systems on parallel computers", 1989.)
//
// Rounds are those of front_rounds.hpp: in each, every ready front solves one block of rows of R. Rᵀ y = b goes up the
// tree, a front after its children; R x = y goes down, with the same rounds in reverse. Going up, a parent gathers its
// children's contributions in a fixed order: every column of a front has a list of the children's columns that map to
// it.
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
  std::vector<SolveLaunch> up, down;        ///< in order; first and count refer to slots (gather) or blocks
  std::vector<std::int32_t> slots;          ///< indices into front_cols, by round
  std::vector<std::int32_t> own;            ///< of each slot: the pivotal column of S, or -1
  std::vector<std::int64_t> sources_begin;  ///< slots + 1
  std::vector<std::int32_t> sources;        ///< slots of children, ascending
  Index rounds = 0;
};

/// Uses r_bound of the shapes, the largest number of rows of R in a front. If a front has one block only, the solving
/// task also updates up to `fused_cols` columns.
RSchedule plan_r_solves(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                        Index fused_cols = 256);

Index r_solve_rounds(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes);

struct QSchedule {
  std::vector<std::int32_t> whole;             ///< fronts, by round
  std::vector<backend::FrontPanelPart> parts;  ///< by round; the parts of a panel are consecutive
  std::vector<SolveLaunch> up;                 ///< for Qᵀ; for Q in reverse order
  Index most_parts = 0;                        ///< largest number of a launch
  Index rounds = 0;
};

struct QScheduleOptions {
  Index panel = 32;
  Index whole_elements = Index{1} << 16;  ///< fronts of at most so many elements take one round
  Index part_rows = 512;
};
QSchedule plan_q_products(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                          const QScheduleOptions& options = {});
Index q_product_rounds(const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes,
                       const QScheduleOptions& options = {});

/// R's rows of singletons (R11, upper triangular) by levels; the rows of a level are independent.
struct SingletonSchedule {
  std::vector<std::int32_t> down, up;       ///< rows by level, for R11 x = y and for R11ᵀ y = b
  std::vector<Index> down_begin, up_begin;  ///< levels + 1
  // R11 and R12 by columns of S; entry: of S's values. A singleton's pivot comes first
  std::vector<std::int64_t> column_begin;  ///< columns + 1
  std::vector<std::int32_t> row, entry;
  std::vector<std::int32_t> others;  ///< columns of fronts that have entries in singletons' rows
};
SingletonSchedule plan_singletons(const Symbolic& symbolic);

/// S by columns, for Sᵀ.
struct ColumnsOfS {
  std::vector<std::int64_t> begin;  ///< columns + 1
  std::vector<std::int32_t> row, entry;
};
ColumnsOfS columns_of(const Symbolic& symbolic);

/// Whether lines and entries fit into the 32-bit indices of these lists.
bool fits_solve_lists(const Symbolic& symbolic);

}  // namespace qrane::sparse
