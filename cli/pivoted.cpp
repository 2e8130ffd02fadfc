// SPDX-License-Identifier: Apache-2.0
#include <cli/pivoted.hpp>

#include <chrono>

#include <cli/measures.hpp>
#include <cli/outputs.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/pivoted_qr.hpp>

namespace qrane::cli {
namespace {

template <class T>
io::Dense<T> permuted(const io::Dense<T>& a, const std::vector<Index>& columns) {
  io::Dense<T> out = a;
  for (Index j = 0; j < a.cols; ++j) {
    const Index from = columns[static_cast<std::size_t>(j)];
    for (Index i = 0; i < a.rows; ++i) out.view().data[i + j * out.view().ld] = a.view().data[i + from * a.view().ld];
  }
  return out;
}

template <class T>
int factor(const PivotedRequest& request, const Context& context, Precision precision) {
  const io::Dense<T> a = read_finite<T>(request.a);
  PivotOptions options;
  options.relative_tolerance = request.tolerance;
  options.truncate = request.truncate;
  options.pivoting = pivoting_from_string(request.pivoting);
  options.q = request.q.empty() ? QForm::none : QForm::thin;
  const Resident<T> resident(context, a);
  context.synchronize();
  const auto start = std::chrono::steady_clock::now();
  const PivotedQR<T> f = pivoted_qr<T>(context, resident.view(), options);
  const Index rank = f.rank();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Words say(request.common.quiet);
  say("matrix         ", request.a, ": ", shape(a.rows, a.cols));
  say("device         ", describe_line(context, precision));
  say("pivots         ", to_string(f.pivoting()));
  say("rank           ", rank, " of ", std::min(a.rows, a.cols), "  (diagonal elements above ",
      brief(f.absolute_tolerance()), ")");
  say("time           ", brief(seconds), " s, set-up included");
  Json json = describe(context, precision);
  json.update({{"file", request.a},
               {"rows", a.rows},
               {"cols", a.cols},
               {"pivoting", to_string(f.pivoting())},
               {"rank", rank},
               {"full_rank", std::min(a.rows, a.cols)},
               {"tolerance", f.absolute_tolerance()},
               {"seconds", seconds}});
  const std::vector<Index> columns = f.permutation();
  const Matrix<T> r = on_host(context, f.r());
  Matrix<T> q;
  if (!request.q.empty()) q = on_host(context, f.q());
  if (!request.truncate && !request.q.empty()) {
    const MatrixView<const T> q_view = std::as_const(q).view();
    const io::Dense<T> reordered = permuted(a, columns);
    const QrErrors errors = cheap_errors<T>(reordered.view(), &q_view, r.view());
    if (errors.orthogonality) {
      say("orthogonality  ", brief(*errors.orthogonality), "  (in units of (min(m, n) + 10) u; at most 30)");
      say("residual       ", brief(*errors.residual), "  (the worst column, in the same units; at most 30)");
      json["orthogonality"] = *errors.orthogonality;
      json["residual"] = *errors.residual;
    }
  }
  const auto write = [&](const char* name, const std::string& path, auto matrix) {
    if (path.empty()) return;
    io::write_dense(path, matrix);
    say(name, shape(matrix.rows, matrix.cols), " in ", path);
  };
  write("R              ", request.r, r.view());
  write("Q              ", request.q, std::as_const(q).view());
  if (!request.perm.empty()) {
    io::write_indices(request.perm, columns);
    say("permutation    ", columns.size(), " column indices in ", request.perm);
  }
  write_json(request.common.json, json);
  return exit_success;
}

}  // namespace

int run_pivoted(const PivotedRequest& request) {
  pivoting_from_string(request.pivoting);  // a wrong name is refused before a large file is read
  pick_precision(request.common, Precision::f64);
  const bool single = io::probe_matrix(request.a).single_precision;
  return run_on_device(request.common, single, {{"--r", request.r}, {"--q", request.q}, {"--perm", request.perm}},
                       {{"A", request.a}}, [&](auto scalar, const Context& context, Precision precision) {
                         return factor<decltype(scalar)>(request, context, precision);
                       });
}

}  // namespace qrane::cli
