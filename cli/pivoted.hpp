// SPDX-License-Identifier: Apache-2.0
// `qrane qr A --pivot`: A P = Q R with a falling diagonal, and the rank.
#pragma once

#include <string>

#include <cli/common.hpp>

namespace qrane::cli {

struct PivotedRequest {
  CommonOptions common;
  std::string a, r, q, perm;
  std::string pivoting = "automatic";
  double tolerance = -1;
  bool truncate = false;
};

int run_pivoted(const PivotedRequest& request);

}  // namespace qrane::cli
