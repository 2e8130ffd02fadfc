// SPDX-License-Identifier: Apache-2.0
// What every command shares: its options, exit statuses, the device it works on, its words to people.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <io/matrices/matrix_file.hpp>
#include <qrane/context.hpp>
#include <qrane/error.hpp>
#include <qrane/matrix.hpp>

namespace qrane::cli {

/// Keeps the order in which keys were put in, so that the files read like the terminal.
using Json = nlohmann::ordered_json;

enum ExitStatus : int { exit_success = 0, exit_failure = 1, exit_bad_input = 2, exit_interrupted = 130 };

/// Bad input (arguments, files, numbers, absent devices) is 2, Ctrl-C is 130, all else is 1.
int exit_status(ErrorCode code);

enum class Precision { f32, f64 };

const char* to_string(Precision precision);

/// The options that every command takes.
struct CommonOptions {
  std::string backend = "automatic";
  int device = 0;
  int threads = 0;        ///< 0: OMP_NUM_THREADS, else all cores
  std::string precision;  ///< empty: the command's default
  std::string json;
  bool quiet = false;
};

void add_common_options(CLI::App& app, CommonOptions& options);

/// The precision asked for, else `otherwise`. Throws Error{invalid_argument} for another word.
Precision pick_precision(const CommonOptions& options, Precision otherwise);

/// "4G" to 4294967296: a whole number, then K, M, G or T (powers of 1024; also KiB and KB) or nothing. Throws
/// Error{invalid_argument} naming the flag.
std::int64_t parse_bytes(const char* flag, const std::string& text);

/// Throws Error{unavailable} when the backend or device asked for is not there, or cannot do this precision.
Context make_context(const CommonOptions& options, Precision precision);

/// f(float{}) or f(double{}).
template <class F>
auto with_scalar(Precision precision, F&& f) {
  return precision == Precision::f32 ? f(float{}) : f(double{});
}

/// The fields that say where a result came from, and how long compiling kernels took; after the work.
Json describe(const Context& context, Precision precision);
/// "cpu (name), f64; compiling kernels: 2.1 s": the same for people.
std::string describe_line(const Context& context, Precision precision);

/// Words to the terminal, one line each, unless --quiet.
class Words {
 public:
  explicit Words(bool quiet) : quiet_(quiet) {}
  template <class... Args>
  void operator()(const Args&... args) const {
    if (quiet_) return;
    const std::string line = detail::concat(args...);
    std::fprintf(stream(), "%s\n", line.c_str());
  }
  bool quiet() const { return quiet_; }
  /// Standard output, unless a result goes there.
  static std::FILE* stream() { return on_standard_error_ ? stderr : stdout; }
  static void to_standard_error() { on_standard_error_ = true; }

 private:
  static inline bool on_standard_error_ = false;
  bool quiet_;
};

/// One line on standard error, beginning with "qrane: "; line breaks inside the message become blanks.
void complain(const std::string& message);

/// The terminal's width as it is now; 80 where that is not known.
int terminal_columns(std::FILE* terminal);
/// A line cut to the terminal's width as it is now, so that it can be rewritten in place.
std::string fit_to_terminal(const std::string& line, std::FILE* terminal);

/// A number for people: three or so significant digits ("0.0123", "4.5e-07").
std::string brief(double value, int digits = 3);
/// "110592 x 100".
std::string shape(Index rows, Index cols);

/// A matrix where the context's device reads it at full speed: the host's own memory for the CPU, else a copy.
template <class T>
class Resident {
 public:
  Resident(const Context& context, const io::Dense<T>& a) : view_(a.view()) {
    if (context.backend() == Backend::cpu) return;
    copy_ = context.to_device<T>(view_);
    view_ = std::as_const(copy_).view();
  }
  MatrixView<const T> view() const { return view_; }

 private:
  Matrix<T> copy_;
  MatrixView<const T> view_;
};

/// A file's matrix, finite, a sparse one converted to dense.
template <class T>
io::Dense<T> read_finite(const std::string& path) {
  io::Dense<T> a = io::read_dense<T>(path);
  io::require_finite(path, a);
  return a;
}

/// The matrix in host memory; moved when it is there already.
template <class T>
Matrix<T> on_host(const Context& context, Matrix<T> a) {
  return a.memory() == Memory::host ? std::move(a) : context.to_host(a);
}

}  // namespace qrane::cli
