// SPDX-License-Identifier: Apache-2.0
// `qrane qr A`: R, and Q when it is asked for, of a dense matrix; with --pivot see cli/pivoted.hpp.
#include <chrono>
#include <memory>
#include <optional>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/measures.hpp>
#include <cli/outputs.hpp>
#include <cli/pivoted.hpp>
#include <cli/sparse.hpp>
#include <cli/suggest.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/qr.hpp>

namespace qrane::cli {
namespace {

struct QrOptions {
  CommonOptions common;
  std::string a, r, q, mode;
  std::string algorithm = "automatic";
  bool explain = false;
  bool pivot = false, truncate = false;
  std::string perm;
  std::string pivoting;             ///< empty: automatic
  std::optional<double> tolerance;  ///< none: the library's default
  bool sparse = false, dense = false;
  SparseOptions sparse_options;
};

enum class Mode { r, thin, full };

/// Flops that any device does in a few seconds.
constexpr double worth_repeating = 5e10;

Mode pick_mode(const QrOptions& options) {
  if (options.mode.empty()) return options.q.empty() ? Mode::r : Mode::thin;
  const auto mode = static_cast<Mode>(one_of("--mode", options.mode, {"r", "thin", "full"}));
  detail::check(mode != Mode::r || options.q.empty(), ErrorCode::invalid_argument,
                "--mode r makes no Q, but --q asks for it: ", options.q);
  return mode;
}

/// Full Q is formed from the reflectors, so the factorization keeps those.
QForm q_form(Mode mode) { return mode == Mode::r ? QForm::none : mode == Mode::thin ? QForm::thin : QForm::implicit; }

/// A factorization and what it took.
template <class T>
struct Factored {
  QR<T> f;
  double seconds = 0;
  double first_seconds = 0;
};

/// The first run pays for allocations, threads and the building of kernels; a short one is timed again without.
template <class T>
Factored<T> factor_timed(const Context& context, MatrixView<const T> a, const Options& how, const Plan& plan) {
  const auto now = [&] {
    context.synchronize();
    return std::chrono::steady_clock::now();
  };
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  const auto start = now();
  Factored<T> result{qr<T>(context, a, how)};
  const auto first = now();
  result.seconds = result.first_seconds = seconds(start, first);
  if (plan.flops < worth_repeating) {
    result.f.refactor(a);
    result.seconds = seconds(first, now());
  }
  return result;
}

const char* to_string(Mode mode) { return mode == Mode::r ? "r" : mode == Mode::thin ? "thin" : "full"; }

template <class T>
Json report(const Words& say, const QrOptions& options, Mode mode, const Context& context, Precision precision,
            const Factored<T>& result) {
  const Plan& plan = result.f.plan();
  const double gflops = result.seconds > 0 ? plan.flops / result.seconds * 1e-9 : 0;
  const auto [answered, fell_back] = guard_report(result.f);
  say("matrix         ", options.a, ": ", shape(plan.rows, plan.cols));
  say("device         ", describe_line(context, precision));
  const std::string stage = to_string(answered);
  say("algorithm      ", to_string(plan.algorithm),
      fell_back                    ? " (the guard handed this matrix to the Householder tree)"
      : answered != Stage::planned ? " (" + stage + ")"
                                   : "");
  say("time           ", brief(result.seconds), " s, ", brief(gflops),
      " GFLOP/s  (the first time, with set-up: ", brief(result.first_seconds), " s)");
  Json json = describe(context, precision);
  json.update({{"file", options.a},
               {"rows", plan.rows},
               {"cols", plan.cols},
               {"mode", to_string(mode)},
               {"algorithm", to_string(plan.algorithm)},
               {"fell_back", fell_back},
               {"stage", stage},
               {"seconds", result.seconds},
               {"first_seconds", result.first_seconds},
               {"gflops", gflops}});
  return json;
}

template <class T>
int factor(const QrOptions& options, Mode mode, const Context& context, Precision precision) {
  const io::Dense<T> a = read_finite<T>(options.a);
  Options how;
  how.algorithm = algorithm_from_string(options.algorithm);
  how.q = q_form(mode);

  const Words say(options.common.quiet);
  const Plan plan = plan_qr<T>(context, a.rows, a.cols, how);
  if (options.explain) {
    const std::string words = plan.explain();
    say(words.ends_with('\n') ? words.substr(0, words.size() - 1) : words);
  }
  const Resident<T> resident(context, a);
  const Factored<T> result = factor_timed<T>(context, resident.view(), how, plan);
  Json json = report(say, options, mode, context, precision, result);

  const Columns columns = mode == Mode::full ? Columns::full : Columns::thin;
  const Matrix<T> r = on_host(context, result.f.r(columns));
  Matrix<T> q;
  if (mode != Mode::r) q = on_host(context, result.f.q(columns));
  const MatrixView<const T> q_view = std::as_const(q).view();
  report_errors(say, json, cheap_errors<T>(a.view(), mode == Mode::r ? nullptr : &q_view, r.view()));

  const auto write = [&](const char* name, const std::string& path, MatrixView<const T> matrix) {
    if (path.empty()) return;
    io::write_dense<T>(path, matrix);
    say(name, shape(matrix.rows, matrix.cols), " in ", path);
  };
  write("R              ", options.r, r.view());
  write("Q              ", options.q, q_view);
  write_json(options.common.json, json);
  return exit_success;
}

int run_with_pivots(const QrOptions& options) {
  using detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  check(options.mode != "full", bad, "--mode full: --pivot makes thin Q only");
  check(options.algorithm == "automatic", bad, "--algorithm ", options.algorithm, ": --pivot takes --pivoting instead");
  check(!options.explain, bad, "--explain: --pivot has no plan to print");
  pick_mode(options);
  return run_pivoted({options.common, options.a, options.r, options.q, options.perm,
                      options.pivoting.empty() ? "automatic" : options.pivoting, options.tolerance.value_or(-1),
                      options.truncate});
}

/// What nobody would look at is refused.
void check_no_pivot_options(const QrOptions& options) {
  detail::check(options.pivoting.empty(), ErrorCode::invalid_argument, "--pivoting ", options.pivoting,
                ": there are pivots with --pivot only");
  detail::check(!options.truncate, ErrorCode::invalid_argument, "--truncate: only --pivot ends at the rank");
}

int run_without_spreading(const QrOptions& options) {
  using detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  check(!options.dense, bad, "--sparse and --dense exclude each other");
  check(!options.pivot, bad, "--pivot: a sparse matrix is factored with rank detection instead");
  check(options.q.empty() && (options.mode.empty() || options.mode == "r"), bad,
        "--sparse makes R alone: a sparse Q is not written");
  check(options.algorithm == "automatic", bad, "--algorithm ", options.algorithm,
        ": --sparse takes --ordering instead");
  check(!options.explain, bad, "--explain: the shape of a sparse factorization is what `qrane analyze` prints");
  check_no_pivot_options(options);
  return run_sparse_qr(
      {options.common, options.a, options.r, options.perm, options.tolerance.value_or(-1), options.sparse_options});
}

int run(const QrOptions& options) {
  detail::check(options.tolerance.value_or(0) >= 0, ErrorCode::invalid_argument, "--tolerance ",
                options.tolerance.value_or(0), ": must be a number from 0 on");
  if (options.sparse) return run_without_spreading(options);
  check_no_sparse_options(options.sparse_options);
  if (options.pivot) return run_with_pivots(options);
  check_no_pivot_options(options);
  detail::check(!options.tolerance, ErrorCode::invalid_argument, "--tolerance ", options.tolerance.value_or(0),
                ": ranks are found with --pivot or --sparse only");
  detail::check(options.perm.empty(), ErrorCode::invalid_argument,
                "--perm: there is a permutation with --pivot or --sparse only: ", options.perm);
  const Mode mode = pick_mode(options);
  algorithm_from_string(options.algorithm);  // a wrong name is refused before a large file is read
  pick_precision(options.common, Precision::f64);
  const bool single = io::probe_matrix(options.a).single_precision;
  return run_on_device(options.common, single, {{"--r", options.r}, {"--q", options.q}}, {{"A", options.a}},
                       [&](auto scalar, const Context& context, Precision precision) {
                         return factor<decltype(scalar)>(options, mode, context, precision);
                       });
}

}  // namespace

Command add_qr_command(CLI::App& parent) {
  auto options = std::make_shared<QrOptions>();
  CLI::App* app = parent.add_subcommand("qr", "factor a matrix: A = Q R");
  app->add_option("A", options->a, "matrix file (a sparse .mtx is converted to dense without --sparse)")->required();
  app->add_option("--r", options->r, "write R here")->type_name("FILE");
  app->add_option("--q", options->q, "write Q here")->type_name("FILE");
  app->add_option("--mode", options->mode,
                  "r (R alone), thin (Q is m x min(m, n)) or full (Q is m x m); thin with --q, else r")
      ->type_name("MODE");
  app->add_option("--algorithm", options->algorithm, "automatic, tsqr, caqr, blocked, cholesky_qr or householder")
      ->type_name("NAME");
  app->add_flag("--explain", options->explain,
                "print the plan: algorithm and why, tuned table, tree, block sizes, workspace, flops, traffic");
  app->add_flag("--pivot", options->pivot, "pivot columns: A P = Q R with a falling diagonal, and the rank");
  app->add_option("--pivoting", options->pivoting, "with --pivot: automatic, exact or randomized")->type_name("NAME");
  app->add_option("--tolerance", options->tolerance,
                  "with --pivot: where the rank ends, relative to R's first diagonal element; with --sparse: columns "
                  "whose remaining norm is at most this are dropped")
      ->type_name("T");
  app->add_flag("--truncate", options->truncate, "with --pivot: factor no further than the rank");
  app->add_option("--perm", options->perm, "with --pivot, --sparse: write the column indices (0-based) here")
      ->type_name("FILE");
  app->add_flag("--sparse", options->sparse, "sparse QR, A P = Q R: R as .mtx, its permutation, its rank");
  app->add_flag("--dense", options->dense, "convert a sparse .mtx to dense (as without --sparse)");
  add_sparse_options(*app, options->sparse_options);
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
