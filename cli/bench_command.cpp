// SPDX-License-Identifier: Apache-2.0
// `qrane bench SUITE`: measures, beside the machine's own limits and other libraries, in one run.
#include <filesystem>
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>
#if QRANE_WITH_BENCH
#include <benchmarks/suites/suites.hpp>
#endif

namespace qrane::cli {
namespace {

struct BenchCommandOptions {
  CommonOptions common;
  std::string suite;
  std::string program;
  std::string matrices;
  double max_seconds = 0, suite_seconds = 0;
  bool list = false;
};

#if QRANE_WITH_BENCH

int list_suites() {
  const Words say(false);
  for (const bench::SuiteInfo& suite : bench::suites()) {
    if (suite.hidden) continue;
    say(suite.name, std::string(suite.name.size() < 16 ? 16 - suite.name.size() : 1, ' '), suite.summary);
  }
  return exit_success;
}

/// Where this executable lies, links resolved; argv[0] where the system does not tell.
std::string program_directory(const std::string& program) {
  std::error_code reason;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", reason);
  if (reason) self = std::filesystem::absolute(program, reason);
  return self.parent_path().string();
}

int run(const BenchCommandOptions& options) {
  if (options.list) return list_suites();
  detail::check(!options.suite.empty(), ErrorCode::invalid_argument,
                "bench: a SUITE is required (`qrane bench --list` names them)");
  if (!options.common.precision.empty()) pick_precision(options.common, Precision::f64);
  detail::check(options.common.device >= 0, ErrorCode::invalid_argument, "--device: ", options.common.device,
                " is negative");
  check_outputs({{"--json", options.common.json, false}});
  const InterruptGuard guard;
  bench::BenchOptions wanted;
  wanted.suite = options.suite;
  wanted.json_file = options.common.json;
  wanted.backend = backend_from_string(options.common.backend);
  wanted.device = options.common.device;
  wanted.precision = options.common.precision;
  wanted.quiet = options.common.quiet;
  wanted.cli_directory = program_directory(options.program);
  wanted.matrices = options.matrices;
  wanted.max_seconds = options.max_seconds;
  wanted.suite_seconds = options.suite_seconds;
  wanted.interrupted = interrupted;
  const int status = bench::run(wanted);
  return interrupted() ? exit_interrupted : status;
}

#else

int run(const BenchCommandOptions&) {
  throw Error(ErrorCode::unavailable, "bench: this qrane was built without its benchmarks (QRANE_BENCHMARKS=OFF)");
}

#endif

}  // namespace

Command add_bench_command(CLI::App& parent, const std::string& program) {
  auto options = std::make_shared<BenchCommandOptions>();
  options->program = program;
  CLI::App* app = parent.add_subcommand("bench", "measure this machine: speed, errors, floors, other libraries");
  app->add_option("SUITE", options->suite, "name of a suite");
  app->add_flag("--list", options->list, "name the suites");
  app->add_option("--max-seconds", options->max_seconds,
                  "leave out cases whose single run would take longer (default: 2 on a CPU, no limit on a GPU)")
      ->type_name("S");
  app->add_option("--suite-seconds", options->suite_seconds,
                  "begin no case after this time (default: the suite's own on a GPU, no limit on a CPU)")
      ->type_name("S");
  app->add_option("--matrices", options->matrices,
                  "sparse matrices (.mtx, .mtx.gz) of paper-sparse, besides generated ones, and of sparse-uses")
      ->type_name("DIR")
      ->envname("QRANE_MATRICES");
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
