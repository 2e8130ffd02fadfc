// SPDX-License-Identifier: Apache-2.0
// `qrane solve A b`: the least-squares solution for each column of b; of least norm when A is wide or deficient. Sparse
// matrices: cli/sparse.hpp.
#include <chrono>
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/outputs.hpp>
#include <cli/sparse.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/least_squares.hpp>

namespace qrane::cli {
namespace {

struct SolveCommandOptions {
  CommonOptions common;
  std::string a, b, x;
  bool sparse = false, dense = false;
  SparseOptions sparse_options;
};

template <class T>
int solve(const SolveCommandOptions& options, const Context& context, Precision precision) {
  const io::Dense<T> a = read_finite<T>(options.a);
  const io::Dense<T> b = read_finite<T>(options.b);
  const Resident<T> device_a(context, a), device_b(context, b);

  const auto start = std::chrono::steady_clock::now();
  Solution<T> solution = least_squares(context, device_a.view(), device_b.view());
  context.synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Index rank = solution.rank, full = solution.full;
  const bool deficient = solution.deficient();
  const double condition = solution.condition;
  const Matrix<T> x = on_host(context, std::move(solution.x));
  const std::vector<double>& residuals = solution.residual_norms;

  const Words say(options.common.quiet);
  say("matrix         ", options.a, ": ", shape(a.rows, a.cols), ", right-hand sides: ", b.cols);
  say("device         ", describe_line(context, precision));
  say("time           ", brief(seconds), " s");
  say("rank           ", rank, " of ", full, deficient ? "  ** RANK-DEFICIENT **" : "");
  say("condition      ", brief(condition), "  (estimate)");
  say("residual norm  ", norms_line(residuals));
  say("solution norm  ", norms_line(column_norms<T>(x.view())));
  if (deficient) {
    complain(detail::concat("warning: ", options.a, " is rank-deficient: rank ", rank, " of ", full,
                            "; many x fit equally well, and this is the one of least norm"));
  }
  deliver_solution<T>(say, options.x, x.view());
  Json json = describe(context, precision);
  json.update({{"file", options.a},
               {"right_hand_side", options.b},
               {"rows", a.rows},
               {"cols", a.cols},
               {"right_hand_sides", b.cols},
               {"seconds", seconds},
               {"rank", rank},
               {"full_rank", full},
               {"rank_deficient", deficient},
               {"condition", condition},
               {"residual_norms", residuals},
               {"right_hand_side_norms", column_norms<T>(b.view())},
               {"solution_norms", column_norms<T>(x.view())}});
  write_json(options.common.json, json);
  return exit_success;
}

int run(const SolveCommandOptions& options) {
  pick_precision(options.common, Precision::f64);
  const io::MatrixFileInfo a = io::probe_matrix(options.a), b = io::probe_matrix(options.b);
  detail::check(a.rows == b.rows, ErrorCode::invalid_argument, options.b, " has ", b.rows, " rows, but ", options.a,
                " is ", shape(a.rows, a.cols), ": the right-hand sides must have as many rows as the matrix");
  detail::check(!options.sparse || !options.dense, ErrorCode::invalid_argument,
                "--sparse and --dense exclude each other");
  if (options.sparse || (a.sparse && !options.dense))
    return run_sparse_solve({options.common, options.a, options.b, options.x, options.sparse_options});
  check_no_sparse_options(options.sparse_options);
  const bool single = a.single_precision && b.single_precision;
  return run_on_device(options.common, single, {{"--x", options.x}}, {{"A", options.a}, {"b", options.b}},
                       [&](auto scalar, const Context& context, Precision precision) {
                         return solve<decltype(scalar)>(options, context, precision);
                       });
}

}  // namespace

Command add_solve_command(CLI::App& parent) {
  auto options = std::make_shared<SolveCommandOptions>();
  CLI::App* app = parent.add_subcommand("solve", "least squares: the x that makes A x nearest to b");
  app->add_option("A", options->a, "matrix file")->required();
  app->add_option("b", options->b, "right-hand sides, one a column")->required();
  app->add_option("--x", options->x, "write the solutions here")->type_name("FILE");
  app->add_flag("--sparse", options->sparse, "sparse QR (a sparse .mtx gets it anyway)");
  app->add_flag("--dense", options->dense, "convert a sparse .mtx to dense");
  add_sparse_options(*app, options->sparse_options);
  add_common_options(*app, options->common);
  app->footer(
      "A wide A gets the solution of least norm. A rank-deficient one gets a warning, and the solution of least "
      "norm if it is dense, a basic one if it is sparse.");
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
