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
  bool has_q = false;
  bool attached = false;  // right-hand sides
  bool lent = false;      // UpdateOptions::updated
};

/// Why a method does not apply; empty when it does.
inline std::string excluded(const Facts& facts, UpdateMethod method) {
  const bool columns = facts.change == Change::insert_columns || facts.change == Change::delete_columns;
  const bool columns_in_r = facts.change == Change::insert_columns && !facts.has_q;
  switch (method) {
    case UpdateMethod::automatic: return "";
    case UpdateMethod::orthogonal:
      if (facts.change == Change::rank_k) return "rank-k updates have no chain here yet";
      return columns_in_r ? "inserting columns where only R is kept factors options.updated anew" : "";
    case UpdateMethod::cholesky: return "it removes rows from a thin Q";
    case UpdateMethod::trailing:
      if (!columns) return "it is for columns";
      return columns_in_r ? "inserting columns where only R is kept factors options.updated anew" : "";
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
  if (wanted == UpdateMethod::automatic)
    wanted = excluded(facts, UpdateMethod::orthogonal).empty() ? UpdateMethod::orthogonal : UpdateMethod::refactor;
  const std::string reason = excluded(facts, wanted);
  qrane::detail::check(reason.empty(), ErrorCode::unavailable, to_string(facts.change), " by method ", to_string(wanted), ": ",
                reason);
  return wanted;
}

}  // namespace qrane::update
