// SPDX-License-Identifier: Apache-2.0
// The results for people (a table, one row a case, speed and error side by side) and for programs (JSON).
#pragma once

#include <string>
#include <vector>

#include "results.hpp"

namespace qrane::bench {

/// Rows are printed as cases end.
class Table {
 public:
  Table(bool quiet, std::vector<std::string> peers) : quiet_(quiet), peers_(std::move(peers)) {}

  void add(const QrCase& result);
  void add(const BackgroundCase& result);

 private:
  bool quiet_;
  std::vector<std::string> peers_;
  bool qr_head_ = false;
  bool background_head_ = false;
};

/// Device, commit, peers: the lines above the table.
void print_head(const BenchResults& results);
/// The rates that the floors are made of, and what fell short.
void print_foot(const BenchResults& results);

/// Everything, samples included; the format is described in benchmarks/README.md.
std::string to_json(const BenchResults& results);

}  // namespace qrane::bench
