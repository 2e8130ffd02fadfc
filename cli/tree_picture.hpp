// SPDX-License-Identifier: Apache-2.0
// The assembly tree as a picture, in the manner of Algorithm 980's figures 12 to 14.
#pragma once

#include <string>
#include <vector>

#include <io/picture.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane::cli {

/// Roots on top, children below their parents; a disc's area is its front's size (rows x cols; the smallest are drawn
/// larger than they are, to be seen), its colour the front's level: leaves light blue, the highest front dark red.
io::Picture draw_tree(const std::vector<sparse::FrontFacts>& fronts, const std::string& caption);

}  // namespace qrane::cli
