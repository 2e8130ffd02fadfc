// SPDX-License-Identifier: Apache-2.0
// The results for people (a table, one row a case, speed and error side by side) and for programs (JSON).
#pragma once

#include <string>

#include "results.hpp"
#include "session.hpp"

namespace qrane::bench {

/// Rows are printed as cases end.
class Table {
 public:
  explicit Table(const Session& session) : session_(session) {}

  void add(const QrCase& result);
  void add(const OperationCase& result);
  void add(const GridCase& result);
  void add(const KernelCase& result);
  void add(const BackgroundCase& result);
  void add(const UpdateCase& result);
  void add(const SparseCase& result);
  void add(const SparseUsesCase& result);
  void add(const TileCase& result);

 private:
  bool quiet() const { return session_.options().quiet; }
  /// The heading of a table, printed when its first row comes; `task` names the peers that have columns.
  void print_heading(const std::string& table, const std::string& words, const std::string& task);

  const Session& session_;
  std::string heading_;  ///< of the table that rows go to
};

/// Device, commit, peers: the lines above the table.
void print_head(const BenchResults& results);
/// The rates that the floors are made of, and what fell short.
void print_foot(const BenchResults& results);

/// Everything, samples included; the format is described in benchmarks/README.md.
std::string to_json(const BenchResults& results);

}  // namespace qrane::bench
