// SPDX-License-Identifier: Apache-2.0
// What every kind of updated factorization does with a request before anything is changed: its arguments are checked,
// its methods priced, and one of them taken.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <qrane/qr.hpp>

#include "dense/transfer.hpp"
#include "update/choice/cost.hpp"

namespace qrane::update {

/// One update: the arguments of UpdatableQR's member.
template <class T>
struct UpdateRequest {
  Change change = Change::insert_rows;
  Index k = 0, p = 0;
  MatrixView<const T> u{};  // the block that is inserted, or U of rank_k
  MatrixView<const T> v{};  // V of rank_k
  MatrixView<const T> e{};  // right-hand sides of inserted rows
  UpdateOptions options{};
  MatrixView<const T> updated{};               // the matrix after the update; empty: not given
  MatrixView<const T> removed{}, removed_b{};  // deleted rows and their right-hand sides, where R is all that is kept
  bool with_updated = updated.rows > 0 || updated.cols > 0;
};

/// One update of a batch.
template <class T>
struct BatchUpdateRequest {
  Change change = Change::insert_rows;
  Index k = 0, p = 0;
  BatchView<const T> block{};  // the inserted rows; R only: the deleted ones
  UpdateOptions options{};
};

/// The matrix and what is kept of it, as far as a request must fit.
struct Subject {
  Index m = 0, n = 0;
  Index nrhs = 0;  // attached
  QForm form = QForm::thin;
  Index q_steps = 0;  // as UpdateShape's
};

template <class T>
UpdateShape shape_of(const UpdateRequest<T>& r, const Subject& s) {
  UpdateShape shape;
  shape.change = r.change;
  shape.form = s.form;
  shape.rows = s.m;
  shape.cols = s.n;
  shape.k = r.k;
  shape.p = r.p;
  shape.scalar_bytes = sizeof(T);
  shape.updated = r.with_updated;
  shape.attached = s.nrhs > 0;
  shape.block_cols = r.options.block_cols;
  shape.q_steps = s.q_steps;
  return shape;
}

/// Throws Error{invalid_argument} naming the argument and its value: where it changes, and the options.
template <class T>
void check_place(const UpdateRequest<T>& r, const Subject& s) {
  using qrane::detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  const char* name = to_string(r.change);
  const bool rows = r.change == Change::insert_rows || r.change == Change::delete_rows;
  const bool in = r.change == Change::insert_rows || r.change == Change::insert_columns;
  const bool rank_k = r.change == Change::rank_k;
  const Index size = rows ? s.m : s.n;
  check(r.p >= 0, bad, name, ": p must not be negative, got ", r.p);
  check(r.options.block_cols >= 0, bad, name, ": block_cols must not be negative, got ", r.options.block_cols);
  check(!(r.options.drift_limit != r.options.drift_limit), bad, name, ": drift_limit is NaN");
  check(r.options.drift_every >= 1 || !r.options.refresh, bad, name, ": drift_every must be at least 1, got ",
        r.options.drift_every);
  check(rank_k || (r.k >= 0 && r.k <= size && (in || r.p <= size - r.k)), bad, name, ": k = ", r.k, ", p = ", r.p,
        in ? " is no place among " : " is no part of ", size, rows ? " rows" : " columns");
  constexpr Index most = std::numeric_limits<Index>::max();
  check(!in || (s.m <= most - r.p && s.n <= most - r.p), bad, name, ": p = ", r.p, " overflows 64-bit sizes");
}

/// The same, and the blocks that come with it.
template <class T>
void check_request(const UpdateRequest<T>& r, const Subject& s) {
  using qrane::detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  check_place(r, s);
  const bool rows = r.change == Change::insert_rows;
  const bool in = rows || r.change == Change::insert_columns;
  if (in) {
    dense::check_view("u", r.u);
    const Index have = rows ? r.u.cols : r.u.rows, want = rows ? s.n : s.m;
    check(have == want, bad, "u is ", r.u.rows, " x ", r.u.cols, ", but the matrix has ", want,
          rows ? " columns" : " rows");
  }
  if (r.change == Change::rank_k) {
    dense::check_view("u", r.u);
    dense::check_view("v", r.v);
    check(r.u.rows == s.m && r.v.rows == s.n && r.u.cols == r.v.cols, bad, "u is ", r.u.rows, " x ", r.u.cols,
          " and v is ", r.v.rows, " x ", r.v.cols, ", but they should be ", s.m, " x p and ", s.n, " x p");
  }
  if (r.change == Change::insert_rows) {
    dense::check_view("e", r.e);
    check(s.nrhs > 0 || r.e.rows == 0 || r.e.cols == 0, bad, "e is ", r.e.rows, " x ", r.e.cols,
          ", but no right-hand sides are attached: QR::attach(b) comes first");
    check(s.nrhs == 0 || r.p == 0 || (r.e.rows == r.p && r.e.cols == s.nrhs), bad, "e is ", r.e.rows, " x ", r.e.cols,
          ", but the ", r.p, " rows that come in need right-hand sides of ", r.p, " x ", s.nrhs);
  }
  if (r.change == Change::delete_rows && s.form == QForm::none && r.p > 0 && r.p < s.m) {
    const MatrixView<const T>&gone = r.removed, &gone_b = r.removed_b;
    dense::check_view("removed", gone);
    check(gone.rows == r.p && gone.cols == s.n, bad, "removed is ", gone.rows, " x ", gone.cols,
          ", but with QForm::none the rows that go out are needed, ", r.p, " x ", s.n);
    dense::check_view("removed_b", gone_b);
    check(s.nrhs == 0 || (gone_b.rows == r.p && gone_b.cols == s.nrhs), bad, "removed_b is ", gone_b.rows, " x ",
          gone_b.cols, ", but with QForm::none the right-hand sides of the rows that go out are needed, ", r.p, " x ",
          s.nrhs);
  }
  const MatrixView<const T>& lent = r.updated;
  dense::check_view("updated", lent);
  const UpdateShape shape = shape_of(r, s);
  check(!shape.updated || (lent.rows == shape.rows_after() && lent.cols == shape.cols_after()), bad, "updated is ",
        lent.rows, " x ", lent.cols, ", but after this update the matrix is ", shape.rows_after(), " x ",
        shape.cols_after());
}

/// Prices of the updates asked for lately: a sliding window asks for the same few again and again.
class Planner {
 public:
  /// The report of an update that has not run yet: methods with their prices, the one to take. Throws
  /// Error{unavailable} where the one asked for, or every one, cannot be taken.
  template <class T>
  UpdateReport plan(const plan::DeviceProfile& profile, const UpdateRequest<T>& request, const Subject& subject) {
    const UpdateMethod wanted = request.options.method;
    UpdateShape shape = shape_of(request, subject);
    UpdateReport report;
    report.change = shape.change;
    report.rows = shape.rows;
    report.cols = shape.cols;
    report.k = shape.k;
    report.p = shape.p;
    if (shape.change == Change::insert_rows || shape.change == Change::delete_rows) shape.k = 0;  // of no account
    auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& entry) { return entry.first == shape; });
    if (found == known_.end()) {
      std::vector<UpdateCandidate> all = candidates(profile, shape);
      if (known_.size() >= most_known) known_.erase(known_.begin());
      found = known_.insert(known_.end(), {shape, std::move(all)});
    }
    report.candidates = found->second;
    if (wanted == UpdateMethod::automatic) {
      report.method = choose(report.candidates);
      return report;
    }
    for (const UpdateCandidate& candidate : report.candidates)
      qrane::detail::check(candidate.method != wanted || candidate.excluded.empty(), ErrorCode::unavailable,
                           to_string(shape.change), " by method ", to_string(wanted), ": ", candidate.excluded);
    report.method = wanted;
    return report;
  }

 private:
  static constexpr std::size_t most_known = 16;
  std::vector<std::pair<UpdateShape, std::vector<UpdateCandidate>>> known_;
};

/// Where the updated matrix is lent, every drift_every-th update is measured against it, and it is factored anew when
/// the drift exceeds its limit. Core has drift(a) and refactor(a).
template <class Core, class T>
void refresh_when_due(Core& core, const UpdateOptions& options, const MatrixView<const T>& updated, Index& since,
                      bool may_refactor, UpdateReport& report) {
  const bool lent = updated.rows > 0 && updated.cols > 0;
  if (report.method == UpdateMethod::refactor && lent) since = 0;
  if (!options.refresh || !lent || report.refused || report.method == UpdateMethod::refactor ||
      ++since < options.drift_every)
    return;
  since = 0;
  report.drift = core.drift(updated);
  if (report.drift <= options.drift_limit || !may_refactor) return;
  core.refactor(updated);
  report.refreshed = true;
}

}  // namespace qrane::update
