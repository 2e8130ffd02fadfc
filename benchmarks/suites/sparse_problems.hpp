// SPDX-License-Identifier: Apache-2.0
// Matrices of the suite `paper-sparse`: files of a folder, and those made here, the same on every machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparse_generators.hpp"

namespace qrane::bench {

struct SparseProblem {
  std::string name;
  std::string source;                  ///< "file", or the family of generated matrices
  std::string paper;                   ///< "Table I", "Table II", "Table III", "stand-in for ..." or nothing
  std::function<SparseMatrix()> make;  ///< empty for a file that is absent
};

/// Why there is no such matrix, or empty.
std::string absence(const SparseProblem& problem);

/// What the suite runs, most important first: matrices that have a goal, other files of the folder (none where that is
/// empty), dense matrices of the paper's Tables I and II, generated ones. Of matrices that have a goal those that the
/// folder lacks are listed without `make`, but for lp_nug20 and ch7-8-b3, which are defined by their sizes and made
/// here. Throws Error{file} for a folder that cannot be read.
std::vector<SparseProblem> paper_sparse(const std::string& folder);
/// Those that the paper's rounds of tile tasks are timed on.
std::vector<SparseProblem> tiled_sparse(const std::string& folder);
/// Those whose factors are used: of middling size, then the two largest; without a folder smaller generated ones in
/// place of these two.
std::vector<SparseProblem> used_sparse(const std::string& folder);
std::vector<SparseProblem> smoke_used_sparse(const std::string& folder);
/// A few small ones, for the tests.
std::vector<SparseProblem> smoke_sparse(const std::string& folder);

}  // namespace qrane::bench
