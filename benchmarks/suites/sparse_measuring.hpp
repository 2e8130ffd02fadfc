// SPDX-License-Identifier: Apache-2.0
// What the suites of sparse matrices measure with: the host's clock, samples, and how a problem goes to SuiteSparseQR.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/sparse_exchange.hpp"
#include "session.hpp"
#include "temporary_file.hpp"

namespace qrane::bench {

using Clock = std::chrono::steady_clock;

template <class Function>
double wall_ms(Function&& function) {
  const auto start = Clock::now();
  function();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Takes samples after a first run, the warm-up: 5, or 9 of short ones. Fewer only when interrupted.
template <class Function>
std::vector<double> samples_after(double first_ms, const Session& session, Function&& function) {
  std::vector<double> samples;
  const int runs = first_ms < 50 ? 9 : 5;
  for (int run = 0; run < runs && !session.interrupted(); ++run) samples.push_back(function());
  return samples;
}

/// A file of the problem for peers, which keep what they read.
class ProblemFile {
 public:
  explicit ProblemFile(const SparseMatrix& a) : rows_(a.rows), cols_(a.cols), file_("problem") {
    write_problem(file_.path(), {a.rows, a.cols, a.col_ptr.data(), a.row_idx.data(), a.values.data()});
  }

  PeerTask task(const std::string& name, const std::string& ordering) const {
    PeerTask wanted;
    wanted.task = name;
    wanted.shape = {rows_, cols_};
    wanted.precision = "f64";
    wanted.more = " path=" + file_.path() + " ordering=" + ordering;
    return wanted;
  }

 private:
  Index rows_, cols_;
  TemporaryFile file_;
};

/// Whether rows join most of many columns, so that orderings on the graph of AᵀA take minutes.
inline bool nearly_full(const SparseMatrix& a) {
  std::vector<double> lengths(static_cast<std::size_t>(a.rows), 0.0);
  for (const Index row : a.row_idx) lengths[static_cast<std::size_t>(row)] += 1;
  const double longest = a.rows > 0 ? *std::max_element(lengths.begin(), lengths.end()) : 0;
  return longest > 1000 && longest > 0.3 * static_cast<double>(a.cols);
}

}  // namespace qrane::bench
