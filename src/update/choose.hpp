// SPDX-License-Identifier: Apache-2.0
// Which method an update takes, and why others do not apply.
#pragma once

#include <string>

#include <qrane/error.hpp>
#include <qrane/update.hpp>

namespace qrane::update {

/// What decides on a method beside the shape.
struct Facts {
  Change change = Change::insert_rows;
  Index rows = 0, cols = 0;  // of the matrix, before
  Index p = 0;
  bool has_q = false;
  bool attached = false;  // right-hand sides
  bool lent = false;      // UpdateOptions::updated
  bool has_cholesky = false;  // the device has double precision
};

/// Why a method does not apply; empty when it does.
inline std::string excluded(const Facts& facts, UpdateMethod method) {
  const bool columns = facts.change == Change::insert_columns || facts.change == Change::delete_columns;
  switch (method) {
    case UpdateMethod::automatic: return "";
    case UpdateMethod::orthogonal:
      if (facts.change == Change::rank_k) return "rank-k updates have no chain here yet";
      if (facts.change != Change::insert_columns || facts.has_q) return "";
      if (!facts.lent) return "with QForm::none it needs options.updated";
      return facts.attached ? "with QForm::none the right-hand sides cannot follow: detach them, and attach them anew" : "";
    case UpdateMethod::cholesky:
      if (facts.change != Change::delete_rows || !facts.has_q) return "it removes rows from a thin Q";
      if (!facts.has_cholesky) return "the device has no double precision";
      return facts.rows - facts.p < facts.cols ? "fewer rows than columns would be left" : "";
    case UpdateMethod::trailing:
      if (!columns) return "it is for columns";
      return facts.change == Change::insert_columns && !facts.has_q ? "with QForm::none it cannot insert columns" : "";
    case UpdateMethod::refactor:
      if (facts.has_q) return "";
      if (!facts.lent) return "with QForm::none it needs options.updated";
      return facts.attached ? "with QForm::none the attached right-hand sides would be lost" : "";
    case UpdateMethod::paper:
    case UpdateMethod::paper_dense: return "not for this form";
  }
  return "";
}

/// The method to take: the one that was asked for, or throws Error{unavailable} saying why not.
inline UpdateMethod choose_method(const Facts& facts, UpdateMethod wanted) {
  if (wanted == UpdateMethod::automatic) {
    const bool many = 8 * facts.p >= facts.cols && facts.cols > 0 && excluded(facts, UpdateMethod::cholesky).empty();
    wanted = many ? UpdateMethod::cholesky : UpdateMethod::orthogonal;
  }
  const std::string reason = excluded(facts, wanted);
  qrane::detail::check(reason.empty(), ErrorCode::unavailable, to_string(facts.change), " by method ", to_string(wanted), ": ",
                reason);
  return wanted;
}

}  // namespace qrane::update
