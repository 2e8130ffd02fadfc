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

/// More runs after a first one that took so long; none where that one is the sample.
inline int more_runs(double first_ms) { return first_ms < 50 ? 9 : first_ms < 1000 ? 5 : first_ms < 4000 ? 2 : 0; }

/// Takes samples after a first run, which is a warm-up where there are others.
template <class Function>
std::vector<double> samples_after(double first_ms, const Session& session, Function&& function) {
  std::vector<double> samples;
  const double enough_ms = session.on_gpu() ? 700 : 1e4;  // fewer than five where they take so long
  double spent_ms = 0;
  for (int left = more_runs(first_ms); left > 0 && spent_ms < enough_ms && !session.interrupted(); --left) {
    samples.push_back(function());
    spent_ms += samples.back();
  }
  if (samples.empty()) samples.push_back(first_ms);
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
