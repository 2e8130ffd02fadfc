// SPDX-License-Identifier: Apache-2.0
// A page of the vocabulary: rounds of the sparse paper's tile tasks, one launch each.
// (Yeralan, Davis, Sid-Lakhdar, Ranka, "Algorithm 980: Sparse QR Factorization on the GPU", ACM TOMS 2017, section 3.2:
// the task types, the VT tile, T's column from the update's own product.) scheduler.hpp makes the rounds.
//
// A front is column-major, its sides rounded up to tiles; what is beyond its own rows and columns is zero. Tasks of a
// round touch nothing that another one of it writes.
//
// A bundle's rows are those of its row tiles. Factorize leaves R in the top tile and zeros below its diagonal; V of the
// other tiles takes their place, and V of the top tile goes into the bundle's VT tile, beside T:
//
//        tile
//     | t t t |   T(i, j) = vt[i + j (tile + 1)],          i <= j
//     | v t t |   V(i, j) = vt[i + 1 + j (tile + 1)],      i > j: strictly below the top tile's unit diagonal
//     | v v t |
//     | v v v |   Q of the bundle is I - V T V^T
#pragma once

#include "vocabulary/vocabulary.hpp"

namespace qrane::backend {

constexpr std::int32_t front_tile = 32;    // rows and columns of a tile, for the kernels
constexpr std::int32_t widest_bundle = 4;  // row tiles, for the kernels
constexpr std::int32_t vt_elements = (front_tile + 1) * front_tile;

/// Row tiles factored together at one column tile. Its rows are Round::row_tiles[first_row ...), ascending.
struct Bundle {
  std::int32_t front;
  std::int32_t column;
  std::int32_t first_row;
  std::int32_t rows;
  std::int32_t vt;  ///< slot of its VT tile, its own from this round to the next
};

struct FactorizeTask {
  std::int32_t bundle;  ///< index in Round::bundles
};

/// The update that a bundle of the round before left behind, over some column tiles to its right.
struct ApplyTask {
  std::int32_t bundle;
  std::int32_t first_column;
  std::int32_t columns;
};

/// The update of one column tile (factored's column) by `applied`, then Factorize of `factored`: the rest of applied
/// and perhaps a delta, which the update does not touch.
struct ApplyFactorizeTask {
  std::int32_t applied;
  std::int32_t factored;
};

/// Entries [first, first + count) of the rows of A that belong to a front.
struct SAssemblyTask {
  std::int32_t front;
  Index first;
  Index count;
};

/// A block of a front's contribution, rows and columns counted from the contribution's own corner.
struct PackAssemblyTask {
  std::int32_t front;  ///< the child
  std::int32_t first_row, rows;
  std::int32_t first_column, columns;
};

/// R of front `front` out of its tiles; part of parts, by columns. Row tile order[order + k] holds rows tile k .. of R.
struct FinishTilesTask {
  std::int32_t front, order, part, parts;
};
/// A PackAssemblyTask, and where the front's row order is.
struct PackTilesTask {
  PackAssemblyTask block;
  std::int32_t order;
};

/// A front's places. Offsets are in elements of FrontTileRound's arrays.
struct TileFront {
  std::int64_t matrix;  // storage: ld x cols rounded up to tiles
  std::int64_t r;  // r: pivotal column j holds min(j + 1, r_rows) rows, one after the other; then columns of r_rows
  std::int64_t columns;    // parent_col
  std::int64_t first_row;  // row_begin, own_slot
  std::int64_t slots;      // cb_slot
  std::int32_t ld, cols, pivots, parent, own_rows, r_rows;
};

template <class B, class Task>
struct TileTasks {
  typename B::template Pointer<Task> tasks{};
  std::int32_t count = 0;
};

/// One launch. SAssemblyTask::first counts entries of the front's own rows.
template <class B, class T>
struct FrontTileRound {
  template <class U>
  using Pointer = typename B::template Pointer<U>;
  // the same in all rounds
  Pointer<TileFront> fronts{};
  Pointer<std::int64_t> row_begin{};   // rows of S + 1
  Pointer<std::int32_t> entry_col{};   // local column of every entry of S
  Pointer<std::int32_t> own_slot{};    // row of its front that row r of S becomes
  Pointer<std::int32_t> parent_col{};  // "Rjmap"
  Pointer<std::int32_t> cb_slot{};     // "Rimap"
  Pointer<T> values{};                 // of S
  Pointer<T> storage{};                // in/out: the fronts
  Pointer<T> vt{};                     // in/out: VT tiles by slot, vt_elements each
  Pointer<T> r{};                      // out
  // this round's
  TileTasks<B, Bundle> bundles;
  Pointer<std::int32_t> row_tiles{};  // of the bundles
  Pointer<std::int32_t> order{};      // of fronts that pack or finish
  TileTasks<B, ApplyFactorizeTask> apply_factorize;
  TileTasks<B, FactorizeTask> factorize;
  TileTasks<B, ApplyTask> apply;
  TileTasks<B, PackTilesTask> pack;
  TileTasks<B, SAssemblyTask> s_assembly;
  TileTasks<B, FinishTilesTask> finish;

  std::int64_t tasks() const {
    return std::int64_t{apply_factorize.count} + factorize.count + apply.count + pack.count + s_assembly.count +
           finish.count;
  }
};

// A backend that has them offers run_tile_round(queue, round) beside its queue.

}  // namespace qrane::backend
