// SPDX-License-Identifier: Apache-2.0
// `qrane qr A --sparse` and `qrane solve A b` of a sparse A; what their flags share with `qrane analyze A`.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <cli/common.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane::cli {

/// Flags that both commands have.
struct SparseOptions {
  std::string ordering, processor;  ///< empty: automatic
  std::string memory_limit;         ///< "4G"; empty: what is free
};
void add_sparse_options(CLI::App& app, SparseOptions& options);
void add_ordering_option(CLI::App& app, std::string& name);
/// Refuses names that are none, and `given`.
sparse::Ordering pick_ordering(const std::string& name);
/// The flag's bytes; 0 without it.
std::int64_t memory_limit_bytes(const std::string& text);
/// Refuses them where the matrix is not factored as a sparse one.
void check_no_sparse_options(const SparseOptions& options);

struct SparseQrCommand {
  CommonOptions common;
  std::string a, r, perm;
  double tolerance = -1;  ///< < 0: the library's default
  SparseOptions sparse;
};
int run_sparse_qr(const SparseQrCommand& options);

struct SparseSolveCommand {
  CommonOptions common;
  std::string a, b, x;
  SparseOptions sparse;
};
int run_sparse_solve(const SparseSolveCommand& options);

/// 2-norms of the columns, safe from overflow.
template <class T>
std::vector<double> column_norms(MatrixView<const T> a) {
  std::vector<double> norms;
  for (Index j = 0; j < a.cols; ++j) {
    long double sum = 0;
    for (Index i = 0; i < a.rows; ++i) {
      const long double v = a.data[i + j * a.ld];
      sum += v * v;
    }
    norms.push_back(static_cast<double>(std::sqrt(sum)));
  }
  return norms;
}

/// Writes x to the file; without one shows it where it is short.
template <class T>
void deliver_solution(const Words& say, const std::string& path, MatrixView<const T> x) {
  if (!path.empty()) {
    io::write_dense<T>(path, x);
    return say("x              ", shape(x.rows, x.cols), " in ", path);
  }
  constexpr Index most_shown = 20;
  if (x.rows * x.cols > most_shown || x.rows > most_shown) {
    return say("x              ", shape(x.rows, x.cols), ", not shown; --x FILE writes it");
  }
  for (Index j = 0; j < x.cols; ++j) {
    std::string line;
    for (Index i = 0; i < x.rows; ++i) line += (i == 0 ? "" : "  ") + brief(x.data[i + j * x.ld], 6);
    say(j == 0 ? "x              " : "               ", line);
  }
}

/// "1.2e-05" for one right-hand side, "1.2e-05 to 3e-05 over 7 right-hand sides" for many.
std::string norms_line(const std::vector<double>& norms);

}  // namespace qrane::cli
