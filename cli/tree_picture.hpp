// SPDX-License-Identifier: Apache-2.0
// The assembly tree as a picture, in the manner of Algorithm 980's figures 12 to 14.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <io/images/picture.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane::cli {

/// Roots on top, children below their parents; a disc's area is its front's size (rows x cols; the smallest are drawn
/// larger than they are, to be seen), its colour the front's stage, or, where there is only one, its level: light blue
/// below, dark red on top. stages: of each front.
io::Picture draw_tree(const std::vector<sparse::FrontFacts>& fronts, const std::vector<std::int32_t>& stages,
                      const std::string& caption);

}  // namespace qrane::cli
