// SPDX-License-Identifier: Apache-2.0
// `qrane lapack`: runs a program with libqrane_lapack.so preloaded, and says which LAPACK calls went where.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/outputs.hpp>

namespace qrane::cli {
namespace {

struct LapackOptions {
  CommonOptions common;
  double least = -1;
  std::vector<std::string> command;
};

/// Where it was built, or where it was installed.
std::string library_path() {
  const std::string name = "libqrane_lapack.so";
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here / "../lapack", here / ".." / QRANE_CLI_LIBDIR})
    if (std::filesystem::exists(folder / name)) return std::filesystem::canonical(folder / name).string();
  throw Error(ErrorCode::unavailable, detail::concat(name, " is neither beside ", here.string(),
                                                     " nor installed; build it with QRANE_LAPACK=ON"));
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

void set_environment(const LapackOptions& options, const std::string& report) {
  const char* const others = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD", library_path() + (others && *others ? ":" + std::string(others) : ""));
  set("QRANE_LAPACK_REPORT", report);
  set("QRANE_LAPACK_DEVICE", options.common.backend == "automatic"
                                 ? options.common.backend
                                 : options.common.backend + ":" + std::to_string(options.common.device));
  if (options.least >= 0) set("QRANE_LAPACK_MIN", detail::concat(options.least));
  if (options.common.threads > 0) set("OPENBLAS_NUM_THREADS", std::to_string(options.common.threads));
}

pid_t child = 0;

/// Runs the program to its end; its exit status, or 128 + the signal that ended it. It gets the signals of the terminal
/// itself.
int run_program(std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;  // those that this program ignores
  ::sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw Error(ErrorCode::unavailable, detail::concat(command[0], ": ", std::strerror(failed)));
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGTERM, [](int signal) { ::kill(child, signal); });
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Count {
  std::int64_t calls = 0;
  double seconds = 0;
};
/// By routine and place; several processes may have written.
using Counts = std::map<std::pair<std::string, std::string>, Count>;

Counts read_report(const std::string& path) {
  Counts counts;
  std::ifstream file(path);
  std::string routine, where;
  Count count;
  while (file >> routine >> where >> count.calls >> count.seconds) {
    Count& sum = counts[{routine, where}];
    sum.calls += count.calls;
    sum.seconds += count.seconds;
  }
  return counts;
}

/// Standard output is the program's.
void say_counts(const Counts& counts) {
  if (counts.empty()) {
    std::fprintf(stderr, "qrane lapack: no call of a routine that libqrane_lapack.so has\n");
    return;
  }
  std::fprintf(stderr, "%-12s %-8s %10s %12s\n", "routine", "where", "calls", "seconds");
  for (const auto& [key, count] : counts)
    std::fprintf(stderr, "%-12s %-8s %10lld %12s\n", key.first.c_str(), key.second.c_str(),
                 static_cast<long long>(count.calls), brief(count.seconds).c_str());
}

/// A file that goes with this object.
class ReportFile {
 public:
  ReportFile() : path_((std::filesystem::temp_directory_path() / "qrane-lapack-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    detail::check(file >= 0, ErrorCode::file, path_, ": ", std::strerror(errno));
    ::close(file);
  }
  ~ReportFile() { ::unlink(path_.c_str()); }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int run(LapackOptions& options) {
  detail::check(options.common.precision.empty(), ErrorCode::invalid_argument, "--precision ", options.common.precision,
                ": each LAPACK call has its own precision");
  (void)backend_from_string(options.common.backend);
  check_outputs({{"--json", options.common.json, false}});
  const ReportFile report;
  set_environment(options, report.path());
  const int status = run_program(options.command);
  const Counts counts = read_report(report.path());
  if (!options.common.quiet) say_counts(counts);
  Json json = {{"status", status}, {"calls", Json::array()}};
  for (const auto& [key, count] : counts)
    json["calls"].push_back(
        {{"routine", key.first}, {"where", key.second}, {"calls", count.calls}, {"seconds", count.seconds}});
  write_json(options.common.json, json);
  return status;
}

}  // namespace

Command add_lapack_command(CLI::App& parent) {
  auto options = std::make_shared<LapackOptions>();
  CLI::App* app =
      parent.add_subcommand("lapack", "run a program whose LAPACK calls for QR and least squares go to qrane");
  app->add_option("COMMAND", options->command, "the program and its arguments, after --")->required();
  app->add_option("--min", options->least,
                  "take matrices from this m * n * min(m, n) on; 0: every call (default: where it was measured to pay)")
      ->type_name("SIZE")
      ->check(CLI::NonNegativeNumber);
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
