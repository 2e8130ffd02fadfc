// SPDX-License-Identifier: Apache-2.0
// Whether factors that lie on a device are used there or on the host: seconds of both, predicted.
#pragma once

#include <vector>

#include <qrane/context.hpp>

#include "sparse/analysis/symbolic.hpp"
#include "sparse/uses.hpp"
#include "vocabulary/fronts.hpp"

namespace qrane::sparse {

struct UseSeconds {
  double device = 0, host = 0;
};

class UseCost {
 public:
  UseCost() = default;
  /// storage, r: elements of fronts with Q, of R.
  UseCost(Backend backend, const Symbolic& symbolic, const std::vector<backend::FrontShape>& shapes, Index panel,
          Index storage, Index r, bool with_q, int scalar_bytes);

  /// Of one use of several; the first takes solve_schedule.hpp's lists to the device, or Q to the host. resident:
  /// right-hand sides are in device memory.
  UseSeconds seconds(FactorUse use, Index cols, bool resident) const;

 private:
  Backend backend_ = Backend::cpu;
  bool with_q_ = false;
  double scalar_bytes_ = 8, r_rounds_ = 0, q_rounds_ = 0, storage_ = 0, r_ = 0, lines_ = 0, lists_ = 0;
};

}  // namespace qrane::sparse
