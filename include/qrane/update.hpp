// SPDX-License-Identifier: Apache-2.0
// Updating a factorization when rows or columns of A come or go: what the members of QR<T> named insert_rows,
// delete_rows, insert_columns, delete_columns and rank_k_update take and report.
//
// Sources: Hammarling, Lucas, "Updating the QR factorization and the least squares problem" (2008), for the four
// updates and their operation counts.
#pragma once

#include <string>
#include <vector>

#include <qrane/export.h>
#include <qrane/matrix.hpp>

namespace qrane {

/// What changes in A.
enum class Change { insert_rows, delete_rows, insert_columns, delete_columns, rank_k };

/// How a factorization is brought up to date. `automatic` takes what its cost model says is fastest.
enum class UpdateMethod {
  automatic,
  orthogonal,  ///< a chain of small orthogonal blocks from R and p rows or columns, then one sweep over Q
  cholesky,    ///< rows out of a thin Q: SᵀS = I - WᵀW, Q := Q S⁻¹, R := S R; guarded, falls back to orthogonal
  trailing,    ///< columns: the columns of Q left of the change are kept, those right of it factored anew
  refactor,    ///< from scratch: the updated matrix where the caller lends it, else the product of thin Q and R
};

QRANE_API const char* to_string(Change change);
QRANE_API const char* to_string(UpdateMethod method);
QRANE_API UpdateMethod update_method_from_string(const std::string& name);

template <class T>
struct UpdateOptions {
  UpdateMethod method = UpdateMethod::automatic;
  int block_cols = 0;         ///< columns (or rows of R) of one block of the chain; 0: from the tuned table
  bool check_finite = false;  ///< refuse NaN and Inf in what is inserted, naming the first (waits for the device)
  /// The matrix as it is after this update, lent for the call (column-major or row-major, host or device), or empty.
  /// With it `automatic` may factor it anew, drift can be measured, and inserting columns works where only R is kept.
  MatrixView<const T> updated{};
  /// The rows that delete_rows takes out (p x n), and their right-hand sides (p x nrhs, where some are attached):
  /// needed where only R is kept, else empty.
  MatrixView<const T> removed{};
  MatrixView<const T> removed_b{};
  /// With `updated`: factor anew once the measured drift exceeds drift_limit (in units of (min(m, n) + 10) u),
  /// which is measured every drift_every updates.
  bool refresh = true;
  double drift_limit = 15;
  int drift_every = 64;
  /// Do not wait for the device to learn whether an update was refused: the report then says `queued`, and
  /// QR::refused_updates() tells later.
  bool queued = false;
};

/// One method's price.
struct UpdateCandidate {
  UpdateMethod method = UpdateMethod::automatic;
  double flops = 0;  ///< operations it takes (Hammarling, Lucas 2008, tables 1 to 4, where it is one of theirs)
  double bytes = 0;  ///< device memory traffic
  int launches = 0;  ///< dependent steps that cannot overlap
  double predicted_ms = 0;
  std::string excluded;  ///< why it cannot be taken here; empty when it can
};

/// A part of an update and the time that it took on the device.
struct UpdateStage {
  std::string name;
  double ms = 0;
};

/// What an update did, or would do (plan_update).
struct UpdateReport {
  Change change = Change::insert_rows;
  Index rows = 0, cols = 0;  ///< shape before the update
  Index k = 0, p = 0;
  UpdateMethod method = UpdateMethod::automatic;  ///< that ran
  std::vector<UpdateCandidate> candidates;        ///< all methods with their predictions, best first
  bool queued = false;                            ///< nothing below has been read from the device yet
  bool refused = false;  ///< R only: the removed rows carry the rank; the factorization is as it was before
  bool fell_back =
      false;  ///< a guard sent the data from `cholesky` to `orthogonal`; R only: to `refactor`, of `updated`
  bool refreshed = false;           ///< drift exceeded its limit, and `updated` was factored anew
  double drift = -1;                ///< as measured in this call, in drift_limit's units; -1: not measured
  double measured_ms = -1;          ///< device time of this call, where it was asked for (QR::time_updates)
  std::vector<UpdateStage> stages;  ///< its parts, where it was asked for and the method tells
  /// Some lines for people: the candidates with predicted flops, bytes and times, the one taken, and the measured time.
  std::string explain() const;
};

/// What an update of a batch did. `refused` says whether any matrix was.
struct BatchUpdateReport : UpdateReport {
  std::vector<Index> refused_matrices;  ///< R only: those whose removed rows carry the rank; each is as it was before
};

}  // namespace qrane
