// SPDX-License-Identifier: Apache-2.0
#include <cli/common.hpp>

#include <sys/ioctl.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <cli/suggest.hpp>

#include "api/engine.hpp"
#include "cpu/queue/blas_core.hpp"

extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace qrane::cli {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_finite:
    case ErrorCode::file:
    case ErrorCode::unavailable: return exit_bad_input;
    case ErrorCode::interrupted: return exit_interrupted;
    default: return exit_failure;
  }
}

const char* to_string(Precision precision) { return precision == Precision::f32 ? "f32" : "f64"; }

void add_common_options(CLI::App& app, CommonOptions& options) {
  const std::string group = "Everywhere";
  app.add_option("--backend", options.backend,
                 "automatic (CUDA, else OpenCL on a GPU, else the CPU), cpu, opencl or cuda")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--device", options.device, "which of the backend's devices, from 0 (`qrane info` lists them)")
      ->type_name("N")
      ->group(group);
  app.add_option("--precision", options.precision, "f32 or f64; without it the file's, else f64")
      ->type_name("P")
      ->group(group);
  app.add_option("--json", options.json, "write the result's numbers to a JSON file")->type_name("FILE")->group(group);
  app.add_option("--threads", options.threads, "threads of the CPU backend (default: OMP_NUM_THREADS, else all cores)")
      ->type_name("N")
      ->group(group);
  app.add_flag("--quiet", options.quiet, "no words to the terminal but errors and warnings")->group(group);
}

Precision pick_precision(const CommonOptions& options, Precision otherwise) {
  if (options.precision.empty()) return otherwise;
  return one_of("--precision", options.precision, {"f32", "f64"}) == 0 ? Precision::f32 : Precision::f64;
}

std::int64_t parse_bytes(const char* flag, const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  std::int64_t value = 0;
  const char* const end = text.data() + (digits == std::string::npos ? text.size() : digits);
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  for (const char* ending : {"iB", "B"}) {
    if (unit.size() > 1 && unit.ends_with(ending)) unit.resize(unit.size() - std::strlen(ending));
  }
  const std::size_t power = unit.empty() || unit == "B" ? 0 : std::string("KMGT").find(unit) + 1;
  const bool known = unit.empty() || unit == "B" || (unit.size() == 1 && power > 0);
  detail::check(code == std::errc() && stop == end && known, ErrorCode::invalid_argument, flag, ": '", text,
                "' is not a number of bytes such as 4000000000, 500M or 4G");
  const std::int64_t factor = std::int64_t{1} << (10 * power);
  detail::check(value <= std::numeric_limits<std::int64_t>::max() / factor, ErrorCode::invalid_argument, flag, ": '",
                text, "' is more than 64 bits hold");
  return value * factor;
}

namespace {

/// --threads, else the first number of OMP_NUM_THREADS, which OpenBLAS reads by itself.
int thread_count(const CommonOptions& options) {
  detail::check(options.threads >= 0 && options.threads <= 1 << 16, ErrorCode::invalid_argument,
                "--threads: ", options.threads, " is not a number of threads");
  if (options.threads > 0) {
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(options.threads);
    return options.threads;
  }
  const char* const text = std::getenv("OMP_NUM_THREADS");
  int value = 0;
  if (text == nullptr || std::from_chars(text, text + std::strlen(text), value).ec != std::errc()) return 0;
  return std::clamp(value, 0, 1 << 16);
}

}  // namespace

Context make_context(const CommonOptions& options, Precision precision) {
  detail::check(options.device >= 0, ErrorCode::invalid_argument, "--device: ", options.device, " is negative");
  ContextOptions wanted;
  wanted.backend = backend_from_string(options.backend);
  wanted.device = options.device;
  wanted.threads = thread_count(options);
  Context context(wanted);
  if (!options.quiet)
    context.engine()->on_build([](const std::string& what, double seconds) {
      std::printf("compiling      %s (%s s of compiling so far)\n", what.c_str(), brief(seconds, 2).c_str());
      std::fflush(stdout);
    });
  if (precision == Precision::f64) {
    const DeviceInfo device = context.device();
    detail::check(device.has_double, ErrorCode::unavailable, "--precision f64: device ", device.index, " (",
                  device.name, ") has no double precision; use --precision f32");
  }
  return context;
}

Json describe(const Context& context, Precision precision) {
  const DeviceInfo device = context.device();
  return {{"qrane", QRANE_CLI_VERSION},
          {"backend", to_string(device.backend)},
          {"device", {{"index", device.index}, {"name", device.name}}},
          {"blas_core", backend::cpu::blas_core().used},
          {"precision", to_string(precision)},
          {"build_seconds", context.engine()->build_seconds()}};
}

std::string describe_line(const Context& context, Precision precision) {
  const DeviceInfo device = context.device();
  const double build_seconds = context.engine()->build_seconds();
  return detail::concat(to_string(device.backend), " (", device.name, "), ", to_string(precision),
                        build_seconds > 0 ? "; compiling kernels: " + brief(build_seconds, 2) + " s" : "");
}

void complain(const std::string& message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fflush(stdout);  // so that a terminal shows both in the order they happened
  std::fprintf(stderr, "qrane: %s\n", line.c_str());
}

int terminal_columns(std::FILE* terminal) {
  struct winsize size {};
  return ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

std::string fit_to_terminal(const std::string& line, std::FILE* terminal) {
  return line.substr(0, static_cast<std::size_t>(terminal_columns(terminal) - 1));
}

std::string brief(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string shape(Index rows, Index cols) { return detail::concat(rows, " x ", cols); }

}  // namespace qrane::cli
