// SPDX-License-Identifier: Apache-2.0
// `qrane svd A`: singular values, and vectors when they are asked for, through QR.
#include <chrono>
#include <memory>

#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/outputs.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/svd.hpp>

namespace qrane::cli {
namespace {

struct SvdCommandOptions {
  CommonOptions common;
  std::string a, u, s, vt;
};

/// The largest few singular values, and the smallest when there are more.
template <class T>
std::string values_line(const Matrix<T>& s) {
  if (s.rows() == 0) return "none";
  constexpr Index shown = 5;
  std::string line;
  for (Index k = 0; k < std::min(s.rows(), shown); ++k) line += (k > 0 ? ", " : "") + brief(s(k, 0), 6);
  if (s.rows() > shown) line += " ... " + brief(s(s.rows() - 1, 0), 6);
  return line;
}

template <class T>
int decompose(const SvdCommandOptions& options, const Context& context, Precision precision) {
  const io::Dense<T> a = read_finite<T>(options.a);
  SvdOptions how;
  how.vectors = !options.u.empty() || !options.vt.empty();
  const Resident<T> resident(context, a);

  const auto start = std::chrono::steady_clock::now();
  Svd<T> result = svd(context, resident.view(), how);
  context.synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Matrix<T> s = on_host(context, std::move(result.s));
  const Index count = s.rows();
  const RankReport rank = numerical_rank(s);  // its condition is infinity for a singular matrix, null in JSON

  const Words say(options.common.quiet);
  say("matrix         ", options.a, ": ", shape(a.rows, a.cols));
  say("device         ", describe_line(context, precision));
  say("time           ", brief(seconds), " s");
  say("values         ", values_line(s));
  say("rank           ", rank.rank, " of ", count, "  (singular values above ", brief(rank.absolute_tolerance), ")");
  say("condition      ", brief(rank.condition));
  const auto write = [&](const char* name, const std::string& path, Matrix<T> matrix) {
    if (path.empty()) return;
    const Matrix<T> host = on_host(context, std::move(matrix));
    io::write_dense<T>(path, host.view());
    say(name, shape(host.rows(), host.cols()), " in ", path);
  };
  write("U              ", options.u, std::move(result.u));
  write("V'             ", options.vt, std::move(result.vt));
  if (!options.s.empty()) {
    io::write_dense<T>(options.s, s.view());
    say("s              ", shape(count, 1), " in ", options.s);
  }
  Json json = describe(context, precision);
  json.update({{"file", options.a},
               {"rows", a.rows},
               {"cols", a.cols},
               {"seconds", seconds},
               {"rank", rank.rank},
               {"absolute_tolerance", rank.absolute_tolerance},
               {"condition", rank.condition},
               {"singular_values", std::vector<T>(s.data(), s.data() + count)}});
  write_json(options.common.json, json);
  return exit_success;
}

int run(const SvdCommandOptions& options) {
  pick_precision(options.common, Precision::f64);
  const bool single = io::probe_matrix(options.a).single_precision;
  return run_on_device(options.common, single, {{"--u", options.u}, {"--s", options.s}, {"--vt", options.vt}},
                       {{"A", options.a}}, [&](auto scalar, const Context& context, Precision precision) {
                         return decompose<decltype(scalar)>(options, context, precision);
                       });
}

}  // namespace

Command add_svd_command(CLI::App& parent) {
  auto options = std::make_shared<SvdCommandOptions>();
  CLI::App* app = parent.add_subcommand("svd", "singular value decomposition: A = U diag(s) V'");
  app->add_option("A", options->a, "matrix file (a sparse .mtx is converted to dense)")->required();
  app->add_option("--u", options->u, "write U (m x min(m, n)) here")->type_name("FILE");
  app->add_option("--s", options->s, "write the singular values here, one a row")->type_name("FILE");
  app->add_option("--vt", options->vt, "write V' (min(m, n) x n) here")->type_name("FILE");
  add_common_options(*app, options->common);
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
