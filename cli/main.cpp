// SPDX-License-Identifier: Apache-2.0
// The `qrane` command: parses, runs one command, turns what it threw into a line and an exit status.
#include <csignal>
#include <exception>
#include <new>
#include <stdexcept>
#include <vector>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/interrupt.hpp>

namespace {

using namespace qrane;
using namespace qrane::cli;

const char* const footer =
    "Matrices are .mtx, .mtx.gz or .npy files, outputs as well (a sparse R .mtx), written whole or not at all.\n"
    "Exit status: 0 done, 1 failure (memory, device), 2 bad input, 130 stopped by Ctrl-C.";

/// The error as one line on standard error; the exit status that goes with it.
int report(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    complain(error.what());
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    complain("out of memory on the host");
  } catch (const std::length_error&) {
    complain("out of memory on the host: a size is beyond what it can hold");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return exit_failure;
}

/// The parser itself would only say that a command is missing.
void require_command(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.starts_with('-')) return;
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == first) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  throw Error(ErrorCode::invalid_argument,
              detail::concat(first.empty() ? "no command" : "unknown command '" + first + "'", "; commands are ", known,
                             " (`qrane --help` says more)"));
}

int run(int argc, char** argv) {
  CLI::App app("QR factorization on GPUs and CPUs: factor, solve, decompose, separate a video", "qrane");
  app.set_version_flag("--version", std::string("qrane ") + QRANE_CLI_VERSION);
  app.footer(footer);
  app.require_subcommand(1);
  const std::vector<Command> commands = {add_info_command(app),       add_qr_command(app),
                                         add_solve_command(app),      add_analyze_command(app),
                                         add_svd_command(app),        add_update_command(app),
                                         add_background_command(app), add_tune_command(app),
                                         add_bench_command(app, argv[0])};
  require_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    complain(std::string(error.what()) + " (`qrane --help` and `qrane COMMAND --help` list what there is)");
    return exit_bad_input;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return exit_bad_input;
}

}  // namespace

int main(int argc, char** argv) {
  // `qrane ... | head` must not cost the results that are still to be written.
  std::signal(SIGPIPE, SIG_IGN);
  clean_up_on_signals();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // piped words come as they are said
  try {
    return run(argc, argv);
  } catch (...) {
    return report(std::current_exception());
  }
}
