// SPDX-License-Identifier: Apache-2.0
// What a plan will cost: the operations that its algorithm does, and the bytes it moves through device memory.
#pragma once

#include <qrane/qr.hpp>

namespace qrane::plan {

struct Cost {
  double flops = 0;  ///< done, not canonical: a tree, a Gram matrix and an explicit Q all count
  double bytes = 0;  ///< read and written; what a panel or a block of columns needs again soon counts once
};

/// For data that the guard accepts, and caches that hold a tile but no panel.
Cost predict(const Plan& plan);

}  // namespace qrane::plan
