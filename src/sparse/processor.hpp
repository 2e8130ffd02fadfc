// SPDX-License-Identifier: Apache-2.0
// Where a first factorization is faster: on a GPU or on the CPU's cores, from the analysis alone.
//
// On a GPU every panel on the longest path through the tree takes a round, a short one where no rows are left, a longer
// one for a front that is done whole; what many fronts do in a round is done at once. Beside that there are flops, the
// host's plan of each front, entries that are moved there and elements of fronts that are touched. On CPU cores fronts
// one above the other wait for each other, and many threads get in each other's way.
#pragma once

#include "sparse/analysis/symbolic.hpp"
#include "tuning/defaults.hpp"

namespace qrane::sparse {

/// Panels of `panel` columns on the longest path from a leaf to a root, fronts of at most whole_elements counted as
/// one.
Index longest_path(const Symbolic& symbolic, Index panel, Index whole_elements);

struct ProcessorSeconds {
  double device = 0, cpu = 0;  ///< predicted, of the first factorization
};
ProcessorSeconds predict_seconds(const Symbolic& symbolic, const tuning::SparseTuning& tuning, int threads,
                                 int scalar_bytes);

}  // namespace qrane::sparse
