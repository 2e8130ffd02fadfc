// SPDX-License-Identifier: Apache-2.0
// Lists of tasks and launches of a plan whose rounds are known; used by front_rounds.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/device/plan/front_rounds.hpp"

namespace qrane::sparse {

/// Tasks of one class share launches. Classes of fronts: up to 256 rows, 1024, 4096, ...; of updates: by number of
/// blocks, 1, 2, 4, ...
inline constexpr int front_classes = 6;
int height_class(Index rows);
/// Class of a front that is factored whole.
int size_class(Index rows, Index elements);

/// How a front goes through the rounds.
struct FrontCourse {
  int size = 0;  ///< class
  bool whole = false;
  std::int32_t live = 1;    ///< panels that rows may reach; the others are empty
  std::int32_t paired = 0;  ///< leading panels that update in pairs; even
  std::int32_t rounds = 1;
  std::int32_t live_cols = 0;  ///< columns of the live panels
  bool closes_late = false;    ///< closing takes a round of its own after the last panel
};

/// Largest dimensions of the fronts of a class.
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
  LargestFront largest[2][front_classes];  ///< [0]: factored panel by panel, [1]: whole
  std::vector<StagedPiece> packs, unpacks;
};

inline Index all_columns(const backend::FrontShape& f, const FrontRoundsOptions& options) {
  return f.cols + options.rhs_cols;
}

/// Sets the plan's lists and launches from its shapes and the rounds of its fronts.
void list_tasks(const Symbolic& symbolic, const FrontRoundsOptions& options, const FrontCourses& courses,
                FrontRounds& plan);

}  // namespace qrane::sparse
