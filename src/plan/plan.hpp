// SPDX-License-Identifier: Apache-2.0
// Shape, scalar, device and wishes in; algorithm, tree and block sizes out. Plain values, no device code.
#pragma once

#include <memory>

#include <qrane/qr.hpp>

#include "tuning/table.hpp"
#include "vocabulary/vocabulary.hpp"

namespace qrane::plan {

/// What a plan needs to know of a device.
struct DeviceProfile {
  Backend backend = Backend::cpu;
  backend::Limits limits;                        // for the scalar in question
  std::shared_ptr<const tuning::Tables> tuning;  // null: the backend's defaults
};

/// Throws Error{invalid_argument} for negative or overflowing sizes and for options that contradict
/// each other or the device. workspace_bytes is filled in by the factorization, which carves it.
Plan make_plan(const DeviceProfile& device, Index rows, Index cols, Index count, int scalar_bytes,
               const Options& options);

/// Widest panel of `rows` rows that Algorithm::householder may factor at once; 0 when it is too tall.
Index widest_whole_panel(const backend::Limits& limits, Index rows);

/// Canonical flops of a QR factorization: 2 m n^2 - 2 n^3 / 3 for m >= n, with m and n swapped else.
double qr_flops(double m, double n);

}  // namespace qrane::plan
