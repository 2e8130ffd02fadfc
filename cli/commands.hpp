// SPDX-License-Identifier: Apache-2.0
// The commands of `qrane`. Each function adds one to the parser and says how it is run once it was chosen.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace qrane::cli {

struct Command {
  CLI::App* app = nullptr;
  /// Does the work and returns the exit status; throws qrane::Error.
  std::function<int()> run;
};

Command add_info_command(CLI::App& parent);
Command add_qr_command(CLI::App& parent);
Command add_analyze_command(CLI::App& parent);
Command add_solve_command(CLI::App& parent);
Command add_svd_command(CLI::App& parent);
Command add_update_command(CLI::App& parent);
Command add_background_command(CLI::App& parent);
Command add_lapack_command(CLI::App& parent);
Command add_tune_command(CLI::App& parent);
/// `program` is argv[0]: the programs of the peers lie beside it.
Command add_bench_command(CLI::App& parent, const std::string& program);

}  // namespace qrane::cli
