// SPDX-License-Identifier: Apache-2.0
// What every method of an update would take: plain values in and out, no device code.
//
// Backbone: the operation counts of Hammarling, Lucas, "Updating the QR factorization and the least squares problem"
// (2008), sections 2 and 3, which Andrew, Dingle (2014), section 3, restate for the GPU; the methods of our own beside
// them. A time is operations over the rate of products, plus bytes over that of copies, plus the steps that wait for
// one another times their latency; the rates are tuned parameters (tuning/defaults.hpp: UpdateTuning).
#pragma once

#include <vector>

#include <qrane/update.hpp>

#include "plan/plan.hpp"

namespace qrane::update {

/// One call of an update, as far as its price depends on it.
struct UpdateShape {
  Change change = Change::insert_rows;
  QForm form = QForm::thin;
  Index rows = 0, cols = 0;  // before
  Index k = 0, p = 0;
  Index count = 1;  // matrices of the batch
  int scalar_bytes = 8;
  bool updated = false;   // the updated matrix is given
  bool attached = false;  // right-hand sides are
  int block_cols = 0;     // UpdateOptions::block_cols
  Index q_steps = 0;      // dependent steps by which earlier updates lengthened an implicit Q's application

  bool operator==(const UpdateShape&) const = default;
  bool changes_nothing() const { return p == 0 || (change == Change::rank_k && cols == 0); }
  Index rows_after() const {
    return change == Change::insert_rows ? rows + p : change == Change::delete_rows ? rows - p : rows;
  }
  Index cols_after() const {
    return change == Change::insert_columns ? cols + p : change == Change::delete_columns ? cols - p : cols;
  }
};

/// All methods, those that can be taken first, the best of them in front. Where `updated` is lent, refactoring comes
/// before updates that are not predicted faster by a margin (UpdateTuning::margin_percent, wide_margin_percent).
std::vector<UpdateCandidate> candidates(const plan::DeviceProfile& device, const UpdateShape& shape);

/// The method that `automatic` takes. Throws Error{unavailable} where there is none, saying what would make one
/// possible.
UpdateMethod choose(const std::vector<UpdateCandidate>& candidates);

/// Milliseconds that qr() of a matrix of this shape would take by its own plan.
double predicted_qr_ms(const plan::DeviceProfile& device, Index rows, Index cols, QForm form, Index count,
                       int scalar_bytes);

}  // namespace qrane::update
