// SPDX-License-Identifier: Apache-2.0
// What the suites of sparse matrices measure with: the host's clock, samples, and how a problem goes to SuiteSparseQR.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
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

/// Hash of a factor's pattern and values.
template <class T>
std::uint64_t fingerprint(const sparse::SparseMatrix<T>& r) {
  std::uint64_t h = 0x9e3779b97f4a7c15u;
  const auto mix = [&](std::uint64_t word) { h = (h ^ word) * 0xff51afd7ed558ccdu, h ^= h >> 32; };
  for (const Index p : r.pointers) mix(static_cast<std::uint64_t>(p));
  for (const Index i : r.row_indices) mix(static_cast<std::uint64_t>(i));
  for (const T value : r.values) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    mix(word);
  }
  return h;
}

/// The bytes that a refusal for want of memory names as needed; 0 for none.
inline Index needed_bytes(const std::string& refusal) {
  const std::size_t place = refusal.find("needs ");
  return place == std::string::npos ? 0 : std::strtoll(refusal.c_str() + place + 6, nullptr, 10);
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
