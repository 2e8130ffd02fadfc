// SPDX-License-Identifier: Apache-2.0
// What fronts do in rounds that are known, as a plan's lists of tasks and launches; for front_rounds.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/device/plan/front_rounds.hpp"

namespace qrane::sparse {

/// Tasks of one class share launches. Of fronts: to 256 rows, 1024, 4096, ...; updates: by blocks, 1, 2, 4, ...
inline constexpr int front_classes = 6;
int height_class(Index rows);
/// Of fronts done whole: sizes that a device treats differently.
int size_class(Index rows, Index elements);

/// A front's way through the rounds.
struct FrontCourse {
  int size = 0;  ///< class
  bool whole = false;
  std::int32_t live = 1;    ///< panels that rows may reach
  std::int32_t paired = 0;  ///< the first of them, that update in pairs: even
  std::int32_t rounds = 1;
  std::int32_t live_cols = 0;  ///< columns of those panels; right of them nothing is reached
  bool closes_late = false;    ///< in a round after the last panel's
};

/// Sides of the largest front of a class.
struct LargestFront {
  std::int32_t rows = 0, cols = 0;
  Index elements = 0;
  void include(const LargestFront& other) {
    elements = std::max(elements, other.elements);
    rows = std::max(rows, other.rows);
    cols = std::max(cols, other.cols);
  }
};

struct FrontCourses {
  std::vector<FrontCourse> of;
  LargestFront largest[2][front_classes];  ///< of fronts by steps, of whole ones
  std::vector<StagedPiece> packs, unpacks;
};

inline Index all_columns(const backend::FrontShape& f, const FrontRoundsOptions& options) {
  return f.cols + options.rhs_cols;
}

/// Sets plan's lists and launches, from its shapes and the rounds of its fronts.
void list_tasks(const Symbolic& symbolic, const FrontRoundsOptions& options, const FrontCourses& courses,
                FrontRounds& plan);

}  // namespace qrane::sparse
