// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "io/partial_file.hpp"
#include "machine.hpp"
#include "report.hpp"
#include "session.hpp"

namespace qrane::bench {
namespace {

SuiteInfo find_suite(const std::string& name) {
  std::vector<std::string> known;
  std::string names;
  for (const SuiteInfo& suite : suites()) {
    if (suite.name == name) return suite;
    if (suite.hidden) continue;
    known.push_back(suite.name);
    names += (names.empty() ? "" : ", ") + suite.name;
  }
  const std::string meant = detail::nearest(name, known);
  throw Error(ErrorCode::invalid_argument, detail::concat("unknown suite '", name, "'; there are ", names,
                                                          meant.empty() ? "" : "; did you mean " + meant + "?"));
}

std::vector<std::string> wanted_precisions(const std::string& precision, const DeviceInfo& device) {
  detail::check(precision.empty() || precision == "f32" || precision == "f64", ErrorCode::invalid_argument,
                "precision must be f32 or f64, got '", precision, "'");
  detail::check(precision != "f64" || device.has_double, ErrorCode::unavailable, device.name,
                " has no double precision");
  if (!precision.empty()) return {precision};
  if (!device.has_double) return {"f32"};
  return {"f32", "f64"};
}

/// Puts down what was measured so far, whatever ends the run; throws for an unwritable file.
void write_results(const BenchOptions& options, Session& session, BenchResults& results) {
  results.rates = session.measured_rates();
  results.interrupted = session.interrupted();
  results.elapsed_seconds = session.elapsed_seconds();
  session.progress("");
  if (!options.quiet) print_foot(results);
  if (!options.json_file.empty()) io::write_file(options.json_file, to_json(results));
}

template <class Cases>
bool any_failed(const Cases& cases) {
  return std::any_of(cases.begin(), cases.end(), [](const auto& result) { return result.outcome == Outcome::failed; });
}

/// All cases of one precision that share a matrix before those of the other: one matrix in memory at a time.
void run_updates(Session& session, const SuiteInfo& suite, const std::vector<std::string>& precisions,
                 const std::function<void(const UpdateCase&)>& report) {
  UpdateRunner runner(session);
  const auto shared = [](const UpdateShape& a, const UpdateShape& b) {
    return a.shape.rows == b.shape.rows && a.shape.cols == b.shape.cols && a.form == b.form;
  };
  for (std::size_t first = 0, end = 0; first < suite.updates.size(); first = end) {
    while (end < suite.updates.size() && shared(suite.updates[first], suite.updates[end])) ++end;
    for (const std::string& precision : precisions) {
      for (std::size_t i = first; i < end && !session.interrupted(); ++i)
        runner.run(suite.updates[i], precision, report);
      runner.forget();
    }
  }
}

void run_sparse_uses(Session& session, const SuiteInfo& suite, const std::vector<std::string>& precisions,
                     const std::function<void(const SparseUsesCase&)>& report) {
  for (const SparseProblem& problem : suite.sparse(session.options().matrices))
    for (const std::string& precision : precisions)
      if (!session.interrupted()) run_sparse_uses_case(session, problem, precision, report);
}

void run_suite(Session& session, const SuiteInfo& suite, const std::vector<std::string>& precisions,
               BenchResults& results) {
  Table table(session);
  const auto done = [&](auto& list) {
    return [&](const auto& result) {
      session.progress("");
      table.add(result);
      list.push_back(result);
    };
  };
  for (const Shape shape : suite.shapes)
    for (const std::string& precision : precisions)
      if (!session.interrupted()) run_qr_cases(session, suite, shape, precision, done(results.cases));
  for (const Shape shape : suite.grid)
    for (const std::string& precision : precisions)
      if (!session.interrupted()) run_grid_case(session, shape, precision, done(results.grid));
  for (const OperationShape& operation : suite.operations)
    for (const std::string& precision : precisions)
      if (!session.interrupted()) run_operation_case(session, operation, precision, done(results.operations));
  run_updates(session, suite, precisions, done(results.updates));
  if (suite.tiles)
    run_tile_cases(session, suite.sparse(session.options().matrices), precisions, done(results.tiles));
  else if (suite.uses)
    run_sparse_uses(session, suite, precisions, done(results.sparse_uses));
  else if (suite.sparse)
    for (const SparseProblem& problem : suite.sparse(session.options().matrices))
      if (!session.interrupted()) done(results.sparse)(run_sparse_case(session, problem, precisions));
  if (suite.inner_kernels && !session.interrupted()) run_kernel_cases(session, done(results.kernels));
  for (const Shape shape : suite.background)
    for (const std::string& precision : precisions)
      if (!session.interrupted()) run_background_cases(session, suite, shape, precision, done(results.background));
}

}  // namespace

int run(const BenchOptions& options) {
  const SuiteInfo suite = find_suite(options.suite);
  Session session(options, suite);
  const std::vector<std::string> precisions =
      wanted_precisions(options.precision.empty() ? suite.precision : options.precision, session.device());

  BenchResults results;
  results.suite = suite.name;
  results.date = utc_now();
  results.device = session.device();
  results.programs = session.programs();
  if (!options.quiet) print_head(results);
  try {
    run_suite(session, suite, precisions, results);
  } catch (...) {
    write_results(options, session, results);
    throw;
  }
  write_results(options, session, results);
  const bool failed = any_failed(results.cases) || any_failed(results.operations) || any_failed(results.grid) ||
                      any_failed(results.kernels) || any_failed(results.background) || any_failed(results.updates) ||
                      any_failed(results.sparse) || any_failed(results.sparse_uses) || any_failed(results.tiles);
  return results.interrupted || failed ? 1 : 0;
}

}  // namespace qrane::bench
