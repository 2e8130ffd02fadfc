// SPDX-License-Identifier: Apache-2.0
// The `qrane` command: parses, runs one command, turns what it threw into a line and an exit status.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <cli/blas.hpp>
#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/interrupt.hpp>
#include <cli/suggest.hpp>
#include <io/file_error.hpp>
#include <io/partial_file.hpp>

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
  } catch (const io::WriteError& error) {
    complain(error.what());
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
  std::vector<std::string> known;
  std::string list;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == first) return;
    known.push_back(command->get_name());
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  const std::string meant = detail::nearest(first, known);
  throw Error(ErrorCode::invalid_argument,
              detail::concat(first.empty() ? "no command" : "unknown command '" + first + "'",
                             meant.empty() ? "" : ": did you mean '" + meant + "'?", "; commands are ", list,
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
                                         add_background_command(app), add_lapack_command(app),
                                         add_tune_command(app),       add_bench_command(app, argv[0])};
  require_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::string meant;
    for (const CLI::App* command : app.get_subcommands()) meant += suggestion(*command);
    complain(error.what() + meant + " (`qrane --help` and `qrane COMMAND --help` list what there is)");
    return exit_bad_input;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return exit_bad_input;
}

/// Where standard input, output or error is closed, the next file would take its number, and words would go into it.
/// True when standard output was closed.
bool open_standard_streams() {
  bool closed = false;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    closed = closed || fd == STDOUT_FILENO;
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // using it is an error still
  }
  return closed;
}

/// Words that could not be written are a failure, unless nobody reads them any more.
int check_words(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  struct stat file {};
  const bool unread = ::fstat(STDOUT_FILENO, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
  if (unread || status != exit_success) return status;
  complain("standard output: cannot write (is the disk full?); files that were asked for are complete");
  return exit_failure;
}

/// Memory ran out where nothing may be thrown, as in a destructor or in the words about an error: one line, and no
/// partial files.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    io::remove_partial_files();
    constexpr std::string_view words = "qrane: out of memory on the host\n";
    (void)!::write(STDERR_FILENO, words.data(), words.size());
    ::_exit(exit_failure);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  // A pipe that nobody reads and a file at its size limit are errors of the write, not the end of the program: results
  // are still to be written, partial files to be removed.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_without_memory);
  const bool no_output = open_standard_streams();
  restart_on_fitting_core(argv);
  clean_up_on_signals();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // piped words come as they are said
  int status = exit_failure;
  try {
    status = run(argc, argv);
  } catch (...) {
    status = report(std::current_exception());
  }
  return no_output ? status : check_words(status);
}
