// SPDX-License-Identifier: Apache-2.0
#include <cli/sparse.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <cli/flops_bar.hpp>
#include <cli/interrupt.hpp>
#include <cli/outputs.hpp>
#include <io/matrices/matrix_file.hpp>
#include <io/matrices/matrix_market.hpp>
#include <qrane/sparse_qr.hpp>

namespace qrane::cli {
namespace {

using sparse::AnalysisFacts;
using sparse::FactorFacts;

/// A file's matrix in the precision of the work, as compressed columns.
template <class T>
struct Loaded {
  explicit Loaded(const std::string& path) : a(io::read_sparse(path)) {
    io::require_finite(path, a);
    values.assign(a.values.begin(), a.values.end());
  }
  sparse::SparseView<T> view() const {
    return sparse::by_columns<T>(a.rows, a.cols, a.col_ptr.data(), a.row_idx.data(), values.data());
  }
  sparse::SparseView<T> transposed() const {
    return sparse::by_rows<T>(a.cols, a.rows, a.col_ptr.data(), a.row_idx.data(), values.data());
  }
  io::Sparse<double> a;
  std::vector<T> values;
};

void say_analysis(const Words& say, const AnalysisFacts& facts) {
  say("ordering       ", to_string(facts.ordering), ", ", facts.fronts, " fronts, ", facts.levels, " levels, ",
      facts.singletons, " singletons");
  say("flops          ", brief(facts.flops), ", ", brief(facts.intensity), " for each byte of the factors");
  say("analysis       ", brief(facts.order_seconds + facts.tree_seconds + facts.layout_seconds), " s");
}

double gflops(const FactorFacts& facts) { return facts.seconds > 0 ? facts.flops / facts.seconds * 1e-9 : 0; }

void say_factor(const Words& say, const FactorFacts& facts) {
  const std::string where = facts.on_device      ? "the device, by its kernels"
                            : facts.threads == 1 ? "1 CPU thread"
                                                 : std::to_string(facts.threads) + " CPU threads";
  say("factorization  ", brief(facts.seconds), " s, ", brief(gflops(facts)), " GFLOP/s on ", where);
  const double mib = 1 << 20;
  say("peak memory    ", brief(static_cast<double>(facts.peak_bytes) / mib), " MiB of fronts and factors");
  if (facts.stages > 1)
    say("staging        ", facts.stages, " stages, ", brief(static_cast<double>(facts.moved_bytes) / mib),
        " MiB moved");
}

void say_rank(const Words& say, const FactorFacts& facts, Index full) {
  say("rank           ", facts.rank, " of ", full, facts.rank < full ? "  ** RANK-DEFICIENT **" : "");
}

Json describe(const AnalysisFacts& analysis, const FactorFacts& facts) {
  const Index full = std::min(analysis.rows, analysis.cols);
  return {{"sparse", true},
          {"factored_on", to_string(facts.backend)},
          {"on_device", facts.on_device},
          {"threads", facts.threads},
          {"moved_bytes", facts.moved_bytes},
          {"stages", facts.stages},
          {"entries", analysis.entries},
          {"ordering", to_string(analysis.ordering)},
          {"fronts", analysis.fronts},
          {"levels", analysis.levels},
          {"singletons", analysis.singletons},
          {"r_entries", analysis.r_entries},
          {"r_entries_exact", analysis.r_entries_exact},
          {"flops", analysis.flops},
          {"intensity", analysis.intensity},
          {"order_seconds", analysis.order_seconds},
          {"tree_seconds", analysis.tree_seconds},
          {"layout_seconds", analysis.layout_seconds},
          {"factor_seconds", facts.seconds},
          {"gflops", gflops(facts)},
          {"peak_bytes", facts.peak_bytes},
          {"rank", facts.rank},
          {"full_rank", full},
          {"rank_deficient", facts.rank < full},
          {"tolerance", facts.absolute_tolerance},
          {"column_tolerance", facts.column_tolerance},
          {"dropped_norm", facts.dropped_norm}};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A factorization with a bar beside it, which ends at Ctrl-C.
template <class T>
sparse::Factor<T> with_bar(const sparse::Analysis& analysis, const sparse::SparseView<T>& a,
                           sparse::FactorOptions options, bool quiet, MatrixView<const T> rhs = {}) {
  const InterruptGuard guard;
  FlopsBar bar(quiet);
  options.on_progress = [draw = bar.callback()](double done, double all) {
    stop_if_interrupted();
    if (draw) draw(done, all);
  };
  sparse::Factor<T> f = analysis.factor(a, options, rhs);
  stop_if_interrupted();
  return f;
}

void take(const SparseOptions& options, sparse::AnalyzeOptions& analyze_options,
          sparse::FactorOptions& factor_options) {
  if (!options.ordering.empty()) analyze_options.ordering = pick_ordering(options.ordering);
  if (!options.processor.empty()) factor_options.processor = sparse::processor_from_string(options.processor);
  factor_options.memory_limit_bytes = memory_limit_bytes(options.memory_limit);
}

template <class T>
int factor(const SparseQrCommand& options, const Context& context, Precision precision) {
  const Loaded<T> a(options.a);
  sparse::AnalyzeOptions analyze_options;
  sparse::FactorOptions factor_options;
  factor_options.absolute_tolerance = options.tolerance;
  factor_options.q = sparse::KeepQ::discard;
  take(options.sparse, analyze_options, factor_options);
  const sparse::Analysis analysis = sparse::analyze(context, a.view(), analyze_options);
  const auto analyzed = std::chrono::steady_clock::now();
  const sparse::Factor<T> f = with_bar(analysis, a.view(), factor_options, options.common.quiet);
  const double set_up = seconds_since(analyzed) - f.facts().seconds;

  const Words say(options.common.quiet);
  say("matrix         ", options.a, ": ", shape(a.a.rows, a.a.cols), ", ", a.a.nonzeros(), " entries");
  say("device         ", describe_line(context, precision));
  say_analysis(say, analysis.facts());
  say_factor(say, f.facts());
  say("set-up         ", brief(set_up), " s (memory, threads, on a device compiling kernels)");
  say_rank(say, f.facts(), std::min(f.rows(), f.cols()));
  if (!options.r.empty()) {
    sparse::SparseMatrix<T> r = f.r();
    const io::Sparse<T> out{r.rows, r.cols, std::move(r.pointers), std::move(r.row_indices), std::move(r.values)};
    io::write_matrix_market(options.r, out);
    say("R              ", shape(out.rows, out.cols), ", ", out.nonzeros(), " entries in ", options.r);
  }
  if (!options.perm.empty()) {
    const std::vector<Index> permutation = f.permutation();
    io::write_indices(options.perm, permutation);
    say("permutation    ", permutation.size(), " column indices in ", options.perm);
  }
  Json json = cli::describe(context, precision);
  json.update({{"file", options.a}, {"rows", f.rows()}, {"cols", f.cols()}, {"set_up_seconds", set_up}});
  json.update(describe(analysis.facts(), f.facts()));
  write_json(options.common.json, json);
  return exit_success;
}

template <class T>
int solve(const SparseSolveCommand& options, const Context& context, Precision precision) {
  const Loaded<T> a(options.a);
  const io::Dense<T> b = read_finite<T>(options.b);
  const bool wide = a.a.rows < a.a.cols;

  const auto start = std::chrono::steady_clock::now();
  const sparse::SparseView<T> tall = wide ? a.transposed() : a.view();
  sparse::AnalyzeOptions analyze_options;
  sparse::FactorOptions factor_options;
  MatrixView<const T> rhs;
  if (!wide && b.cols > 0) {  // Qᵀ b on the fly takes less memory than Q
    factor_options.q = sparse::KeepQ::discard;
    rhs = b.view();
  }
  take(options.sparse, analyze_options, factor_options);
  const sparse::Analysis analysis = sparse::analyze(context, tall, analyze_options);
  const sparse::Factor<T> f = with_bar(analysis, tall, factor_options, options.common.quiet, rhs);
  const auto factored = std::chrono::steady_clock::now();
  const Solution<T> solution = wide ? f.solve_transposed(b.view()) : b.cols > 0 ? f.solve() : f.solve(b.view());
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - start).count();
  const double solve_seconds = std::chrono::duration<double>(now - factored).count();
  const AnalysisFacts& facts = analysis.facts();
  const double set_up = seconds - solve_seconds - f.facts().seconds - facts.order_seconds - facts.tree_seconds -
                        facts.layout_seconds;  // so that the times add up

  const Words say(options.common.quiet);
  const MatrixView<const T> x = solution.x.view();
  say("matrix         ", options.a, ": ", shape(a.a.rows, a.a.cols), ", ", a.a.nonzeros(),
      " entries, right-hand sides: ", b.cols);
  say("device         ", describe_line(context, precision));
  say_analysis(say, analysis.facts());
  say_factor(say, f.facts());
  say("solution       ", brief(solve_seconds), " s");
  say("set-up         ", brief(set_up), " s (memory, threads, on a device compiling kernels)");
  say("time           ", brief(seconds), " s in all");
  say_rank(say, f.facts(), solution.full);
  say("residual norm  ", norms_line(solution.residual_norms));
  say("solution norm  ", norms_line(column_norms<T>(x)));
  if (solution.deficient()) {
    complain(detail::concat("warning: ", options.a, " is rank-deficient: rank ", solution.rank, " of ", solution.full,
                            wide ? "; equations that depend on the others were left out"
                                 : "; many x fit equally well, and this one is zero in the columns that depend on "
                                   "the others"));
  }
  deliver_solution<T>(say, options.x, x);
  Json json = cli::describe(context, precision);
  json.update({{"file", options.a},
               {"right_hand_side", options.b},
               {"rows", a.a.rows},
               {"cols", a.a.cols},
               {"right_hand_sides", b.cols},
               {"seconds", seconds},
               {"solve_seconds", solve_seconds},
               {"set_up_seconds", set_up}});
  json.update(describe(analysis.facts(), f.facts()));
  json.update({{"residual_norms", solution.residual_norms},
               {"right_hand_side_norms", column_norms<T>(b.view())},
               {"solution_norms", column_norms<T>(x)}});
  write_json(options.common.json, json);
  return exit_success;
}

}  // namespace

void add_sparse_options(CLI::App& app, SparseOptions& options) {
  app.add_option("--processor", options.processor,
                 "sparse: automatic (the context's GPU where the work is worth it), cpu, or device")
      ->type_name("NAME");
  app.add_option("--memory-limit", options.memory_limit,
                 "sparse: on a device of all memory taken there (the rest waits on the host), on the CPU of fronts and "
                 "factors; such as 500M or 4G; default what is free")
      ->type_name("BYTES");
  add_ordering_option(app, options.ordering);
}

void add_ordering_option(CLI::App& app, std::string& name) {
  app.add_option("--ordering", name, "sparse: automatic, colamd, amd, metis or natural")->type_name("NAME");
}

sparse::Ordering pick_ordering(const std::string& name) {
  const sparse::Ordering ordering = sparse::ordering_from_string(name);
  detail::check(ordering != sparse::Ordering::given, ErrorCode::invalid_argument,
                "--ordering given: permutations are given to the library, not here");
  return ordering;
}

std::int64_t memory_limit_bytes(const std::string& text) {
  return text.empty() ? 0 : parse_bytes("--memory-limit", text);
}

void check_no_sparse_options(const SparseOptions& options) {
  detail::check(options.processor.empty(), ErrorCode::invalid_argument, "--processor ", options.processor,
                ": only sparse factorizations choose one");
  detail::check(options.memory_limit.empty(), ErrorCode::invalid_argument, "--memory-limit ", options.memory_limit,
                ": only sparse factorizations have one");
  detail::check(options.ordering.empty(), ErrorCode::invalid_argument, "--ordering ", options.ordering,
                ": only sparse factorizations have one");
}

std::string norms_line(const std::vector<double>& norms) {
  if (norms.empty()) return "none: b has no columns";
  const auto [low, high] = std::minmax_element(norms.begin(), norms.end());
  if (norms.size() == 1) return brief(norms.front(), 6);
  return detail::concat(brief(*low, 6), " to ", brief(*high, 6), " over ", norms.size(), " right-hand sides");
}

int run_sparse_qr(const SparseQrCommand& options) {
  const Precision precision =
      pick_precision(options.common, io::probe_matrix(options.a).single_precision ? Precision::f32 : Precision::f64);
  detail::check(options.r.empty() || options.r == "-" || io::is_matrix_market_path(options.r),
                ErrorCode::invalid_argument, "--r ", options.r, ": a sparse R is written as .mtx or .mtx.gz");
  check_outputs({{"--r", options.r}, {"--perm", options.perm}, {"--json", options.common.json, false}},
                {{"A", options.a}});
  const Context context = make_context(options.common, precision);
  return with_scalar(precision, [&](auto scalar) { return factor<decltype(scalar)>(options, context, precision); });
}

int run_sparse_solve(const SparseSolveCommand& options) {
  const bool single = io::probe_matrix(options.a).single_precision && io::probe_matrix(options.b).single_precision;
  const Precision precision = pick_precision(options.common, single ? Precision::f32 : Precision::f64);
  check_outputs({{"--x", options.x}, {"--json", options.common.json, false}}, {{"A", options.a}, {"b", options.b}});
  const Context context = make_context(options.common, precision);
  return with_scalar(precision, [&](auto scalar) { return solve<decltype(scalar)>(options, context, precision); });
}

}  // namespace qrane::cli
