// SPDX-License-Identifier: Apache-2.0
// Results as JSON values, and what all of them are made of; for json_report.cpp and json_sparse.cpp.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "results.hpp"

namespace qrane::bench {

using Json = nlohmann::ordered_json;

inline const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured: return "measured";
    case Outcome::left_out: return "left out";
    default: return "failed";
  }
}

/// JSON has no NaN and no infinity.
inline Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

inline Json timed(const std::vector<double>& samples) {
  return {{"samples_ms", samples}, {"median_ms", median(samples)}};
}

Json to_json_value(const SparseCase& result);
Json to_json_value(const SparseUsesCase& result);

}  // namespace qrane::bench
